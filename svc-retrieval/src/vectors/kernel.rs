//! The arithmetic of vectors, written so that the compiler vectorises it.

use half::f16;
use half::slice::HalfFloatSliceExt;

/// The greatest code of a quantised number; -128 is left out so that codes are symmetric.
const GREATEST_CODE: f32 = 127.0;

/// Numbers converted from half precision at a time: small enough to stay in the first-level cache.
const CONVERTED_AT_ONCE: usize = 64;

/// A vector scaled to length 1, in half precision (the cosine then errs by less than 0.001, and takes half
/// the memory of single precision).
#[derive(Debug, Clone, PartialEq)]
pub struct UnitVector(Vec<f16>);

impl UnitVector {
    /// Scales a vector to length 1. None for a zero vector, and for one with numbers that are not finite.
    #[must_use]
    pub fn new(vector: &[f32]) -> Option<Self> {
        let unit = normalised(vector)?;
        Some(Self(unit.into_iter().map(f16::from_f32).collect()))
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
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if !length.is_normal() {
        return None;
    }
    Some(vector.iter().map(|number| number / length).collect())
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

/// The inner product of two rows of codes. Exact: 127² times any sensible number of dimensions fits.
pub(super) fn dot_codes(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(i16::from(*a) * i16::from(*b))).sum()
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

    use super::{UnitVector, dot_codes, dot_halves, normalised, quantise};

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
    }
}
