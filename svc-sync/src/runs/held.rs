//! A run that this process holds: what is known of it, and how what it does is noted, written and settled. Syncs and imports
//! differ in what they plan, and share this.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use cairn_chassis::identity::Permission;
use cairn_chassis::sql;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::ids::SyncRunId;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::settle;
use crate::content::{Opened, Payload, Work, Written};
use crate::context::Context;
use crate::model::{Batch, Entry, Kept, Kind, Memory, Phase, Run, RunStatus, Step, Still, Write};
use crate::plan::States;
use crate::reversal::{self, reversal};
use crate::store::batches::Unsettled;
use crate::{Error, store};

/// A run that nobody holds for longer is anybody's after this.
pub(super) const TERM: Duration = Duration::from_secs(30);
/// Writes that are carried out together, and bytes of their texts: a moment each, in which nobody else writes.
pub(super) const BATCH_STEPS: usize = 500;
pub(super) const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// Databases and assets are calls of their own: so many are noted at once.
const NOTED_CALLS: usize = 50;

/// Why a worker stops before all is done.
#[derive(Debug)]
pub(super) enum Halt {
    /// Somebody else has the run by now.
    Lost,
    /// Somebody wants it cancelled.
    Cancelled,
    /// This process ends.
    GivenBack,
    /// Another service does not answer: later again.
    Again(String),
    /// It cannot be done.
    Failed(String),
    /// Our own storage does not answer: the term of the run ends, and somebody takes it.
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
            | Reason::VersionConflict => Self::Again(problem.message),
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

/// A run that this process holds.
pub(super) struct Held<'a> {
    pub(super) context: &'a Context,
    holder: &'a str,
    /// Cancelled when somebody wants the run cancelled.
    pub(super) unwanted: CancellationToken,
    pub(super) run: Run,
    pub(super) memory: Memory,
    /// What is done of the phase that is under way.
    pub(super) done: Vec<Step>,
    pub(super) stills: Vec<Still>,
    pub(super) kept: Vec<Kept>,
    /// What stays noted though the workspace does not show it: a worker that was lost may have its call still on its way.
    open: Vec<Batch>,
    next_place: i64,
}

impl<'a> Held<'a> {
    pub(super) const fn new(
        context: &'a Context,
        holder: &'a str,
        run: Run,
        unwanted: CancellationToken,
    ) -> Self {
        Self {
            context,
            holder,
            unwanted,
            run,
            memory: Memory(std::collections::BTreeMap::new()),
            done: Vec::new(),
            stills: Vec::new(),
            kept: Vec::new(),
            open: Vec::new(),
            next_place: 0,
        }
    }

    /// What something comes to that may take long, unless somebody wants the run cancelled meanwhile.
    pub(super) async fn unless_unwanted<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Halt>
    where
        Halt: From<E>,
    {
        tokio::select! {
            () = self.unwanted.cancelled() => Err(Halt::Cancelled),
            done = work => Ok(done?),
        }
    }

    /// The workspace, if whoever asked may still have it changed so.
    pub(super) async fn open(&self) -> Result<Opened, Halt> {
        let needed = match self.run.phase {
            Phase::Sync => Permission::Write,
            Phase::Rollback => Permission::Delete,
        };
        Ok(self.context.content.open(self.run.workspace, &self.run.asker, needed).await?)
    }

    /// Learns what was done before, and settles what was under way when a worker was lost.
    pub(super) async fn take_up(&mut self, opened: &Opened) -> Result<(), Halt> {
        let (db, phase) = (&self.context.db, self.run.phase);
        self.memory = Memory::of(store::entries::list(db, self.run.sync()).await?);
        if phase == Phase::Sync {
            self.recall(opened).await?;
        }
        let batches = store::batches::list(db, self.run.workspace, self.run.id, phase).await?;
        self.next_place = batches.iter().map(|batch| batch.place + 1).max().unwrap_or(0);
        for batch in batches {
            if batch.is_settled {
                self.done.extend(batch.steps);
                continue;
            }
            let states = opened.states(batch.steps.iter().map(|step| (step.kind, step.id))).await?;
            let (mut steps, open): (Vec<Step>, Vec<Step>) =
                batch.steps.into_iter().partition(|step| settle::is_over(step, &states));
            let open = open.into_iter().filter(settle::can_arrive).collect();
            settle::learn_versions(&mut steps, &states);
            self.settle_but(batch.place, steps, open).await?;
        }
        Ok(())
    }

    /// Settles what has arrived of a worker that was lost since this one looked first, as these states show it, by which the rest is
    /// about to be planned: that would take it for what somebody else did. What arrives after them meets the same write of this
    /// worker, and the second of the two is refused.
    pub(super) async fn settle_late(&mut self, states: &States) -> Result<(), Halt> {
        let mut late = Vec::new();
        for batch in &mut self.open {
            let steps = std::mem::take(&mut batch.steps).into_iter();
            let (arrived, open): (Vec<Step>, Vec<Step>) =
                steps.partition(|step| settle::has_arrived(step, states));
            late.extend(arrived);
            batch.steps = open;
        }
        if late.is_empty() {
            return Ok(());
        }
        let place = self.take_place();
        self.settle(place, late).await
    }

    /// Remembers what earlier runs of the sync wrote and did not settle, since they were cancelled or failed right then, and what their
    /// rollbacks took back: otherwise this run would make all of it once more, or take it for somebody's edit.
    async fn recall(&mut self, opened: &Opened) -> Result<(), Halt> {
        let db = &self.context.db;
        let unsettled = store::batches::unsettled(db, self.run.sync(), self.run.id).await?;
        for Unsettled { run, phase, batch } in unsettled {
            let states = opened.states(batch.steps.iter().map(|step| (step.kind, step.id))).await?;
            let mut steps: Vec<Step> = batch
                .steps
                .into_iter()
                .filter(|step| settle::is_done(step, &states) && self.is_last_of(step, run))
                .collect();
            settle::learn_versions(&mut steps, &states);
            let (puts, forgets) = match phase {
                Phase::Sync => settle::remembered(&steps, run),
                Phase::Rollback => self.taken_back(&steps),
            };
            let batch = Batch { place: batch.place, is_settled: true, steps };
            let mut tx = db.begin_write().await?;
            // Somebody may have removed it meanwhile; what it wrote is remembered all the same.
            if store::runs::hold(&mut tx, self.run.workspace, run).await?.is_some() {
                store::batches::put(&mut tx, self.run.workspace, run, phase, &batch).await?;
            }
            store::entries::remove(&mut tx, self.run.sync(), &forgets).await?;
            store::entries::put(&mut tx, self.run.sync(), &puts).await?;
            self.remember(puts, forgets);
            self.save(tx).await?;
        }
        Ok(())
    }

    /// Whether nothing was remembered under the path of a step since that run noted it.
    fn is_last_of(&self, step: &Step, run: SyncRunId) -> bool {
        let known = self.memory.get(step.kind, &step.path);
        known.is_none_or(|known| known.run == run || Some(known) == step.before.as_ref())
    }

    fn remember(&mut self, puts: Vec<Entry>, forgets: Vec<(Kind, String)>) {
        for path in forgets {
            self.memory.0.remove(&path);
        }
        self.memory.0.extend(puts.into_iter().map(|entry| ((entry.kind, entry.path.clone()), entry)));
    }

    /// Settles what the run had under way when it ended early, so that all of it can be taken back.
    async fn settle_what_was_cut(&mut self, opened: &Opened) -> Result<(), Halt> {
        let (workspace, id) = (self.run.workspace, self.run.id);
        let batches = store::batches::list(&self.context.db, workspace, id, Phase::Sync).await?;
        for batch in batches.into_iter().filter(|batch| !batch.is_settled) {
            let states = opened.states(batch.steps.iter().map(|step| (step.kind, step.id))).await?;
            let mut steps: Vec<Step> =
                batch.steps.into_iter().filter(|step| settle::is_done(step, &states)).collect();
            settle::learn_versions(&mut steps, &states);
            let (puts, _) = settle::remembered(&steps, id);
            let batch = Batch { place: batch.place, is_settled: true, steps };
            let mut tx = self.context.db.begin_write().await?;
            store::batches::put(&mut tx, workspace, id, Phase::Sync, &batch).await?;
            store::entries::put(&mut tx, self.run.sync(), &puts).await?;
            self.memory.0.extend(puts.into_iter().map(|entry| ((entry.kind, entry.path.clone()), entry)));
            self.save(tx).await?;
        }
        Ok(())
    }

    /// Takes back what the run did, but for what was changed since.
    pub(super) async fn roll_back(&mut self, opened: &Opened) -> Result<(), Halt> {
        let db = &self.context.db;
        self.settle_what_was_cut(opened).await?;
        let batches = store::batches::list(db, self.run.workspace, self.run.id, Phase::Sync).await?;
        let did: Vec<Step> =
            batches.into_iter().filter(|batch| batch.is_settled).flat_map(|batch| batch.steps).collect();
        let states = opened.states(did.iter().map(|step| (step.kind, step.id))).await?;
        self.settle_late(&states).await?;
        let reverted: HashSet<Uuid> = self.done.iter().map(|step| step.id).collect();
        let plan = reversal(self.run.origin, &did, &reverted, &states);
        self.kept = plan.kept;
        let mut tx = db.begin_write().await?;
        store::details::set_kept(&mut tx, self.run.workspace, self.run.id, &self.kept).await?;
        self.save(tx).await?;
        for batch in cut(plan.steps.into_iter().map(|step| (step, Payload::None)).collect()) {
            self.carry_out(batch).await?;
        }
        self.close().await
    }

    /// Notes steps, has them written, and settles them. What the workspace refuses is left alone, and the rest is written.
    pub(super) async fn carry_out(&mut self, mut work: Vec<Work>) -> Result<(), Halt> {
        let place = self.note(work.iter().map(|(step, _)| step.clone()).collect()).await?;
        // Each time anew: whoever asked may have lost the right to.
        let opened = self.open().await?;
        let mut done: Vec<Step> = Vec::new();
        while !work.is_empty() {
            match opened.write(&mut work).await? {
                Written::All => break,
                Written::Refused(refused) => {
                    let at = |place: &usize| work.get(*place).map(|(step, _)| (step.kind, step.id));
                    let items: Vec<_> = refused.iter().filter_map(|(place, ..)| at(place)).collect();
                    let states = opened.states(items).await?;
                    done.extend(self.leave_alone(&mut work, refused, &states)?);
                }
            }
        }
        done.extend(work.into_iter().map(|(step, _)| step));
        self.settle(place, done).await
    }

    /// Notes steps that are about to be written; answers the place of their batch.
    pub(super) async fn note(&mut self, steps: Vec<Step>) -> Result<i64, Halt> {
        let place = self.take_place();
        // Of what a worker that was lost may have on its way as well, one note is enough.
        let key = |step: &Step| (step.id, step.write == Write::Relate);
        let again: HashSet<(Uuid, bool)> = steps.iter().map(key).collect();
        for batch in &mut self.open {
            batch.steps.retain(|step| !again.contains(&key(step)));
        }
        let batch = Batch { place, is_settled: false, steps };
        let mut tx = self.context.db.begin_write().await?;
        store::batches::put(&mut tx, self.run.workspace, self.run.id, self.run.phase, &batch).await?;
        self.keep_open(&mut tx).await?;
        self.save(tx).await?;
        Ok(place)
    }

    fn take_place(&mut self) -> i64 {
        let place = self.next_place;
        self.next_place += 1;
        place
    }

    /// Writes down what is still open, and lets go of what no longer is.
    async fn keep_open(&mut self, tx: &mut sql::Tx) -> Result<(), Halt> {
        let (workspace, id, phase) = (self.run.workspace, self.run.id, self.run.phase);
        for batch in &self.open {
            store::batches::put(tx, workspace, id, phase, batch).await?;
        }
        self.open.retain(|batch| !batch.steps.is_empty());
        Ok(())
    }

    /// Lets go of what is still open, when all is done.
    pub(super) async fn close(&mut self) -> Result<(), Halt> {
        if self.open.is_empty() {
            return Ok(());
        }
        self.open.iter_mut().for_each(|batch| batch.steps.clear());
        let mut tx = self.context.db.begin_write().await?;
        self.keep_open(&mut tx).await?;
        self.save(tx).await
    }

    /// Takes out of a batch what was refused, and answers what of it is done already: a worker that was lost may have had its
    /// call on the way, which arrived since.
    fn leave_alone(
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
            if settle::is_surely_done(step, states) {
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

    /// Leaves alone what a step is about, which the workspace refused.
    pub(super) fn refuse(&mut self, step: &Step, code: &str, message: &str) {
        match self.run.phase {
            Phase::Sync => self.stills.extend(settle::refused(step, code, message)),
            Phase::Rollback => self.kept.push(Kept {
                path: step.path.clone(),
                id: step.id,
                code: reversal::edited(self.run.origin).to_owned(),
                why: format!("it stays as it is: {message}"),
            }),
        }
    }

    /// Settles some of the steps that are noted at a place, and keeps the others noted.
    pub(super) async fn settle_but(
        &mut self,
        place: i64,
        steps: Vec<Step>,
        open: Vec<Step>,
    ) -> Result<(), Halt> {
        if open.is_empty() {
            return self.settle(place, steps).await;
        }
        self.open.push(Batch { place, is_settled: false, steps: open });
        let other = self.take_place();
        self.settle(other, steps).await
    }

    /// Writes down that these steps are done, with what they leave to remember.
    pub(super) async fn settle(&mut self, place: i64, steps: Vec<Step>) -> Result<(), Halt> {
        let (workspace, id, phase) = (self.run.workspace, self.run.id, self.run.phase);
        let (puts, forgets) = match phase {
            Phase::Sync => settle::remembered(&steps, id),
            Phase::Rollback => self.taken_back(&steps),
        };
        let batch = Batch { place, is_settled: true, steps };
        let mut tx = self.context.db.begin_write().await?;
        store::batches::put(&mut tx, workspace, id, phase, &batch).await?;
        self.keep_open(&mut tx).await?;
        store::entries::remove(&mut tx, self.run.sync(), &forgets).await?;
        store::entries::put(&mut tx, self.run.sync(), &puts).await?;
        self.remember(puts, forgets);
        if !batch.steps.is_empty() {
            // It goes on.
            self.run.tries = 0;
        }
        self.done.extend(batch.steps);
        match phase {
            Phase::Sync => {
                self.run.counters = settle::tally(&self.done, &self.stills);
                store::details::set_stills(&mut tx, workspace, id, &self.stills).await?;
            }
            Phase::Rollback => store::details::set_kept(&mut tx, workspace, id, &self.kept).await?,
        }
        self.save(tx).await
    }

    fn taken_back(&self, steps: &[Step]) -> (Vec<Entry>, Vec<(Kind, String)>) {
        let (mut puts, mut forgets) = (Vec::new(), Vec::new());
        for step in steps {
            match reversal::remembered(step, self.memory.get(step.kind, &step.path)) {
                None => {}
                Some(Some(entry)) => puts.push(entry),
                Some(None) => forgets.push((step.kind, step.path.clone())),
            }
        }
        (puts, forgets)
    }

    /// Writes how far the run is and ends the transaction, while this process holds it and nobody wants it cancelled.
    pub(super) async fn save(&self, mut tx: sql::Tx) -> Result<(), Halt> {
        let until = self.context.clock.now().plus(TERM);
        match store::runs::save(&mut tx, &self.run, self.holder, until).await? {
            None => {
                tx.rollback().await?;
                Err(Halt::Lost)
            }
            Some(is_unwanted) => {
                tx.commit().await?;
                if is_unwanted && self.run.phase == Phase::Sync { Err(Halt::Cancelled) } else { Ok(()) }
            }
        }
    }

    /// Says that all was done: with warnings, or without.
    pub(super) const fn complete(&mut self, has_warnings: bool) {
        self.run.state = if has_warnings { RunStatus::CompletedWithWarnings } else { RunStatus::Completed };
    }
}

/// Steps in batches that are not too large, each of what is written in one transaction or of what is not.
pub(super) fn cut(work: Vec<Work>) -> Vec<Vec<Work>> {
    let mut batches: Vec<Vec<Work>> = Vec::new();
    let mut bytes = 0;
    for (step, payload) in work {
        let more = payload.bytes();
        let most = if step.kind.is_in_batches() { BATCH_STEPS } else { NOTED_CALLS };
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

/// Whether a write was a change of content that has a text.
pub(super) const fn has_text(step: &Step) -> bool {
    matches!(step.kind, Kind::File) && matches!(step.write, Write::Create { .. } | Write::Update)
}
