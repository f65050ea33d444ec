//! One bit a dimension: which rows are worth a closer look.
//!
//! A row is kept as the signs of its vector, taken from the middle of all vectors and turned into directions in which
//! every dimension counts alike (random signs and a Walsh–Hadamard transform). The product of a query with those signs,
//! scaled, estimates the cosine; the query itself is rounded to four bits, so that the product is counted in words of 64
//! bits. This reads an eighth of what the codes of one byte take.

use half::f16;
use half::slice::HalfFloatSliceExt as _;

use super::kernel::{SignQuery, differing_signs};

/// Bits in a word of signs.
const WORD: usize = u64::BITS as usize;

/// The signs of all rows.
#[derive(Debug)]
pub(super) struct Signs {
    padded: usize,
    center: Vec<f32>,
    words: Vec<u64>,
    /// What the product of a row's signs is multiplied with.
    factors: Vec<f32>,
    made_for: usize,
}

impl Signs {
    /// The signs of vectors of so many dimensions, one after the other.
    pub(super) fn new(vectors: &[f16], dimensions: usize) -> Self {
        let padded = dimensions.next_power_of_two().max(WORD);
        let rows = vectors.len() / dimensions.max(1);
        let mut signs = Self {
            padded,
            center: turned(&mean(vectors, dimensions), padded),
            words: Vec::with_capacity(rows * padded / WORD),
            factors: Vec::with_capacity(rows),
            made_for: rows,
        };
        for vector in vectors.chunks_exact(dimensions) {
            signs.push(vector);
        }
        signs
    }

    /// How many rows the middle was taken of.
    pub(super) fn made_for(&self) -> usize {
        self.made_for
    }

    pub(super) fn push(&mut self, vector: &[f16]) {
        let mut turned = turned(&vector.to_f32_vec(), self.padded);
        for (number, center) in turned.iter_mut().zip(&self.center) {
            *number -= center;
        }
        let (sum, squares) =
            turned.iter().fold((0.0, 0.0), |(sum, squares), n| (sum + n.abs(), squares + n * n));
        self.factors.push(if sum > 0.0 { squares / sum } else { 0.0 });
        self.words.extend(turned.chunks_exact(WORD).map(|numbers| bits(numbers, |n| *n > 0.0)));
    }

    pub(super) fn swap_remove(&mut self, row: usize) {
        let words = self.padded / WORD;
        let last = self.words.len().saturating_sub(words);
        self.words.copy_within(last.., row * words);
        self.words.truncate(last);
        self.factors.swap_remove(row);
    }

    /// A number for each row that grows with its cosine.
    pub(super) fn estimates(&self, query: &[f32]) -> Vec<f32> {
        let query = turned(query, self.padded);
        let greatest = query.iter().fold(0.0_f32, |greatest, n| greatest.max(n.abs()));
        let levels: Vec<u8> =
            query.iter().map(|n| (n.abs() / greatest.max(f32::MIN_POSITIVE) * 7.0).round() as u8).collect();
        let plane = |bit: u8| {
            levels.chunks_exact(WORD).map(move |levels| bits(levels, |l| l >> bit & 1 == 1)).collect()
        };
        let planes = SignQuery {
            signs: query.chunks_exact(WORD).map(|numbers| bits(numbers, |n| *n > 0.0)).collect(),
            ones: plane(0),
            twos: plane(1),
            fours: plane(2),
        };
        let all: u32 = levels.iter().map(|level| u32::from(*level)).sum();
        let mut differing = Vec::with_capacity(self.factors.len());
        differing_signs(&planes, &self.words, &mut differing);
        let estimate = |(differing, factor): (&u32, &f32)| (all as f32 - 2.0 * *differing as f32) * factor;
        differing.iter().zip(&self.factors).map(estimate).collect()
    }
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

/// One word of what holds for 64 entries.
fn bits<T>(entries: &[T], holds: impl Fn(&T) -> bool) -> u64 {
    entries.iter().rev().fold(0, |word, entry| word << 1 | u64::from(holds(entry)))
}

/// The vector in directions that mix all of its dimensions; cosines stay what they were.
fn turned(vector: &[f32], padded: usize) -> Vec<f32> {
    let mut numbers = vec![0.0; padded];
    for (place, (number, given)) in numbers.iter_mut().zip(vector).enumerate() {
        // Any fixed, patternless choice of signs will do (Fibonacci hashing).
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
    use super::{bits, turned};

    #[test]
    fn turning_keeps_products() {
        let a: Vec<f32> = (0..100).map(|n| (n as f32 * 0.7).sin()).collect();
        let b: Vec<f32> = (0..100).map(|n| (n as f32 * 0.3).cos()).collect();
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        assert!((product(&a, &b) - product(&turned(&a, 128), &turned(&b, 128))).abs() < 1e-3);
    }

    #[test]
    fn the_first_entry_is_the_lowest_bit() {
        assert_eq!(bits(&[true, false, true, true], |set| *set), 0b1101);
    }
}
