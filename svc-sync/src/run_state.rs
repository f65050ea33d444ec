//! The states of sync and import runs: finding and listing runs, and which transitions are allowed.

use std::time::Duration;

use cairn_proto::ids::SyncRunId;

use crate::context::Context;
use crate::model::{Phase, Run, RunStatus};
use crate::scope::Caller;
use crate::{Error, store};

/// For how long a run can be rolled back (spec, section 8).
pub(crate) const ROLLBACK_WINDOW: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const DEFAULT_PAGE: u32 = 50;
const MAX_PAGE: u32 = 1_000;

/// A page of runs.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) runs: Vec<Run>,
    /// Empty after the last page.
    pub(crate) next: String,
    pub(crate) total: u64,
}

/// A run of the caller's workspace: of an import, or of a sync.
pub(crate) async fn find(
    context: &Context,
    caller: &Caller,
    id: &str,
    of_import: bool,
) -> Result<Run, Error> {
    let no_run = || Error::NoRun(id.to_owned());
    let parsed = id.parse::<SyncRunId>().map_err(|_| no_run())?;
    let found = store::runs::get(&context.db, caller.workspace, parsed).await?;
    found.filter(|run| run.origin.is_import() == of_import).ok_or_else(no_run)
}

/// Runs of the workspace, newest first; of one name unless it is empty.
pub(crate) async fn list(
    context: &Context,
    caller: &Caller,
    of_imports: bool,
    name: &str,
    size: u32,
    token: &str,
) -> Result<Page, Error> {
    let size = if size == 0 { DEFAULT_PAGE } else { size.min(MAX_PAGE) };
    let before = match token {
        // Every id sorts before it.
        "" => "~".to_owned(),
        token => token.parse::<SyncRunId>().map_err(|_| bad_token())?.to_string(),
    };
    if name.contains('\0') {
        // No sync is called so, and PostgreSQL takes no such text.
        return Ok(Page { runs: Vec::new(), next: String::new(), total: 0 });
    }
    let most = i64::from(size) + 1;
    let (mut runs, total) =
        store::runs::page(&context.db, caller.workspace, of_imports, name, &before, most).await?;
    let has_more = runs.len() > size as usize;
    runs.truncate(size as usize);
    let next = runs.last().filter(|_| has_more).map_or_else(String::new, |last| last.id.to_string());
    Ok(Page { runs, next, total })
}

/// The position of a run in the queue of its workspace, from 1; 0 when it is not queued.
pub(crate) async fn place(context: &Context, run: &Run) -> Result<u64, Error> {
    if run.shown() != RunStatus::Queued {
        return Ok(0);
    }
    Ok(store::runs::place(&context.db, run).await?)
}

/// Queues a run, or its rollback, if `require` allows it; returns the updated run.
pub(crate) async fn queue(
    context: &Context,
    caller: &Caller,
    run: &Run,
    phase: Phase,
    require: impl Fn(&Run) -> Result<(), Error>,
) -> Result<Run, Error> {
    let mut tx = context.db.begin_write().await?;
    store::runs::lock_name(&mut tx, run.sync()).await?;
    let locked = store::runs::get_for_update(&mut tx, run.workspace, run.id).await?;
    let run = locked.ok_or_else(|| Error::NoRun(run.id.to_string()))?;
    // Checked under the lock: the state may have changed since the caller read it.
    require(&run)?;
    if store::runs::is_busy(&mut tx, run.sync()).await? {
        let of = if run.origin.is_import() { "import" } else { "sync" };
        return Err(Error::RunBusy(format!("another run of this {of} is under way: wait for its end")));
    }
    store::runs::queue(&mut tx, &run, phase, &caller.requester).await?;
    tx.commit().await?;
    context.wakeup.notify_one();
    let queued = store::runs::get(&context.db, run.workspace, run.id).await?;
    Ok(queued.unwrap_or(run))
}

/// Cancels a run that has not ended.
pub(crate) async fn cancel(context: &Context, found: &Run) -> Result<(), Error> {
    let mut tx = context.db.begin_write().await?;
    let locked = store::runs::get_for_update(&mut tx, found.workspace, found.id).await?;
    let run = locked.ok_or_else(|| Error::NoRun(found.id.to_string()))?;
    if run.phase == Phase::Rollback && run.state.is_busy() {
        return Err(Error::RunBusy("a rollback goes on to its end: wait for it".to_owned()));
    }
    if !run.state.is_busy() && run.state != RunStatus::Ready {
        return Err(Error::RunNotCancellable(run.shown().as_str()));
    }
    let now = context.clock.now();
    store::runs::cancel(&mut tx, &run, now, now.plus(ROLLBACK_WINDOW)).await?;
    Ok(tx.commit().await?)
}

/// Refuses a run that cannot be started.
pub(crate) fn require_startable(run: &Run) -> Result<(), Error> {
    if run.state.is_startable() { Ok(()) } else { Err(Error::RunNotStartable(run.shown().as_str())) }
}

/// Refuses a run that cannot be rolled back. An incomplete import can be; an incomplete sync is completed by the next one.
pub(crate) fn require_revertible(context: &Context, run: &Run) -> Result<(), Error> {
    let refused = |message: &'static str| Err(Error::RunNotRevertible(message));
    let is_incomplete = matches!(run.state, RunStatus::Failed | RunStatus::Cancelled);
    if run.state == RunStatus::RolledBack {
        return refused("the run was rolled back already");
    }
    if run.origin.is_import() && is_incomplete && run.rollback_until.is_none() {
        return refused("the run has never been started: there is nothing to take back");
    }
    if !(run.state.is_completed() || run.origin.is_import() && is_incomplete) {
        return refused("only a run that is over can be rolled back");
    }
    if run.rollback_until.is_none_or(|until| until <= context.clock.now()) {
        return refused("the run is more than 7 days old and can no longer be rolled back");
    }
    Ok(())
}

/// The error for an invalid page token.
pub(crate) fn bad_token() -> Error {
    Error::invalid("pageToken", "invalid", "send the token of the previous page as it came")
}
