//! Finds runs that are due, takes those that nobody works on, and ends them.

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
use super::ledger::{Account, Purse};
use super::read::Reader;
use super::worker::{self, Halt, TERM, Worker};
use super::{next, removal, room};
use crate::context::Context;
use crate::model::{Run, SealedCredentials, Source};
use crate::{Error, credentials, store};

/// How often this process looks for work that nobody told it of.
const POLL: Duration = Duration::from_millis(500);
/// How often a worker looks whether its run is still wanted.
const WATCH: Duration = Duration::from_millis(400);
/// A worker holds its run for longer when so much of its term is left.
const RENEW_EVERY: u32 = 30;
/// Runs that this process works on at once, and those of one workspace among them.
const MOST_RUNS: usize = 4;
const MOST_RUNS_OF_ONE: usize = 2;
const LOOKED_AT: i64 = 100;
/// Workers that may be lost at one checkpoint: what is there kills them.
const MOST_LOST: u32 = 3;
/// Full runs in a row that follow a lost place at once.
const MOST_FOLLOWING: u32 = 3;
/// Runs that are kept of a source.
const KEPT_RUNS: i64 = 100;
/// How often what is over is forgotten.
const SWEEP_EVERY: Duration = Duration::from_secs(60 * 60);

/// What the workers of this process work on.
type Working = HashMap<task::Id, (WorkspaceId, SourceId)>;

/// The runs of this process.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) context: Context,
    pub(crate) connect: Arc<dyn Connect>,
    pub(crate) extractor: Extractor,
    pub(crate) keyring: Option<Arc<Keyring>>,
    pub(crate) entropy: Arc<dyn Entropy>,
    wake: Arc<Notify>,
    holder: Arc<str>,
}

impl Machine {
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

    /// Has this process look for work now.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// The credentials of a source.
    pub(crate) async fn opened(&self, source: &Source) -> Result<Option<Value>, Error> {
        let sealed = store::sources::credentials(&self.context.db, source.workspace, source.id).await?;
        self.open(source, sealed)
    }

    fn open(&self, source: &Source, sealed: Option<SealedCredentials>) -> Result<Option<Value>, Error> {
        sealed.map(|sealed| credentials::open(self.keyring.as_deref(), source.id, &sealed)).transpose()
    }

    /// A connection to what a source is of.
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

    /// What the plan of a workspace allows, as far as its callers said which it has.
    async fn allowance(&self, workspace: WorkspaceId) -> Result<Option<Allowance>, Error> {
        let plan = store::usage::plan(&self.context.db, workspace).await?;
        Ok(plan.map(|plan| self.context.limits.of(Some(&plan))))
    }

    /// A call on a source's account.
    pub(crate) fn call(&self, source: &Source, purse: Purse) -> Call {
        let account = Account {
            db: self.context.db.clone(),
            clock: Arc::clone(&self.context.clock),
            workspace: source.workspace,
            source: source.id,
            provider: source.provider.as_str(),
            purse,
        };
        Call::new(self.connect.guard().clone(), Arc::new(account), Arc::clone(&self.context.clock))
    }

    /// Queues a run of a source that the transaction holds; `None` when one is not over. `full`: it begins anew. All of it
    /// is read in the transaction: with a second connection each, those who queue at once could take all that there are.
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
        let sealed = store::sources::held_credentials(tx, source).await?;
        // What cannot be connected now says so when the run begins.
        if let Ok(provider) = self.provider_with(source, sealed) {
            let last = store::source_runs::last_held(tx, source).await?;
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

    /// The same in a transaction of its own; `None` also when the source is not connected any more.
    pub(crate) async fn queue_now(&self, source: &Source, full: bool) -> Result<Option<Run>, Error> {
        let mut tx = self.context.db.begin_write().await?;
        let held = store::sources::hold(&mut tx, source.workspace, source.id).await?;
        let Some(mut source) = held else { return Ok(None) };
        let queued = self.queue(&mut tx, &mut source, full).await?;
        tx.commit().await?;
        Ok(queued)
    }

    /// When a source is read again after that time.
    pub(crate) fn next_at(&self, source: &Source, from: Timestamp) -> Timestamp {
        next::at(from, source.every, source.failures, self.entropy.as_ref())
    }

    /// Works until the shutdown.
    pub(crate) async fn run(&self, shutdown: CancellationToken) {
        if !self.context.db.is_shared() {
            // Whoever held a run before was this process, which has begun anew.
            if let Err(error) = store::source_runs::free_all(&self.context.db, self.context.clock.now()).await
            {
                tracing::warn!(%error, "runs of sources that were cut short go on later");
            }
        }
        let mut workers = JoinSet::new();
        let mut working = Working::new();
        let mut sweeps = tokio::time::interval(SWEEP_EVERY);
        while !shutdown.is_cancelled() {
            if let Err(error) = self.step(&mut workers, &mut working, &shutdown).await {
                tracing::warn!(%error, "runs of sources cannot be looked for now; trying again");
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.wake.notified() => {}
                () = tokio::time::sleep(POLL) => {}
                _ = sweeps.tick() => removal::sweep(&self.context).await,
                Some(done) = workers.join_next_with_id() => {
                    // A worker that panicked is lost: the term of its run ends.
                    let id = done.map_or_else(|lost| lost.id(), |(id, ())| id);
                    working.remove(&id);
                }
            }
        }
        // They notice by themselves, and give their runs back.
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
        let free = MOST_RUNS.saturating_sub(working.len());
        if free == 0 {
            return Ok(());
        }
        let now = self.context.clock.now();
        for run in store::source_runs::claimable(&self.context.db, now, LOOKED_AT).await? {
            let of_one = working.values().filter(|(workspace, _)| *workspace == run.workspace).count();
            if working.len() >= MOST_RUNS {
                break;
            }
            let is_worked_on = working.values().any(|(_, source)| *source == run.source);
            if of_one >= MOST_RUNS_OF_ONE || is_worked_on {
                continue;
            }
            if let Some(run) = self.claim(run).await? {
                let whose = (run.workspace, run.source);
                let (machine, shutdown) = (self.clone(), shutdown.clone());
                let worker = workers.spawn(async move { machine.perform(run, &shutdown).await });
                working.insert(worker.id(), whose);
            }
        }
        Ok(())
    }

    /// Queues the runs whose time has come.
    pub(crate) async fn queue_due(&self) -> Result<(), Error> {
        let now = self.context.clock.now();
        for due in store::sources::due(&self.context.db, now, LOOKED_AT).await? {
            let mut tx = self.context.db.begin_write().await?;
            let held = store::sources::hold(&mut tx, due.workspace, due.id).await?;
            let still = held.filter(|held| held.next_run_at == due.next_run_at && !held.paused);
            if let Some(mut source) = still {
                self.queue(&mut tx, &mut source, false).await?;
                tx.commit().await?;
            }
        }
        Ok(())
    }

    /// Takes a run that nobody works on, if it is still to be had; with what is known of it then.
    pub(crate) async fn claim(&self, run: Run) -> Result<Option<Run>, Error> {
        let now = self.context.clock.now();
        if !store::source_runs::claim(&self.context.db, &run, &self.holder, now.plus(TERM), now).await? {
            return Ok(None);
        }
        Ok(store::source_runs::get(&self.context.db, run.workspace, run.source, run.id).await?)
    }

    /// Works on a run that this process holds, until it is over, waits, or is somebody else's.
    pub(crate) async fn perform(&self, run: Run, shutdown: &CancellationToken) {
        let (workspace, source, id) = (run.workspace, run.source, run.id);
        if let Err(error) = self.try_perform(run, shutdown).await {
            // Whoever takes it next goes on at the checkpoint.
            tracing::warn!(%workspace, %source, run = %id, %error, "a run of a source was cut short");
        }
    }

    async fn try_perform(&self, run: Run, shutdown: &CancellationToken) -> Result<(), Error> {
        let found = store::sources::get(&self.context.db, run.workspace, run.source).await?;
        let Some(source) = found else { return Ok(()) };
        if run.cancel_asked {
            return self.end(run, &source, Ending::Cancelled).await;
        }
        if run.lost > MOST_LOST {
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
        let call = self.call(&source, Purse::Run { id: run.id, holder: self.holder.to_string() });
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
            unwanted = self.watch(&watched, shutdown) => Err(unwanted),
        };
        // What is written is what counts, whatever was under way.
        let ending = match halted {
            Ok(()) => Ending::Completed,
            Err(Halt::Stop(Stop::Waiting(until))) => Ending::Waiting { until, is_try: false },
            Err(Halt::Stop(Stop::TryAgain(until))) => Ending::Waiting { until, is_try: true },
            Err(Halt::Stop(Stop::Failed(failure))) => Ending::Failed(failure),
            Err(Halt::Cancelled) => Ending::Cancelled,
            Err(Halt::Lost) if shutdown.is_cancelled() => Ending::GivenBack,
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

    /// Holds a run for as long as it is wanted; answers why it is not.
    async fn watch(&self, run: &Run, shutdown: &CancellationToken) -> Halt {
        let mut ticks = 0_u32;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return Halt::Lost,
                () = tokio::time::sleep(WATCH) => {}
            }
            ticks = ticks.wrapping_add(1);
            let db = &self.context.db;
            let wanted = store::source_runs::wanted(db, run, &self.holder).await;
            match wanted {
                Ok(Some(false)) if ticks.is_multiple_of(RENEW_EVERY) => {
                    let until = self.context.clock.now().plus(TERM);
                    let renewed = store::source_runs::renew(db, run, &self.holder, until).await;
                    if matches!(renewed, Ok(false)) {
                        return Halt::Lost;
                    }
                }
                // A storage that does not answer now may answer before the term ends.
                Ok(Some(false)) | Err(_) => {}
                Ok(Some(true)) => return Halt::Cancelled,
                Ok(None) => return Halt::Lost,
            }
        }
    }

    /// Writes how a run ends or pauses, and what that means for its source, in one transaction.
    async fn end(&self, mut run: Run, source: &Source, ending: Ending) -> Result<(), Error> {
        let mut tx = self.context.db.begin_write().await?;
        // As it is now: somebody may have changed it meanwhile.
        let Some(mut source) = store::sources::hold(&mut tx, source.workspace, source.id).await? else {
            return Ok(());
        };
        let now = self.context.clock.now();
        let open = store::source_runs::open(&mut tx, run.workspace, run.source).await?;
        let is_cancelled = open.is_some_and(|open| open.id == run.id && open.cancel_asked);
        // Nobody would look at the wish again before what it waits for is over.
        let ending = if is_cancelled && ending.goes_on() { Ending::Cancelled } else { ending.of(&run) };
        let outcome = ending.label(&run);
        let follows = matches!(ending, Ending::Failed(Failure::PositionLost));
        match ending {
            Ending::Completed => complete(&mut run, &mut source, now),
            Ending::Failed(failure) => fail(&mut run, &mut source, &failure),
            Ending::Cancelled => run.state = SourceRunStatus::Cancelled,
            Ending::GivenBack => run.state = SourceRunStatus::Queued,
            Ending::Waiting { until, is_try } => {
                run.state = SourceRunStatus::Waiting;
                run.waiting_until = Some(until);
                run.tries += u32::from(is_try);
            }
        }
        let is_over = run.state.is_over();
        if is_over {
            run.finished_at = Some(now);
            // Somebody asked for another run while this one was under way: otherwise it would be due later.
            let asked = source.next_run_at.filter(|at| *at < run.created_at.plus(source.every));
            let after = self.after(&source, follows, now);
            source.next_run_at = after.map(|after| asked.map_or(after, |asked| asked.min(after)));
            store::sources::finish(&mut tx, &source).await?;
            store::source_runs::forget(&mut tx, run.workspace, run.source, KEPT_RUNS).await?;
        }
        if store::source_runs::save(&mut tx, &run, &self.holder, now).await?.is_none() {
            // Somebody else has it by now.
            return Ok(tx.rollback().await?);
        }
        tx.commit().await?;
        if is_over {
            report(&run, &source, outcome);
        }
        self.wake();
        Ok(())
    }

    /// When the next run is due; at once when a full one follows a lost place.
    fn after(&self, source: &Source, follows: bool, now: Timestamp) -> Option<Timestamp> {
        if source.needs_credentials || source.paused || !source.mode.has_runs() {
            return None;
        }
        let is_now = follows && source.failures <= MOST_FOLLOWING;
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
    /// This process ends; another one, or the next, goes on.
    GivenBack,
}

impl Ending {
    const fn goes_on(&self) -> bool {
        matches!(self, Self::Waiting { .. } | Self::GivenBack)
    }

    /// A run that read everything has failed all the same when it could not keep it.
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
            Self::Waiting { .. } | Self::GivenBack => "paused",
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
        // How long a run waited for somebody to begin it.
        metrics::histogram!("cairn_source_run_lag_seconds", "provider" => provider)
            .record(started.since(run.created_at).as_micros() as f64 / 1e6);
    }
}
