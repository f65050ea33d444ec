//! The databases that stand in columns in this process: those that were asked for last, within a budget.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{DatabaseId, WorkspaceId};
use tokio::sync::Semaphore;

use super::Columns;

/// Columns that several requests read at once. Whoever reads or writes them waits for nothing meanwhile.
pub(crate) type Held = Arc<RwLock<Columns>>;

type Key = (WorkspaceId, DatabaseId);

/// A database that nobody asks for is dropped after this.
const IDLE: Duration = Duration::from_secs(15 * 60);
/// A database that was asked for once, and is asked for again within [`IDLE`], is in use.
const ASKED_KEPT: usize = 10_000;
/// Databases that are read in the background at once.
const BUILDS_AT_ONCE: usize = 1;
/// A database is measured again when it has grown by one part in so many.
const MEASURED_AT: usize = 16;

/// The columns of this process; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Shelf {
    kept: Arc<Mutex<Kept>>,
    builds: Arc<Semaphore>,
}

#[derive(Debug)]
struct Kept {
    /// Bytes; 0 for no columns at all.
    budget: usize,
    entries: HashMap<Key, Entry>,
}

#[derive(Debug)]
struct Entry {
    state: State,
    asked_at: Timestamp,
}

#[derive(Debug)]
enum State {
    /// It was asked for once.
    Asked,
    /// Somebody reads it.
    Building,
    /// With so many records it was too large.
    TooLarge(u64),
    Held {
        columns: Held,
        bytes: usize,
        records: usize,
    },
}

/// What a request finds of a database.
#[derive(Debug)]
pub(crate) enum Standing {
    /// Nothing, and nothing is to be done about it.
    Absent,
    /// Nothing, and whoever is told so is the one to read it.
    Wanted(Builder),
    Held(Held),
}

/// The right to read a database into columns. Dropped without [`finish`](Self::finish), the next request has it.
#[derive(Debug)]
pub(crate) struct Builder {
    shelf: Shelf,
    key: Key,
    is_done: bool,
}

impl Shelf {
    /// Columns of at most so many bytes; none at all for 0.
    pub(crate) fn new(budget: usize) -> Self {
        let kept = Kept { budget, entries: HashMap::new() };
        Self { kept: Arc::new(Mutex::new(kept)), builds: Arc::new(Semaphore::new(BUILDS_AT_ONCE)) }
    }

    /// How large one database may become.
    pub(crate) fn budget(&self) -> usize {
        self.kept().budget
    }

    /// What builds in the background wait for.
    pub(crate) const fn builds(&self) -> &Arc<Semaphore> {
        &self.builds
    }

    /// Notes that a database of so many records is asked for.
    pub(crate) fn ask(
        &self,
        workspace: WorkspaceId,
        database: DatabaseId,
        records: u64,
        now: Timestamp,
    ) -> Standing {
        let mut kept = self.kept();
        if kept.budget == 0 {
            return Standing::Absent;
        }
        kept.sweep(now);
        let key = (workspace, database);
        let Some(entry) = kept.entries.get_mut(&key) else {
            kept.entries.insert(key, Entry { state: State::Asked, asked_at: now });
            return Standing::Absent;
        };
        entry.asked_at = now;
        match &entry.state {
            State::Held { columns, .. } => Standing::Held(Arc::clone(columns)),
            State::Building => Standing::Absent,
            State::TooLarge(then) if records > *then - *then / 4 => Standing::Absent,
            State::Asked | State::TooLarge(_) => {
                entry.state = State::Building;
                Standing::Wanted(Builder { shelf: self.clone(), key, is_done: false })
            }
        }
    }

    /// Forgets a database, so that it is read anew when it is asked for.
    pub(crate) fn forget(&self, workspace: WorkspaceId, database: DatabaseId) {
        if let Some(entry) = self.kept().entries.get_mut(&(workspace, database)) {
            entry.state = State::Asked;
        }
    }

    /// Notes that columns have followed a change; `records` is how many they hold, and `measure` tells their bytes.
    pub(crate) fn followed(
        &self,
        workspace: WorkspaceId,
        database: DatabaseId,
        records: usize,
        measure: impl FnOnce() -> usize,
    ) {
        let key = (workspace, database);
        let mut kept = self.kept();
        let Some(State::Held { bytes, records: then, .. }) =
            kept.entries.get_mut(&key).map(|entry| &mut entry.state)
        else {
            return;
        };
        if records.abs_diff(*then) * MEASURED_AT <= *then {
            return;
        }
        (*bytes, *then) = (measure(), records);
        kept.make_room(key);
    }

    /// Drops what nobody has asked for lately.
    pub(crate) fn sweep(&self, now: Timestamp) {
        self.kept().sweep(now);
    }

    /// How many databases stand in columns.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests count them"))]
    pub(crate) fn held(&self) -> usize {
        let kept = self.kept();
        kept.entries.values().filter(|entry| matches!(entry.state, State::Held { .. })).count()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing under the lock can be left half done.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn sweep(&mut self, now: Timestamp) {
        let idle = i64::try_from(IDLE.as_micros()).unwrap_or(i64::MAX);
        let since = now.as_micros().saturating_sub(idle);
        let is_kept =
            |entry: &Entry| entry.asked_at.as_micros() >= since || matches!(entry.state, State::Building);
        if self.entries.values().any(|entry| !is_kept(entry)) {
            self.entries.retain(|_, entry| is_kept(entry));
        }
        if self.entries.len() > ASKED_KEPT {
            self.entries.retain(|_, entry| !matches!(entry.state, State::Asked | State::TooLarge(_)));
        }
    }

    /// Drops those that were asked for the longest ago until the rest fits, that one last.
    fn make_room(&mut self, last: Key) {
        loop {
            let sizes = self.entries.iter().filter_map(|(key, entry)| match &entry.state {
                State::Held { bytes, records, .. } => Some((*key, entry.asked_at, *bytes, *records)),
                State::Asked | State::Building | State::TooLarge(_) => None,
            });
            let sizes: Vec<_> = sizes.collect();
            if sizes.iter().map(|(.., bytes, _)| *bytes).sum::<usize>() <= self.budget {
                return;
            }
            let oldest = sizes.iter().min_by_key(|(key, asked_at, ..)| (*key == last, *asked_at));
            let Some((key, .., records)) = oldest else { return };
            if let Some(entry) = self.entries.get_mut(key) {
                let is_alone = *key == last;
                entry.state = if is_alone { State::TooLarge(*records as u64) } else { State::Asked };
            }
        }
    }
}

impl Builder {
    /// Puts the columns on the shelf.
    pub(crate) fn finish(mut self, columns: Columns) -> Held {
        self.is_done = true;
        let (bytes, records) = (columns.bytes(), columns.len());
        let held = Arc::new(RwLock::new(columns));
        let mut kept = self.shelf.kept();
        if let Some(entry) = kept.entries.get_mut(&self.key) {
            entry.state = State::Held { columns: Arc::clone(&held), bytes, records };
            kept.make_room(self.key);
        }
        drop(kept);
        held
    }

    /// Notes that the database is larger than the budget.
    pub(crate) fn give_up(mut self, records: u64) {
        self.is_done = true;
        if let Some(entry) = self.shelf.kept().entries.get_mut(&self.key) {
            entry.state = State::TooLarge(records);
        }
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        if let Some(entry) = self.shelf.kept().entries.get_mut(&self.key) {
            entry.state = State::Asked;
        }
    }
}
