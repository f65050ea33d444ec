//! The arithmetic of vectors, written so that the compiler vectorises it.

use half::f16;
use half::slice::HalfFloatSliceExt;

/// The greatest code of a quantised number; -128 is left out so that codes are symmetric.
const GREATEST_CODE: f32 = 127.0;

/// Numbers converted from half precision at a time: small enough to stay in the first-level cache.
const CONVERTED_AT_ONCE: usize = 64;

/// By how much the length of a vector differs from 1 after its numbers were rounded to half precision.
const ROUNDING: f32 = 0.001;

/// A vector scaled to length 1, in half precision (the cosine then errs by less than 0.001, and takes half
/// the memory of single precision).
#[derive(Debug, Clone, PartialEq)]
pub struct UnitVector(Vec<f16>);

impl UnitVector {
    /// Scales a vector to length 1. None for a zero vector, and for one with numbers that are not finite.
    #[must_use]
    pub fn new(vector: &[f32]) -> Option<Self> {
        let length = length(vector)?;
        // What was rounded before has this length but for the rounding: it stays what it was, however often it is stored.
        let scale = if (length - 1.0).abs() < ROUNDING { 1.0 } else { length };
        Some(Self(vector.iter().map(|number| f16::from_f32(number / scale)).collect()))
    }

    /// Number of dimensions.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.0.len()
    }

    /// The numbers in single precision.
    #[must_use]
    pub fn to_f32(&self) -> Vec<f32> {
        self.0.to_f32_vec()
    }

    /// Numbers that were taken from such a vector.
    pub(super) fn of_halves(halves: &[f16]) -> Self {
        Self(halves.to_vec())
    }

    pub(super) fn halves(&self) -> &[f16] {
        &self.0
    }

    /// The stored form: two bytes a number, little-endian.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Reads the stored form.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let (pairs, _odd) = bytes.as_chunks::<2>();
        Self(pairs.iter().map(|pair| f16::from_le_bytes(*pair)).collect())
    }
}

/// Scales a vector to length 1; none if it has no direction.
pub(super) fn normalised(vector: &[f32]) -> Option<Vec<f32>> {
    let length = length(vector)?;
    Some(vector.iter().map(|number| number / length).collect())
}

/// None for a vector without direction.
fn length(vector: &[f32]) -> Option<f32> {
    Some(vector.iter().map(|number| number * number).sum::<f32>().sqrt()).filter(|length| length.is_normal())
}

/// Rounds a vector to one byte a number; appends the codes and returns what one code stands for.
pub(super) fn quantise(vector: &[f32], codes: &mut Vec<i8>) -> f32 {
    let greatest = vector.iter().fold(0.0_f32, |greatest, number| greatest.max(number.abs()));
    if greatest == 0.0 {
        codes.extend(vector.iter().map(|_| 0));
        return 0.0;
    }
    let scale = greatest / GREATEST_CODE;
    // `as` saturates, and the quotient is within ±127 anyway.
    codes.extend(vector.iter().map(|number| (number / scale).round() as i8));
    scale
}

/// The inner products of a query's codes with those of some rows, in their order.
pub(super) fn code_products(query: &[i8], codes: &[i8], rows: &[u32], products: &mut Vec<i32>) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[expect(
            unsafe_code,
            reason = "the compiler may use AVX2 in it, which this processor was just asked for"
        )]
        // SAFETY: the one condition of calling it, that the processor has AVX2, was checked on the line above.
        unsafe {
            code_products_avx2(query, codes, rows, products);
        }
        return;
    }
    code_products_plain(query, codes, rows, products);
}

/// The same code, compiled for AVX2: three times as fast.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn code_products_avx2(query: &[i8], codes: &[i8], rows: &[u32], products: &mut Vec<i32>) {
    code_products_plain(query, codes, rows, products);
}

#[inline(always)]
fn code_products_plain(query: &[i8], codes: &[i8], rows: &[u32], products: &mut Vec<i32>) {
    for row in rows {
        let start = *row as usize * query.len();
        let row = codes.get(start..start + query.len()).unwrap_or_default();
        products.push(dot_codes(query, row));
    }
}

/// Exact: 127² times any sensible number of dimensions fits.
#[inline(always)]
fn dot_codes(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(i16::from(*a) * i16::from(*b))).sum()
}

/// A query as bits, 64 dimensions a word: its signs, and the three bits of how great each number is.
#[derive(Debug)]
pub(super) struct SignQuery {
    pub(super) signs: Vec<u64>,
    pub(super) ones: Vec<u64>,
    pub(super) twos: Vec<u64>,
    pub(super) fours: Vec<u64>,
}

/// For each row of signs, the sum of the query's numbers whose sign differs.
pub(super) fn differing_signs(query: &SignQuery, rows: &[u64], sums: &mut Vec<u32>) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
        #[expect(
            unsafe_code,
            reason = "the compiler may use AVX2 and POPCNT in it, which were just asked for"
        )]
        // SAFETY: the one condition of calling it, that the processor has both, was checked on the line above.
        unsafe {
            differing_signs_avx2(query, rows, sums);
        }
        return;
    }
    differing_signs_plain(query, rows, sums);
}

/// The same code, compiled for AVX2 and POPCNT: without the latter a count takes a dozen instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn differing_signs_avx2(query: &SignQuery, rows: &[u64], sums: &mut Vec<u32>) {
    differing_signs_plain(query, rows, sums);
}

#[inline(always)]
fn differing_signs_plain(query: &SignQuery, rows: &[u64], sums: &mut Vec<u32>) {
    // Of the usual dimensions the number of words is known to the compiler, which halves the time.
    match query.signs.len() {
        4 => differing_signs_of::<4>(query, rows, sums),
        8 => differing_signs_of::<8>(query, rows, sums),
        16 => differing_signs_of::<16>(query, rows, sums),
        words => {
            for row in rows.chunks_exact(words.max(1)) {
                sums.push(differing(&query.signs, &query.ones, &query.twos, &query.fours, row));
            }
        }
    }
}

// Loops rather than iterators over closures: what is not inlined is compiled without the wider instructions.
#[inline(always)]
fn differing_signs_of<const WORDS: usize>(query: &SignQuery, rows: &[u64], sums: &mut Vec<u32>) {
    let words = |plane: &[u64]| -> [u64; WORDS] {
        std::array::from_fn(|place| plane.get(place).copied().unwrap_or(0))
    };
    let (signs, ones) = (words(&query.signs), words(&query.ones));
    let (twos, fours) = (words(&query.twos), words(&query.fours));
    let (rows, _rest) = rows.as_chunks::<WORDS>();
    for row in rows {
        sums.push(differing(&signs, &ones, &twos, &fours, row));
    }
}

#[inline(always)]
fn differing(signs: &[u64], ones: &[u64], twos: &[u64], fours: &[u64], row: &[u64]) -> u32 {
    let mut sum = 0;
    for ((((row, signs), ones), twos), fours) in row.iter().zip(signs).zip(ones).zip(twos).zip(fours) {
        let differs = row ^ signs;
        sum += (ones & differs).count_ones();
        sum += 2 * (twos & differs).count_ones();
        sum += 4 * (fours & differs).count_ones();
    }
    sum
}

/// The inner product of a query and a stored vector.
pub(super) fn dot_halves(query: &[f32], row: &[f16]) -> f32 {
    let mut buffer = [0.0_f32; CONVERTED_AT_ONCE];
    let mut sum = 0.0;
    for (query, row) in query.chunks(CONVERTED_AT_ONCE).zip(row.chunks(CONVERTED_AT_ONCE)) {
        let Some(converted) = buffer.get_mut(..row.len()) else {
            continue;
        };
        row.convert_to_f32_slice(converted);
        sum += dot_floats(query, converted);
    }
    sum
}

/// Eight sums side by side: floats may not be reordered, so one running sum would not vectorise.
fn dot_floats(a: &[f32], b: &[f32]) -> f32 {
    let (a_blocks, a_rest) = a.as_chunks::<8>();
    let (b_blocks, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0_f32; 8];
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        SignQuery, UnitVector, code_products, code_products_plain, differing_signs, differing_signs_plain,
        dot_codes, dot_halves, normalised, quantise,
    };

    #[test]
    fn a_vector_without_direction_is_none() {
        assert!(UnitVector::new(&[0.0, 0.0]).is_none());
        assert!(UnitVector::new(&[f32::NAN, 1.0]).is_none());
        assert!(UnitVector::new(&[f32::INFINITY, 1.0]).is_none());
        assert!(UnitVector::new(&[]).is_none());
    }

    #[test]
    fn the_stored_form_reads_back() {
        let vector = UnitVector::new(&[3.0, -4.0, 0.5]).unwrap();
        assert_eq!(UnitVector::from_bytes(&vector.to_bytes()), vector);
    }

    proptest! {
        #[test]
        fn products_are_close_to_exact(
            pairs in proptest::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0), 1..300)
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            prop_assume!(normalised(&a).is_some() && normalised(&b).is_some());
            let (a, b) = (normalised(&a).unwrap(), normalised(&b).unwrap());
            let exact: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();

            let halves = UnitVector::new(&b).unwrap();
            prop_assert!((dot_halves(&a, halves.halves()) - exact).abs() < 0.001);

            let (mut a_codes, mut b_codes) = (Vec::new(), Vec::new());
            let scale = quantise(&a, &mut a_codes) * quantise(&b, &mut b_codes);
            prop_assert!((dot_codes(&a_codes, &b_codes) as f32 * scale - exact).abs() < 0.03);
        }

        #[test]
        fn products_of_codes_are_those_of_the_plain_code(
            query in proptest::collection::vec(-127_i8..=127, 1..300),
            seed in any::<i8>(),
        ) {
            let codes: Vec<i8> = (0..query.len() * 5)
                .map(|place| i8::try_from(place * 31 % 255).unwrap_or(seed).wrapping_mul(seed | 1))
                .collect();
            let (mut fast, mut plain) = (Vec::new(), Vec::new());
            code_products(&query, &codes, &[4, 0, 2, 9], &mut fast);
            code_products_plain(&query, &codes, &[4, 0, 2, 9], &mut plain);
            prop_assert_eq!(fast, plain);
        }

        #[test]
        fn counts_of_signs_are_those_of_the_plain_code(
            words in proptest::collection::vec(any::<[u64; 5]>(), 1..9),
            others in proptest::collection::vec(any::<u64>(), 64),
        ) {
            let plane = |place: usize| words.iter().map(|word| word[place]).collect();
            let query = SignQuery { signs: plane(0), ones: plane(1), twos: plane(2), fours: plane(3) };
            let rows: Vec<u64> = words.iter().map(|word| word[4]).chain(others).collect();
            let (mut fast, mut plain) = (Vec::new(), Vec::new());
            differing_signs(&query, &rows, &mut fast);
            differing_signs_plain(&query, &rows, &mut plain);
            let first: u32 = words.iter().map(|[signs, ones, twos, fours, row]| {
                let differs = signs ^ row;
                (ones & differs).count_ones() + 2 * (twos & differs).count_ones() + 4 * (fours & differs).count_ones()
            }).sum();
            prop_assert_eq!(fast.first(), Some(&first));
            prop_assert_eq!(fast, plain);
        }
    }
}
