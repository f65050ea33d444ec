//! The in-process engine: exact counts, dropped after the last of their windows has ended.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_chassis::clock::Clock;

use super::{Counted, Key, Quota, RateLimiter, Unreachable, Window};

/// Shards, to keep lock contention low.
const SHARDS: usize = 64;
/// An entry is about 150 bytes, which bounds the whole to 40 MB: an attacker controls the number of addresses.
const MAX_ENTRIES: usize = 262_144;
/// Below this size a shard is not swept.
const MIN_SWEEP_SIZE: usize = 64;

/// The engine of one process; cheap to clone.
#[derive(Clone)]
pub(super) struct Memory(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    hasher: RandomState,
    shards: Vec<Mutex<Shard>>,
    max_per_shard: usize,
}

cairn_chassis::debug_fields!(Memory);

#[derive(Default)]
struct Shard {
    entries: HashMap<Key, Entry>,
    /// The size at which expired entries are swept.
    sweep_at: usize,
}

/// The use of one key.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    windows: [Used; 3],
    /// When the entry expires, in seconds since the Unix epoch.
    ends_at: i64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Used {
    number: i64,
    units: u32,
}

impl Used {
    /// The use at that second. If the clock has gone back, the newer window keeps counting.
    const fn at(self, window: Window, second: i64) -> u32 {
        if self.number >= window.number_at(second) { self.units } else { 0 }
    }

    fn set(&mut self, window: Window, second: i64, units: u32) {
        *self = Self { number: self.number.max(window.number_at(second)), units };
    }
}

impl Entry {
    fn used(&self, second: i64) -> [u32; 3] {
        let [minute, hour, day] = self.windows;
        [minute.at(Window::Minute, second), hour.at(Window::Hour, second), day.at(Window::Day, second)]
    }

    fn set(&mut self, quota: Quota, second: i64, used: [u32; 3]) {
        for (stored, (window, units)) in self.windows.iter_mut().zip(Window::ALL.into_iter().zip(used)) {
            stored.set(window, second, units);
        }
        let ends = quota.counted().map(|(window, _)| (window.number_at(second) + 1) * window.seconds());
        self.ends_at = self.ends_at.max(ends.max().unwrap_or(second));
    }
}

impl Memory {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_capacity(clock, MAX_ENTRIES)
    }

    fn with_capacity(clock: Arc<dyn Clock>, entries: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let max_per_shard = entries.div_ceil(SHARDS);
        Self(Arc::new(Inner { clock, hasher: RandomState::new(), shards, max_per_shard }))
    }

    /// As [`RateLimiter::take`], but infallible.
    pub(super) fn count(&self, key: &Key, quota: Quota, units: u32) -> Counted {
        let Some(mut shard) = self.shard(key) else { return Counted::free(quota, units) };
        // Read under the lock, so that seconds are monotonic per shard.
        let second = self.0.clock.now().as_seconds();
        let used = shard.entries.get(key).map_or([0; 3], |entry| entry.used(second));
        let admitted = quota.has_room(used, units);
        if !admitted || units == 0 {
            return Counted { quota, units, admitted, used, second };
        }
        let used = quota.changed(used, |used| used.saturating_add(units));
        shard.entry(key, second, self.0.max_per_shard).set(quota, second, used);
        Counted { quota, units, admitted, used, second }
    }

    /// As [`RateLimiter::refund`], but infallible.
    pub(super) fn put_back(&self, key: &Key, quota: Quota, units: u32) {
        let Some(mut shard) = self.shard(key) else { return };
        let second = self.0.clock.now().as_seconds();
        if let Some(entry) = shard.entries.get_mut(key) {
            let used = quota.changed(entry.used(second), |used| used.saturating_sub(units));
            entry.set(quota, second, used);
        }
    }

    fn shard(&self, key: &Key) -> Option<MutexGuard<'_, Shard>> {
        let place = usize::try_from(self.0.hasher.hash_one(key) % SHARDS as u64).unwrap_or_default();
        self.0.shards.get(place).map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shard {
    /// The key's entry, sweeping the shard if it is full.
    fn entry(&mut self, key: &Key, second: i64, max_entries: usize) -> &mut Entry {
        if !self.entries.contains_key(key)
            && self.entries.len() >= self.sweep_at.max(MIN_SWEEP_SIZE).min(max_entries)
        {
            self.sweep(second, max_entries);
        }
        self.entries.entry(key.clone()).or_default()
    }

    /// Removes expired entries. If that frees nothing, evicts those that expire first: addresses count by the
    /// minute, tokens (of which there are no more than were issued) by longer windows where it matters.
    fn sweep(&mut self, second: i64, max_entries: usize) {
        self.entries.retain(|_, entry| entry.ends_at > second);
        while self.entries.len() >= max_entries {
            let Some(first) = self.entries.iter().min_by_key(|(_, entry)| entry.ends_at) else { break };
            let key = first.0.clone();
            self.entries.remove(&key);
        }
        self.sweep_at = self.entries.len().saturating_mul(2);
    }
}

#[tonic::async_trait]
impl RateLimiter for Memory {
    async fn take(&self, key: &Key, quota: Quota, units: u32) -> Result<Counted, Unreachable> {
        Ok(self.count(key, quota, units))
    }

    async fn refund(&self, key: &Key, quota: Quota, units: u32) -> Result<(), Unreachable> {
        self.put_back(key, quota, units);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cairn_chassis::clock::{ManualClock, Timestamp};

    use super::*;
    use crate::rate_limit::contract;

    fn memory(entries: usize) -> (Memory, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        (Memory::with_capacity(shared, entries), clock)
    }

    fn held(memory: &Memory) -> usize {
        memory.0.shards.iter().map(|shard| shard.lock().unwrap().entries.len()).sum()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn it_keeps_the_contract() {
        let clock = contract::clock();
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        contract::run(Arc::new(Memory::new(shared)), &clock, "memory").await;
    }

    #[test]
    fn what_has_ended_is_forgotten() {
        let (memory, clock) = memory(MAX_ENTRIES);
        let quota = Quota::new(Some(5), None, None);
        for round in 0..10 {
            for number in 0..SHARDS * MIN_SWEEP_SIZE {
                memory.count(&Key::new("address", format!("{round}.{number}")), quota, 1);
            }
            clock.advance(Duration::from_secs(60));
        }
        assert!(held(&memory) < 4 * SHARDS * MIN_SWEEP_SIZE, "{} entries are held", held(&memory));
    }

    #[test]
    fn memory_is_bounded_and_what_ends_last_stays() {
        let (memory, _) = memory(SHARDS * 16);
        let token = Key::new("token", "t");
        let daily = Quota::new(Some(5), None, Some(9));
        memory.count(&token, daily, 4);
        for number in 0..SHARDS * 200 {
            memory.count(&Key::new("address", number), Quota::new(Some(5), None, None), 1);
        }
        assert!(held(&memory) <= SHARDS * 16, "{} entries are held", held(&memory));
        assert_eq!(memory.count(&token, daily, 0).used, [4, 0, 4]);
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_away() {
        let (memory, clock) = memory(MAX_ENTRIES);
        let (key, quota) = (Key::new("token", "t"), Quota::new(Some(2), None, None));
        memory.count(&key, quota, 2);
        let shards = memory.0.shards.iter().map(|shard| shard.lock().unwrap().entries.get(&key).copied());
        let entry = shards.flatten().next().unwrap();
        assert_eq!(entry.used(clock.now().as_seconds() - 90), [2, 0, 0]);
    }
}
