use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cairn_chassis::clock::{Clock, ManualClock, SystemClock, Timestamp};
use cairn_chassis::entropy::SeededEntropy;
use cairn_chassis::identity::ServiceIdentitySource;
use cairn_chassis::ids::IdSource;
use cairn_chassis::testing::TestDb;
use cairn_embed::{self as embed, Embedder, TextKind};

use super::*;
use crate::indexing::Indexer;
use crate::indexing::simulation::course::Course;
use crate::indexing::simulation::engine::{DIMENSIONS, Disk, InMemory};
use crate::indexing::simulation::owner::{Double, Edit, Truth};
use crate::indexing::simulation::{VECTORS, WORDS, WORKSPACE};
use crate::owners::Owner;
use crate::store;

const CHANGES: u128 = 60;

/// Replicas of retrieval that share an index and a storage.
struct Replicas {
    truth: Arc<Mutex<Truth>>,
    disk: Arc<Mutex<Disk>>,
    counting: Counting,
    clock: Arc<ManualClock>,
    ids: IdSource,
    db: cairn_chassis::sql::Db,
    _test: TestDb,
}

/// An embedder that takes its time, and counts how often it was given a text.
#[derive(Debug, Clone, Default)]
struct Counting(Arc<Mutex<HashMap<String, u32>>>);

#[async_trait]
impl Embedder for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    async fn embed(&self, _: TextKind, texts: &[&str]) -> Result<Vec<Vec<f32>>, embed::Error> {
        for text in texts {
            *self.0.lock().unwrap().entry((*text).to_owned()).or_default() += 1;
        }
        // So that others come between.
        sleep(Duration::from_millis(2)).await;
        Ok(texts.iter().map(|_| vec![1.0, 0.0]).collect())
    }
}

impl Replicas {
    async fn new() -> Self {
        let test = TestDb::in_memory();
        let db = test.open(store::SCHEMA, store::MIGRATIONS).await.unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let ids = IdSource::new(shared, Arc::new(SeededEntropy::new(1)));
        let (truth, disk, counting) = Default::default();
        Self { truth, disk, counting, clock, ids, db, _test: test }
    }

    fn turns(&self) -> Turns {
        self.turns_of(TERM)
    }

    fn turns_of(&self, term: Duration) -> Turns {
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&self.clock);
        Turns::shared(Leases::new(self.db.clone(), clock, &self.ids, term)).at("an index")
    }

    fn start(&self, turns: Turns) -> (Indexer, Owner) {
        let course = Course::calm(&self.truth);
        let double =
            Double { truth: Arc::clone(&self.truth), course: course.clone(), page: 7, heads: Vec::new() };
        let (channel, clock) = (double.channel(), Arc::new(SystemClock) as Arc<dyn Clock>);
        let identity = ServiceIdentitySource::new("retrieval", String::new(), channel.clone(), clock);
        let owner = Owner::of_content(channel, identity);
        let engine = InMemory { disk: Arc::clone(&self.disk), course, persists_at_once: true };
        let embedder = Arc::new(self.counting.clone());
        (Indexer::new(Arc::new(engine), embedder, vec![owner.clone()], turns), owner)
    }

    fn write(&self) -> u64 {
        let mut truth = self.truth.lock().unwrap();
        (1..=CHANGES).for_each(|id| truth.apply(Edit::Put(id, format!("The text of number {id}."))));
        truth.head()
    }

    fn cursor(&self, feed: &str) -> u64 {
        self.disk.lock().unwrap().visible.cursor(feed, WORKSPACE.0)
    }

    /// Indexes and embeds everything, with these replicas at once.
    async fn work(&self, replicas: [(Indexer, Owner); 3], head: u64) {
        let work = |(indexer, owner): (Indexer, Owner)| async move {
            assert!(indexer.reach(&owner, WORKSPACE, head).await.unwrap());
            tokio::select! {
                () = indexer.embed_pending(owner) => {}
                () = self.embedded(head) => {}
            }
        };
        futures::future::join_all(replicas.map(work)).await;
    }

    async fn embedded(&self, head: u64) {
        while self.cursor(VECTORS) < head {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_replicas_never_embed_the_same_change() {
    let replicas = Replicas::new().await;
    let head = replicas.write();
    let started = [(); 3].map(|()| replicas.start(replicas.turns()));
    replicas.work(started, head).await;
    assert_eq!((replicas.cursor(WORDS), replicas.cursor(VECTORS)), (head, head));
    let counts = replicas.counting.0.lock().unwrap();
    assert_eq!(counts.len(), usize::try_from(CHANGES).unwrap());
    let twice: Vec<_> = counts.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[tokio::test]
async fn a_turn_that_ended_is_taken_over() {
    let replicas = Replicas::new().await;
    let (one, other) = (replicas.turns(), replicas.turns());
    // The other process ends in the midst of its turn.
    let name = format!("index/an index/{WORDS}/{}", WORKSPACE.0);
    assert!(other.0.as_ref().unwrap().leases.claim(&name).await.unwrap());
    let work = || async { Ok::<_, Error>(7) };
    assert_eq!(one.take(WORDS, WORKSPACE.0, work()).await.unwrap(), None);
    assert_eq!(one.take(VECTORS, WORKSPACE.0, work()).await.unwrap(), Some(7), "another feed's turn");
    replicas.clock.advance(TERM);
    assert_eq!(one.take(WORDS, WORKSPACE.0, work()).await.unwrap(), Some(7));
    assert_eq!(other.take(WORDS, WORKSPACE.0, work()).await.unwrap(), Some(7), "it was given back");
}

#[tokio::test]
async fn a_replica_waits_for_another_and_finds_its_work_done() {
    let replicas = Replicas::new().await;
    let head = replicas.write();
    let (waiting, owner) = replicas.start(replicas.turns());
    let (working, other_owner) = replicas.start(replicas.turns());
    let other = replicas.turns();
    let name = format!("index/an index/{WORDS}/{}", WORKSPACE.0);
    let leases = &other.0.as_ref().unwrap().leases;
    assert!(leases.claim(&name).await.unwrap());
    let reached = tokio::spawn(async move { waiting.reach(&owner, WORKSPACE, head).await });
    tokio::task::yield_now().await;
    assert_eq!(replicas.cursor(WORDS), 0, "nothing is done while another one has the turn");
    leases.release(&name).await.unwrap();
    assert!(working.reach(&other_owner, WORKSPACE, head).await.unwrap());
    assert!(reached.await.unwrap().unwrap());
    assert_eq!(replicas.cursor(WORDS), head);
}

#[tokio::test]
async fn who_was_overtaken_gives_up() {
    let replicas = Replicas::new().await;
    // It asks whether it still has the turn after a quarter of that.
    let term = Duration::from_millis(40);
    let (slow, other) = (replicas.turns_of(term), replicas.turns());
    let name = format!("index/an index/{WORDS}/{}", WORKSPACE.0);
    let overtaken = async {
        replicas.clock.advance(term);
        assert!(other.0.as_ref().unwrap().leases.claim(&name).await.unwrap());
        std::future::pending::<Result<(), Error>>().await
    };
    let error = slow.take(WORDS, WORKSPACE.0, overtaken).await.unwrap_err();
    assert!(matches!(error, Error::Overtaken), "{error}");
    // What another one has now is not given back.
    assert_eq!(slow.take(WORDS, WORKSPACE.0, async { Ok(()) }).await.unwrap(), None);
}
