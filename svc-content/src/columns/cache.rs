//! The process's cache of in-memory snapshots, evicting the least recently used within a memory budget.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use tokio::sync::Semaphore;

/// A snapshot that is cached as a whole: the records of a database, the names of a workspace.
pub(crate) trait Cacheable: Debug {
    /// The cache key.
    type Key: Copy + Eq + Hash + Debug;

    /// How many rows it has.
    fn rows(&self) -> usize;

    /// Approximate memory use in bytes.
    fn size(&self) -> usize;
}

/// A cached snapshot, shared by concurrent requests. The lock is synchronous: no holder may await.
pub(crate) type SharedSnapshot<T> = Arc<RwLock<T>>;

/// An entry is evicted after this time without a lookup.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Keys whose lookups are tracked: a snapshot is built on the second lookup within [`IDLE_TIMEOUT`].
const MAX_TRACKED_KEYS: usize = 10_000;
/// Concurrent background builds.
const MAX_CONCURRENT_BUILDS: usize = 1;
/// A snapshot is measured again after its row count has changed by one part in this many.
const REMEASURE_RATIO: usize = 16;

/// The cache of one kind of snapshot; cheap to clone.
#[derive(Debug)]
pub(crate) struct SnapshotCache<T: Cacheable> {
    inner: Arc<Mutex<Inner<T>>>,
    build_permits: Arc<Semaphore>,
}

impl<T: Cacheable> Clone for SnapshotCache<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), build_permits: Arc::clone(&self.build_permits) }
    }
}

#[derive(Debug)]
struct Inner<T: Cacheable> {
    /// The maximum size in bytes; 0 disables the cache.
    budget: usize,
    entries: HashMap<T::Key, Entry<T>>,
}

#[derive(Debug)]
struct Entry<T> {
    state: State<T>,
    last_used_at: Timestamp,
}

#[derive(Debug)]
enum State<T> {
    /// Looked up, but not built.
    Requested,
    /// A request or background task is building it.
    Building,
    /// It exceeded the budget when it had this many rows.
    TooLarge(u64),
    Cached {
        snapshot: SharedSnapshot<T>,
        bytes: usize,
        rows: usize,
    },
}

/// The result of a lookup.
#[derive(Debug)]
pub(crate) enum CacheLookup<T: Cacheable> {
    /// Not cached, and the caller is not to build it.
    Miss,
    /// Not cached, and the caller is to build it.
    Build(Builder<T>),
    Hit(SharedSnapshot<T>),
}

/// The exclusive right to build a snapshot. If dropped without [`finish`](Self::finish), the next lookup gets it.
#[derive(Debug)]
pub(crate) struct Builder<T: Cacheable> {
    cache: SnapshotCache<T>,
    key: T::Key,
    is_done: bool,
}

impl<T: Cacheable> SnapshotCache<T> {
    /// A cache of at most `budget` bytes; 0 disables it.
    pub(crate) fn new(budget: usize) -> Self {
        let inner = Inner { budget, entries: HashMap::new() };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            build_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_BUILDS)),
        }
    }

    /// The budget in bytes, which is also the limit of a single snapshot.
    pub(crate) fn budget(&self) -> usize {
        self.inner().budget
    }

    /// The permits of background builds.
    pub(crate) const fn build_permits(&self) -> &Arc<Semaphore> {
        &self.build_permits
    }

    /// Looks a snapshot up, and decides whether the caller is to build it. `rows` is its current number of rows.
    pub(crate) fn lookup(&self, key: T::Key, rows: u64, now: Timestamp) -> CacheLookup<T> {
        let mut inner = self.inner();
        if inner.budget == 0 {
            return CacheLookup::Miss;
        }
        inner.sweep(now);
        let Some(entry) = inner.entries.get_mut(&key) else {
            inner.entries.insert(key, Entry { state: State::Requested, last_used_at: now });
            return CacheLookup::Miss;
        };
        entry.last_used_at = now;
        match &entry.state {
            State::Cached { snapshot, .. } => CacheLookup::Hit(Arc::clone(snapshot)),
            State::Building => CacheLookup::Miss,
            State::TooLarge(then) if rows > *then - *then / 4 => CacheLookup::Miss,
            State::Requested | State::TooLarge(_) => {
                entry.state = State::Building;
                CacheLookup::Build(Builder { cache: self.clone(), key, is_done: false })
            }
        }
    }

    /// A snapshot if it is cached.
    pub(crate) fn get(&self, key: T::Key, now: Timestamp) -> Option<SharedSnapshot<T>> {
        let mut inner = self.inner();
        let entry = inner.entries.get_mut(&key)?;
        let State::Cached { snapshot, .. } = &entry.state else { return None };
        entry.last_used_at = now;
        Some(Arc::clone(snapshot))
    }

    /// Evicts a snapshot, so that the next lookup rebuilds it.
    pub(crate) fn invalidate(&self, key: T::Key) {
        if let Some(entry) = self.inner().entries.get_mut(&key) {
            entry.state = State::Requested;
        }
    }

    /// Accounts for the growth of a snapshot after changes were applied to it.
    pub(crate) fn remeasure(&self, key: T::Key, now: &T) {
        let mut inner = self.inner();
        let Some(State::Cached { bytes, rows, .. }) =
            inner.entries.get_mut(&key).map(|entry| &mut entry.state)
        else {
            return;
        };
        if now.rows().abs_diff(*rows) * REMEASURE_RATIO <= *rows {
            return;
        }
        (*bytes, *rows) = (now.size(), now.rows());
        inner.make_room(key);
    }

    /// Evicts idle entries.
    pub(crate) fn sweep(&self, now: Timestamp) {
        self.inner().sweep(now);
    }

    /// The number of cached snapshots.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests count them"))]
    pub(crate) fn len(&self) -> usize {
        let inner = self.inner();
        inner.entries.values().filter(|entry| matches!(entry.state, State::Cached { .. })).count()
    }

    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        // No critical section can panic between two writes, so a poisoned lock still guards consistent data.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Cacheable> Inner<T> {
    fn sweep(&mut self, now: Timestamp) {
        let idle = i64::try_from(IDLE_TIMEOUT.as_micros()).unwrap_or(i64::MAX);
        let since = now.as_micros().saturating_sub(idle);
        let is_fresh = |entry: &Entry<T>| {
            entry.last_used_at.as_micros() >= since || matches!(entry.state, State::Building)
        };
        if self.entries.values().any(|entry| !is_fresh(entry)) {
            self.entries.retain(|_, entry| is_fresh(entry));
        }
        if self.entries.len() > MAX_TRACKED_KEYS {
            self.entries.retain(|_, entry| !matches!(entry.state, State::Requested | State::TooLarge(_)));
        }
    }

    /// Evicts the least recently used snapshots until the rest fits into the budget, `last` only if nothing else is left.
    fn make_room(&mut self, last: T::Key) {
        loop {
            let sizes = self.entries.iter().filter_map(|(key, entry)| match &entry.state {
                State::Cached { bytes, rows, .. } => Some((*key, entry.last_used_at, *bytes, *rows)),
                State::Requested | State::Building | State::TooLarge(_) => None,
            });
            let sizes: Vec<_> = sizes.collect();
            if sizes.iter().map(|(.., bytes, _)| *bytes).sum::<usize>() <= self.budget {
                return;
            }
            let oldest = sizes.iter().min_by_key(|(key, last_used_at, ..)| (*key == last, *last_used_at));
            let Some((key, .., rows)) = oldest else { return };
            if let Some(entry) = self.entries.get_mut(key) {
                let is_alone = *key == last;
                entry.state = if is_alone { State::TooLarge(*rows as u64) } else { State::Requested };
            }
        }
    }
}

impl<T: Cacheable> Builder<T> {
    /// Inserts the snapshot into the cache.
    pub(crate) fn finish(mut self, snapshot: T) -> SharedSnapshot<T> {
        self.is_done = true;
        let (bytes, rows) = (snapshot.size(), snapshot.rows());
        let shared = Arc::new(RwLock::new(snapshot));
        let mut inner = self.cache.inner();
        if let Some(entry) = inner.entries.get_mut(&self.key) {
            entry.state = State::Cached { snapshot: Arc::clone(&shared), bytes, rows };
            inner.make_room(self.key);
        }
        drop(inner);
        shared
    }

    /// Gives up because a snapshot of this many rows exceeds the budget.
    pub(crate) fn give_up(mut self, rows: u64) {
        self.is_done = true;
        if let Some(entry) = self.cache.inner().entries.get_mut(&self.key) {
            entry.state = State::TooLarge(rows);
        }
    }
}

impl<T: Cacheable> Drop for Builder<T> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        if let Some(entry) = self.cache.inner().entries.get_mut(&self.key) {
            entry.state = State::Requested;
        }
    }
}
