//! A set of rows, one bit each.

use std::ops::Range;

/// Rows of one word, and of one block of whatever is kept in blocks.
pub(super) const LANES: usize = 64;

/// The block, and the place in it.
pub(super) const fn split(row: u32) -> (usize, usize) {
    let row = row as usize;
    (row / LANES, row % LANES)
}

const fn join(word: usize, lane: u32) -> u32 {
    // Rows are numbered by u32, so the product is one.
    (word * LANES) as u32 + lane
}

/// A set of rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// None of as many rows as another set may hold.
    pub(super) fn none_of(other: &Self) -> Self {
        Self { words: vec![0; other.words.len()] }
    }

    /// None, with room for so many rows.
    pub(super) fn for_rows(rows: u32) -> Self {
        Self { words: vec![0; (rows as usize).div_ceil(LANES)] }
    }

    /// Of words that are made elsewhere.
    pub(super) const fn of_words(words: Vec<u64>) -> Self {
        Self { words }
    }

    pub(super) fn has(&self, row: u32) -> bool {
        let (word, lane) = split(row);
        self.word(word) >> lane & 1 == 1
    }

    pub(super) fn add(&mut self, row: u32) {
        let (word, lane) = split(row);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if let Some(word) = self.words.get_mut(word) {
            *word |= 1 << lane;
        }
    }

    pub(super) fn remove(&mut self, row: u32) {
        let (word, lane) = split(row);
        if let Some(word) = self.words.get_mut(word) {
            *word &= !(1 << lane);
        }
    }

    /// 64 rows at once.
    pub(super) fn word(&self, word: usize) -> u64 {
        self.words.get(word).copied().unwrap_or(0)
    }

    /// Adds some of 64 rows.
    pub(super) fn add_word(&mut self, word: usize, rows: u64) {
        if let Some(word) = self.words.get_mut(word) {
            *word |= rows;
        }
    }

    /// The words that are not empty.
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.words.iter().copied().enumerate().filter(|(_, word)| *word != 0)
    }

    pub(super) fn unite(&mut self, other: &Self) {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        for (word, less) in self.words.iter_mut().zip(&other.words) {
            *word &= !less;
        }
    }

    /// Leaves those that are also in the 64 rows which are told for a word.
    pub(super) fn mask(&mut self, of: impl Fn(usize) -> u64) {
        for (number, word) in self.words.iter_mut().enumerate().filter(|(_, word)| **word != 0) {
            *word &= of(number);
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The rows, in the order of their numbers.
    pub(super) fn rows(&self) -> impl Iterator<Item = u32> + '_ {
        self.words().flat_map(|(word, rows)| lanes(rows).map(move |lane| join(word, lane)))
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

/// The places of the bits that are set.
pub(super) fn lanes(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lane = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(lane)
    })
}

/// The bits of those of 64 values, from a row on, that pass a test.
pub(super) fn passing<T: Copy>(values: &[T], word: usize, test: impl Fn(T) -> bool) -> u64 {
    let from = word * LANES;
    let range: Range<usize> = from..values.len().min(from + LANES);
    let of_word = values.get(range).unwrap_or_default();
    of_word.iter().enumerate().fold(0, |bits, (lane, value)| bits | u64::from(test(*value)) << lane)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_what_was_added() {
        let mut bits = Bits::default();
        for row in [0, 63, 64, 200, 5] {
            bits.add(row);
        }
        bits.remove(63);
        assert_eq!(bits.rows().collect::<Vec<_>>(), [0, 5, 64, 200]);
        assert_eq!(bits.count(), 4);
        assert!(bits.has(64) && !bits.has(63) && !bits.has(100_000));
        bits.mask(|word| if word == 0 { !1 } else { 1 << (200 - 3 * 64) });
        assert_eq!(bits.rows().collect::<Vec<_>>(), [5, 200]);
        assert_eq!(passing(&[1, 2, 3, 2], 0, |one| one == 2), 0b1010);
        assert_eq!(passing(&[1, 2, 3, 2], 1, |one| one == 2), 0);
    }
}
