//! A cache of rendered records: decoding a record and encoding it as JSON costs more than finding it.
//!
//! An entry is invalidated when the feed reports a change of its record, and all are when the database changes.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use cairn_proto::ids::RecordId;

use crate::model::Listed;

/// The maximum for all records of a database.
const MAX_BYTES: usize = 1 << 20;
/// The maximum per record in a database with few records.
const BYTES_PER_RECORD: usize = 1_024;
/// The overhead of a map entry and a reference count.
const ENTRY_OVERHEAD: usize = 64;

/// Two generations of records: when the young one reaches half of the maximum, it becomes the old one, and the former old
/// one is dropped.
#[derive(Debug, Default)]
pub(super) struct RecordCache {
    young: HashMap<RecordId, Arc<Listed>>,
    old: HashMap<RecordId, Arc<Listed>>,
    /// Bytes of the young generation.
    bytes: usize,
}

impl RecordCache {
    pub(super) fn get(&self, id: RecordId) -> Option<Arc<Listed>> {
        self.young.get(&id).or_else(|| self.old.get(&id)).cloned()
    }

    /// Caches a record of a database that has `records` records.
    pub(super) fn insert(&mut self, record: &Arc<Listed>, records: usize) {
        let (bytes, max) = (bytes_of(record), Self::max_bytes(records) / 2);
        if bytes > max {
            return;
        }
        if self.bytes + bytes > max {
            (self.old, self.bytes) = (mem::take(&mut self.young), 0);
        }
        if self.young.insert(record.id, Arc::clone(record)).is_none() {
            self.bytes += bytes;
        }
    }

    /// Evicts a record that has changed.
    pub(super) fn invalidate(&mut self, id: RecordId) {
        self.old.remove(&id);
        if let Some(record) = self.young.remove(&id) {
            self.bytes -= bytes_of(&record).min(self.bytes);
        }
    }

    /// The maximum memory use in bytes, in a database with this many records.
    pub(super) fn max_bytes(records: usize) -> usize {
        records.saturating_mul(BYTES_PER_RECORD).min(MAX_BYTES)
    }
}

fn bytes_of(record: &Listed) -> usize {
    size_of::<Listed>() + record.values.capacity() + record.title.capacity() + ENTRY_OVERHEAD
}

#[cfg(test)]
mod tests {
    use cairn_chassis::clock::Timestamp;
    use cairn_proto::ids::DatabaseId;
    use uuid::Uuid;

    use super::*;

    fn rendered(number: u128, bytes: usize) -> Arc<Listed> {
        Arc::new(Listed {
            id: RecordId(Uuid::from_u128(number)),
            database_id: DatabaseId(Uuid::from_u128(1)),
            values: "x".repeat(bytes),
            content_file_id: None,
            title: String::new(),
            version: 1,
            created_at: Timestamp::from_micros(0),
            updated_at: Timestamp::from_micros(0),
        })
    }

    #[test]
    fn the_last_ones_are_remembered_within_a_bound() {
        let mut all = RecordCache::default();
        let is_there = |all: &RecordCache, number| all.get(RecordId(Uuid::from_u128(number))).is_some();
        for number in 0..4_000 {
            all.insert(&rendered(number, 400), 100_000);
            assert!(is_there(&all, number) && is_there(&all, number.saturating_sub(200)));
            assert!(all.bytes <= MAX_BYTES / 2);
        }
        assert!(!is_there(&all, 0));
        let held = all.young.values().chain(all.old.values());
        assert!(held.map(|record| bytes_of(record)).sum::<usize>() <= MAX_BYTES);

        all.invalidate(RecordId(Uuid::from_u128(3_999)));
        all.invalidate(RecordId(Uuid::from_u128(3_999)));
        assert!(!is_there(&all, 3_999) && is_there(&all, 3_998));
        all.insert(&rendered(7, MAX_BYTES), 100_000);
        assert!(!is_there(&all, 7), "one that is too large");
        let mut few = RecordCache::default();
        few.insert(&rendered(1, 700), 1);
        assert!(!is_there(&few, 1));
    }
}
