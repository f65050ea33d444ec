//! A run whose lease this process holds: its state, and how its writes are logged, sent and settled. Syncs and imports plan different
//! writes and share this.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use cairn_chassis::identity::Permission;
use cairn_chassis::sql;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::ids::SyncRunId;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::settle;
use crate::content::{BatchOutcome, ContentSession, Payload, Work};
use crate::context::Context;
use crate::model::{Baseline, Batch, Entry, Kept, Kind, Phase, Run, RunStatus, Step, Unwritten, Write};
use crate::plan::States;
use crate::reversal::{self, reversal};
use crate::store::batches::Unsettled;
use crate::{Error, store};

/// How long a claim lasts unless it is renewed; afterwards any process may claim the run.
pub(super) const LEASE: Duration = Duration::from_secs(30);
/// Steps of one batch, and bytes of their texts. A batch is one transaction, which blocks other writers of the workspace.
pub(super) const BATCH_STEPS: usize = 500;
pub(super) const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// Databases and assets are written by a call each: how many of them one batch logs.
const LOGGED_CALLS: usize = 50;

/// Why a worker stops before the run is done.
#[derive(Debug)]
pub(super) enum Halt {
    /// Another process has claimed the run.
    LeaseLost,
    /// The run was cancelled.
    Cancelled,
    /// This process shuts down; the run goes back to the queue.
    Shutdown,
    /// Another service is unavailable: retry after a backoff.
    Retry(String),
    /// A retry would fail the same way.
    Failed(String),
    /// Our own storage is unavailable: the lease expires, and some process claims the run again.
    Storage(Error),
}

impl From<sql::Error> for Halt {
    fn from(error: sql::Error) -> Self {
        Self::Storage(error.into())
    }
}

impl From<Problem> for Halt {
    fn from(problem: Problem) -> Self {
        match problem.reason {
            Reason::Unavailable
            | Reason::DeadlineExceeded
            | Reason::RateLimited
            | Reason::Internal
            | Reason::Unauthorized
            | Reason::VersionConflict => Self::Retry(problem.message),
            Reason::ValidationError
            | Reason::Forbidden
            | Reason::OutOfScope
            | Reason::LimitExceeded
            | Reason::NotFound
            | Reason::Gone
            | Reason::SlugTaken
            | Reason::IdempotencyConflict
            | Reason::RunBusy
            | Reason::RunNotStartable
            | Reason::RunNotRevertible
            | Reason::RunNotCancellable
            | Reason::PayloadTooLarge
            | Reason::DeliveryFailed
            | Reason::Unimplemented
            | Reason::AlreadyExists => Self::Failed(problem.message),
        }
    }
}

/// A run whose lease this process holds.
pub(super) struct ActiveRun<'a> {
    pub(super) context: &'a Context,
    holder: &'a str,
    /// Cancelled when a caller cancels the run.
    pub(super) cancellation: CancellationToken,
    pub(super) run: Run,
    pub(super) baseline: Baseline,
    /// Steps of the current phase that are done.
    pub(super) done: Vec<Step>,
    pub(super) unwritten: Vec<Unwritten>,
    pub(super) kept: Vec<Kept>,
    /// Logged steps with no visible effect yet: the call of a lost worker may still be in flight.
    in_doubt: Vec<Batch>,
    /// Writes that were in doubt and are logged again: both calls may land.
    superseded: BTreeSet<WriteKey>,
    next_place: i64,
}

/// Identifies a write of a phase: the id of the object, and whether it writes the relations, which is a step of its own.
type WriteKey = (Uuid, bool);

fn write_key(step: &Step) -> WriteKey {
    (step.id, step.write == Write::Relate)
}

impl<'a> ActiveRun<'a> {
    pub(super) const fn new(
        context: &'a Context,
        holder: &'a str,
        run: Run,
        cancellation: CancellationToken,
    ) -> Self {
        Self {
            context,
            holder,
            cancellation,
            run,
            baseline: Baseline(std::collections::BTreeMap::new()),
            done: Vec::new(),
            unwritten: Vec::new(),
            kept: Vec::new(),
            in_doubt: Vec::new(),
            superseded: BTreeSet::new(),
            next_place: 0,
        }
    }

    /// Waits for something slow, unless the run is cancelled first.
    pub(super) async fn unless_cancelled<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Halt>
    where
        Halt: From<E>,
    {
        tokio::select! {
            () = self.cancellation.cancelled() => Err(Halt::Cancelled),
            done = work => Ok(done?),
        }
    }

    /// A session with the workspace, if the requester still has the permission that the phase needs.
    pub(super) async fn open(&self) -> Result<ContentSession, Halt> {
        let needed = match self.run.phase {
            Phase::Sync => Permission::Write,
            Phase::Rollback => Permission::Delete,
        };
        Ok(self.context.content.open(self.run.workspace, &self.run.requester, needed).await?)
    }

    /// Loads what earlier workers did, and settles the batches that the last one left open.
    pub(super) async fn resume(&mut self, session: &ContentSession) -> Result<(), Halt> {
        let (db, phase) = (&self.context.db, self.run.phase);
        self.baseline = Baseline::of(store::entries::list(db, self.run.sync()).await?);
        if phase == Phase::Sync {
            self.settle_earlier_runs(session).await?;
        }
        let batches = store::batches::list(db, self.run.workspace, self.run.id, phase).await?;
        self.next_place = batches.iter().map(|batch| batch.place + 1).max().unwrap_or(0);
        for batch in batches {
            if batch.is_settled {
                self.done.extend(batch.steps);
                continue;
            }
            let states = session.states_of(&batch.steps).await?;
            let (mut steps, open): (Vec<Step>, Vec<Step>) =
                batch.steps.into_iter().partition(|step| settle::is_complete(step, &states));
            let open = open.into_iter().filter(settle::is_identifiable).collect();
            settle::learn_versions(&mut steps, &states);
            self.settle_partly(batch.place, steps, open).await?;
        }
        Ok(())
    }

    /// Settles steps in doubt that have taken effect since [`resume`](Self::resume), according to the states from which the rest will be
    /// planned: the plan would mistake their effect for somebody's edit. A stale write that lands after these states were read
    /// conflicts with the same write of this worker, and whichever comes second is refused.
    pub(super) async fn settle_stale_writes(
        &mut self,
        session: &ContentSession,
        states: &mut States,
    ) -> Result<(), Halt> {
        let mut late = Vec::new();
        for batch in &mut self.in_doubt {
            session.read_own_versions(&batch.steps, states).await?;
            let states = &*states;
            let steps = std::mem::take(&mut batch.steps).into_iter();
            let (arrived, open): (Vec<Step>, Vec<Step>) =
                steps.partition(|step| settle::has_taken_effect(step, states));
            late.extend(arrived);
            batch.steps = open;
        }
        if late.is_empty() {
            return Ok(());
        }
        let place = self.take_place();
        self.settle(place, late).await
    }

    /// Settles batches that earlier runs of the sync left open when they were cancelled or failed in the middle of a write, and those of
    /// their rollbacks. Otherwise this run would write all of it again, or mistake it for somebody's edit.
    async fn settle_earlier_runs(&mut self, session: &ContentSession) -> Result<(), Halt> {
        let db = &self.context.db;
        let unsettled = store::batches::unsettled(db, self.run.sync(), self.run.id).await?;
        for Unsettled { run, phase, batch } in unsettled {
            let states = session.states_of(&batch.steps).await?;
            let mut steps: Vec<Step> = batch
                .steps
                .into_iter()
                .filter(|step| settle::is_done(step, &states) && self.is_last_of(step, run))
                .collect();
            settle::learn_versions(&mut steps, &states);
            let (puts, forgets) = match phase {
                Phase::Sync => settle::baseline_changes(&steps, run),
                Phase::Rollback => self.reverted_entries(&steps),
            };
            let batch = Batch { place: batch.place, is_settled: true, steps };
            let mut tx = db.begin_write().await?;
            // The run may have been deleted meanwhile; the baseline still learns what it wrote.
            if store::runs::get_for_update(&mut tx, self.run.workspace, run).await?.is_some() {
                store::batches::put(&mut tx, self.run.workspace, run, phase, &batch).await?;
            }
            store::entries::remove(&mut tx, self.run.sync(), &forgets).await?;
            store::entries::put(&mut tx, self.run.sync(), &puts).await?;
            self.remember(puts, forgets);
            self.save(tx).await?;
        }
        Ok(())
    }

    /// Whether the baseline has no newer entry for the path of a step than the run that logged it.
    fn is_last_of(&self, step: &Step, run: SyncRunId) -> bool {
        let known = self.baseline.get(step.kind, &step.path);
        known.is_none_or(|known| known.run == run || Some(known) == step.before.as_ref())
    }

    fn remember(&mut self, puts: Vec<Entry>, forgets: Vec<(Kind, String)>) {
        for path in forgets {
            self.baseline.0.remove(&path);
        }
        self.baseline.0.extend(puts.into_iter().map(|entry| ((entry.kind, entry.path.clone()), entry)));
    }

    /// Settles batches that were open when the run ended early, so that the rollback covers them.
    async fn settle_interrupted(&mut self, session: &ContentSession) -> Result<(), Halt> {
        let (workspace, id) = (self.run.workspace, self.run.id);
        let batches = store::batches::list(&self.context.db, workspace, id, Phase::Sync).await?;
        for batch in batches.into_iter().filter(|batch| !batch.is_settled) {
            let states = session.states_of(&batch.steps).await?;
            let mut steps: Vec<Step> =
                batch.steps.into_iter().filter(|step| settle::is_done(step, &states)).collect();
            settle::learn_versions(&mut steps, &states);
            let (puts, _) = settle::baseline_changes(&steps, id);
            let batch = Batch { place: batch.place, is_settled: true, steps };
            let mut tx = self.context.db.begin_write().await?;
            store::batches::put(&mut tx, workspace, id, Phase::Sync, &batch).await?;
            store::entries::put(&mut tx, self.run.sync(), &puts).await?;
            self.baseline.0.extend(puts.into_iter().map(|entry| ((entry.kind, entry.path.clone()), entry)));
            self.save(tx).await?;
        }
        Ok(())
    }

    /// Reverts what the run wrote, except what was changed since.
    pub(super) async fn roll_back(&mut self, session: &ContentSession) -> Result<(), Halt> {
        let db = &self.context.db;
        self.settle_interrupted(session).await?;
        let batches = store::batches::list(db, self.run.workspace, self.run.id, Phase::Sync).await?;
        let did: Vec<Step> =
            batches.into_iter().filter(|batch| batch.is_settled).flat_map(|batch| batch.steps).collect();
        let mut states = session.states(did.iter().map(|step| (step.kind, step.id))).await?;
        self.settle_stale_writes(session, &mut states).await?;
        let reverted: HashSet<Uuid> = self.done.iter().map(|step| step.id).collect();
        let plan = reversal(self.run.origin, &did, &reverted, &states);
        self.kept = plan.kept;
        let mut tx = db.begin_write().await?;
        store::details::set_kept(&mut tx, self.run.workspace, self.run.id, &self.kept).await?;
        self.save(tx).await?;
        for batch in cut(plan.steps.into_iter().map(|step| (step, Payload::None)).collect()) {
            self.carry_out(batch).await?;
        }
        self.discard_in_doubt().await
    }

    /// Logs a batch, sends it and settles it. Refused steps are dropped from it, and the rest is sent again.
    pub(super) async fn carry_out(&mut self, mut work: Vec<Work>) -> Result<(), Halt> {
        let place = self.log(work.iter().map(|(step, _)| step.clone()).collect()).await?;
        // Authorized anew for each batch: the requester may have lost the permission.
        let session = self.open().await?;
        let mut done: Vec<Step> = Vec::new();
        while !work.is_empty() {
            match session.write(&mut work).await? {
                BatchOutcome::Done => break,
                BatchOutcome::Refused(refused) => {
                    let at = |place: &usize| work.get(*place).map(|(step, _)| step.clone());
                    let steps: Vec<Step> = refused.iter().filter_map(|(place, ..)| at(place)).collect();
                    let states = session.states_of(&steps).await?;
                    done.extend(self.remove_refused(&mut work, refused, &states)?);
                }
            }
        }
        done.extend(work.into_iter().map(|(step, _)| step));
        self.settle(place, done).await
    }

    /// Logs steps that are about to be sent; returns the place of their batch.
    pub(super) async fn log(&mut self, steps: Vec<Step>) -> Result<i64, Halt> {
        let place = self.take_place();
        // The new batch supersedes the entry in doubt for the same write.
        let again: HashSet<WriteKey> = steps.iter().map(write_key).collect();
        let doubtful = self.in_doubt.iter().flat_map(|batch| batch.steps.iter().map(write_key));
        self.superseded.extend(doubtful.filter(|key| again.contains(key)));
        for batch in &mut self.in_doubt {
            batch.steps.retain(|step| !again.contains(&write_key(step)));
        }
        let batch = Batch { place, is_settled: false, steps };
        let mut tx = self.context.db.begin_write().await?;
        store::batches::put(&mut tx, self.run.workspace, self.run.id, self.run.phase, &batch).await?;
        self.save_in_doubt(&mut tx).await?;
        self.save(tx).await?;
        Ok(place)
    }

    fn take_place(&mut self) -> i64 {
        let place = self.next_place;
        self.next_place += 1;
        place
    }

    /// Stores the batches in doubt, and removes those that have no steps left.
    async fn save_in_doubt(&mut self, tx: &mut sql::Tx) -> Result<(), Halt> {
        let (workspace, id, phase) = (self.run.workspace, self.run.id, self.run.phase);
        for batch in &self.in_doubt {
            store::batches::put(tx, workspace, id, phase, batch).await?;
        }
        self.in_doubt.retain(|batch| !batch.steps.is_empty());
        Ok(())
    }

    /// Removes the batches in doubt, when the run is done.
    pub(super) async fn discard_in_doubt(&mut self) -> Result<(), Halt> {
        if self.in_doubt.is_empty() {
            return Ok(());
        }
        self.in_doubt.iter_mut().for_each(|batch| batch.steps.clear());
        let mut tx = self.context.db.begin_write().await?;
        self.save_in_doubt(&mut tx).await?;
        self.save(tx).await
    }

    /// Removes the refused steps from a batch; returns those of them that have taken effect after all: the stale write of a lost worker
    /// may have landed first.
    fn remove_refused(
        &mut self,
        work: &mut Vec<Work>,
        refused: Vec<(usize, String, String)>,
        states: &States,
    ) -> Result<Vec<Step>, Halt> {
        let before = work.len();
        let why: HashMap<usize, (String, String)> =
            refused.into_iter().map(|(place, code, message)| (place, (code, message))).collect();
        let (mut place, mut done) = (0, Vec::new());
        work.retain(|(step, _)| {
            let refusal = why.get(&place);
            place += 1;
            let Some((code, message)) = refusal else { return true };
            // The author of a version does not tell which write of this service it is: that of an earlier run or phase may have landed
            // late. Only a write that is repeated can be the cause of its own refusal.
            let may_be_own = !step.changes_record() || self.superseded.contains(&write_key(step));
            if may_be_own && settle::is_provably_done(step, states) {
                done.push(step.clone());
            } else {
                self.refuse(step, code, message);
            }
            false
        });
        if work.len() == before {
            return Err(Halt::Failed("the workspace refused a batch and did not say what of it".to_owned()));
        }
        Ok(done)
    }

    /// Records that a step was refused, and that its object stays as it is.
    pub(super) fn refuse(&mut self, step: &Step, code: &str, message: &str) {
        match self.run.phase {
            Phase::Sync => self.unwritten.extend(settle::refused(step, code, message)),
            Phase::Rollback => self.kept.push(Kept {
                path: step.path.clone(),
                id: step.id,
                code: reversal::edited(self.run.origin).to_owned(),
                why: format!("it stays as it is: {message}"),
            }),
        }
    }

    /// Settles some steps of a logged batch; the others stay logged as in doubt.
    pub(super) async fn settle_partly(
        &mut self,
        place: i64,
        steps: Vec<Step>,
        open: Vec<Step>,
    ) -> Result<(), Halt> {
        if open.is_empty() {
            return self.settle(place, steps).await;
        }
        self.in_doubt.push(Batch { place, is_settled: false, steps: open });
        let other = self.take_place();
        self.settle(other, steps).await
    }

    /// Stores that these steps are done, with the baseline entries that follow from them.
    pub(super) async fn settle(&mut self, place: i64, steps: Vec<Step>) -> Result<(), Halt> {
        let (workspace, id, phase) = (self.run.workspace, self.run.id, self.run.phase);
        let (puts, forgets) = match phase {
            Phase::Sync => settle::baseline_changes(&steps, id),
            Phase::Rollback => self.reverted_entries(&steps),
        };
        let batch = Batch { place, is_settled: true, steps };
        let mut tx = self.context.db.begin_write().await?;
        store::batches::put(&mut tx, workspace, id, phase, &batch).await?;
        self.save_in_doubt(&mut tx).await?;
        store::entries::remove(&mut tx, self.run.sync(), &forgets).await?;
        store::entries::put(&mut tx, self.run.sync(), &puts).await?;
        self.remember(puts, forgets);
        if !batch.steps.is_empty() {
            // Progress ends the series of failed tries.
            self.run.tries = 0;
        }
        self.done.extend(batch.steps);
        match phase {
            Phase::Sync => {
                self.run.counters = settle::tally(&self.done, &self.unwritten);
                store::details::set_unwritten(&mut tx, workspace, id, &self.unwritten).await?;
            }
            Phase::Rollback => store::details::set_kept(&mut tx, workspace, id, &self.kept).await?,
        }
        self.save(tx).await
    }

    fn reverted_entries(&self, steps: &[Step]) -> (Vec<Entry>, Vec<(Kind, String)>) {
        let (mut puts, mut forgets) = (Vec::new(), Vec::new());
        for step in steps {
            match reversal::remembered(step, self.baseline.get(step.kind, &step.path)) {
                None => {}
                Some(Some(entry)) => puts.push(entry),
                Some(None) => forgets.push((step.kind, step.path.clone())),
            }
        }
        (puts, forgets)
    }

    /// Stores the progress of the run and commits. Fails when the lease is lost (nothing is committed) or the run was cancelled.
    pub(super) async fn save(&self, mut tx: sql::Tx) -> Result<(), Halt> {
        let until = self.context.clock.now().plus(LEASE);
        match store::runs::save(&mut tx, &self.run, self.holder, until).await? {
            None => {
                tx.rollback().await?;
                Err(Halt::LeaseLost)
            }
            Some(is_cancelled) => {
                tx.commit().await?;
                if is_cancelled && self.run.phase == Phase::Sync { Err(Halt::Cancelled) } else { Ok(()) }
            }
        }
    }

    /// Marks the run as completed, with warnings or without.
    pub(super) const fn complete(&mut self, has_warnings: bool) {
        self.run.state = if has_warnings { RunStatus::CompletedWithWarnings } else { RunStatus::Completed };
    }
}

/// Splits steps into batches within the size limits. No batch mixes steps of one transaction with those that are calls of their own.
pub(super) fn cut(work: Vec<Work>) -> Vec<Vec<Work>> {
    let mut batches: Vec<Vec<Work>> = Vec::new();
    let mut bytes = 0;
    for (step, payload) in work {
        let more = payload.bytes();
        let most = if step.kind.is_in_batches() { BATCH_STEPS } else { LOGGED_CALLS };
        let has_room = batches.last().is_some_and(|last| {
            let is_alike =
                last.last().is_some_and(|(one, _)| one.kind.is_in_batches() == step.kind.is_in_batches());
            is_alike && last.len() < most && bytes + more <= BATCH_BYTES
        });
        if !has_room {
            batches.push(Vec::new());
            bytes = 0;
        }
        bytes += more;
        if let Some(last) = batches.last_mut() {
            last.push((step, payload));
        }
    }
    batches
}

/// Whether a step writes the text of a file.
pub(super) const fn has_text(step: &Step) -> bool {
    matches!(step.kind, Kind::File) && matches!(step.write, Write::Create { .. } | Write::Update)
}
