//! Carries out one run, or its rollback.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use cairn_chassis::identity::Permission;
use cairn_chassis::sql;
use cairn_chassis::status::{Problem, Reason};
use uuid::Uuid;

use super::settle;
use crate::content::{Opened, Written};
use crate::context::Context;
use crate::model::{
    Batch, Details, Document, Kept, Kind, Memory, Phase, Run, RunStatus, Step, Still, SyncAction, Write,
};
use crate::packed::unpack;
use crate::plan::{self, Needed, Rules, States, Tree};
use crate::reversal::{self, reversal};
use crate::{Error, store};

/// A run that nobody holds for longer is anybody's after this.
pub(super) const TERM: Duration = Duration::from_secs(30);
/// Writes that are carried out together, and bytes of their texts: a moment each, in which nobody else writes.
const BATCH_STEPS: usize = 500;
const BATCH_BYTES: usize = 8 * 1024 * 1024;

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
            | Reason::SlugTaken
            | Reason::IdempotencyConflict
            | Reason::RunBusy
            | Reason::RunNotStartable
            | Reason::RunNotRevertible
            | Reason::PayloadTooLarge
            | Reason::DeliveryFailed
            | Reason::Unimplemented
            | Reason::AlreadyExists => Self::Failed(problem.message),
        }
    }
}

/// A run that this process holds.
pub(super) struct Worker<'a> {
    context: &'a Context,
    holder: &'a str,
    pub(super) run: Run,
    memory: Memory,
    /// What is done of the phase that is under way.
    done: Vec<Step>,
    stills: Vec<Still>,
    kept: Vec<Kept>,
    next_place: i64,
    /// Of the pieces that were needed last.
    pieces: HashMap<u32, Vec<u8>>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(context: &'a Context, holder: &'a str, run: Run) -> Self {
        Self {
            context,
            holder,
            run,
            memory: Memory::default(),
            done: Vec::new(),
            stills: Vec::new(),
            kept: Vec::new(),
            next_place: 0,
            pieces: HashMap::new(),
        }
    }

    /// Does what is left of the run.
    pub(super) async fn work(&mut self) -> Result<(), Halt> {
        let db = &self.context.db;
        self.memory = Memory::of(store::entries::list(db, self.run.workspace, &self.run.name).await?);
        let opened = self.open().await?;
        self.take_up(&opened).await?;
        match self.run.phase {
            Phase::Sync => self.sync(&opened).await,
            Phase::Rollback => self.roll_back(&opened).await,
        }
    }

    /// The workspace, if whoever asked may still have it changed so.
    async fn open(&self) -> Result<Opened, Halt> {
        let needed = match self.run.phase {
            Phase::Sync => Permission::Write,
            Phase::Rollback => Permission::Delete,
        };
        Ok(self.context.content.open(self.run.workspace, &self.run.asker, needed).await?)
    }

    /// Learns what was done before, and settles what was under way when a worker was lost.
    async fn take_up(&mut self, opened: &Opened) -> Result<(), Halt> {
        let (db, phase) = (&self.context.db, self.run.phase);
        for batch in store::batches::list(db, self.run.workspace, self.run.id, phase).await? {
            self.next_place = self.next_place.max(batch.place + 1);
            if batch.is_settled {
                self.done.extend(batch.steps);
                continue;
            }
            let states = opened.states(batch.steps.iter().map(|step| (step.kind, step.id))).await?;
            let steps = batch.steps.into_iter().filter(|step| settle::is_done(step, &states)).collect();
            self.settle(batch.place, steps).await?;
        }
        Ok(())
    }

    async fn sync(&mut self, opened: &Opened) -> Result<(), Halt> {
        let db = &self.context.db;
        let found = store::details::get(db, self.run.workspace, self.run.id).await?;
        let Some(details) = found else { return Err(Halt::Lost) };
        let memory = self.memory.clone();
        let states = opened.states(memory.0.values().map(|entry| (entry.kind, entry.id))).await?;
        let rules = Rules { run: self.run.id, policy: self.run.policy, prune: self.run.prune };
        let plan = plan::plan(rules, &details, &memory, &states);
        let tree = self.find_folders(opened, &plan, &memory, &states).await?;
        let mut names = names_beside(opened, &plan, &states).await?;
        let root = self.run.folder.map(|id| id.0);
        let next_id = || self.context.ids.next();
        let steps = plan::steps(&plan, &tree, &states, root, &mut names, next_id, self.run.prune);

        self.stills.clone_from(&plan.stills);
        let planned = steps.iter().filter(|step| step.kind == Kind::File).count() as u64;
        self.run.counters = settle::tally(&self.done, &self.stills);
        self.run.total = self.run.counters.processed + planned;
        let mut tx = db.begin_write().await?;
        let (workspace, name) = (self.run.workspace, &self.run.name);
        store::entries::put(&mut tx, workspace, name, &plan.adopts).await?;
        store::entries::remove(&mut tx, workspace, name, &plan.forgets).await?;
        store::details::set_stills(&mut tx, workspace, self.run.id, &self.stills).await?;
        self.save(tx).await?;

        let documents: HashMap<&str, &Document> =
            details.documents.iter().map(|document| (document.path.as_str(), document)).collect();
        for batch in cut(steps, &documents) {
            self.carry_out(batch, &documents).await?;
        }
        self.run.state = completed(&details, &self.stills);
        Ok(())
    }

    async fn roll_back(&mut self, opened: &Opened) -> Result<(), Halt> {
        let db = &self.context.db;
        let batches = store::batches::list(db, self.run.workspace, self.run.id, Phase::Sync).await?;
        let did: Vec<Step> =
            batches.into_iter().filter(|batch| batch.is_settled).flat_map(|batch| batch.steps).collect();
        let states = opened.states(did.iter().map(|step| (step.kind, step.id))).await?;
        let reverted: HashSet<Uuid> = self.done.iter().map(|step| step.id).collect();
        let plan = reversal(&did, &reverted, &states);
        self.kept = plan.kept;
        let mut tx = db.begin_write().await?;
        store::details::set_kept(&mut tx, self.run.workspace, self.run.id, &self.kept).await?;
        self.save(tx).await?;
        for batch in cut(plan.steps, &HashMap::new()) {
            self.carry_out(batch, &HashMap::new()).await?;
        }
        Ok(())
    }

    /// Finds the folders that new documents stand in, or gives them an id to be made under.
    async fn find_folders<'p>(
        &self,
        opened: &Opened,
        plan: &plan::Plan<'p>,
        memory: &Memory,
        states: &States,
    ) -> Result<Tree<'p>, Halt> {
        let mut tree = Tree::of(plan, memory, states);
        let root = self.run.folder.map(|id| id.0);
        while let Some(path) = tree.unknown() {
            let name = path.rsplit('/').next().unwrap_or(path);
            let found = match tree.parent(path) {
                Some(Needed::New(_)) => None,
                Some(Needed::There(id)) => opened.child(Some(*id), name).await?,
                None => opened.child(root, name).await?,
            };
            let needed = found.map_or_else(|| Needed::New(self.context.ids.next()), Needed::There);
            tree.put(path, needed);
        }
        Ok(tree)
    }

    /// Notes steps, has them written, and settles them. What the workspace refuses is left alone, and the rest is written.
    async fn carry_out(
        &mut self,
        mut steps: Vec<Step>,
        documents: &HashMap<&str, &Document>,
    ) -> Result<(), Halt> {
        let place = self.next_place;
        self.next_place += 1;
        // Each time anew: whoever asked may have lost the right to.
        let opened = self.open().await?;
        let batch = Batch { place, is_settled: false, steps };
        let mut tx = self.context.db.begin_write().await?;
        store::batches::put(&mut tx, self.run.workspace, self.run.id, self.run.phase, &batch).await?;
        self.save(tx).await?;
        steps = batch.steps;
        while !steps.is_empty() {
            let texts = self.texts(&steps, documents).await?;
            match opened.write(&steps, texts).await? {
                Written::All => break,
                Written::Refused(refused) => self.leave_alone(&mut steps, refused)?,
            }
        }
        self.settle(place, steps).await
    }

    fn leave_alone(
        &mut self,
        steps: &mut Vec<Step>,
        refused: Vec<(usize, String, String)>,
    ) -> Result<(), Halt> {
        let before = steps.len();
        let why: HashMap<usize, (String, String)> =
            refused.into_iter().map(|(place, code, message)| (place, (code, message))).collect();
        let mut place = 0;
        let (phase, stills, kept) = (self.run.phase, &mut self.stills, &mut self.kept);
        steps.retain(|step| {
            let refusal = why.get(&place);
            place += 1;
            let Some((code, message)) = refusal else { return true };
            match phase {
                Phase::Sync => stills.extend(settle::refused(step, code, message)),
                Phase::Rollback => kept.push(Kept {
                    path: step.path.clone(),
                    id: step.id,
                    code: "edited_since_sync".to_owned(),
                    why: format!("it stays as it is: {message}"),
                }),
            }
            false
        });
        if steps.len() == before {
            return Err(Halt::Failed("the workspace refused a batch and did not say what of it".to_owned()));
        }
        Ok(())
    }

    /// Writes down that these steps are done, with what they leave to remember.
    async fn settle(&mut self, place: i64, steps: Vec<Step>) -> Result<(), Halt> {
        let (workspace, id, phase) = (self.run.workspace, self.run.id, self.run.phase);
        let (puts, forgets) = match phase {
            Phase::Sync => settle::remembered(&steps, id),
            Phase::Rollback => self.taken_back(&steps),
        };
        let batch = Batch { place, is_settled: true, steps };
        let mut tx = self.context.db.begin_write().await?;
        store::batches::put(&mut tx, workspace, id, phase, &batch).await?;
        store::entries::remove(&mut tx, workspace, &self.run.name, &forgets).await?;
        store::entries::put(&mut tx, workspace, &self.run.name, &puts).await?;
        for path in forgets {
            self.memory.0.remove(&path);
        }
        self.memory.0.extend(puts.into_iter().map(|entry| ((entry.kind, entry.path.clone()), entry)));
        self.done.extend(batch.steps);
        self.run.tries = 0;
        match phase {
            Phase::Sync => {
                self.run.counters = settle::tally(&self.done, &self.stills);
                store::details::set_stills(&mut tx, workspace, id, &self.stills).await?;
            }
            Phase::Rollback => store::details::set_kept(&mut tx, workspace, id, &self.kept).await?,
        }
        self.save(tx).await
    }

    fn taken_back(&self, steps: &[Step]) -> (Vec<crate::model::Entry>, Vec<(Kind, String)>) {
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
    async fn save(&self, mut tx: sql::Tx) -> Result<(), Halt> {
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

    /// The texts of steps, in their order; empty for those that have none.
    async fn texts(
        &mut self,
        steps: &[Step],
        documents: &HashMap<&str, &Document>,
    ) -> Result<Vec<String>, Halt> {
        let has_text = |step: &Step| {
            step.kind == Kind::File && matches!(step.write, Write::Create { .. } | Write::Update)
        };
        let document = |step: &Step| documents.get(step.path.as_str()).copied().filter(|_| has_text(step));
        let wanted: BTreeSet<u32> =
            steps.iter().filter_map(document).filter_map(|one| one.text).map(|place| place.piece).collect();
        self.pieces.retain(|piece, _| wanted.contains(piece));
        let missing = wanted.into_iter().filter(|piece| !self.pieces.contains_key(piece)).collect();
        let db = &self.context.db;
        for (piece, packed) in store::details::pieces(db, self.run.workspace, self.run.id, &missing).await? {
            self.pieces.insert(piece, unpack(&packed)?);
        }
        steps.iter().map(|step| document(step).map_or(Ok(String::new()), |one| self.text(one))).collect()
    }

    fn text(&self, document: &Document) -> Result<String, Halt> {
        let found = document.text.and_then(|place| {
            let from = place.offset as usize;
            self.pieces.get(&place.piece)?.get(from..from + document.bytes as usize)
        });
        let text = found.and_then(|bytes| std::str::from_utf8(bytes).ok());
        let lost =
            || Halt::Failed(format!("the text of '{}' is lost: preview the directory again", document.path));
        text.map(str::to_owned).ok_or_else(lost)
    }
}

/// The names in the folders of files that get a version beside them.
async fn names_beside(
    opened: &Opened,
    plan: &plan::Plan<'_>,
    states: &States,
) -> Result<HashMap<Option<Uuid>, HashSet<String>>, Halt> {
    let mut names = HashMap::new();
    for state in plan.creates.iter().filter_map(|(_, old)| old.and_then(|old| states.get(&old.id))) {
        if !state.in_trash && !names.contains_key(&state.parent) {
            names.insert(state.parent, opened.names(state.parent).await?);
        }
    }
    Ok(names)
}

fn completed(details: &Details, stills: &[Still]) -> RunStatus {
    if details.notes.is_empty() && stills.iter().all(|still| still.action == SyncAction::Skipped) {
        RunStatus::Completed
    } else {
        RunStatus::CompletedWithWarnings
    }
}

/// Steps in batches that are not too large.
fn cut(steps: Vec<Step>, documents: &HashMap<&str, &Document>) -> Vec<Vec<Step>> {
    let mut batches: Vec<Vec<Step>> = Vec::new();
    let mut bytes = 0;
    for step in steps {
        let more = documents.get(step.path.as_str()).map_or(0, |document| document.bytes as usize);
        let has_room =
            batches.last().is_some_and(|last| last.len() < BATCH_STEPS && bytes + more <= BATCH_BYTES);
        if !has_room {
            batches.push(Vec::new());
            bytes = 0;
        }
        bytes += more;
        if let Some(last) = batches.last_mut() {
            last.push(step);
        }
    }
    batches
}
