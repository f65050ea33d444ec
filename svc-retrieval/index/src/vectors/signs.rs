//! Binary quantisation, one bit per dimension: a first pass that selects the rows whose codes are scored.
//!
//! A row is stored as the signs of its vector after centring and a random rotation (random signs and a Walsh–Hadamard transform), which
//! gives all dimensions equal weight. The scaled inner product of a query with those signs estimates the cosine; the query is
//! quantised to four bits, so that the product is computed with popcounts of 64-bit words. This reads an eighth of the bytes of the
//! one-byte codes.

use half::f16;
use half::slice::HalfFloatSliceExt as _;

use super::kernel::{SignQuery, differing_signs};
use crate::tuning::SIGNS_SAMPLE;

/// Bits in a word of signs.
const WORD: usize = u64::BITS as usize;

/// Rows per block: their estimates stay in the L1 cache.
const ROWS_AT_ONCE: u32 = 1_024;

/// The signs of all rows.
#[derive(Debug)]
pub(super) struct Signs {
    padded: usize,
    center: Vec<f32>,
    words: Vec<u64>,
    /// The scale of each row's inner product.
    factors: Vec<f32>,
    rows_at_build: usize,
}

impl Signs {
    /// The signs of concatenated vectors with `dimensions` numbers each.
    pub(super) fn new(vectors: &[f16], dimensions: usize) -> Self {
        let padded = dimensions.next_power_of_two().max(WORD);
        let rows = vectors.len() / dimensions.max(1);
        let mut signs = Self {
            padded,
            center: rotated(&mean(vectors, dimensions), padded),
            words: Vec::with_capacity(rows * padded / WORD),
            factors: Vec::with_capacity(rows),
            rows_at_build: rows,
        };
        for vector in vectors.chunks_exact(dimensions) {
            signs.push(vector);
        }
        signs
    }

    /// The number of rows that the centre was computed from.
    pub(super) fn rows_at_build(&self) -> usize {
        self.rows_at_build
    }

    pub(super) fn push(&mut self, vector: &[f16]) {
        let mut rotated = rotated(&vector.to_f32_vec(), self.padded);
        for (number, center) in rotated.iter_mut().zip(&self.center) {
            *number -= center;
        }
        let (sum, squares) =
            rotated.iter().fold((0.0, 0.0), |(sum, squares), n| (sum + n.abs(), squares + n * n));
        self.factors.push(if sum > 0.0 { squares / sum } else { 0.0 });
        self.words.extend(rotated.chunks_exact(WORD).map(|numbers| bits(numbers, |n| *n > 0.0)));
    }

    pub(super) fn swap_remove(&mut self, row: usize) {
        let words = self.padded / WORD;
        let last = self.words.len().saturating_sub(words);
        self.words.copy_within(last.., row * words);
        self.words.truncate(last);
        self.factors.swap_remove(row);
    }

    /// About `kept` rows with the highest estimated cosines, in ascending order.
    pub(super) fn nearest_by_signs(&self, query: &[f32], searched: &RowSet, kept: usize) -> Vec<u32> {
        let mut estimates = Estimates::new(self, query);
        let step = (searched.len() / SIGNS_SAMPLE).max(1);
        let threshold = approximate_threshold(estimates.of_rows(&searched.sample(step)), kept / step);
        // The threshold comes from a sample, so that the count is off by about an eighth.
        let mut best = Vec::with_capacity(kept + kept / 4);
        match searched {
            RowSet::All(rows) => {
                for first in (0..*rows).step_by(ROWS_AT_ONCE as usize) {
                    let end = first.saturating_add(ROWS_AT_ONCE).min(*rows);
                    let estimates = estimates.of_range(first, end);
                    best.extend(at_or_above(first..end, estimates, threshold));
                }
            }
            RowSet::Listed(rows) => {
                for block in rows.chunks(ROWS_AT_ONCE as usize) {
                    let estimates = estimates.of_rows(block);
                    best.extend(at_or_above(block.iter().copied(), estimates, threshold));
                }
            }
        }
        best
    }
}

/// The rows that are searched.
#[derive(Debug)]
pub(super) enum RowSet {
    /// The first `n` rows.
    All(u32),
    /// In ascending order.
    Listed(Vec<u32>),
}

impl RowSet {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::All(rows) => *rows as usize,
            Self::Listed(rows) => rows.len(),
        }
    }

    pub(super) fn into_rows(self) -> Vec<u32> {
        match self {
            Self::All(rows) => (0..rows).collect(),
            Self::Listed(rows) => rows,
        }
    }

    /// Every `step`-th row.
    fn sample(&self, step: usize) -> Vec<u32> {
        match self {
            Self::All(rows) => (0..*rows).step_by(step).collect(),
            Self::Listed(rows) => rows.iter().step_by(step).copied().collect(),
        }
    }
}

/// Estimates the cosines of blocks of rows, up to a constant factor.
struct Estimates<'a> {
    signs: &'a Signs,
    query: SignQuery,
    /// The sum of the query's quantised numbers.
    all: f32,
    /// Gathered signs of rows that are not contiguous.
    words: Vec<u64>,
    factors: Vec<f32>,
    differing: Vec<u32>,
    estimates: Vec<f32>,
}

impl<'a> Estimates<'a> {
    fn new(signs: &'a Signs, query: &[f32]) -> Self {
        let query = rotated(query, signs.padded);
        let greatest = query.iter().fold(0.0_f32, |greatest, n| greatest.max(n.abs()));
        let levels: Vec<u8> =
            query.iter().map(|n| (n.abs() / greatest.max(f32::MIN_POSITIVE) * 7.0).round() as u8).collect();
        let plane = |bit: u8| {
            levels.chunks_exact(WORD).map(move |levels| bits(levels, |l| l >> bit & 1 == 1)).collect()
        };
        let all: u32 = levels.iter().map(|level| u32::from(*level)).sum();
        Self {
            signs,
            query: SignQuery {
                signs: query.chunks_exact(WORD).map(|numbers| bits(numbers, |n| *n > 0.0)).collect(),
                ones: plane(0),
                twos: plane(1),
                fours: plane(2),
            },
            all: all as f32,
            words: Vec::new(),
            factors: Vec::new(),
            differing: Vec::new(),
            estimates: Vec::new(),
        }
    }

    /// Estimates of a range of rows.
    fn of_range(&mut self, first: u32, end: u32) -> &[f32] {
        let (first, end, width) = (first as usize, end as usize, self.signs.padded / WORD);
        let words = self.signs.words.get(first * width..end * width).unwrap_or_default();
        let factors = self.signs.factors.get(first..end).unwrap_or_default();
        self.differing.clear();
        differing_signs(&self.query, words, &mut self.differing);
        estimate(self.all, &self.differing, factors, &mut self.estimates);
        &self.estimates
    }

    /// Estimates of any existing rows.
    fn of_rows(&mut self, rows: &[u32]) -> &[f32] {
        let width = self.signs.padded / WORD;
        self.words.clear();
        self.factors.clear();
        for row in rows {
            let row = *row as usize;
            if let (Some(words), Some(factor)) =
                (self.signs.words.get(row * width..(row + 1) * width), self.signs.factors.get(row))
            {
                self.words.extend_from_slice(words);
                self.factors.push(*factor);
            }
        }
        self.differing.clear();
        differing_signs(&self.query, &self.words, &mut self.differing);
        estimate(self.all, &self.differing, &self.factors, &mut self.estimates);
        &self.estimates
    }
}

fn estimate(all: f32, differing: &[u32], factors: &[f32], estimates: &mut Vec<f32>) {
    let estimate = |(differing, factor): (&u32, &f32)| (all - 2.0 * *differing as f32) * factor;
    estimates.clear();
    estimates.extend(differing.iter().zip(factors).map(estimate));
}

/// The rows whose estimate reaches the threshold.
fn at_or_above(
    rows: impl Iterator<Item = u32>,
    estimates: &[f32],
    threshold: f32,
) -> impl Iterator<Item = u32> {
    rows.zip(estimates).filter(move |(_, estimate)| **estimate >= threshold).map(|(row, _)| row)
}

/// The estimate at rank `rank` of a sample. Computing the exact threshold would take longer than it saves.
fn approximate_threshold(sample: &[f32], rank: usize) -> f32 {
    let mut sample = sample.to_vec();
    let Some(last) = sample.len().checked_sub(1) else { return f32::MIN };
    *sample.select_nth_unstable_by(rank.min(last), |a, b| b.total_cmp(a)).1
}

fn mean(vectors: &[f16], dimensions: usize) -> Vec<f32> {
    let mut sums = vec![0.0_f64; dimensions];
    for vector in vectors.chunks_exact(dimensions) {
        for (sum, number) in sums.iter_mut().zip(vector.to_f32_vec()) {
            *sum += f64::from(number);
        }
    }
    let rows = (vectors.len() / dimensions.max(1)).max(1) as f64;
    sums.into_iter().map(|sum| (sum / rows) as f32).collect()
}

/// The bitmap of 64 entries, the first one in the lowest bit.
fn bits<T>(entries: &[T], holds: impl Fn(&T) -> bool) -> u64 {
    entries.iter().rev().fold(0, |word, entry| word << 1 | u64::from(holds(entry)))
}

/// Rotates a vector with a randomised Walsh–Hadamard transform, which preserves cosines.
fn rotated(vector: &[f32], padded: usize) -> Vec<f32> {
    let mut numbers = vec![0.0; padded];
    for (place, (number, given)) in numbers.iter_mut().zip(vector).enumerate() {
        // Any fixed pseudo-random signs will do (Fibonacci hashing).
        let negative = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 & 1 == 1;
        *number = if negative { -given } else { *given };
    }
    let mut half = 1;
    while half < padded {
        for block in numbers.chunks_exact_mut(half * 2) {
            let (low, high) = block.split_at_mut(half);
            for (low, high) in low.iter_mut().zip(high) {
                (*low, *high) = (*low + *high, *low - *high);
            }
        }
        half *= 2;
    }
    let scale = (padded as f32).sqrt().recip();
    numbers.iter_mut().for_each(|number| *number *= scale);
    numbers
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::{Estimates, ROWS_AT_ONCE, RowSet, Signs, bits, rotated};

    #[test]
    fn the_likeliest_are_found_block_by_block_as_all_at_once() {
        const DIMENSIONS: usize = 64;
        let rows = ROWS_AT_ONCE * 2 + 300;
        let number = |place: usize| f16::from_f32((place as f32 * 0.37).sin() + (place as f32 * 0.011).cos());
        let vectors: Vec<f16> = (0..rows as usize * DIMENSIONS).map(number).collect();
        let signs = Signs::new(&vectors, DIMENSIONS);
        let query: Vec<f32> = (0..DIMENSIONS).map(|place| (place as f32 * 0.41).sin()).collect();

        let all: Vec<u32> = (0..rows).collect();
        let mut estimates = Estimates::new(&signs, &query);
        let estimates = estimates.of_rows(&all);
        let found = signs.nearest_by_signs(&query, &RowSet::All(rows), 100);
        assert!((50..200).contains(&found.len()), "{}", found.len());
        let threshold = found.iter().map(|row| estimates[*row as usize]).fold(f32::MAX, f32::min);
        let at_or_above: Vec<u32> =
            all.iter().copied().filter(|row| estimates[*row as usize] >= threshold).collect();
        assert_eq!(found, at_or_above);
        assert_eq!(signs.nearest_by_signs(&query, &RowSet::Listed(all), 100), found);

        let odd: Vec<u32> = (1..rows).step_by(2).collect();
        let found = signs.nearest_by_signs(&query, &RowSet::Listed(odd), 100);
        assert!(!found.is_empty() && found.iter().all(|row| row % 2 == 1), "{found:?}");
    }

    #[test]
    fn turning_keeps_products() {
        let a: Vec<f32> = (0..100).map(|n| (n as f32 * 0.7).sin()).collect();
        let b: Vec<f32> = (0..100).map(|n| (n as f32 * 0.3).cos()).collect();
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        assert!((product(&a, &b) - product(&rotated(&a, 128), &rotated(&b, 128))).abs() < 1e-3);
    }

    #[test]
    fn the_first_entry_is_the_lowest_bit() {
        assert_eq!(bits(&[true, false, true, true], |set| *set), 0b1101);
    }
}
