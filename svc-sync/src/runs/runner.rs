//! Claims runs that are due, renews their leases while workers execute them, and writes how they end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cairn_proto::ids::{SyncRunId, WorkspaceId};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::active::{ActiveRun, Halt, LEASE};
use super::sweep;
use super::worker;
use crate::context::Context;
use crate::model::{Phase, Run, RunStatus};
use crate::run_state::ROLLBACK_WINDOW;
use crate::{Error, store};

/// How often this process polls for runs that another process queued.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often the lease of a run is renewed.
const RENEW_INTERVAL: Duration = Duration::from_secs(10);
/// How often a worker checks whether its run was cancelled.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Runs that this process executes concurrently, in all and of one workspace.
const MAX_RUNS: usize = 4;
const MAX_RUNS_OF_ONE: usize = 2;
const CLAIM_PAGE_SIZE: i64 = 100;
/// Workers in a row that may be lost or back off without a completed step.
pub(crate) const MAX_TRIES: u32 = 8;
/// The backoff doubles with each try, from the first to the second.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(60);
const SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The runs of this process.
#[derive(Debug, Clone)]
pub(crate) struct Runner {
    context: Context,
    holder: Arc<str>,
}

impl Runner {
    pub(crate) fn new(context: Context) -> Self {
        let holder = context.ids.next::<Uuid>().to_string().into();
        Self { context, holder }
    }

    /// Claims and executes runs until the shutdown.
    pub(crate) async fn run(&self, shutdown: CancellationToken) {
        if !self.context.db.is_shared() {
            // No other process uses the storage: all leases are from before a restart of this one.
            if let Err(error) =
                store::runs::expire_all_leases(&self.context.db, self.context.clock.now()).await
            {
                tracing::warn!(%error, "sync runs that were cut short go on later");
            }
        }
        let mut workers: JoinSet<SyncRunId> = JoinSet::new();
        let mut working: HashMap<SyncRunId, WorkspaceId> = HashMap::new();
        let mut sweeps = tokio::time::interval(SWEEP_INTERVAL);
        while !shutdown.is_cancelled() {
            if let Err(error) = self.step(&mut workers, &mut working, &shutdown).await {
                tracing::warn!(%error, "sync runs cannot be looked for now; trying again");
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.context.wakeup.notified() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                _ = sweeps.tick() => sweep::sweep(&self.context).await,
                Some(done) = workers.join_next() => match done {
                    Ok(id) => drop(working.remove(&id)),
                    // The lease of a worker that panicked expires.
                    Err(_) => working.clear(),
                }
            }
        }
        // Workers see the shutdown themselves, and put their runs back into the queue.
        while workers.join_next().await.is_some() {}
    }

    async fn step(
        &self,
        workers: &mut JoinSet<SyncRunId>,
        working: &mut HashMap<SyncRunId, WorkspaceId>,
        shutdown: &CancellationToken,
    ) -> Result<(), Error> {
        if working.len() >= MAX_RUNS {
            return Ok(());
        }
        let now = self.context.clock.now();
        for run in store::runs::claimable(&self.context.db, now, CLAIM_PAGE_SIZE).await? {
            if working.len() >= MAX_RUNS {
                break;
            }
            let of_one = working.values().filter(|workspace| **workspace == run.workspace).count();
            if of_one >= MAX_RUNS_OF_ONE || working.contains_key(&run.id) {
                continue;
            }
            if let Some(run) = self.claim(run).await? {
                working.insert(run.id, run.workspace);
                let (runner, shutdown) = (self.clone(), shutdown.clone());
                workers.spawn(async move {
                    let id = run.id;
                    runner.perform(run, &shutdown).await;
                    id
                });
            }
        }
        Ok(())
    }

    /// Claims a run; returns its current state, or `None` if another process was faster.
    pub(crate) async fn claim(&self, run: Run) -> Result<Option<Run>, Error> {
        let now = self.context.clock.now();
        if !store::runs::claim(&self.context.db, &run, &self.holder, now.plus(LEASE), now).await? {
            return Ok(None);
        }
        Ok(store::runs::get(&self.context.db, run.workspace, run.id).await?)
    }

    /// Executes a claimed run until it ends, backs off, or its lease is lost.
    pub(crate) async fn perform(&self, run: Run, shutdown: &CancellationToken) {
        let (workspace, id) = (run.workspace, run.id);
        if let Err(error) = self.try_perform(run, shutdown).await {
            // The next worker resumes from the logged batches.
            tracing::warn!(%workspace, run = %id, %error, "a sync run was cut short");
        }
    }

    async fn try_perform(&self, run: Run, shutdown: &CancellationToken) -> Result<(), Error> {
        let claimed = run.clone();
        let cancellation = CancellationToken::new();
        let mut worker = ActiveRun::new(&self.context, &self.holder, run, cancellation.clone());
        let halt = if claimed.cancel_asked && claimed.phase == Phase::Sync {
            Halt::Cancelled
        } else if claimed.tries > MAX_TRIES {
            Halt::Failed("it was given up after several tries that were cut short; start it again".to_owned())
        } else {
            tokio::select! {
                worked = worker::work(&mut worker) => match worked {
                    Ok(()) => return self.end(worker.run, None).await,
                    Err(halt) => halt,
                },
                () = self.keep_lease(&claimed, &cancellation) => Halt::LeaseLost,
                () = shutdown.cancelled() => Halt::Shutdown,
            }
        };
        // The worker's own copy may be ahead of what it could store.
        let stored = store::runs::get(&self.context.db, claimed.workspace, claimed.id).await?;
        match (halt, stored) {
            (Halt::LeaseLost, _) | (_, None) => Ok(()),
            (Halt::Storage(error), _) => Err(error),
            (halt, Some(stored)) => self.end(stored, Some(halt)).await,
        }
    }

    /// Renews the lease until it is lost, and cancels the worker when the run is cancelled. A rollback cannot be cancelled.
    async fn keep_lease(&self, run: &Run, cancellation: &CancellationToken) {
        let db = &self.context.db;
        let mut renewals = interval_at(Instant::now() + RENEW_INTERVAL, RENEW_INTERVAL);
        let mut looks = interval_at(Instant::now() + CANCEL_POLL_INTERVAL, CANCEL_POLL_INTERVAL);
        loop {
            tokio::select! {
                _ = renewals.tick() => {
                    let until = self.context.clock.now().plus(LEASE);
                    // After an error, a later renewal may still be in time.
                    if matches!(store::runs::renew(db, run, &self.holder, until).await, Ok(false)) {
                        return;
                    }
                }
                _ = looks.tick(), if run.phase == Phase::Sync && !cancellation.is_cancelled() => {
                    if matches!(store::runs::is_cancel_requested(db, run, &self.holder).await, Ok(true)) {
                        cancellation.cancel();
                    }
                }
            }
        }
    }

    /// Stores how a run ends or pauses; `None` when all of it is done.
    async fn end(&self, mut run: Run, halt: Option<Halt>) -> Result<(), Error> {
        let now = self.context.clock.now();
        let mut tx = self.context.db.begin_write().await?;
        match halt {
            None if run.phase == Phase::Rollback => {
                run.state = RunStatus::RolledBack;
                run.rollback_until = None;
            }
            // The worker has set the state.
            None => run.rollback_until = Some(now.plus(ROLLBACK_WINDOW)),
            Some(Halt::Cancelled) => run.state = RunStatus::Cancelled,
            Some(Halt::Shutdown) => run.state = RunStatus::Queued,
            Some(Halt::Retry(why)) if run.tries < MAX_TRIES => {
                tracing::info!(workspace = %run.workspace, run = %run.id, why, "a sync run waits");
                run.state = RunStatus::Queued;
                run.not_before = Some(now.plus(backoff(run.tries)));
                run.tries += 1;
            }
            Some(Halt::Retry(why) | Halt::Failed(why)) => fail(&mut run, &why),
            Some(Halt::LeaseLost | Halt::Storage(_)) => return Ok(tx.rollback().await?),
        }
        let is_over = !run.state.is_busy();
        if is_over {
            run.finished_at = Some(now);
        }
        if run.state.is_completed() || run.state == RunStatus::RolledBack {
            store::details::remove_pieces(&mut tx, run.workspace, run.id).await?;
            run.bytes = 0;
        }
        // An incomplete import can be rolled back, too (import.md).
        if run.origin.is_import() && matches!(run.state, RunStatus::Failed | RunStatus::Cancelled) {
            run.rollback_until = Some(now.plus(ROLLBACK_WINDOW));
        }
        if store::runs::save(&mut tx, &run, &self.holder, now).await?.is_none() {
            // The lease was lost.
            return Ok(tx.rollback().await?);
        }
        tx.commit().await?;
        if is_over {
            report(&run);
        }
        self.context.wakeup.notify_one();
        Ok(())
    }
}

fn backoff(tries: u32) -> Duration {
    INITIAL_BACKOFF.saturating_mul(2_u32.saturating_pow(tries)).min(MAX_BACKOFF)
}

/// A failed rollback leaves a run that can be rolled back again.
fn fail(run: &mut Run, why: &str) {
    if run.phase == Phase::Rollback {
        run.state = RunStatus::CompletedWithWarnings;
        run.error = Some(format!("the rollback stopped: {why}"));
    } else {
        run.state = RunStatus::Failed;
        run.error = Some(why.to_owned());
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a run, for a graph")]
fn report(run: &Run) {
    let outcome = run.state.as_str();
    metrics::counter!("cairn_sync_runs_total", "outcome" => outcome).increment(1);
    if let (Some(started), Some(finished)) = (run.started_at, run.finished_at) {
        metrics::histogram!("cairn_sync_run_seconds")
            .record(finished.since(started).as_micros() as f64 / 1e6);
    }
}
