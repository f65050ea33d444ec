//! What a run of a directory sync does.

use std::collections::{BTreeSet, HashMap, HashSet};

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::SyncRunId;
use uuid::Uuid;

use super::held::{BATCH_BYTES, BATCH_STEPS, Halt, Held, has_text};
use super::settle;
use crate::content::{Opened, Payload};
use crate::decision;
use crate::model::{Details, Document, Kind, Memory, Step, Still, SyncAction, Write};
use crate::packed::unpack;
use crate::plan::{self, Needed, Rules, States, Tree};
use crate::store;

/// Does what is left of the run.
pub(super) async fn sync(held: &mut Held<'_>, opened: &Opened) -> Result<(), Halt> {
    let db = &held.context.db;
    let found = store::details::get(db, held.run.workspace, held.run.id).await?;
    let Some(details): Option<Details> = found else { return Err(Halt::Lost) };
    let known: Vec<_> = held.memory.0.values().map(|entry| (entry.kind, entry.id)).collect();
    let states = opened.states(known).await?;
    held.settle_late(&states).await?;
    let memory = held.memory.clone();
    let rules = Rules { run: held.run.id, policy: held.run.policy, prune: held.run.prune };
    let plan = plan::plan(rules, &details, &memory, &states);
    let ids = Ids::of(held);
    let tree = find_folders(held, opened, &ids, &plan, &memory, &states).await?;
    let mut names = names_beside(opened, &plan, &states).await?;
    let root = held.run.folder.map(|id| id.0);
    let id_of = |kind, path: &str| ids.of_new(kind, path);
    let steps = plan::steps(&plan, &tree, &states, root, &mut names, id_of, held.run.prune);

    held.stills.clone_from(&plan.stills);
    let planned = steps.iter().filter(|step| step.kind == Kind::File).count() as u64;
    held.run.counters = settle::tally(&held.done, &held.stills);
    held.run.total = held.run.counters.processed + planned;
    let mut tx = db.begin_write().await?;
    store::entries::put(&mut tx, held.run.sync(), &plan.adopts).await?;
    store::entries::remove(&mut tx, held.run.sync(), &plan.forgets).await?;
    store::details::set_stills(&mut tx, held.run.workspace, held.run.id, &held.stills).await?;
    held.save(tx).await?;

    let documents: HashMap<&str, &Document> =
        details.documents.iter().map(|document| (document.path.as_str(), document)).collect();
    let mut texts = Texts { documents, pieces: HashMap::new() };
    for batch in cut(steps, &texts.documents) {
        let payloads = texts.of(held, &batch).await?;
        held.carry_out(batch.into_iter().zip(payloads).collect()).await?;
    }
    held.close().await?;
    held.complete(!is_clean(&details, &held.stills));
    Ok(())
}

/// The ids of what a run makes: the same for each worker that takes it up. A worker that was lost may have a call on its way, which
/// arrives when the next one has planned anew: what both make is made once, and the second to come is refused.
struct Ids {
    run: SyncRunId,
    begun: Timestamp,
    /// What the run has made already. Another run may have pruned it since.
    made: HashSet<Uuid>,
}

impl Ids {
    fn of(held: &Held<'_>) -> Self {
        let is_made = |step: &&Step| matches!(step.write, Write::Create { .. });
        let made = held.done.iter().filter(is_made).map(|step| step.id).collect();
        Self { run: held.run.id, begun: held.run.created_at, made }
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

/// Finds the folders that new documents stand in, or gives them an id to be made under.
async fn find_folders<'p>(
    held: &Held<'_>,
    opened: &Opened,
    ids: &Ids,
    plan: &plan::Plan<'p>,
    memory: &Memory,
    states: &States,
) -> Result<Tree<'p>, Halt> {
    let mut tree = Tree::of(plan, memory, states);
    let root = held.run.folder.map(|id| id.0);
    while let Some(path) = tree.unknown() {
        let name = path.rsplit('/').next().unwrap_or(path);
        let found = match tree.parent(path) {
            Some(Needed::New(_)) => None,
            Some(Needed::There(id)) => opened.child(Some(*id), name).await?,
            None => opened.child(root, name).await?,
        };
        let needed = found.map_or_else(|| Needed::New(ids.of_new(Kind::Folder, path)), Needed::There);
        tree.put(path, needed);
    }
    Ok(tree)
}

/// The texts of documents, in pieces of which those that were needed last are in memory.
struct Texts<'d> {
    documents: HashMap<&'d str, &'d Document>,
    pieces: HashMap<u32, Vec<u8>>,
}

impl Texts<'_> {
    /// Of steps, in their order.
    async fn of(&mut self, held: &Held<'_>, steps: &[Step]) -> Result<Vec<Payload>, Halt> {
        let document =
            |step: &Step| self.documents.get(step.path.as_str()).copied().filter(|_| has_text(step));
        let wanted: BTreeSet<u32> =
            steps.iter().filter_map(document).filter_map(|one| one.text).map(|place| place.piece).collect();
        self.pieces.retain(|piece, _| wanted.contains(piece));
        let missing = wanted.into_iter().filter(|piece| !self.pieces.contains_key(piece)).collect();
        let db = &held.context.db;
        for (piece, packed) in store::details::pieces(db, held.run.workspace, held.run.id, &missing).await? {
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

fn is_clean(details: &Details, stills: &[Still]) -> bool {
    details.notes.is_empty() && stills.iter().all(|still| still.action == SyncAction::Skipped)
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
