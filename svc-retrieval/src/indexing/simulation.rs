//! Seeded simulation of indexing (docs/adr/0101): an owner that writes meanwhile, a process that crashes or is refused at
//! any call, an index that persists late, heads that arrive late, twice and out of order, restored backups.
//!
//! The invariant, also right after a crash: each document whose last change is before the cursor is in the index as its owner has it.
//! And without further faults, the index converges to the owner's documents.

pub(super) mod course;
pub(super) mod engine;
pub(super) mod owner;

use std::sync::{Arc, Mutex};

use cairn_chassis::clock::{Clock, SystemClock};
use cairn_chassis::identity::ServiceIdentitySource;
use cairn_chassis::testing::simulation::{self, World};
use cairn_proto::domain::Feed;
use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

use self::course::Course;
use self::engine::{Contents, Disk, InMemory, Lengths};
use self::owner::{Double, Edit, Truth, hash_of};
use super::Indexer;
use super::turns::Turns;
use crate::owners::Owner;

pub(super) const WORKSPACE: WorkspaceId = WorkspaceId(Uuid::from_u128(1));
const DOCUMENTS: u64 = 6;
/// The feed of the owner here, and the cursor of its vectors.
pub(super) const WORDS: &str = Feed::Content.as_str();
pub(super) const VECTORS: &str = "content/vectors";

#[test]
fn an_index_follows_its_owner_whatever_happens() {
    simulation::run("indexing", 250, |world| {
        let mut walk = Walk::begin(world);
        for _ in 0..walk.world.between(5, 12) {
            walk.step();
        }
        walk.end();
    });
}

#[test]
fn an_owner_that_came_back_older_is_indexed_anew_at_once() {
    let (truth, disk): (Arc<Mutex<Truth>>, Arc<Mutex<Disk>>) = Default::default();
    let run = |work: Work| {
        let (course, page) = (Course::calm(&truth), 1_000);
        let heads = if let Work::Follow(heads) = &work { heads.clone() } else { Vec::new() };
        let double = Double { truth: Arc::clone(&truth), course: course.clone(), page, heads };
        let engine = InMemory { disk: Arc::clone(&disk), course, persists_at_once: true };
        assert!(simulation::block_on(process(double, engine, Lengths { is_immediate: true }, work)));
    };
    truth.lock().unwrap().apply(Edit::Put(1, "kept".to_owned()));
    let older = truth.lock().unwrap().clone();
    truth.lock().unwrap().apply(Edit::Put(2, "taken back".to_owned()));
    run(Work::Reach(2));
    *truth.lock().unwrap() = older;
    // Its head is reported once. There is no write after that, and no search.
    run(Work::Follow(vec![1]));
    let disk = disk.lock().unwrap();
    let held: Vec<u128> = disk.visible.documents.keys().map(|(_, document)| document.as_u128()).collect();
    assert_eq!((disk.visible.cursor(WORDS, WORKSPACE.0), held), (1, vec![1]));
}

/// What a process of retrieval is started for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Work {
    /// To reach a position, as a search with a change token wants it.
    Reach(u64),
    /// Follows the feed, whose watch reports these heads.
    Follow(Vec<u64>),
    /// To embed what has no vectors yet.
    Embed,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Done,
    /// A call of it was refused, and it may have left something undone.
    Disturbed,
    Lost,
}

struct Walk<'a> {
    world: &'a mut World,
    truth: Arc<Mutex<Truth>>,
    disk: Arc<Mutex<Disk>>,
    embedder: Lengths,
    /// A copy of the owner from before.
    backup: Truth,
    /// A copy of the index from before, of what the owner has not taken back since.
    old_index: Option<Contents>,
    texts: u64,
}

impl<'a> Walk<'a> {
    fn begin(world: &'a mut World) -> Self {
        let embedder = Lengths { is_immediate: world.one_in(2) };
        world.note(format_args!("{embedder:?}"));
        let (truth, disk, backup) = Default::default();
        Self { world, truth, disk, embedder, backup, old_index: None, texts: 0 }
    }

    fn step(&mut self) {
        match self.world.below(12) {
            0..=2 => self.write(),
            3..=5 => {
                let head = self.head();
                let course = self.course(true);
                self.run(course, Work::Reach(head));
            }
            6..=7 => {
                let heads = self.heads_told();
                let course = self.course(true);
                self.run(course, Work::Follow(heads));
            }
            8..=9 => {
                // A refusal would be waited for, in real time.
                let course = self.course(false);
                self.run(course, Work::Embed);
            }
            10 => self.take_copies(),
            _ if self.world.one_in(2) => self.restore_owner(),
            _ => self.restore_index(),
        }
        self.check();
    }

    fn end(&mut self) {
        self.catch_up();
        let (truth, disk) = (self.truth.lock().unwrap(), self.disk.lock().unwrap());
        let held: Vec<Uuid> = disk.visible.documents.keys().map(|(_, document)| *document).collect();
        let with_text = truth.texts.iter().filter(|(_, text)| !text.is_empty());
        let wanted: Vec<Uuid> = with_text.map(|(document, _)| *document).collect();
        assert_eq!(held, wanted, "the documents in the index");
        drop((truth, disk));
        self.check();
    }

    fn head(&self) -> u64 {
        self.truth.lock().unwrap().head()
    }

    /// Everything is indexed and embedded, with nobody disturbing.
    fn catch_up(&mut self) {
        for work in [Work::Reach(self.head()), Work::Embed] {
            let course = Course::calm(&self.truth);
            assert_eq!(self.run_and_keep(course, work), Ended::Done);
        }
        let (head, disk) = (self.head(), self.disk.lock().unwrap());
        assert_eq!(disk.visible.cursor(WORDS, WORKSPACE.0), head, "the index is not up");
        if !self.embedder.is_immediate {
            assert_eq!(disk.visible.cursor(VECTORS, WORKSPACE.0), head, "the vectors are not up");
        }
    }

    fn write(&mut self) {
        for _ in 0..self.world.between(1, 6) {
            let edit = self.edit();
            self.world.note(format_args!("the owner: {edit}"));
            self.truth.lock().unwrap().apply(edit);
        }
    }

    fn edit(&mut self) -> Edit {
        let document = u128::from(self.world.between(1, DOCUMENTS));
        self.texts += 1;
        match self.world.below(8) {
            0..=1 => Edit::Remove(document),
            2 => Edit::Folder,
            3 => Edit::Put(document, String::new()),
            _ => Edit::Put(document, format!("This is the text of number {}.", self.texts)),
        }
    }

    fn course(&mut self, may_be_refused: bool) -> Course {
        let edits = (0..self.world.below(4)).map(|_| self.edit()).collect();
        Course::draw(self.world, &self.truth, may_be_refused, edits)
    }

    /// Some of the heads that there were, in any order, and the newest among them or not.
    fn heads_told(&mut self) -> Vec<u64> {
        let head = self.head();
        let mut heads: Vec<u64> = (0..self.world.below(3)).map(|_| self.world.below(head + 1)).collect();
        if self.world.one_in(2) {
            let place = self.world.place_in(heads.len() + 1);
            heads.insert(place, head);
        }
        heads
    }

    /// Runs a process until its work is done or it crashes, which loses what was not persisted; in half of all cases it persists
    /// nothing at its end.
    fn run(&mut self, course: Course, work: Work) -> Ended {
        let keeps = self.world.one_in(2);
        self.run_keeping(course, work, keeps)
    }

    /// Runs a process that persists its changes at the end.
    fn run_and_keep(&mut self, course: Course, work: Work) -> Ended {
        self.run_keeping(course, work, true)
    }

    fn run_keeping(&mut self, course: Course, work: Work, keeps: bool) -> Ended {
        self.world.note(format_args!("{work:?}: {course}"));
        let page = usize::try_from(self.world.between(1, 7)).unwrap();
        let heads = if let Work::Follow(heads) = &work { heads.clone() } else { Vec::new() };
        let double = Double { truth: Arc::clone(&self.truth), course: course.clone(), page, heads };
        let persists_at_once = self.world.one_in(2);
        let engine = InMemory { disk: Arc::clone(&self.disk), course: course.clone(), persists_at_once };
        let is_done = simulation::block_on(process(double, engine, self.embedder, work.clone()));
        if is_done && !course.was_refused() {
            self.check_done(&work);
        }
        let mut disk = self.disk.lock().unwrap();
        if is_done && keeps {
            disk.persist();
        }
        let before = disk.visible.cursor(WORDS, WORKSPACE.0);
        disk.crash();
        let after = disk.visible.cursor(WORDS, WORKSPACE.0);
        self.world.note(format_args!("  done: {is_done}; it had come to {before}, of which {after} is left"));
        match (is_done, course.was_refused()) {
            (false, _) => Ended::Lost,
            (true, true) => Ended::Disturbed,
            (true, false) => Ended::Done,
        }
    }

    /// What was to be done is done, before anything is lost.
    fn check_done(&self, work: &Work) {
        let disk = self.disk.lock().unwrap();
        let position = disk.visible.cursor(WORDS, WORKSPACE.0);
        match work {
            Work::Reach(wanted) => assert!(position >= *wanted, "{position} is reached, not {wanted}"),
            Work::Follow(heads) => {
                let newest = heads.iter().max().copied().unwrap_or(0);
                assert!(position >= newest, "{position} is reached, and the head {newest} was told");
            }
            Work::Embed if self.embedder.is_immediate => {}
            Work::Embed => assert_eq!(disk.visible.cursor(VECTORS, WORKSPACE.0), position, "vectors lack"),
        }
    }

    fn take_copies(&mut self) {
        self.world.note("copies are taken");
        self.backup = self.truth.lock().unwrap().clone();
        self.old_index = Some(self.disk.lock().unwrap().persisted.clone());
    }

    /// The owner comes back as an older copy. The index was up with it: of what it was behind of nobody can know that it was
    /// read before it was lost (docs/adr/0101).
    fn restore_owner(&mut self) {
        self.catch_up();
        self.world.note("the owner is restored from its copy");
        *self.truth.lock().unwrap() = self.backup.clone();
        self.old_index = None;
        let head = self.head();
        // Whoever is lost while it starts over is followed by another one.
        for _ in 0..8 {
            let course = Course::draw(self.world, &self.truth, true, Vec::new());
            if self.run(course, Work::Follow(vec![head])) == Ended::Done {
                break;
            }
        }
        let course = Course::calm(&self.truth);
        self.run_and_keep(course, Work::Follow(vec![head]));
        let position = self.disk.lock().unwrap().visible.cursor(WORDS, WORKSPACE.0);
        assert!(position <= head, "the feed went back to {head}, and the index stands at {position}");
    }

    fn restore_index(&mut self) {
        let Some(old) = self.old_index.clone() else { return };
        self.world.note("the index is restored from its copy");
        *self.disk.lock().unwrap() = Disk { persisted: old.clone(), visible: old };
    }

    /// What the cursors have passed is in the index as the owner has it.
    fn check(&self) {
        let (truth, disk) = (self.truth.lock().unwrap(), self.disk.lock().unwrap());
        let (words, vectors) =
            (disk.visible.cursor(WORDS, WORKSPACE.0), disk.visible.cursor(VECTORS, WORKSPACE.0));
        let vectors = if self.embedder.is_immediate { words } else { vectors };
        for (document, changed_at) in truth.last_changes() {
            if changed_at > words {
                continue;
            }
            let text = truth.texts.get(&document).filter(|text| !text.is_empty());
            let held = disk.visible.documents.get(&(WORKSPACE.0, document));
            let what = format!("{document}, changed at {changed_at}, where words are at {words}");
            assert_eq!(held.map(|held| held.content_hash.clone()), text.map(|text| hash_of(text)), "{what}");
            let Some((held, text)) = held.zip(text) else { continue };
            let texts: Vec<&str> = held.chunks.iter().map(|chunk| chunk.text.trim_end()).collect();
            assert_eq!(texts, [text.as_str()], "{what}");
            let has_vectors =
                held.chunks.iter().all(|chunk| chunk.embedding.iter().any(|value| *value != 0.0));
            assert!(has_vectors || changed_at > vectors, "{what}, has no vector, and they are at {vectors}");
        }
    }
}

/// One process of retrieval; whether it has done its work.
async fn process(double: Double, engine: InMemory, embedder: Lengths, work: Work) -> bool {
    let course = double.course.clone();
    let (channel, clock) = (double.channel(), Arc::new(SystemClock) as Arc<dyn Clock>);
    let identity = ServiceIdentitySource::new("retrieval", String::new(), channel.clone(), clock);
    let owner = Owner::of_content(channel, identity);
    let indexer = Indexer::new(Arc::new(engine), Arc::new(embedder), vec![owner.clone()], Turns::default());
    tokio::select! {
        biased;
        () = course.lost() => false,
        () = perform(&indexer, &owner, &course, work) => true,
    }
}

async fn perform(indexer: &Indexer, owner: &Owner, course: &Course, work: Work) {
    match work {
        Work::Reach(position) => reach(indexer, owner, course, position).await,
        Work::Follow(_) => {
            let followed = indexer.follow_once(owner).await;
            assert!(followed.is_ok() || course.was_refused(), "{followed:?}");
        }
        Work::Embed => {
            let embedded = async {
                while indexer.not_embedded(WORKSPACE) > 0 {
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
            };
            tokio::select! {
                () = indexer.embed_pending(owner.clone()) => {}
                () = embedded => {}
            }
        }
    }
}

/// As a search does it; after a refusal, once more.
async fn reach(indexer: &Indexer, owner: &Owner, course: &Course, position: u64) {
    for is_first in [true, false] {
        match indexer.reach(owner, WORKSPACE, position).await {
            Ok(is_reached) => {
                assert!(is_reached, "the feed has no position {position}");
                return;
            }
            Err(error) => assert!(is_first && course.was_refused(), "{error}"),
        }
    }
}
