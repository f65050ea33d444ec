//! The rules of import runs (spec 3.4, 4.10; import.md, "Import runs"): what may be asked of them when.

mod archive;
mod entries;
mod report;
mod upload;

use cairn_chassis::identity::Permission;
use cairn_chassis::limits::Grown;
use cairn_chassis::status::{Reason, Violation};
use cairn_proto::ids::{FolderId, SyncRunId};

pub(crate) use self::archive::{Planned, fetch, plan};
pub(crate) use self::entries::{ReportAsked, ReportEntry, ReportPage};
pub(crate) use self::report::{Results, executed, rolled_back};
pub(crate) use self::upload::{Part, UploadEnd};
use crate::content::Opened;
use crate::context::Context;
use crate::decision::decide;
use crate::manifest::MOST_FOLDERS;
use crate::model::{
    ConflictPolicy, Counters, Entry, ImportProvider, Memory, Origin, Phase, Report, Run, RunStatus, Sync,
    Warning,
};
use crate::reading::{Failure, Scratch, Source};
use crate::scope::Caller;
use crate::standing::{self, Page};
use crate::syncs::read_folder;
use crate::{Error, store};

/// What a preview is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) provider: ImportProvider,
    pub(crate) file_name: String,
    pub(crate) policy: ConflictPolicy,
    pub(crate) folder: Option<String>,
}

/// A run with what is told of it at once.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) run: Run,
    /// The first of them.
    pub(crate) warnings: Vec<Warning>,
    /// Of a run that is over, the first of them.
    pub(crate) results: Results,
    /// Among the runs of the workspace that wait for their turn, from 1; 0 when it does not wait.
    pub(crate) place: u64,
}

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Imports {
    context: Context,
}

impl Imports {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// Plans what an archive comes to, and keeps both. Nothing is written to the workspace.
    async fn preview_of(&self, caller: &Caller, draft: Draft, mut scratch: Scratch) -> Result<Shown, Error> {
        let folder = read_folder(draft.folder.as_deref())?;
        let opened = self.open(caller, Permission::Write).await?;
        let source = Source {
            provider: draft.provider,
            file_name: draft.file_name.clone(),
            folders: self.folders_below(&opened, folder).await?,
            asset_bytes: self.context.limits.of(caller.plan.as_deref()).object_bytes,
        };
        let archive_bytes = scratch.length();
        let reader = &self.context.reader;
        scratch.add_parts(reader, &source).await.map_err(refused)?;
        let planned = plan(&scratch, reader, &source).await.map_err(refused)?;

        let id: SyncRunId = self.context.ids.next();
        let mut run = Run {
            workspace: caller.workspace,
            id,
            origin: Origin::Archive(draft.provider),
            name: name_of(folder, &planned.root),
            file_name: Some(draft.file_name),
            archive_bytes,
            object_bytes: source.asset_bytes,
            folder,
            policy: draft.policy,
            prune: false,
            state: RunStatus::Ready,
            phase: Phase::Sync,
            asker: caller.asker.clone(),
            counters: Counters::default(),
            total: 0,
            would: Counters::default(),
            documents: 0,
            bytes: 0,
            error: None,
            tries: 0,
            not_before: None,
            cancel_asked: false,
            created_at: self.context.clock.now(),
            started_at: None,
            finished_at: None,
            rollback_until: None,
        };
        let (memory, states) = self.remembered(&opened, run.sync()).await?;
        let decisions = decide(&run, &planned.items, &memory, &states);
        run.would = decisions.would(&planned.items);
        run.total = run.would.created + run.would.updated + run.would.skipped + run.would.conflicts;
        (run.documents, run.bytes) = decisions.room(&planned.items);
        let mut report = report::dry_run(&run, &planned, &decisions);
        let full = self.no_room(&run, &opened).await?;
        report.warnings.extend(full.iter().map(|limit| {
            Warning::new(&limit.path, "limit_exceeded", &format!("the plan has no room: {}", limit.message))
        }));

        archive::keep(&self.context, run.workspace, id, &scratch).await?;
        let mut tx = self.context.db.begin_write().await?;
        store::runs::insert(&mut tx, &run).await?;
        store::details::insert(&mut tx, run.workspace, run.id, &report, &[]).await?;
        tx.commit().await?;
        Ok(Shown::of(run, report))
    }

    /// A run, with what became of each object when it is over.
    pub(crate) async fn get(&self, caller: &Caller, id: &str) -> Result<Shown, Error> {
        self.show(self.find(caller, id).await?).await
    }

    /// Runs of the workspace, newest first.
    pub(crate) async fn list(&self, caller: &Caller, size: u32, token: &str) -> Result<Page, Error> {
        standing::list(&self.context, caller, true, "", size, token).await
    }

    /// The whole report.
    pub(crate) async fn report(&self, caller: &Caller, id: &str) -> Result<Report, Error> {
        let run = self.find(caller, id).await?;
        let found = store::details::get(&self.context.db, run.workspace, run.id).await?;
        found.ok_or_else(|| Error::NoRun(id.to_owned()))
    }

    /// Queues a run, as far as the plan has room for it.
    pub(crate) async fn start(&self, caller: &Caller, id: &str) -> Result<Shown, Error> {
        let run = self.find(caller, id).await?;
        standing::require_startable(&run)?;
        if !store::details::has_pieces(&self.context.db, run.workspace, run.id).await? {
            return Err(Error::ArchiveGone);
        }
        let opened = self.open(caller, Permission::Write).await?;
        let full = self.no_room(&run, &opened).await?;
        if !full.is_empty() {
            return Err(Error::LimitExceeded(full));
        }
        let require = standing::require_startable;
        let queued = standing::queue(&self.context, caller, &run, Phase::Sync, require).await?;
        self.show(queued).await
    }

    /// Ends a run that is not over; what it imported so far stays.
    pub(crate) async fn cancel(&self, caller: &Caller, id: &str) -> Result<Shown, Error> {
        standing::cancel(&self.context, &self.find(caller, id).await?).await?;
        self.get(caller, id).await
    }

    /// Queues the rollback of a run.
    pub(crate) async fn roll_back(&self, caller: &Caller, id: &str) -> Result<Shown, Error> {
        let run = self.find(caller, id).await?;
        standing::require_revertible(&self.context, &run)?;
        self.open(caller, Permission::Delete).await?;
        let require = |run: &Run| standing::require_revertible(&self.context, run);
        let queued = standing::queue(&self.context, caller, &run, Phase::Rollback, require).await?;
        self.show(queued).await
    }

    async fn open(&self, caller: &Caller, needed: Permission) -> Result<Opened, Error> {
        let opened = self.context.content.open(caller.workspace, &caller.asker, needed).await;
        opened.map_err(Error::Upstream)
    }

    async fn find(&self, caller: &Caller, id: &str) -> Result<Run, Error> {
        standing::find(&self.context, caller, id, true).await
    }

    async fn show(&self, run: Run) -> Result<Shown, Error> {
        let found: Option<Report> = store::details::get(&self.context.db, run.workspace, run.id).await?;
        match found {
            Some(report) => {
                let place = standing::place(&self.context, &run).await?;
                Ok(Shown { place, ..Shown::of(run, report) })
            }
            None => Err(Error::NoRun(run.id.to_string())),
        }
    }

    /// Folders that may nest below the import's own.
    async fn folders_below(&self, opened: &Opened, folder: Option<FolderId>) -> Result<usize, Error> {
        let Some(folder) = folder else { return Ok(MOST_FOLDERS - 1) };
        match opened.depth(folder).await {
            Ok(depth) if depth >= MOST_FOLDERS => {
                let message =
                    format!("no folder fits in it: folders nest at most {MOST_FOLDERS} levels deep");
                Err(Error::invalid("folderId", "too_deep", message))
            }
            Ok(depth) => Ok(MOST_FOLDERS - 1 - depth),
            Err(problem) if problem.reason == Reason::NotFound => {
                Err(Error::invalid("folderId", "not_found", "there is no such folder in the workspace"))
            }
            Err(problem) => Err(Error::Upstream(problem)),
        }
    }

    async fn remembered(
        &self,
        opened: &Opened,
        sync: Sync<'_>,
    ) -> Result<(Memory, crate::plan::States), Error> {
        let memory = Memory::of(store::entries::list(&self.context.db, sync).await?);
        let known = memory.0.values().map(|entry: &Entry| (entry.kind, entry.id));
        let states = opened.states(known).await.map_err(Error::Upstream)?;
        Ok((memory, states))
    }

    /// The limits that the run would go beyond, as the preview counted.
    async fn no_room(&self, run: &Run, opened: &Opened) -> Result<Vec<Violation>, Error> {
        let (files, bytes) = opened.room().await.map_err(Error::Upstream)?;
        let grown = |by: u64, used: u64| Grown { by: i64::try_from(by).unwrap_or(i64::MAX), to: used + by };
        let done = run.counters.processed > 0;
        // Of one that goes on, nobody knows how much of it is there.
        let new = if done { 0 } else { run.documents };
        let more = if done { 0 } else { run.bytes };
        let mut full = Vec::new();
        full.extend(grown(new, files.used).refusal("files", files.limit, ""));
        full.extend(grown(more, bytes.used).refusal("storageBytes", bytes.limit, " bytes"));
        Ok(full)
    }
}

/// Under which what an import writes is remembered: the place of its own folder.
fn name_of(folder: Option<FolderId>, root: &str) -> String {
    format!("{}/{root}", folder.map(|id| id.to_string()).unwrap_or_default())
}

/// Why an archive is not taken.
fn refused(failure: Failure) -> Error {
    match failure {
        Failure::Refused(code, message) => Error::invalid("archive", &code, message),
        Failure::Lost => Error::invalid("archive", "archive_invalid", failure.message()),
        Failure::Unavailable => Error::Scratch(std::io::ErrorKind::Other.into()),
    }
}
