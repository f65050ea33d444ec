//! Executes a run of a directory sync.

use std::collections::{BTreeSet, HashMap, HashSet};

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::SyncRunId;
use uuid::Uuid;

use super::active::{ActiveRun, BATCH_BYTES, BATCH_STEPS, Halt, has_text};
use super::settle;
use crate::content::{ContentSession, Payload};
use crate::decision;
use crate::model::{Baseline, Details, Document, Kind, Step, SyncAction, Unwritten, Write};
use crate::packed::unpack;
use crate::plan::{self, FolderRef, Rules, States, Tree};
use crate::store;

/// Does the remaining work of the run.
pub(super) async fn sync(active: &mut ActiveRun<'_>, session: &ContentSession) -> Result<(), Halt> {
    let db = &active.context.db;
    let found = store::details::get(db, active.run.workspace, active.run.id).await?;
    let Some(details): Option<Details> = found else { return Err(Halt::LeaseLost) };
    let known: Vec<_> = active.baseline.0.values().map(|entry| (entry.kind, entry.id)).collect();
    let mut states = session.states(known).await?;
    active.settle_stale_writes(session, &mut states).await?;
    let baseline = active.baseline.clone();
    let rules = Rules { run: active.run.id, policy: active.run.policy, prune: active.run.prune };
    let plan = plan::plan(rules, &details, &baseline, &states);
    let ids = Ids::of(active);
    let tree = find_folders(active, session, &ids, &plan, &baseline, &states).await?;
    let mut names = names_beside(session, &plan, &states).await?;
    let root = active.run.folder.map(|id| id.0);
    let id_of = |kind, path: &str| ids.of_new(kind, path);
    let steps = plan::steps(&plan, &tree, &states, root, &mut names, id_of, active.run.prune);

    active.unwritten.clone_from(&plan.unwritten);
    let planned = steps.iter().filter(|step| step.kind == Kind::File).count() as u64;
    active.run.counters = settle::tally(&active.done, &active.unwritten);
    active.run.total = active.run.counters.processed + planned;
    let mut tx = db.begin_write().await?;
    store::entries::put(&mut tx, active.run.sync(), &plan.adopts).await?;
    store::entries::remove(&mut tx, active.run.sync(), &plan.forgets).await?;
    store::details::set_unwritten(&mut tx, active.run.workspace, active.run.id, &active.unwritten).await?;
    active.save(tx).await?;

    let documents: HashMap<&str, &Document> =
        details.documents.iter().map(|document| (document.path.as_str(), document)).collect();
    let mut texts = Texts { documents, pieces: HashMap::new() };
    for batch in cut(steps, &texts.documents) {
        let payloads = texts.of(active, &batch).await?;
        active.carry_out(batch.into_iter().zip(payloads).collect()).await?;
    }
    active.discard_in_doubt().await?;
    active.complete(!is_clean(&details, &active.unwritten));
    Ok(())
}

/// The ids of objects that a run creates, the same for each worker that resumes it: the stale write of a lost worker then conflicts with
/// that of its successor, and the object is created once.
struct Ids {
    run: SyncRunId,
    begun: Timestamp,
    /// Ids that are used up: another run may have pruned their objects since.
    made: HashSet<Uuid>,
}

impl Ids {
    fn of(active: &ActiveRun<'_>) -> Self {
        let is_made = |step: &&Step| matches!(step.write, Write::Create { .. });
        let made = active.done.iter().filter(is_made).map(|step| step.id).collect();
        Self { run: active.run.id, begun: active.run.created_at, made }
    }

    fn of_new(&self, kind: Kind, path: &str) -> Uuid {
        let mut times = 0;
        loop {
            let id = decision::id_of(self.run, self.begun, times, kind, path);
            if !self.made.contains(&id) {
                return id;
            }
            times += 1;
        }
    }
}

/// Finds the folders of new documents, or assigns ids to those that have to be created.
async fn find_folders<'p>(
    active: &ActiveRun<'_>,
    session: &ContentSession,
    ids: &Ids,
    plan: &plan::Plan<'p>,
    baseline: &Baseline,
    states: &States,
) -> Result<Tree<'p>, Halt> {
    let mut tree = Tree::of(plan, baseline, states);
    let root = active.run.folder.map(|id| id.0);
    while let Some(path) = tree.unknown() {
        let name = path.rsplit('/').next().unwrap_or(path);
        let found = match tree.parent(path) {
            Some(FolderRef::New(_)) => None,
            Some(FolderRef::Existing(id)) => session.child(Some(*id), name).await?,
            None => session.child(root, name).await?,
        };
        let needed =
            found.map_or_else(|| FolderRef::New(ids.of_new(Kind::Folder, path)), FolderRef::Existing);
        tree.put(path, needed);
    }
    Ok(tree)
}

/// The texts of documents. Of their pieces, only those of the current batch are in memory.
struct Texts<'d> {
    documents: HashMap<&'d str, &'d Document>,
    pieces: HashMap<u32, Vec<u8>>,
}

impl Texts<'_> {
    /// The payloads of steps, in their order.
    async fn of(&mut self, active: &ActiveRun<'_>, steps: &[Step]) -> Result<Vec<Payload>, Halt> {
        let document =
            |step: &Step| self.documents.get(step.path.as_str()).copied().filter(|_| has_text(step));
        let wanted: BTreeSet<u32> =
            steps.iter().filter_map(document).filter_map(|one| one.text).map(|place| place.piece).collect();
        self.pieces.retain(|piece, _| wanted.contains(piece));
        let missing = wanted.into_iter().filter(|piece| !self.pieces.contains_key(piece)).collect();
        let db = &active.context.db;
        for (piece, packed) in
            store::details::pieces(db, active.run.workspace, active.run.id, &missing).await?
        {
            self.pieces.insert(piece, unpack(&packed)?);
        }
        let payload = |step: &Step| match document(step) {
            Some(document) => self.text(document).map(Payload::Text),
            None => Ok(Payload::None),
        };
        steps.iter().map(payload).collect()
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

/// The names taken in the folders of files that get a second version beside them.
async fn names_beside(
    session: &ContentSession,
    plan: &plan::Plan<'_>,
    states: &States,
) -> Result<HashMap<Option<Uuid>, HashSet<String>>, Halt> {
    let mut names = HashMap::new();
    for state in plan.creates.iter().filter_map(|(_, old)| old.and_then(|old| states.get(&old.id))) {
        if !state.in_trash && !names.contains_key(&state.parent) {
            names.insert(state.parent, session.names(state.parent).await?);
        }
    }
    Ok(names)
}

fn is_clean(details: &Details, unwritten: &[Unwritten]) -> bool {
    details.notes.is_empty() && unwritten.iter().all(|unwritten| unwritten.action == SyncAction::Skipped)
}

/// Splits steps into batches within the size limits.
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
