//! Records as pages show them, of the pages that were asked for last: to read a record and write it as JSON costs more than to
//! find it.
//!
//! What a record is shown as changes with the record, which the feed tells, and with its database.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use cairn_proto::ids::RecordId;

use crate::model::Listed;

/// All records of a database may take so much.
const MOST_BYTES: usize = 1 << 20;
/// Of few records, each may take so much.
const OF_RECORD: usize = 1_024;
/// What a map and a count of references take beside a record.
const ENTRY: usize = 64;

/// Records in two generations: when the later one takes half of what all may take, the earlier one is dropped.
#[derive(Debug, Default)]
pub(super) struct ShownRecords {
    later: HashMap<RecordId, Arc<Listed>>,
    earlier: HashMap<RecordId, Arc<Listed>>,
    /// What the later ones take.
    bytes: usize,
}

impl ShownRecords {
    pub(super) fn get(&self, id: RecordId) -> Option<Arc<Listed>> {
        self.later.get(&id).or_else(|| self.earlier.get(&id)).cloned()
    }

    /// Remembers a record of a database with so many.
    pub(super) fn put(&mut self, shown: &Arc<Listed>, records: usize) {
        let (bytes, most) = (bytes_of(shown), Self::most_bytes(records) / 2);
        if bytes > most {
            return;
        }
        if self.bytes + bytes > most {
            (self.earlier, self.bytes) = (mem::take(&mut self.later), 0);
        }
        if self.later.insert(shown.id, Arc::clone(shown)).is_none() {
            self.bytes += bytes;
        }
    }

    /// Forgets a record that has changed.
    pub(super) fn forget(&mut self, id: RecordId) {
        self.earlier.remove(&id);
        if let Some(shown) = self.later.remove(&id) {
            self.bytes -= bytes_of(&shown).min(self.bytes);
        }
    }

    /// What all of them take at most in a database with so many records.
    pub(super) fn most_bytes(records: usize) -> usize {
        records.saturating_mul(OF_RECORD).min(MOST_BYTES)
    }
}

fn bytes_of(shown: &Listed) -> usize {
    size_of::<Listed>() + shown.values.capacity() + shown.title.capacity() + ENTRY
}

#[cfg(test)]
mod tests {
    use cairn_chassis::clock::Timestamp;
    use cairn_proto::ids::DatabaseId;
    use uuid::Uuid;

    use super::*;

    fn shown(number: u128, bytes: usize) -> Arc<Listed> {
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
        let mut all = ShownRecords::default();
        let is_there = |all: &ShownRecords, number| all.get(RecordId(Uuid::from_u128(number))).is_some();
        for number in 0..4_000 {
            all.put(&shown(number, 400), 100_000);
            assert!(is_there(&all, number) && is_there(&all, number.saturating_sub(200)));
            assert!(all.bytes <= MOST_BYTES / 2);
        }
        assert!(!is_there(&all, 0));
        let held = all.later.values().chain(all.earlier.values());
        assert!(held.map(|shown| bytes_of(shown)).sum::<usize>() <= MOST_BYTES);

        all.forget(RecordId(Uuid::from_u128(3_999)));
        all.forget(RecordId(Uuid::from_u128(3_999)));
        assert!(!is_there(&all, 3_999) && is_there(&all, 3_998));
        all.put(&shown(7, MOST_BYTES), 100_000);
        assert!(!is_there(&all, 7), "one that is too large");
        let mut few = ShownRecords::default();
        few.put(&shown(1, 700), 1);
        assert!(!is_there(&few, 1));
    }
}
