//! A set of rows as a bitmap.

use std::ops::Range;

/// Rows per word of a bitmap, and per block of [`Blocks`](super::blocks::Blocks).
pub(super) const LANES: usize = 64;

/// The block of a row, and its lane within the block.
pub(super) const fn split(row: u32) -> (usize, usize) {
    let row = row as usize;
    (row / LANES, row % LANES)
}

const fn join(word: usize, lane: u32) -> u32 {
    // Every row number fits into a u32, so the product does, too.
    (word * LANES) as u32 + lane
}

/// A set of rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bitmap {
    words: Vec<u64>,
}

impl Bitmap {
    /// An empty set with the capacity of another.
    pub(super) fn empty_like(other: &Self) -> Self {
        Self { words: vec![0; other.words.len()] }
    }

    /// An empty set with capacity for `rows` rows.
    pub(super) fn with_capacity(rows: u32) -> Self {
        Self { words: vec![0; (rows as usize).div_ceil(LANES)] }
    }

    pub(super) const fn from_words(words: Vec<u64>) -> Self {
        Self { words }
    }

    pub(super) fn contains(&self, row: u32) -> bool {
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

    /// The 64 rows of a word.
    pub(super) fn word(&self, word: usize) -> u64 {
        self.words.get(word).copied().unwrap_or(0)
    }

    /// Adds rows of one word.
    pub(super) fn add_word(&mut self, word: usize, rows: u64) {
        if let Some(word) = self.words.get_mut(word) {
            *word |= rows;
        }
    }

    /// The non-zero words, each with its number.
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.words.iter().copied().enumerate().filter(|(_, word)| *word != 0)
    }

    pub(super) fn union_with(&mut self, other: &Self) {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        for (word, less) in self.words.iter_mut().zip(&other.words) {
            *word &= !less;
        }
    }

    /// Intersects each word with what `of` returns for its number.
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

    /// The rows in ascending order.
    pub(super) fn rows(&self) -> impl Iterator<Item = u32> + '_ {
        self.words().flat_map(|(word, rows)| lanes(rows).map(move |lane| join(word, lane)))
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

/// The positions of the set bits.
pub(super) fn lanes(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lane = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(lane)
    })
}

/// Evaluates a predicate on the 64 values of a word; the bits of those that pass.
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
        let mut bits = Bitmap::default();
        for row in [0, 63, 64, 200, 5] {
            bits.add(row);
        }
        bits.remove(63);
        assert_eq!(bits.rows().collect::<Vec<_>>(), [0, 5, 64, 200]);
        assert_eq!(bits.count(), 4);
        assert!(bits.contains(64) && !bits.contains(63) && !bits.contains(100_000));
        bits.mask(|word| if word == 0 { !1 } else { 1 << (200 - 3 * 64) });
        assert_eq!(bits.rows().collect::<Vec<_>>(), [5, 200]);
        assert_eq!(passing(&[1, 2, 3, 2], 0, |one| one == 2), 0b1010);
        assert_eq!(passing(&[1, 2, 3, 2], 1, |one| one == 2), 0);
    }
}
