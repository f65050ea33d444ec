//! Filters of one size, bit-sliced: the bits of all filters for one trigram are adjacent, so that one memory access, which is what a
//! search waits for, tests all of them.

use super::filter::{Filter, WORD_BITS, place};
use crate::bodies::Key;

/// Bits of a block: one of larger filters has fewer of them, so that a partly filled block wastes little.
const MAX_BITS: usize = 64 << 13;

/// Some filters of one size.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// Bits of each filter.
    bits: usize,
    /// The capacity in filters: a power of two, at most the bits of a word.
    width: usize,
    /// One row for each bit of a filter, with that bit of every filter.
    rows: Vec<u64>,
    /// The keys of the filters, by column.
    keys: Vec<Key>,
}

impl Block {
    /// An empty block for filters of that many bits, a power of two.
    pub(super) fn of(bits: usize) -> Self {
        let width = (MAX_BITS / bits).clamp(1, WORD_BITS);
        Self { bits, width, rows: vec![0; bits * width / WORD_BITS], keys: Vec::new() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.keys.len() >= self.width
    }

    pub(super) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The size of its rows.
    pub(super) fn bytes(&self) -> u64 {
        u64::try_from(size_of_val(self.rows.as_slice())).unwrap_or(u64::MAX)
    }

    /// Adds a filter of its size; returns the column.
    pub(super) fn add(&mut self, key: Key, filter: &Filter) -> u8 {
        let column = self.keys.len();
        for row in filter.set() {
            let at = row * self.width + column;
            if let Some(word) = self.rows.get_mut(at / WORD_BITS) {
                *word |= 1 << (at % WORD_BITS);
            }
        }
        self.keys.push(key);
        u8::try_from(column).unwrap_or(u8::MAX)
    }

    /// A bitmap of the columns whose filters have all trigrams of one of the texts.
    pub(super) fn holding(&self, texts: &[Vec<u32>]) -> u64 {
        texts.iter().fold(0, |found, trigrams| found | self.holding_all(trigrams))
    }

    fn holding_all(&self, trigrams: &[u32]) -> u64 {
        let mut left = u64::MAX >> (WORD_BITS - self.width);
        for hash in trigrams {
            left &= self.row(place(*hash, self.bits));
            if left == 0 {
                break;
            }
        }
        left
    }

    fn row(&self, row: usize) -> u64 {
        let at = row * self.width;
        self.rows.get(at / WORD_BITS).map_or(0, |word| word >> (at % WORD_BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter::hashes;
    use super::*;

    #[test]
    fn filters_of_any_size_answer_for_themselves_only() {
        for bits in (6..=23).map(|power| 1usize << power) {
            let bodies = ["alpha beta", "beta gamma", "gamma delta", "delta alpha"];
            let mut block = Block::of(bits);
            let mut added = 0u8;
            while !block.is_full() {
                let body = bodies[usize::from(added) % bodies.len()];
                let filter = Filter::with_bits(body.as_bytes(), bits);
                assert_eq!(block.add(Key::of(body.as_bytes()), &filter), added);
                added += 1;
            }
            assert!(block.bytes() <= 64 << 10 || added == 1, "{added} of {bits} bits");
            let texts = vec![hashes(b"gamma").collect(), hashes(b"delta al").collect()];
            let found = block.holding(&texts);
            for column in 0..added {
                let filter = Filter::with_bits(bodies[usize::from(column) % bodies.len()].as_bytes(), bits);
                let set: Vec<usize> = filter.set().collect();
                let holds =
                    texts.iter().any(|text| text.iter().all(|hash| set.contains(&place(*hash, bits))));
                assert_eq!(found >> column & 1 == 1, holds, "{column} of {added}, {bits} bits");
            }
            assert_eq!(found.checked_shr(added.into()).unwrap_or(0), 0);
        }
    }
}
