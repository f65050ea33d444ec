//! Finds runs that are due, takes those that nobody works on, holds them, and ends them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cairn_proto::ids::{SyncRunId, WorkspaceId};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::held::{Halt, Held, TERM};
use super::sweep;
use super::worker;
use crate::context::Context;
use crate::model::{Phase, Run, RunStatus};
use crate::standing::ROLLBACK_WINDOW;
use crate::{Error, store};

/// How often this process looks for work that nobody told it of.
const POLL: Duration = Duration::from_millis(500);
/// A worker holds its run for longer so often.
const RENEW: Duration = Duration::from_secs(10);
/// How soon it learns that its run is no longer wanted.
const LOOK: Duration = Duration::from_millis(500);
/// Runs that this process works on at once, and those of one workspace among them.
const MOST_RUNS: usize = 4;
const MOST_RUNS_OF_ONE: usize = 2;
const LOOKED_AT: i64 = 100;
/// Workers in a row that may be lost, or give up for now, without a step done.
pub(crate) const MOST_TRIES: u32 = 8;
/// After the first of them a run waits for so long, then for twice as long, up to the second.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
const SWEEP_EVERY: Duration = Duration::from_secs(60 * 60);

/// The runs of this process.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    context: Context,
    holder: Arc<str>,
}

impl Machine {
    pub(crate) fn new(context: Context) -> Self {
        let holder = context.ids.next::<Uuid>().to_string().into();
        Self { context, holder }
    }

    /// Works until the shutdown.
    pub(crate) async fn run(&self, shutdown: CancellationToken) {
        if !self.context.db.is_shared() {
            // Whoever held a run before was this process, which has begun anew.
            if let Err(error) = store::runs::free_all(&self.context.db, self.context.clock.now()).await {
                tracing::warn!(%error, "sync runs that were cut short go on later");
            }
        }
        let mut workers: JoinSet<SyncRunId> = JoinSet::new();
        let mut working: HashMap<SyncRunId, WorkspaceId> = HashMap::new();
        let mut sweeps = tokio::time::interval(SWEEP_EVERY);
        while !shutdown.is_cancelled() {
            if let Err(error) = self.step(&mut workers, &mut working, &shutdown).await {
                tracing::warn!(%error, "sync runs cannot be looked for now; trying again");
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.context.arrivals.notified() => {}
                () = tokio::time::sleep(POLL) => {}
                _ = sweeps.tick() => sweep::sweep(&self.context).await,
                Some(done) = workers.join_next() => match done {
                    Ok(id) => drop(working.remove(&id)),
                    // A worker that panicked is lost: its term ends.
                    Err(_) => working.clear(),
                }
            }
        }
        // They notice by themselves, and give their runs back.
        while workers.join_next().await.is_some() {}
    }

    async fn step(
        &self,
        workers: &mut JoinSet<SyncRunId>,
        working: &mut HashMap<SyncRunId, WorkspaceId>,
        shutdown: &CancellationToken,
    ) -> Result<(), Error> {
        if working.len() >= MOST_RUNS {
            return Ok(());
        }
        let now = self.context.clock.now();
        for run in store::runs::claimable(&self.context.db, now, LOOKED_AT).await? {
            if working.len() >= MOST_RUNS {
                break;
            }
            let of_one = working.values().filter(|workspace| **workspace == run.workspace).count();
            if of_one >= MOST_RUNS_OF_ONE || working.contains_key(&run.id) {
                continue;
            }
            if let Some(run) = self.claim(run).await? {
                working.insert(run.id, run.workspace);
                let (machine, shutdown) = (self.clone(), shutdown.clone());
                workers.spawn(async move {
                    let id = run.id;
                    machine.perform(run, &shutdown).await;
                    id
                });
            }
        }
        Ok(())
    }

    /// Takes a run that nobody works on, if it is still to be had; with what is known of it then.
    pub(crate) async fn claim(&self, run: Run) -> Result<Option<Run>, Error> {
        let now = self.context.clock.now();
        if !store::runs::claim(&self.context.db, &run, &self.holder, now.plus(TERM), now).await? {
            return Ok(None);
        }
        Ok(store::runs::get(&self.context.db, run.workspace, run.id).await?)
    }

    /// Works on a run that this process holds, until it is over, waits, or is somebody else's.
    pub(crate) async fn perform(&self, run: Run, shutdown: &CancellationToken) {
        let (workspace, id) = (run.workspace, run.id);
        if let Err(error) = self.try_perform(run, shutdown).await {
            // Whoever takes it next goes on with what is noted.
            tracing::warn!(%workspace, run = %id, %error, "a sync run was cut short");
        }
    }

    async fn try_perform(&self, run: Run, shutdown: &CancellationToken) -> Result<(), Error> {
        let held = run.clone();
        let unwanted = CancellationToken::new();
        let mut worker = Held::new(&self.context, &self.holder, run, unwanted.clone());
        let halt = if held.cancel_asked && held.phase == Phase::Sync {
            Halt::Cancelled
        } else if held.tries > MOST_TRIES {
            Halt::Failed("it was given up after several tries that were cut short; start it again".to_owned())
        } else {
            tokio::select! {
                worked = worker::work(&mut worker) => match worked {
                    Ok(()) => return self.end(worker.run, None).await,
                    Err(halt) => halt,
                },
                () = self.hold(&held, &unwanted) => Halt::Lost,
                () = shutdown.cancelled() => Halt::GivenBack,
            }
        };
        // What is stored is what counts, whatever was under way.
        let stored = store::runs::get(&self.context.db, held.workspace, held.id).await?;
        match (halt, stored) {
            (Halt::Lost, _) | (_, None) => Ok(()),
            (Halt::Storage(error), _) => Err(error),
            (halt, Some(stored)) => self.end(stored, Some(halt)).await,
        }
    }

    /// Holds a run for as long as it can be held, and looks whether somebody wants it cancelled. A rollback goes on to its
    /// end.
    async fn hold(&self, run: &Run, unwanted: &CancellationToken) {
        let db = &self.context.db;
        let mut renewals = interval_at(Instant::now() + RENEW, RENEW);
        let mut looks = interval_at(Instant::now() + LOOK, LOOK);
        loop {
            tokio::select! {
                _ = renewals.tick() => {
                    let until = self.context.clock.now().plus(TERM);
                    // A storage that does not answer now may answer before the term ends.
                    if matches!(store::runs::renew(db, run, &self.holder, until).await, Ok(false)) {
                        return;
                    }
                }
                _ = looks.tick(), if run.phase == Phase::Sync && !unwanted.is_cancelled() => {
                    if matches!(store::runs::is_unwanted(db, run, &self.holder).await, Ok(true)) {
                        unwanted.cancel();
                    }
                }
            }
        }
    }

    /// Writes how a run ends or pauses; `None`: all of it is done.
    async fn end(&self, mut run: Run, halt: Option<Halt>) -> Result<(), Error> {
        let now = self.context.clock.now();
        let mut tx = self.context.db.begin_write().await?;
        match halt {
            None if run.phase == Phase::Rollback => {
                run.state = RunStatus::RolledBack;
                run.rollback_until = None;
            }
            // The worker has said with what.
            None => run.rollback_until = Some(now.plus(ROLLBACK_WINDOW)),
            Some(Halt::Cancelled) => run.state = RunStatus::Cancelled,
            Some(Halt::GivenBack) => run.state = RunStatus::Queued,
            Some(Halt::Again(why)) if run.tries < MOST_TRIES => {
                tracing::info!(workspace = %run.workspace, run = %run.id, why, "a sync run waits");
                run.state = RunStatus::Queued;
                run.not_before = Some(now.plus(wait(run.tries)));
                run.tries += 1;
            }
            Some(Halt::Again(why) | Halt::Failed(why)) => fail(&mut run, &why),
            Some(Halt::Lost | Halt::Storage(_)) => return Ok(tx.rollback().await?),
        }
        let is_over = !run.state.is_busy();
        if is_over {
            run.finished_at = Some(now);
        }
        if run.state.is_completed() || run.state == RunStatus::RolledBack {
            store::details::remove_pieces(&mut tx, run.workspace, run.id).await?;
            run.bytes = 0;
        }
        // Half an import must go away, too (import.md).
        if run.origin.is_import() && matches!(run.state, RunStatus::Failed | RunStatus::Cancelled) {
            run.rollback_until = Some(now.plus(ROLLBACK_WINDOW));
        }
        if store::runs::save(&mut tx, &run, &self.holder, now).await?.is_none() {
            // Somebody else has it by now.
            return Ok(tx.rollback().await?);
        }
        tx.commit().await?;
        if is_over {
            report(&run);
        }
        self.context.arrivals.notify_one();
        Ok(())
    }
}

fn wait(tries: u32) -> Duration {
    FIRST_WAIT.saturating_mul(2_u32.saturating_pow(tries)).min(LONGEST_WAIT)
}

/// A rollback that cannot go on leaves a run that can be rolled back further.
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
