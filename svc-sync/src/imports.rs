//! The rules of import runs (spec 3.4, 4.10; import.md, "Import runs"): which requests are allowed in which state.

mod archive;
mod entries;
mod report;
mod upload;

use cairn_chassis::identity::Permission;
use cairn_chassis::limits::CounterGrowth;
use cairn_chassis::status::{Reason, Violation};
use cairn_proto::ids::{FolderId, SyncRunId};

pub(crate) use self::archive::{Planned, fetch, plan};
pub(crate) use self::entries::{ReportEntry, ReportPage, ReportQuery};
pub(crate) use self::report::{Results, executed, rolled_back};
pub(crate) use self::upload::{Part, UploadEnd};
use crate::content::ContentSession;
use crate::context::Context;
use crate::decision::decide;
use crate::manifest::MAX_FOLDERS;
use crate::model::{
    Baseline, ConflictPolicy, Counters, Entry, ImportProvider, Origin, Phase, Report, Run, RunStatus, Sync,
    Warning,
};
use crate::reading::{Failure, Scratch, Source};
use crate::run_state::{self, Page};
use crate::scope::Caller;
use crate::syncs::read_folder;
use crate::{Error, store};

/// The request of a preview.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) provider: ImportProvider,
    pub(crate) file_name: String,
    pub(crate) policy: ConflictPolicy,
    pub(crate) folder: Option<String>,
}

/// A run as callers see it.
#[derive(Debug, Clone)]
pub(crate) struct RunView {
    pub(crate) run: Run,
    /// The first of the report's warnings.
    pub(crate) warnings: Vec<Warning>,
    /// The first results of a run that has ended.
    pub(crate) results: Results,
    /// The position in the queue of the workspace, from 1; 0 when it is not queued.
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

    /// Plans an archive and stores both. Nothing is written to the workspace.
    async fn preview_of(
        &self,
        caller: &Caller,
        draft: Draft,
        mut scratch: Scratch,
    ) -> Result<RunView, Error> {
        let folder = read_folder(draft.folder.as_deref())?;
        let session = self.open(caller, Permission::Write).await?;
        let source = Source {
            provider: draft.provider,
            file_name: draft.file_name.clone(),
            folders: self.folders_below(&session, folder).await?,
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
            requester: caller.requester.clone(),
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
        let (baseline, states) = self.baseline(&session, run.sync()).await?;
        let decisions = decide(&run, &planned.items, &baseline, &states);
        run.would = decisions.would(&planned.items);
        run.total = run.would.created + run.would.updated + run.would.skipped + run.would.conflicts;
        (run.documents, run.bytes) = decisions.usage(&planned.items);
        let mut report = report::dry_run(&run, &planned, &decisions);
        let full = self.exceeded_limits(&run, &session).await?;
        report.warnings.extend(full.iter().map(|limit| {
            Warning::new(&limit.path, "limit_exceeded", &format!("the plan has no room: {}", limit.message))
        }));

        archive::keep(&self.context, run.workspace, id, &scratch).await?;
        let mut tx = self.context.db.begin_write().await?;
        store::runs::insert(&mut tx, &run).await?;
        store::details::insert(&mut tx, run.workspace, run.id, &report, &[]).await?;
        tx.commit().await?;
        Ok(RunView::of(run, report))
    }

    /// A run; once it has ended, with the outcome of each object.
    pub(crate) async fn get(&self, caller: &Caller, id: &str) -> Result<RunView, Error> {
        self.show(self.find(caller, id).await?).await
    }

    /// Runs of the workspace, newest first.
    pub(crate) async fn list(&self, caller: &Caller, size: u32, token: &str) -> Result<Page, Error> {
        run_state::list(&self.context, caller, true, "", size, token).await
    }

    /// The whole report.
    pub(crate) async fn report(&self, caller: &Caller, id: &str) -> Result<Report, Error> {
        let run = self.find(caller, id).await?;
        let found = store::details::get(&self.context.db, run.workspace, run.id).await?;
        found.ok_or_else(|| Error::NoRun(id.to_owned()))
    }

    /// Queues a run, if it fits the limits of the plan.
    pub(crate) async fn start(&self, caller: &Caller, id: &str) -> Result<RunView, Error> {
        let run = self.find(caller, id).await?;
        run_state::require_startable(&run)?;
        if !store::details::has_pieces(&self.context.db, run.workspace, run.id).await? {
            return Err(Error::ArchiveGone);
        }
        let session = self.open(caller, Permission::Write).await?;
        let full = self.exceeded_limits(&run, &session).await?;
        if !full.is_empty() {
            return Err(Error::LimitExceeded(full));
        }
        let require = run_state::require_startable;
        let queued = run_state::queue(&self.context, caller, &run, Phase::Sync, require).await?;
        self.show(queued).await
    }

    /// Cancels a run that has not ended; what it imported so far stays.
    pub(crate) async fn cancel(&self, caller: &Caller, id: &str) -> Result<RunView, Error> {
        run_state::cancel(&self.context, &self.find(caller, id).await?).await?;
        self.get(caller, id).await
    }

    /// Queues the rollback of a run.
    pub(crate) async fn roll_back(&self, caller: &Caller, id: &str) -> Result<RunView, Error> {
        let run = self.find(caller, id).await?;
        run_state::require_revertible(&self.context, &run)?;
        self.open(caller, Permission::Delete).await?;
        let require = |run: &Run| run_state::require_revertible(&self.context, run);
        let queued = run_state::queue(&self.context, caller, &run, Phase::Rollback, require).await?;
        self.show(queued).await
    }

    async fn open(&self, caller: &Caller, needed: Permission) -> Result<ContentSession, Error> {
        let session = self.context.content.open(caller.workspace, &caller.requester, needed).await;
        session.map_err(Error::Upstream)
    }

    async fn find(&self, caller: &Caller, id: &str) -> Result<Run, Error> {
        run_state::find(&self.context, caller, id, true).await
    }

    async fn show(&self, run: Run) -> Result<RunView, Error> {
        let found: Option<Report> = store::details::get(&self.context.db, run.workspace, run.id).await?;
        match found {
            Some(report) => {
                let place = run_state::place(&self.context, &run).await?;
                Ok(RunView { place, ..RunView::of(run, report) })
            }
            None => Err(Error::NoRun(run.id.to_string())),
        }
    }

    /// How many levels of folders fit below the import's own.
    async fn folders_below(
        &self,
        session: &ContentSession,
        folder: Option<FolderId>,
    ) -> Result<usize, Error> {
        let Some(folder) = folder else { return Ok(MAX_FOLDERS - 1) };
        match session.depth(folder).await {
            Ok(depth) if depth >= MAX_FOLDERS => {
                let message = format!("no folder fits in it: folders nest at most {MAX_FOLDERS} levels deep");
                Err(Error::invalid("folderId", "too_deep", message))
            }
            Ok(depth) => Ok(MAX_FOLDERS - 1 - depth),
            Err(problem) if problem.reason == Reason::NotFound => {
                Err(Error::invalid("folderId", "not_found", "there is no such folder in the workspace"))
            }
            Err(problem) => Err(Error::Upstream(problem)),
        }
    }

    async fn baseline(
        &self,
        session: &ContentSession,
        sync: Sync<'_>,
    ) -> Result<(Baseline, crate::plan::States), Error> {
        let baseline = Baseline::of(store::entries::list(&self.context.db, sync).await?);
        let known = baseline.0.values().map(|entry: &Entry| (entry.kind, entry.id));
        let states = session.states(known).await.map_err(Error::Upstream)?;
        Ok((baseline, states))
    }

    /// The limits that the run would exceed, according to the counts of the preview.
    async fn exceeded_limits(&self, run: &Run, session: &ContentSession) -> Result<Vec<Violation>, Error> {
        let (files, bytes) = session.quotas().await.map_err(Error::Upstream)?;
        let grown =
            |by: u64, used: u64| CounterGrowth { by: i64::try_from(by).unwrap_or(i64::MAX), to: used + by };
        let done = run.counters.processed > 0;
        // It is unknown how much of an interrupted run was written.
        let new = if done { 0 } else { run.documents };
        let more = if done { 0 } else { run.bytes };
        let mut full = Vec::new();
        full.extend(grown(new, files.used).refusal("files", files.limit, ""));
        full.extend(grown(more, bytes.used).refusal("storageBytes", bytes.limit, " bytes"));
        Ok(full)
    }
}

/// The name of an import's baseline: the place of its own folder.
fn name_of(folder: Option<FolderId>, root: &str) -> String {
    format!("{}/{root}", folder.map(|id| id.to_string()).unwrap_or_default())
}

/// The error for an archive that is refused.
fn refused(failure: Failure) -> Error {
    match failure {
        Failure::Refused(code, message) => Error::invalid("archive", &code, message),
        Failure::Lost => Error::invalid("archive", "archive_invalid", failure.message()),
        Failure::Unavailable => Error::Scratch(std::io::ErrorKind::Other.into()),
    }
}
