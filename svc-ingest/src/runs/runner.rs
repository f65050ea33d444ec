//! Queues and claims runs that are due, renews their leases while workers execute them, and writes how they end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::entropy::Entropy;
use cairn_chassis::limits::Allowance;
use cairn_chassis::sealing::Keyring;
use cairn_chassis::sql::Tx;
use cairn_extract::Extractor;
use cairn_proto::domain::{SourceMode, SourceRunKind, SourceRunStatus};
use cairn_proto::ids::{SourceId, WorkspaceId};
use cairn_providers::{Call, Provider};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::{self, JoinSet};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::connect::Connect;
use super::fault::{Failure, Health, Stop};
use super::ledger::{Account, Charge};
use super::read::Reader;
use super::worker::{self, Halt, LEASE, Worker};
use super::{next, removal, room};
use crate::context::Context;
use crate::model::{Run, SealedCredentials, Source};
use crate::{Error, credentials, store};

/// How often this process polls for runs that another process queued.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often a worker checks its lease, and whether its run was cancelled.
const WATCH_INTERVAL: Duration = Duration::from_millis(400);
/// The lease is renewed at every n-th check.
const RENEW_TICKS: u32 = 30;
/// Runs that this process executes concurrently, in all and of one workspace.
const MAX_RUNS: usize = 4;
const MAX_RUNS_OF_ONE: usize = 2;
const PAGE_SIZE: i64 = 100;
/// Workers that may be lost at one checkpoint: after that, the content there is assumed to kill them.
const MAX_LOST: u32 = 3;
/// Full runs in a row that follow a lost position without a delay.
const MAX_FOLLOWING: u32 = 3;
/// Runs of a source that are retained.
const RETAINED_RUNS: i64 = 100;
/// How often expired data is removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The source of each worker task of this process.
type Working = HashMap<task::Id, (WorkspaceId, SourceId)>;

/// The runs of this process.
#[derive(Debug, Clone)]
pub(crate) struct Runner {
    pub(crate) context: Context,
    pub(crate) connect: Arc<dyn Connect>,
    pub(crate) extractor: Extractor,
    pub(crate) keyring: Option<Arc<Keyring>>,
    pub(crate) entropy: Arc<dyn Entropy>,
    wake: Arc<Notify>,
    holder: Arc<str>,
}

impl Runner {
    pub(crate) fn new(
        context: Context,
        connect: Arc<dyn Connect>,
        extractor: Extractor,
        keyring: Option<Arc<Keyring>>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let holder = context.ids.next::<Uuid>().to_string().into();
        Self { context, connect, extractor, keyring, entropy, wake: Arc::default(), holder }
    }

    /// Wakes the runner: there may be a run to claim.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// The decrypted credentials of a source.
    pub(crate) async fn opened(&self, source: &Source) -> Result<Option<Value>, Error> {
        let sealed = store::sources::credentials(&self.context.db, source.workspace, source.id).await?;
        self.open(source, sealed)
    }

    fn open(&self, source: &Source, sealed: Option<SealedCredentials>) -> Result<Option<Value>, Error> {
        sealed.map(|sealed| credentials::open(self.keyring.as_deref(), source.id, &sealed)).transpose()
    }

    /// A provider connected with the settings and credentials of a source.
    pub(crate) async fn provider(&self, source: &Source) -> Result<Box<dyn Provider>, Error> {
        let sealed = store::sources::credentials(&self.context.db, source.workspace, source.id).await?;
        self.provider_with(source, sealed)
    }

    fn provider_with(
        &self,
        source: &Source,
        sealed: Option<SealedCredentials>,
    ) -> Result<Box<dyn Provider>, Error> {
        let opened = self.open(source, sealed)?;
        let made =
            self.connect.connect(source.provider, &source.settings, opened.as_ref(), Some(source.mode));
        made.map_err(Error::Invalid)
    }

    /// The allowance of a workspace's plan; `None` until a caller has presented the plan.
    async fn allowance(&self, workspace: WorkspaceId) -> Result<Option<Allowance>, Error> {
        let plan = store::usage::plan(&self.context.db, workspace).await?;
        Ok(plan.map(|plan| self.context.limits.of(Some(&plan))))
    }

    /// A call whose requests are charged to a source.
    pub(crate) fn call(&self, source: &Source, charge: Charge) -> Call {
        let account = Account {
            db: self.context.db.clone(),
            clock: Arc::clone(&self.context.clock),
            workspace: source.workspace,
            source: source.id,
            provider: source.provider.as_str(),
            charge,
        };
        Call::new(self.connect.guard().clone(), Arc::new(account), Arc::clone(&self.context.clock))
    }

    /// Queues a run of a source that the transaction has locked; `None` when another run has not ended. A `full` run ignores the position.
    /// All reads go through the transaction: a second connection for each caller could exhaust the pool.
    pub(crate) async fn queue(
        &self,
        tx: &mut Tx,
        source: &mut Source,
        full: bool,
    ) -> Result<Option<Run>, Error> {
        let now = self.context.clock.now();
        source.full_next |= full;
        let id = self.context.ids.next();
        let mut run = Run::queued(source.workspace, source.id, id, SourceRunKind::Full, now);
        let sealed = store::sources::credentials_in(tx, source).await?;
        // If it cannot be connected now, the run reports that when it starts.
        if let Ok(provider) = self.provider_with(source, sealed) {
            let last = store::source_runs::last_in(tx, source).await?;
            next::begin(&mut run, last.as_ref(), source, &provider.traits(), now);
        }
        if !store::source_runs::insert(tx, &run).await? {
            return Ok(None);
        }
        source.next_run_at = Some(self.next_at(source, now));
        source.full_next = false;
        store::sources::set_next(tx, source).await?;
        Ok(Some(run))
    }

    /// Like [`queue`](Self::queue), in a transaction of its own; `None` also when the source was disconnected.
    pub(crate) async fn queue_now(&self, source: &Source, full: bool) -> Result<Option<Run>, Error> {
        let mut tx = self.context.db.begin_write().await?;
        let locked = store::sources::get_for_update(&mut tx, source.workspace, source.id).await?;
        let Some(mut source) = locked else { return Ok(None) };
        let queued = self.queue(&mut tx, &mut source, full).await?;
        tx.commit().await?;
        Ok(queued)
    }

    /// The time of the next run after that time.
    pub(crate) fn next_at(&self, source: &Source, from: Timestamp) -> Timestamp {
        next::at(from, source.every, source.failures, self.entropy.as_ref())
    }

    /// Queues, claims and executes runs until the shutdown.
    pub(crate) async fn run(&self, shutdown: CancellationToken) {
        if !self.context.db.is_shared() {
            // No other process uses the storage: all leases are from before a restart of this one.
            if let Err(error) =
                store::source_runs::expire_all_leases(&self.context.db, self.context.clock.now()).await
            {
                tracing::warn!(%error, "runs of sources that were cut short go on later");
            }
        }
        let mut workers = JoinSet::new();
        let mut working = Working::new();
        let mut sweeps = tokio::time::interval(SWEEP_INTERVAL);
        while !shutdown.is_cancelled() {
            if let Err(error) = self.step(&mut workers, &mut working, &shutdown).await {
                tracing::warn!(%error, "runs of sources cannot be looked for now; trying again");
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.wake.notified() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                _ = sweeps.tick() => removal::sweep(&self.context).await,
                Some(done) = workers.join_next_with_id() => {
                    // The lease of a worker that panicked expires.
                    let id = done.map_or_else(|lost| lost.id(), |(id, ())| id);
                    working.remove(&id);
                }
            }
        }
        // Workers see the shutdown themselves, and put their runs back into the queue.
        while workers.join_next().await.is_some() {}
    }

    async fn step(
        &self,
        workers: &mut JoinSet<()>,
        working: &mut Working,
        shutdown: &CancellationToken,
    ) -> Result<(), Error> {
        self.queue_due().await?;
        removal::disconnected(&self.context).await?;
        let free = MAX_RUNS.saturating_sub(working.len());
        if free == 0 {
            return Ok(());
        }
        let now = self.context.clock.now();
        for run in store::source_runs::claimable(&self.context.db, now, PAGE_SIZE).await? {
            let of_one = working.values().filter(|(workspace, _)| *workspace == run.workspace).count();
            if working.len() >= MAX_RUNS {
                break;
            }
            let is_worked_on = working.values().any(|(_, source)| *source == run.source);
            if of_one >= MAX_RUNS_OF_ONE || is_worked_on {
                continue;
            }
            if let Some(run) = self.claim(run).await? {
                let whose = (run.workspace, run.source);
                let (runner, shutdown) = (self.clone(), shutdown.clone());
                let worker = workers.spawn(async move { runner.perform(run, &shutdown).await });
                working.insert(worker.id(), whose);
            }
        }
        Ok(())
    }

    /// Queues the runs that are due.
    pub(crate) async fn queue_due(&self) -> Result<(), Error> {
        let now = self.context.clock.now();
        for due in store::sources::due(&self.context.db, now, PAGE_SIZE).await? {
            let mut tx = self.context.db.begin_write().await?;
            let locked = store::sources::get_for_update(&mut tx, due.workspace, due.id).await?;
            let still_due = locked.filter(|source| source.next_run_at == due.next_run_at && !source.paused);
            if let Some(mut source) = still_due {
                self.queue(&mut tx, &mut source, false).await?;
                tx.commit().await?;
            }
        }
        Ok(())
    }

    /// Claims a run; returns its current state, or `None` if another process was faster.
    pub(crate) async fn claim(&self, run: Run) -> Result<Option<Run>, Error> {
        let now = self.context.clock.now();
        if !store::source_runs::claim(&self.context.db, &run, &self.holder, now.plus(LEASE), now).await? {
            return Ok(None);
        }
        Ok(store::source_runs::get(&self.context.db, run.workspace, run.source, run.id).await?)
    }

    /// Executes a claimed run until it ends, waits, or its lease is lost.
    pub(crate) async fn perform(&self, run: Run, shutdown: &CancellationToken) {
        let (workspace, source, id) = (run.workspace, run.source, run.id);
        if let Err(error) = self.try_perform(run, shutdown).await {
            // The next worker resumes from the checkpoint.
            tracing::warn!(%workspace, %source, run = %id, %error, "a run of a source was cut short");
        }
    }

    async fn try_perform(&self, run: Run, shutdown: &CancellationToken) -> Result<(), Error> {
        let found = store::sources::get(&self.context.db, run.workspace, run.source).await?;
        let Some(source) = found else { return Ok(()) };
        if run.cancel_asked {
            return self.end(run, &source, Ending::Cancelled).await;
        }
        if run.lost > MAX_LOST {
            let message = format!("{} workers in a row were lost at the same place", run.lost);
            return self.end(run, &source, Ending::Failed(Failure::Other(message))).await;
        }
        let provider = match self.provider(&source).await {
            Ok(provider) => provider,
            Err(Error::Storage(error)) => return Err(error.into()),
            Err(error) => {
                tracing::warn!(source = %source.id, %error, "a source cannot be connected");
                let message = "its settings or credentials can no longer be used: change them".to_owned();
                return self.end(run, &source, Ending::Failed(Failure::Other(message))).await;
            }
        };
        let call = self.call(&source, Charge::Run { id: run.id, holder: self.holder.to_string() });
        let mut worker = Worker {
            context: &self.context,
            reader: Reader {
                extractor: &self.extractor,
                provider: source.provider,
                keeps_text: source.mode == SourceMode::Indexed,
            },
            traits: provider.traits(),
            provider: provider.as_ref(),
            call,
            source: source.clone(),
            run,
            holder: &self.holder,
            health: Health::default(),
            allowance: self.allowance(source.workspace).await?,
        };
        let watched = worker.run.clone();
        let halted = tokio::select! {
            worked = worker.work() => worked,
            halt = self.watch(&watched, shutdown) => Err(halt),
        };
        // The worker's own copy may be ahead of what it could store.
        let ending = match halted {
            Ok(()) => Ending::Completed,
            Err(Halt::Stop(Stop::Waiting(until))) => Ending::Waiting { until, is_try: false },
            Err(Halt::Stop(Stop::TryAgain(until))) => Ending::Waiting { until, is_try: true },
            Err(Halt::Stop(Stop::Failed(failure))) => Ending::Failed(failure),
            Err(Halt::Cancelled) => Ending::Cancelled,
            Err(Halt::Lost) if shutdown.is_cancelled() => Ending::Requeued,
            Err(Halt::Lost) => return Ok(()),
            Err(Halt::Error(error)) => return Err(error),
        };
        let stored =
            store::source_runs::get(&self.context.db, watched.workspace, watched.source, watched.id).await?;
        match stored {
            Some(run) => self.end(run, &source, ending).await,
            None => Ok(()),
        }
    }

    /// Renews the lease until it is lost or the run is cancelled; returns which.
    async fn watch(&self, run: &Run, shutdown: &CancellationToken) -> Halt {
        let mut ticks = 0_u32;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return Halt::Lost,
                () = tokio::time::sleep(WATCH_INTERVAL) => {}
            }
            ticks = ticks.wrapping_add(1);
            let db = &self.context.db;
            let is_cancelled = store::source_runs::is_cancel_requested(db, run, &self.holder).await;
            match is_cancelled {
                Ok(Some(false)) if ticks.is_multiple_of(RENEW_TICKS) => {
                    let until = self.context.clock.now().plus(LEASE);
                    let renewed = store::source_runs::renew(db, run, &self.holder, until).await;
                    if matches!(renewed, Ok(false)) {
                        return Halt::Lost;
                    }
                }
                // After an error, a later check may still be in time.
                Ok(Some(false)) | Err(_) => {}
                Ok(Some(true)) => return Halt::Cancelled,
                Ok(None) => return Halt::Lost,
            }
        }
    }

    /// Stores how a run ends or pauses, and the consequences for its source, in one transaction.
    async fn end(&self, mut run: Run, source: &Source, ending: Ending) -> Result<(), Error> {
        let mut tx = self.context.db.begin_write().await?;
        // Read again under the lock: the source may have changed meanwhile.
        let Some(mut source) = store::sources::get_for_update(&mut tx, source.workspace, source.id).await?
        else {
            return Ok(());
        };
        let now = self.context.clock.now();
        let open = store::source_runs::open(&mut tx, run.workspace, run.source).await?;
        let is_cancelled = open.is_some_and(|open| open.id == run.id && open.cancel_asked);
        // A waiting run has no worker that would see the cancellation.
        let ending = if is_cancelled && ending.goes_on() { Ending::Cancelled } else { ending.of(&run) };
        let outcome = ending.label(&run);
        let follows = matches!(ending, Ending::Failed(Failure::PositionLost));
        match ending {
            Ending::Completed => complete(&mut run, &mut source, now),
            Ending::Failed(failure) => fail(&mut run, &mut source, &failure),
            Ending::Cancelled => run.state = SourceRunStatus::Cancelled,
            Ending::Requeued => run.state = SourceRunStatus::Queued,
            Ending::Waiting { until, is_try } => {
                run.state = SourceRunStatus::Waiting;
                run.waiting_until = Some(until);
                run.tries += u32::from(is_try);
            }
        }
        let is_over = run.state.is_over();
        if is_over {
            run.finished_at = Some(now);
            // An earlier due time was requested while this run was in progress.
            let asked = source.next_run_at.filter(|at| *at < run.created_at.plus(source.every));
            let after = self.after(&source, follows, now);
            source.next_run_at = after.map(|after| asked.map_or(after, |asked| asked.min(after)));
            store::sources::finish(&mut tx, &source).await?;
            store::source_runs::prune(&mut tx, run.workspace, run.source, RETAINED_RUNS).await?;
        }
        if store::source_runs::save(&mut tx, &run, &self.holder, now).await?.is_none() {
            // The lease was lost.
            return Ok(tx.rollback().await?);
        }
        tx.commit().await?;
        if is_over {
            report(&run, &source, outcome);
        }
        self.wake();
        Ok(())
    }

    /// When the next run is due; now if a full run follows a lost position.
    fn after(&self, source: &Source, follows: bool, now: Timestamp) -> Option<Timestamp> {
        if source.needs_credentials || source.paused || !source.mode.has_runs() {
            return None;
        }
        let is_now = follows && source.failures <= MAX_FOLLOWING;
        Some(if is_now { now } else { self.next_at(source, now) })
    }
}

/// How a run ends, or pauses.
enum Ending {
    Completed,
    Waiting {
        until: Timestamp,
        is_try: bool,
    },
    Failed(Failure),
    Cancelled,
    /// This process shuts down: back into the queue.
    Requeued,
}

impl Ending {
    const fn goes_on(&self) -> bool {
        matches!(self, Self::Waiting { .. } | Self::Requeued)
    }

    /// A run that read everything has still failed if the plan had no room for all of it.
    fn of(self, run: &Run) -> Self {
        match (self, room::left_out(run)) {
            (Self::Completed, Some(said)) => Self::Failed(Failure::NoRoom(said.to_owned())),
            (ending, _) => ending,
        }
    }

    fn label(&self, run: &Run) -> &'static str {
        match self {
            Self::Completed => worker::completed(run).as_str(),
            Self::Failed(failure) => failure.label(),
            Self::Cancelled => "cancelled",
            Self::Waiting { .. } | Self::Requeued => "paused",
        }
    }
}

fn complete(run: &mut Run, source: &mut Source, now: Timestamp) {
    run.state = worker::completed(run);
    source.error = None;
    source.failures = 0;
    source.needs_credentials = false;
    source.last_synced_at = Some(now);
    source.position.clone_from(&run.position);
    if run.kind.lists() && run.complete {
        source.listed_at = Some(now);
    }
}

fn fail(run: &mut Run, source: &mut Source, failure: &Failure) {
    run.state = SourceRunStatus::Failed;
    run.error = Some(failure.message());
    source.error.clone_from(&run.error);
    source.failures = source.failures.saturating_add(1);
    match failure {
        Failure::Credentials => source.needs_credentials = true,
        Failure::PositionLost => {
            source.position = None;
            source.full_next = true;
        }
        Failure::NoRoom(_) => source.full_next = true,
        Failure::Other(_) => {}
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a run, for a graph")]
fn report(run: &Run, source: &Source, outcome: &'static str) {
    let provider = source.provider.as_str();
    metrics::counter!("cairn_source_runs_total", "provider" => provider, "outcome" => outcome).increment(1);
    if run.state == SourceRunStatus::Failed {
        metrics::counter!("cairn_source_failures_total", "provider" => provider, "reason" => outcome)
            .increment(1);
    }
    metrics::counter!("cairn_source_items_failed_total", "provider" => provider)
        .increment(run.counters.failed);
    let started = run.started_at.unwrap_or(run.created_at);
    if let Some(finished) = run.finished_at {
        metrics::histogram!("cairn_source_run_seconds", "provider" => provider)
            .record(finished.since(started).as_micros() as f64 / 1e6);
        // How long the run was queued.
        metrics::histogram!("cairn_source_run_lag_seconds", "provider" => provider)
            .record(started.since(run.created_at).as_micros() as f64 / 1e6);
    }
}
