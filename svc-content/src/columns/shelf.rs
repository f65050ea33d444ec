//! What stands in memory in this process: what was asked for last, within a budget.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use tokio::sync::Semaphore;

/// What is read into memory as a whole: the records of a database, the names of a workspace.
pub(crate) trait Shelved: Debug {
    /// What it is asked for by.
    type Key: Copy + Eq + Hash + Debug;

    /// How many rows it has.
    fn rows(&self) -> usize;

    /// How many bytes it takes, about.
    fn size(&self) -> usize;
}

/// What several requests read at once. Whoever reads or writes it waits for nothing meanwhile.
pub(crate) type Held<T> = Arc<RwLock<T>>;

/// What nobody asks for is dropped after this.
const IDLE: Duration = Duration::from_secs(15 * 60);
/// What was asked for once, and is asked for again within [`IDLE`], is in use.
const ASKED_KEPT: usize = 10_000;
/// How much is read in the background at once.
const BUILDS_AT_ONCE: usize = 1;
/// What has grown by one part in so many is measured again.
const MEASURED_AT: usize = 16;

/// All of one kind that this process holds; cheap to clone.
#[derive(Debug)]
pub(crate) struct Shelf<T: Shelved> {
    kept: Arc<Mutex<Kept<T>>>,
    builds: Arc<Semaphore>,
}

impl<T: Shelved> Clone for Shelf<T> {
    fn clone(&self) -> Self {
        Self { kept: Arc::clone(&self.kept), builds: Arc::clone(&self.builds) }
    }
}

#[derive(Debug)]
struct Kept<T: Shelved> {
    /// Bytes; 0 for nothing at all.
    budget: usize,
    entries: HashMap<T::Key, Entry<T>>,
}

#[derive(Debug)]
struct Entry<T> {
    state: State<T>,
    asked_at: Timestamp,
}

#[derive(Debug)]
enum State<T> {
    /// It was asked for once.
    Asked,
    /// Somebody reads it.
    Building,
    /// With so many rows it was too large.
    TooLarge(u64),
    Held {
        held: Held<T>,
        bytes: usize,
        rows: usize,
    },
}

/// What a request finds of what it asks for.
#[derive(Debug)]
pub(crate) enum Standing<T: Shelved> {
    /// Nothing, and nothing is to be done about it.
    Absent,
    /// Nothing, and whoever is told so is the one to read it.
    Wanted(Builder<T>),
    Held(Held<T>),
}

/// The right to read something into memory. Dropped without [`finish`](Self::finish), the next request has it.
#[derive(Debug)]
pub(crate) struct Builder<T: Shelved> {
    shelf: Shelf<T>,
    key: T::Key,
    is_done: bool,
}

impl<T: Shelved> Shelf<T> {
    /// For at most so many bytes; nothing at all for 0.
    pub(crate) fn new(budget: usize) -> Self {
        let kept = Kept { budget, entries: HashMap::new() };
        Self { kept: Arc::new(Mutex::new(kept)), builds: Arc::new(Semaphore::new(BUILDS_AT_ONCE)) }
    }

    /// How large one of them may become.
    pub(crate) fn budget(&self) -> usize {
        self.kept().budget
    }

    /// What builds in the background wait for.
    pub(crate) const fn builds(&self) -> &Arc<Semaphore> {
        &self.builds
    }

    /// Notes that something of so many rows is asked for.
    pub(crate) fn ask(&self, key: T::Key, rows: u64, now: Timestamp) -> Standing<T> {
        let mut kept = self.kept();
        if kept.budget == 0 {
            return Standing::Absent;
        }
        kept.sweep(now);
        let Some(entry) = kept.entries.get_mut(&key) else {
            kept.entries.insert(key, Entry { state: State::Asked, asked_at: now });
            return Standing::Absent;
        };
        entry.asked_at = now;
        match &entry.state {
            State::Held { held, .. } => Standing::Held(Arc::clone(held)),
            State::Building => Standing::Absent,
            State::TooLarge(then) if rows > *then - *then / 4 => Standing::Absent,
            State::Asked | State::TooLarge(_) => {
                entry.state = State::Building;
                Standing::Wanted(Builder { shelf: self.clone(), key, is_done: false })
            }
        }
    }

    /// What is asked for, where it is there.
    pub(crate) fn held_of(&self, key: T::Key, now: Timestamp) -> Option<Held<T>> {
        let mut kept = self.kept();
        let entry = kept.entries.get_mut(&key)?;
        let State::Held { held, .. } = &entry.state else { return None };
        entry.asked_at = now;
        Some(Arc::clone(held))
    }

    /// Forgets something, so that it is read anew when it is asked for.
    pub(crate) fn forget(&self, key: T::Key) {
        if let Some(entry) = self.kept().entries.get_mut(&key) {
            entry.state = State::Asked;
        }
    }

    /// Notes that what is held has followed a change.
    pub(crate) fn followed(&self, key: T::Key, now: &T) {
        let mut kept = self.kept();
        let Some(State::Held { bytes, rows, .. }) = kept.entries.get_mut(&key).map(|entry| &mut entry.state)
        else {
            return;
        };
        if now.rows().abs_diff(*rows) * MEASURED_AT <= *rows {
            return;
        }
        (*bytes, *rows) = (now.size(), now.rows());
        kept.make_room(key);
    }

    /// Drops what nobody has asked for lately.
    pub(crate) fn sweep(&self, now: Timestamp) {
        self.kept().sweep(now);
    }

    /// How many are held.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests count them"))]
    pub(crate) fn held(&self) -> usize {
        let kept = self.kept();
        kept.entries.values().filter(|entry| matches!(entry.state, State::Held { .. })).count()
    }

    fn kept(&self) -> MutexGuard<'_, Kept<T>> {
        // Nothing under the lock can be left half done.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Shelved> Kept<T> {
    fn sweep(&mut self, now: Timestamp) {
        let idle = i64::try_from(IDLE.as_micros()).unwrap_or(i64::MAX);
        let since = now.as_micros().saturating_sub(idle);
        let is_kept =
            |entry: &Entry<T>| entry.asked_at.as_micros() >= since || matches!(entry.state, State::Building);
        if self.entries.values().any(|entry| !is_kept(entry)) {
            self.entries.retain(|_, entry| is_kept(entry));
        }
        if self.entries.len() > ASKED_KEPT {
            self.entries.retain(|_, entry| !matches!(entry.state, State::Asked | State::TooLarge(_)));
        }
    }

    /// Drops those that were asked for the longest ago until the rest fits, that one last.
    fn make_room(&mut self, last: T::Key) {
        loop {
            let sizes = self.entries.iter().filter_map(|(key, entry)| match &entry.state {
                State::Held { bytes, rows, .. } => Some((*key, entry.asked_at, *bytes, *rows)),
                State::Asked | State::Building | State::TooLarge(_) => None,
            });
            let sizes: Vec<_> = sizes.collect();
            if sizes.iter().map(|(.., bytes, _)| *bytes).sum::<usize>() <= self.budget {
                return;
            }
            let oldest = sizes.iter().min_by_key(|(key, asked_at, ..)| (*key == last, *asked_at));
            let Some((key, .., rows)) = oldest else { return };
            if let Some(entry) = self.entries.get_mut(key) {
                let is_alone = *key == last;
                entry.state = if is_alone { State::TooLarge(*rows as u64) } else { State::Asked };
            }
        }
    }
}

impl<T: Shelved> Builder<T> {
    /// Puts what was read on the shelf.
    pub(crate) fn finish(mut self, read: T) -> Held<T> {
        self.is_done = true;
        let (bytes, rows) = (read.size(), read.rows());
        let held = Arc::new(RwLock::new(read));
        let mut kept = self.shelf.kept();
        if let Some(entry) = kept.entries.get_mut(&self.key) {
            entry.state = State::Held { held: Arc::clone(&held), bytes, rows };
            kept.make_room(self.key);
        }
        drop(kept);
        held
    }

    /// Notes that so many rows are larger than the budget.
    pub(crate) fn give_up(mut self, rows: u64) {
        self.is_done = true;
        if let Some(entry) = self.shelf.kept().entries.get_mut(&self.key) {
            entry.state = State::TooLarge(rows);
        }
    }
}

impl<T: Shelved> Drop for Builder<T> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        if let Some(entry) = self.shelf.kept().entries.get_mut(&self.key) {
            entry.state = State::Asked;
        }
    }
}
