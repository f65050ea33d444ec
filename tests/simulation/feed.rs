//! A feed and its unit of work: writers that share a commit, roll back or disconnect; followers that lose their state;
//! a process that loses power. In every case acknowledged writes persist, others happen completely or not at all, and
//! each follower sees each change once and in order.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::{Clock, ManualClock, Timestamp};
use cairn_chassis::feed::{self, ChangeToken, Entry, Feed, Kind, Positions, Source, UnitOfWork, WatchEvent};
use cairn_chassis::sql::{Db, Error, Migration, Text};
use cairn_chassis::testing::simulation::{self, SkewedClock, World};
use cairn_chassis::{doctor, execute, fetch};
use cairn_proto::ids::WorkspaceId;
use futures::future::join_all;
use futures::{Stream, StreamExt as _};
use uuid::Uuid;

use crate::storage::Storage;

const WORKSPACES: usize = 2;
const FOLLOWERS: usize = 3;
const ITEMS: u64 = 5;
/// Longer than any notification takes; reached only on failure.
const TIMEOUT: Duration = Duration::from_secs(30);

const MIGRATIONS: &[Migration] = &[feed::MIGRATION, feed::compaction::MIGRATION, ITEM_TABLE];
const ITEM_TABLE: Migration = Migration { name: "0003_items", sqlite: CREATE_ITEMS, postgres: CREATE_ITEMS };
const CREATE_ITEMS: &str = "-- expand\nCREATE TABLE items (workspace_id TEXT NOT NULL, id TEXT NOT NULL, \
     version BIGINT NOT NULL, PRIMARY KEY (workspace_id, id));";
const PUT: &str = "INSERT INTO items (workspace_id, id, version) VALUES ($1, $2, $3) \
     ON CONFLICT (workspace_id, id) DO UPDATE SET version = excluded.version";
const REMOVE: &str = "DELETE FROM items WHERE workspace_id = $1 AND id = $2";
const LIST: &str = "SELECT id, version FROM items WHERE workspace_id = $1 ORDER BY id";

/// One simulation.
pub(crate) fn walk(world: &mut World) {
    simulation::block_on(async {
        let mut walk = Walk::begin(world).await;
        for _ in 0..walk.world.between(10, 24) {
            walk.step().await;
        }
        walk.end().await;
    });
}

fn workspace(number: usize) -> WorkspaceId {
    WorkspaceId(Uuid::from_u128(number as u128 + 1))
}

/// A change of an item: its new version, or `None` for a deletion.
#[derive(Clone)]
struct Change {
    item: String,
    version: Option<i64>,
    /// Whether it is appended to the feed immediately instead of at the commit.
    is_appended: bool,
}

impl Change {
    fn entry(&self) -> Entry {
        match self.version {
            Some(_) => Entry::upsert(Kind::File, &self.item),
            None => Entry::delete(Kind::File, &self.item),
        }
    }
}

/// How a writer ends its unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Commit,
    RollBack,
    /// It is dropped, as when a caller disconnects.
    Vanish,
}

#[derive(Clone)]
struct Plan {
    workspace: usize,
    changes: Vec<Change>,
    end: End,
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[workspace {}:", self.workspace)?;
        for Change { item, version, is_appended } in &self.changes {
            let op = if version.is_some() { "put" } else { "remove" };
            write!(formatter, " {op} {item}{}", if *is_appended { "!" } else { "" })?;
        }
        write!(formatter, ", {:?}]", self.end)
    }
}

/// The expected state.
#[derive(Debug, Default)]
struct Model {
    feeds: [Vec<Entry>; WORKSPACES],
    items: [BTreeMap<String, i64>; WORKSPACES],
}

impl Model {
    fn head(&self, workspace: usize) -> u64 {
        self.feeds[workspace].len() as u64
    }

    fn heads(&self) -> Vec<u64> {
        (0..WORKSPACES).map(|workspace| self.head(workspace)).collect()
    }

    /// Applies a committed plan; returns the positions that it takes.
    fn commit(&mut self, plan: &Plan) -> Positions {
        let before = self.head(plan.workspace);
        let items = &mut self.items[plan.workspace];
        for change in &plan.changes {
            match change.version {
                Some(version) => items.insert(change.item.clone(), version),
                None => items.remove(&change.item),
            };
            self.feeds[plan.workspace].push(change.entry());
        }
        let first = if plan.changes.is_empty() { 0 } else { before + 1 };
        Positions { first, last: self.head(plan.workspace) }
    }
}

/// A follower that stores what it saw together with its position.
#[derive(Debug, Default)]
struct Follower {
    workspace: usize,
    position: u64,
    seen: Vec<Entry>,
}

type Watch = Pin<Box<dyn Stream<Item = Result<WatchEvent, Error>> + Send>>;

/// The process that owns the feeds, until it crashes.
struct Process {
    db: Db,
    feed: Feed,
    watch: Watch,
    /// The newest notified head of each workspace.
    told: HashMap<WorkspaceId, u64>,
}

impl Process {
    async fn start(storage: &mut Storage, clock: &Arc<SkewedClock>) -> Self {
        let db = storage.open(MIGRATIONS).await;
        let shared: Arc<dyn Clock> = Arc::<SkewedClock>::clone(clock);
        let feed = Feed::new(db.clone(), shared);
        let watch: Watch = Box::pin(feed.watch());
        Self { db, feed, watch, told: HashMap::new() }
    }
}

struct Walk<'a> {
    world: &'a mut World,
    storage: Storage,
    clock: Arc<SkewedClock>,
    process: Process,
    model: Model,
    followers: Vec<Follower>,
    versions: i64,
}

impl<'a> Walk<'a> {
    async fn begin(world: &'a mut World) -> Self {
        let mut storage = Storage::new();
        let time = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let clock = Arc::new(SkewedClock::new(time));
        let process = Box::pin(Process::start(&mut storage, &clock)).await;
        let follower = |number: usize| Follower { workspace: number % WORKSPACES, ..Follower::default() };
        let followers = (0..FOLLOWERS).map(follower).collect();
        Self { world, storage, clock, process, model: Model::default(), followers, versions: 0 }
    }

    async fn step(&mut self) {
        match self.world.below(12) {
            0..=4 => self.write().await,
            5..=7 => {
                let follower = self.world.place_in(FOLLOWERS);
                self.follow(follower).await;
            }
            8 => self.listen().await,
            9 => Box::pin(self.lose_power(&[])).await,
            10 => self.compare().await,
            _ => self.adjust_clock(),
        }
    }

    async fn end(&mut self) {
        for number in 0..FOLLOWERS {
            while self.followers[number].position < self.model.head(self.followers[number].workspace) {
                self.follow(number).await;
            }
            let follower = &self.followers[number];
            assert_eq!(follower.seen, self.model.feeds[follower.workspace], "what follower {number} saw");
        }
        self.listen().await;
        self.compare().await;
        self.process.db.close().await;
    }

    /// Concurrent writers.
    async fn write(&mut self) {
        let count = self.world.between(1, 4);
        let plans: Vec<Plan> = (0..count).map(|_| self.plan()).collect();
        let shown: Vec<String> = plans.iter().map(ToString::to_string).collect();
        self.world.note(format_args!("write {}", shown.join(" ")));
        let feed = &self.process.feed;
        let answers = join_all(plans.iter().map(|plan| perform(feed, plan))).await;
        if self.world.one_in(4) {
            return Box::pin(self.lose_power(&plans)).await;
        }
        self.storage.keep();
        let mut written = Vec::new();
        for (plan, answer) in plans.iter().zip(answers) {
            let expected = (plan.end == End::Commit).then(|| self.model.commit(plan));
            assert_eq!(answer, expected, "the positions of {plan}");
            let positions = expected.filter(|positions| positions.first > 0);
            written.extend(positions.map(|positions| (plan.workspace, positions.last)));
        }
        for (workspace, position) in written {
            self.read_own_write(workspace, position).await;
        }
    }

    fn plan(&mut self) -> Plan {
        let world = &mut *self.world;
        let end = match world.below(6) {
            0 => End::RollBack,
            1 => End::Vanish,
            _ => End::Commit,
        };
        let workspace = world.place_in(WORKSPACES);
        let mut changes = Vec::new();
        for _ in 0..world.below(4) {
            self.versions += 1;
            let item = format!("item {}", world.below(ITEMS));
            let version = (!world.one_in(4)).then_some(self.versions);
            changes.push(Change { item, version, is_appended: world.one_in(4) });
        }
        Plan { workspace, changes, end }
    }

    /// A reader with the token of a write sees that write.
    async fn read_own_write(&self, number: usize, position: u64) {
        let token = ChangeToken { source: Source::Content, position }.to_string();
        let token: ChangeToken = token.parse().unwrap();
        let page = self.process.feed.read(workspace(number), token.position - 1, 1).await.unwrap();
        assert!(page.head >= token.position, "{token} is ahead of the head {}", page.head);
        let written = self.model.feeds[number].get(usize::try_from(position).unwrap() - 1);
        assert_eq!(page.changes.first().map(|change| &change.entry), written, "at {token}");
    }

    /// A follower reads a page, and may crash before it has stored it.
    async fn follow(&mut self, number: usize) {
        let limit = self.world.between(1, 7);
        let is_lost = self.world.one_in(4);
        self.world.note(format_args!("follower {number} reads {limit}, lost: {is_lost}"));
        let follower = &mut self.followers[number];
        let wanted = u32::try_from(limit).unwrap();
        let place = workspace(follower.workspace);
        let page = self.process.feed.read(place, follower.position, wanted).await.unwrap();
        let head = self.model.head(follower.workspace);
        assert_eq!(page.head, head, "the head that follower {number} reads");
        let expected = limit.min(head - follower.position);
        assert_eq!(page.changes.len() as u64, expected, "the changes that follower {number} reads");
        let after = follower.position + 1;
        for (change, position) in page.changes.iter().zip(after..) {
            assert_eq!(change.position, position, "a gap before follower {number}");
        }
        if !is_lost {
            follower.position += expected;
            follower.seen.extend(page.changes.into_iter().map(|change| change.entry));
        }
    }

    /// Every head that moved is notified, and no other.
    async fn listen(&mut self) {
        self.world.note("listen");
        loop {
            let is_told = |number: usize| {
                let told = self.process.told.get(&workspace(number)).copied().unwrap_or(0);
                told >= self.model.head(number)
            };
            if (0..WORKSPACES).all(is_told) {
                return;
            }
            let event = tokio::time::timeout(TIMEOUT, self.process.watch.next()).await;
            let event = event.expect("a head that moved is told").expect("the watch goes on").unwrap();
            let WatchEvent::Head(head) = event else { continue };
            let known = (0..WORKSPACES).find(|number| workspace(*number) == head.workspace).unwrap();
            assert!(head.position <= self.model.head(known), "a head that is ahead of its feed: {head:?}");
            let told = self.process.told.entry(head.workspace).or_default();
            *told = head.position.max(*told);
        }
    }

    /// The clock of the process jumps, forwards or backwards.
    fn adjust_clock(&mut self) {
        let error = i64::try_from(self.world.below(7_200_000_000)).unwrap() - 3_600_000_000;
        self.world.note(format_args!("the clock is wrong by {error} µs"));
        self.clock.set_error(error);
    }

    /// The process crashes before the results of these plans were received, and restarts.
    async fn lose_power(&mut self, unheard: &[Plan]) {
        let open = if self.world.one_in(2) { Some(self.plan()) } else { None };
        let begun = match &open {
            Some(plan) => {
                self.world.note(format_args!("in the midst of {plan}"));
                let mut work = begin(&self.process.feed, plan).await;
                work.append().await.unwrap();
                Some(work)
            }
            None => None,
        };
        self.storage.lose_power(self.world);
        drop(begun);
        self.process.db.close().await;
        self.process = Box::pin(Process::start(&mut self.storage, &self.clock)).await;
        self.recover(unheard).await;
        self.compare().await;
    }

    /// Of the plans without a received result, a prefix is persisted.
    async fn recover(&mut self, unheard: &[Plan]) {
        let mut found = Vec::new();
        for number in 0..WORKSPACES {
            found.push(self.process.feed.head(workspace(number)).await.unwrap());
        }
        let heard = self.model.heads();
        let mut committed = unheard.iter().filter(|plan| plan.end == End::Commit);
        while self.model.heads() != found {
            match committed.next() {
                Some(plan) => self.model.commit(plan),
                None => panic!("the heads are {found:?}; they were {heard:?} before what nobody heard of"),
            };
        }
        for (number, follower) in self.followers.iter().enumerate() {
            let head = self.model.head(follower.workspace);
            assert!(follower.position <= head, "follower {number} read what is no longer there");
        }
    }

    /// The feeds and the items equal those of the model, and the doctor finds nothing.
    async fn compare(&self) {
        let Process { db, feed, .. } = &self.process;
        for number in 0..WORKSPACES {
            let page = feed.read(workspace(number), 0, 0).await.unwrap();
            let positions = page.changes.iter().map(|change| change.position);
            assert!(positions.eq(1..=self.model.head(number)), "gaps in the feed of workspace {number}");
            let told: Vec<Entry> = page.changes.into_iter().map(|change| change.entry).collect();
            assert_eq!(told, self.model.feeds[number], "the feed of workspace {number}");
            let items: Vec<(String, i64)> = fetch!(all, db, LIST, Text(workspace(number))).unwrap();
            let items: BTreeMap<String, i64> = items.into_iter().collect();
            assert_eq!(items, self.model.items[number], "the items of workspace {number}");
        }
        let mut tx = db.begin_read().await.unwrap();
        let findings = doctor::run(&mut tx, feed::CHECKS, &|_| {}).await.unwrap();
        tx.rollback().await.unwrap();
        assert!(findings.is_empty(), "{findings:?}");
    }
}

/// Executes the writes of a plan, and leaves it open.
async fn begin(feed: &Feed, plan: &Plan) -> UnitOfWork {
    let place = workspace(plan.workspace);
    let mut work = feed.begin(place).await.unwrap();
    for change in &plan.changes {
        match change.version {
            Some(version) => execute!(work.tx(), PUT, Text(place), &change.item, version).unwrap(),
            None => execute!(work.tx(), REMOVE, Text(place), &change.item).unwrap(),
        };
        work.publish(change.entry());
        if change.is_appended {
            work.append().await.unwrap();
        }
    }
    work
}

/// Executes a plan; returns the positions if it committed.
async fn perform(feed: &Feed, plan: &Plan) -> Option<Positions> {
    let work = begin(feed, plan).await;
    match plan.end {
        End::Commit => Some(work.commit().await.unwrap()),
        End::RollBack => {
            work.rollback().await.unwrap();
            None
        }
        End::Vanish => {
            drop(work);
            None
        }
    }
}
