//! The rules of sync runs (spec 3.3, 4.7; import.md, "Directory sync"): which requests are allowed in which state.

mod view;

use std::sync::Arc;

use cairn_chassis::identity::Permission;
use cairn_chassis::limits::CounterGrowth;
use cairn_chassis::sql;
use cairn_chassis::status::Violation;
use cairn_chassis::wording;
use cairn_proto::ids::{FolderId, SyncRunId};

pub(crate) use self::view::RunView;
use crate::content::ContentSession;
use crate::context::Context;
use crate::manifest::{self, Checked, MAX_FOLDERS, Sent};
use crate::model::{
    Baseline, ConflictPolicy, Counters, Details, Document, Kind, Origin, Phase, Run, RunStatus, Sync,
};
use crate::packed::pack;
use crate::plan::{self, Rules};
use crate::run_state::{self, Page};
use crate::scope::Caller;
use crate::{Error, store};

/// The request of a preview.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    pub(crate) name: String,
    pub(crate) documents: Vec<Sent>,
    pub(crate) policy: ConflictPolicy,
    pub(crate) prune: bool,
    pub(crate) folder: Option<String>,
}

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Syncs {
    context: Context,
}

impl Syncs {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// Stores a manifest and plans its run. Nothing is written to the workspace.
    pub(crate) async fn preview(&self, caller: &Caller, draft: Draft) -> Result<RunView, Error> {
        let folder = read_folder(draft.folder.as_deref())?;
        let (name, documents) = (draft.name, draft.documents);
        let checked = blocking(move || manifest::check(&name, documents)).await??;
        let session = self.open(caller, Permission::Write).await?;
        self.check_depth(&session, folder, &checked.documents).await?;

        let Checked { name, mut documents, texts, notes, unsent } = checked;
        let db = &self.context.db;
        let baseline = Baseline::of(
            store::entries::list(
                db,
                Sync { workspace: caller.workspace, origin: Origin::Directory, name: &name },
            )
            .await?,
        );
        manifest::require_known(&unsent, &baseline)?;
        let states = session.states(baseline.0.values().map(|entry| (entry.kind, entry.id))).await;
        let states = states.map_err(Error::Upstream)?;
        // Texts that the baseline has already need not be stored.
        let baseline = Arc::new(baseline);
        let known = Arc::clone(&baseline);
        let (documents, pieces, bytes) = blocking(move || {
            let is_new = |document: &Document| {
                known.get(Kind::File, &document.path).is_none_or(|entry| entry.hash != document.hash)
            };
            let (pieces, bytes) = manifest::piece_up(&mut documents, &texts, is_new);
            let packed = pieces.iter().map(|piece| pack(piece)).collect::<Result<Vec<_>, _>>()?;
            Ok::<_, sql::Error>((documents, packed, bytes))
        })
        .await??;

        let id: SyncRunId = self.context.ids.next();
        let rules = Rules { run: id, policy: draft.policy, prune: draft.prune };
        let mut details = Details { documents, notes, ..Details::default() };
        let plan = plan::plan(rules, &details, &baseline, &states);
        let (would, changes, unwritten) = (plan.would(), plan.changes(), plan.unwritten.clone());
        let would_prune = plan.prunable();
        drop(plan);
        (details.would_prune, details.changes) = (would_prune, changes);
        let pruned = if draft.prune { would.pruned } else { 0 };
        let run = Run {
            workspace: caller.workspace,
            id,
            origin: Origin::Directory,
            name,
            file_name: None,
            archive_bytes: 0,
            object_bytes: 0,
            folder,
            policy: draft.policy,
            prune: draft.prune,
            state: RunStatus::Ready,
            phase: Phase::Sync,
            requester: caller.requester.clone(),
            counters: Counters::default(),
            total: would.created + would.updated + would.skipped + would.conflicts + pruned,
            would,
            documents: details.documents.len() as u64,
            bytes,
            error: None,
            tries: 0,
            not_before: None,
            cancel_asked: false,
            created_at: self.context.clock.now(),
            started_at: None,
            finished_at: None,
            rollback_until: None,
        };
        let mut tx = db.begin_write().await?;
        store::runs::insert(&mut tx, &run).await?;
        store::details::insert(&mut tx, run.workspace, run.id, &details, &unwritten).await?;
        for (place, piece) in pieces.iter().enumerate() {
            store::details::insert_piece(&mut tx, run.workspace, run.id, place, piece).await?;
        }
        tx.commit().await?;
        Ok(RunView::of(run, details, &unwritten, &[], Vec::new()))
    }

    /// A run; once it has ended, with the outcome of each document.
    pub(crate) async fn get(&self, caller: &Caller, id: &str) -> Result<RunView, Error> {
        let run = self.find(caller, id).await?;
        self.show(run).await
    }

    /// Runs of the workspace, newest first; of one name unless it is empty.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        name: &str,
        size: u32,
        token: &str,
    ) -> Result<Page, Error> {
        run_state::list(&self.context, caller, false, name, size, token).await
    }

    /// Queues a run, if it fits the limits of the plan.
    pub(crate) async fn start(&self, caller: &Caller, id: &str) -> Result<RunView, Error> {
        let run = self.find(caller, id).await?;
        run_state::require_startable(&run)?;
        let session = self.open(caller, Permission::Write).await?;
        self.require_room(caller, &run, &session).await?;
        self.queue(caller, &run, Phase::Sync, run_state::require_startable).await
    }

    /// Queues the rollback of a run.
    pub(crate) async fn roll_back(&self, caller: &Caller, id: &str) -> Result<RunView, Error> {
        let run = self.find(caller, id).await?;
        run_state::require_revertible(&self.context, &run)?;
        self.open(caller, Permission::Delete).await?;
        self.queue(caller, &run, Phase::Rollback, |run| run_state::require_revertible(&self.context, run))
            .await
    }

    /// Cancels a run that has not ended.
    pub(crate) async fn cancel(&self, caller: &Caller, id: &str) -> Result<RunView, Error> {
        let found = self.find(caller, id).await?;
        run_state::cancel(&self.context, &found).await?;
        self.show(self.find(caller, id).await?).await
    }

    /// Removes a run; what it wrote stays, and so does the baseline.
    pub(crate) async fn delete(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let found = self.find(caller, id).await?;
        let mut tx = self.context.db.begin_write().await?;
        let locked = store::runs::get_for_update(&mut tx, found.workspace, found.id).await?;
        let run = locked.ok_or_else(|| Error::NoRun(id.to_owned()))?;
        if run.state.is_busy() {
            return Err(Error::RunBusy(
                "the run is queued or running: wait for its end, or cancel it".to_owned(),
            ));
        }
        remove(&mut tx, &run).await?;
        Ok(tx.commit().await?)
    }

    async fn open(&self, caller: &Caller, needed: Permission) -> Result<ContentSession, Error> {
        let session = self.context.content.open(caller.workspace, &caller.requester, needed).await;
        session.map_err(Error::Upstream)
    }

    async fn find(&self, caller: &Caller, id: &str) -> Result<Run, Error> {
        run_state::find(&self.context, caller, id, false).await
    }

    async fn show(&self, run: Run) -> Result<RunView, Error> {
        let db = &self.context.db;
        let details = store::details::get(db, run.workspace, run.id).await?.unwrap_or_default();
        let (unwritten, kept) = store::details::left_alone(db, run.workspace, run.id).await?;
        let is_over = !run.state.is_busy() && run.state != RunStatus::Ready;
        let done = if is_over {
            store::batches::list(db, run.workspace, run.id, Phase::Sync).await?
        } else {
            Vec::new()
        };
        let place = run_state::place(&self.context, &run).await?;
        Ok(RunView { place, ..RunView::of(run, details, &unwritten, &kept, done) })
    }

    async fn queue(
        &self,
        caller: &Caller,
        run: &Run,
        phase: Phase,
        require: impl Fn(&Run) -> Result<(), Error>,
    ) -> Result<RunView, Error> {
        let queued = run_state::queue(&self.context, caller, run, phase, require).await?;
        self.show(queued).await
    }

    async fn check_depth(
        &self,
        session: &ContentSession,
        folder: Option<FolderId>,
        documents: &[Document],
    ) -> Result<(), Error> {
        let Some(folder) = folder else { return Ok(()) };
        let above = session.depth(folder).await.map_err(Error::Upstream)?;
        let deepest = documents.iter().map(|document| document.path.matches('/').count()).max();
        if above + deepest.unwrap_or(0) > MAX_FOLDERS {
            let message = format!(
                "the directory nests too deep for this folder: folders nest at most {MAX_FOLDERS} levels deep"
            );
            return Err(Error::invalid("folderId", "too_deep", message));
        }
        Ok(())
    }

    /// Checks the limits of the plan against the counts of the preview; svc-content checks each write again.
    async fn require_room(&self, caller: &Caller, run: &Run, session: &ContentSession) -> Result<(), Error> {
        let most = self.context.limits.max_documents_per_sync(caller.plan.as_deref());
        let mut refused = Vec::new();
        if run.documents > most {
            let message = format!("a sync may have {most}, and this one has {}", run.documents);
            refused.push(Violation::new("documents", "limit_exceeded", message));
        }
        let (files, bytes) = session.quotas().await.map_err(Error::Upstream)?;
        let grown =
            |by: u64, used: u64| CounterGrowth { by: i64::try_from(by).unwrap_or(i64::MAX), to: used + by };
        let new = run.would.created.saturating_sub(run.counters.created);
        refused.extend(grown(new, files.used).refusal("files", files.limit, ""));
        refused.extend(grown(run.bytes, bytes.used).refusal("storageBytes", bytes.limit, " bytes"));
        if refused.is_empty() { Ok(()) } else { Err(Error::LimitExceeded(refused)) }
    }
}

/// Removes all rows of a run.
pub(crate) async fn remove(tx: &mut sql::Tx, run: &Run) -> Result<(), Error> {
    store::batches::remove(tx, run.workspace, run.id).await?;
    store::details::remove(tx, run.workspace, run.id).await?;
    Ok(store::runs::remove(tx, run.workspace, run.id).await?)
}

pub(crate) fn read_folder(text: Option<&str>) -> Result<Option<FolderId>, Error> {
    let read = |text: &str| text.parse().map_err(|_| Error::invalid("folderId", "invalid", wording::ID));
    text.map(read).transpose()
}

/// Hashing and compressing a manifest would block the async thread for too long.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, sql::Error> {
    tokio::task::spawn_blocking(work).await.map_err(|_| sql::Error::corrupt("a manifest could not be read"))
}
