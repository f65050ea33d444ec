//! Units of work that share a commit: some of those that come together have a failing statement, disconnect at one or
//! during their commit, roll back, or fill the disk, and then the process may lose power. Each of them is persisted
//! completely or not at all; acknowledged ones are, and failed ones are not; rows, counters and the feed agree.

use std::collections::BTreeMap;
use std::sync::Arc;

use cairn_chassis::clock::{Clock, ManualClock, Timestamp};
use cairn_chassis::feed::{self, Entry, Feed, Kind};
use cairn_chassis::sql::{self, Db, Error, Migration, Text};
use cairn_chassis::testing::simulation::{self, World};
use cairn_chassis::{doctor, execute, fetch};
use cairn_proto::ids::WorkspaceId;
use futures::future::join_all;
use uuid::Uuid;

use crate::storage::Storage;

const WORKSPACES: usize = 2;
const SMALL: i64 = 100;
/// More than the free pages of a table.
const LARGE: i64 = 64 * 1024;

const MIGRATIONS: &[Migration] = &[feed::MIGRATION, feed::compaction::MIGRATION, PART_TABLES];
const PART_TABLES: Migration = Migration { name: "0003_parts", sqlite: CREATE_PARTS, postgres: CREATE_PARTS };
const CREATE_PARTS: &str = "-- expand\nCREATE TABLE parts (workspace_id TEXT NOT NULL, unit BIGINT NOT NULL, \
     place BIGINT NOT NULL, data BYTEA NOT NULL, PRIMARY KEY (workspace_id, unit, place));\n\
     CREATE TABLE totals (workspace_id TEXT NOT NULL PRIMARY KEY, parts BIGINT NOT NULL);";
const PUT: &str = "INSERT INTO parts (workspace_id, unit, place, data) VALUES ($1, $2, $3, zeroblob($4))";
const COUNT: &str = "INSERT INTO totals (workspace_id, parts) VALUES ($1, 1) \
     ON CONFLICT (workspace_id) DO UPDATE SET parts = totals.parts + 1";
const LIST: &str = "SELECT unit, place FROM parts WHERE workspace_id = $1 ORDER BY unit, place";
const TOTAL: &str = "SELECT parts FROM totals WHERE workspace_id = $1";
/// No more pages than there are.
const FILL_THE_DISK: &str = "PRAGMA max_page_count = 1";
const MAKE_ROOM: &str = "PRAGMA max_page_count = 1073741823";

/// One simulation.
pub(crate) fn walk(world: &mut World) {
    simulation::block_on(async {
        let mut walk = Box::pin(Walk::begin(world)).await;
        for _ in 0..walk.world.between(4, 9) {
            Box::pin(walk.write()).await;
        }
        walk.db.close().await;
    });
}

fn workspace(number: usize) -> WorkspaceId {
    WorkspaceId(Uuid::from_u128(number as u128 + 1))
}

/// What happens to a unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// A unique key is taken. It rolls back, or continues without that part.
    Refused {
        at: i64,
        goes_on: bool,
    },
    /// From there on the disk is full.
    Full {
        at: i64,
    },
    /// Its caller disconnects.
    GoneAt {
        at: i64,
    },
    GoneInCommit,
    TakenBack,
}

/// A number of rows, each counted and appended to the feed.
#[derive(Debug, Clone, Copy)]
struct Unit {
    number: i64,
    workspace: usize,
    parts: i64,
    /// The part after which the feed entry is appended immediately instead of at the commit.
    appends_at: i64,
    fault: Fault,
}

impl Unit {
    /// The places of its parts.
    fn written(&self) -> Vec<i64> {
        let left_out = if let Fault::Refused { at, .. } = self.fault { Some(at) } else { None };
        (0..self.parts).filter(|place| Some(*place) != left_out).collect()
    }

    fn gives_up(&self) -> bool {
        matches!(self.fault, Fault::Refused { goes_on: false, .. })
    }
}

/// The known outcome of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Whole,
    Absent,
    /// No response was received.
    Either,
}

struct Walk<'a> {
    world: &'a mut World,
    storage: Storage,
    clock: Arc<dyn Clock>,
    db: Db,
    feed: Feed,
    units: Vec<(Unit, Outcome)>,
}

impl<'a> Walk<'a> {
    async fn begin(world: &'a mut World) -> Self {
        let mut storage = Storage::new();
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let db = storage.open(MIGRATIONS).await;
        let feed = Feed::new(db.clone(), Arc::clone(&clock));
        let mut units = Vec::new();
        for place in 0..WORKSPACES {
            // Its key counts as taken from then on.
            let number = i64::try_from(place).unwrap();
            let unit = Unit { number, workspace: place, parts: 1, appends_at: 0, fault: Fault::Nothing };
            let known = attempt(&feed, &unit).await.unwrap();
            units.push((unit, known));
        }
        storage.keep();
        Self { world, storage, clock, db, feed, units }
    }

    /// Concurrent units of work.
    async fn write(&mut self) {
        let count = self.world.between(1, 6);
        let first = self.units.len();
        let units: Vec<Unit> = (0..count).zip(first..).map(|(_, number)| self.draw(number)).collect();
        self.world.note(format_args!("{units:?}"));
        let feed = &self.feed;
        let answers = join_all(units.iter().map(|unit| attempt(feed, unit))).await;
        // Queued behind all pending clean-up.
        execute!(self.db.writer(), MAKE_ROOM).unwrap();
        let is_full = units.iter().any(|unit| matches!(unit.fault, Fault::Full { .. }));
        let is_unheard = self.world.one_in(4);
        for (unit, answer) in units.into_iter().zip(answers) {
            check_answer(&unit, &answer, is_full);
            let known = match answer.unwrap_or(Outcome::Absent) {
                Outcome::Whole if is_unheard => Outcome::Either,
                known @ (Outcome::Whole | Outcome::Absent | Outcome::Either) => known,
            };
            self.units.push((unit, known));
        }
        if is_unheard {
            self.lose_power().await;
        } else {
            self.storage.keep();
        }
        self.compare().await;
    }

    fn draw(&mut self, number: usize) -> Unit {
        let world = &mut *self.world;
        let parts = i64::try_from(world.between(1, 4)).unwrap();
        let at = i64::try_from(world.place_in(usize::try_from(parts).unwrap())).unwrap();
        let fault = match world.below(14) {
            0 => Fault::Refused { at, goes_on: false },
            1 => Fault::Refused { at, goes_on: true },
            2 => Fault::Full { at },
            3 => Fault::GoneAt { at },
            4 => Fault::GoneInCommit,
            5 => Fault::TakenBack,
            _ => Fault::Nothing,
        };
        let appends_at = i64::try_from(world.below(8)).unwrap();
        Unit {
            number: i64::try_from(number).unwrap(),
            workspace: world.place_in(WORKSPACES),
            parts,
            appends_at,
            fault,
        }
    }

    /// The process crashes before the results of the newest units were received, and restarts.
    async fn lose_power(&mut self) {
        self.storage.lose_power(self.world);
        self.db.close().await;
        self.db = self.storage.open(MIGRATIONS).await;
        self.feed = Feed::new(self.db.clone(), Arc::clone(&self.clock));
    }

    /// Each unit is in its known state; an unknown one becomes known.
    async fn compare(&mut self) {
        for number in 0..WORKSPACES {
            let rows: Vec<(i64, i64)> = fetch!(all, self.db, LIST, Text(workspace(number))).unwrap();
            let total: Option<i64> =
                fetch!(optional_scalar, self.db, TOTAL, Text(workspace(number))).unwrap();
            assert_eq!(total, Some(i64::try_from(rows.len()).unwrap()), "the count of workspace {number}");
            let page = self.feed.read(workspace(number), 0, 0).await.unwrap();
            let positions = page.changes.iter().map(|change| change.position);
            assert!(positions.eq(1..=page.head), "gaps in the feed of workspace {number}");
            let told = page.changes.iter().map(|change| read(&change.entry));
            let (mut rows, mut told) = (by_unit(rows), by_unit(told));
            for (unit, known) in self.units.iter_mut().filter(|(unit, _)| unit.workspace == number) {
                let found = rows.remove(&unit.number).unwrap_or_default();
                let heard = told.remove(&unit.number).unwrap_or_default();
                assert_eq!(found, heard, "rows of {unit:?}, and what the feed tells of it");
                *known = settle(unit, *known, &found);
            }
            assert!(rows.is_empty() && told.is_empty(), "of no unit: {rows:?}, {told:?}");
        }
        let mut tx = self.db.begin_read().await.unwrap();
        let findings = doctor::run(&mut tx, feed::CHECKS, &|_| {}).await.unwrap();
        tx.rollback().await.unwrap();
        assert!(findings.is_empty(), "{findings:?}");
    }
}

/// Only units with a fault get an error, or those that shared a transaction with one that filled the disk.
fn check_answer(unit: &Unit, answer: &Result<Outcome, Error>, is_full: bool) {
    match answer {
        Ok(_) => assert!(is_full || !unit.gives_up(), "{unit:?} was refused a key"),
        Err(error) if error.kind() == sql::Kind::UniqueViolation => {
            assert!(unit.gives_up(), "{unit:?}: {error}")
        }
        Err(error) => {
            let is_of_disk = matches!(error.kind(), sql::Kind::Full | sql::Kind::Conflict);
            assert!(is_full && is_of_disk, "{unit:?}: {error}");
        }
    }
}

/// The outcome of a unit with these persisted parts.
fn settle(unit: &Unit, known: Outcome, found: &[i64]) -> Outcome {
    let written = unit.written();
    assert!(found.is_empty() || *found == *written, "{found:?} of {unit:?}");
    // Both outcomes leave nothing.
    if written.is_empty() {
        return known;
    }
    let now = if found.is_empty() { Outcome::Absent } else { Outcome::Whole };
    assert!(known == Outcome::Either || known == now, "{unit:?} is known to be {known:?}");
    now
}

/// The unit and the place of an entry.
fn read(entry: &Entry) -> (i64, i64) {
    let (unit, place) = entry.item_id.split_once('/').unwrap();
    (unit.parse().unwrap(), place.parse().unwrap())
}

/// The places of each unit; those of one are contiguous.
fn by_unit(parts: impl IntoIterator<Item = (i64, i64)>) -> BTreeMap<i64, Vec<i64>> {
    let mut found: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let mut last = None;
    for (unit, place) in parts {
        assert!(last == Some(unit) || !found.contains_key(&unit), "what unit {unit} wrote stands apart");
        last = Some(unit);
        found.entry(unit).or_default().push(place);
    }
    found
}

/// Executes a unit.
async fn attempt(feed: &Feed, unit: &Unit) -> Result<Outcome, Error> {
    let place = workspace(unit.workspace);
    let mut work = feed.begin(place).await?;
    for part in 0..unit.parts {
        match unit.fault {
            Fault::GoneAt { at } if at == part => return Ok(Outcome::Absent),
            Fault::Refused { at, goes_on } if at == part => {
                let taken = i64::try_from(unit.workspace).unwrap();
                match execute!(work.tx(), PUT, Text(place), taken, 0_i64, SMALL) {
                    Err(error) if goes_on && error.is_unique_violation() => continue,
                    Err(error) => return Err(error),
                    Ok(_) => panic!("a key is given twice"),
                }
            }
            Fault::Full { at } if at == part => {
                execute!(work.tx(), FILL_THE_DISK)?;
                execute!(work.tx(), PUT, Text(place), unit.number, part, LARGE)?;
            }
            Fault::Nothing
            | Fault::Refused { .. }
            | Fault::Full { .. }
            | Fault::GoneAt { .. }
            | Fault::GoneInCommit
            | Fault::TakenBack => {
                execute!(work.tx(), PUT, Text(place), unit.number, part, SMALL)?;
            }
        }
        execute!(work.tx(), COUNT, Text(place))?;
        work.publish(Entry::upsert(Kind::File, format!("{}/{part}", unit.number)));
        if unit.appends_at == part {
            work.append().await?;
        }
    }
    match unit.fault {
        Fault::TakenBack => work.rollback().await.map(|()| Outcome::Absent),
        Fault::GoneInCommit => {
            work.append().await?;
            let mut committing = Box::pin(work.commit());
            let _begun = futures::poll!(&mut committing);
            Ok(Outcome::Either)
        }
        Fault::Nothing | Fault::Refused { .. } | Fault::Full { .. } | Fault::GoneAt { .. } => {
            work.commit().await.map(|_| Outcome::Whole)
        }
    }
}
