//! Vector arithmetic: for each SIMD kernel there is a scalar reference that tests compare it with.

/// Appends the products of a query with some rows of a flat array; 0 for a row that does not exist. Rows lie far apart, so the
/// hardware prefetcher guesses none of them: each is prefetched `$distance` rows before it is multiplied.
///
/// A macro, so that the loop is compiled with the target features of the function it is in, and `$dot` is inlined.
#[cfg(target_arch = "x86_64")]
macro_rules! push_products {
    ($dot:ident($query:expr, $flat:expr), $rows:expr, $products:expr, $distance:expr) => {
        for (place, row) in $rows.iter().enumerate() {
            if let Some(later) = $rows.get(place + $distance) {
                prefetch(row_of($flat, *later, $query.len()));
            }
            $products.push($dot($query, row_of($flat, *row, $query.len())));
        }
    };
}

mod codes;
mod halves;
mod signs;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use half::f16;
use half::slice::HalfFloatSliceExt as _;

pub(super) use self::codes::code_products;
pub(super) use self::halves::half_products;
pub(super) use self::signs::{SignQuery, differing_signs};

/// The largest code of a quantised number; -128 is not used, so that codes are symmetric.
const MAX_CODE: f32 = 127.0;

/// Bytes of a cache line.
#[cfg(target_arch = "x86_64")]
const CACHE_LINE: usize = 64;

/// How far the length of a unit vector is from 1 after its numbers were rounded to half precision.
const ROUNDING_ERROR: f32 = 0.001;

/// A vector scaled to length 1, in half precision: half the memory of single precision, with an error of the cosine below
/// 0.001.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitVector(Vec<f16>);

impl UnitVector {
    /// Scales a vector to length 1. `None` for a zero vector, and for one with numbers that are not finite.
    #[must_use]
    pub fn new(vector: &[f32]) -> Option<Self> {
        let length = length(vector)?;
        // A vector that was rounded before is not scaled again, so it stays the same however often it is stored.
        let scale = if (length - 1.0).abs() < ROUNDING_ERROR { 1.0 } else { length };
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

    /// From the numbers of another unit vector.
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

/// Scales a vector to length 1; `None` for one that [`UnitVector::new`] refuses.
pub(super) fn normalised(vector: &[f32]) -> Option<Vec<f32>> {
    let length = length(vector)?;
    Some(vector.iter().map(|number| number / length).collect())
}

/// `None` for a zero vector, and for one that is not finite.
fn length(vector: &[f32]) -> Option<f32> {
    Some(vector.iter().map(|number| number * number).sum::<f32>().sqrt()).filter(|length| length.is_normal())
}

/// Quantises a vector to one byte a number: appends the codes and returns their scale.
pub(super) fn quantise(vector: &[f32], codes: &mut Vec<i8>) -> f32 {
    let largest = vector.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    if largest == 0.0 {
        codes.extend(vector.iter().map(|_| 0));
        return 0.0;
    }
    let scale = largest / MAX_CODE;
    // `as` saturates, and the quotient is within ±127 anyway.
    codes.extend(vector.iter().map(|number| (number / scale).round() as i8));
    scale
}

/// A row of a flat array; empty when out of bounds.
#[inline(always)]
fn row_of<T>(flat: &[T], row: u32, width: usize) -> &[T] {
    let start = row as usize * width;
    flat.get(start..start + width).unwrap_or_default()
}

/// Prefetches a row into all cache levels.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse")]
#[inline]
fn prefetch<T>(row: &[T]) {
    let bytes = size_of_val(row);
    // Rows are not aligned to cache lines, so the last byte may lie in one more.
    for place in (0..bytes).step_by(CACHE_LINE).chain(bytes.checked_sub(1)) {
        _mm_prefetch::<_MM_HINT_T0>(row.as_ptr().cast::<i8>().wrapping_add(place));
    }
}

#[cfg(test)]
mod tests {
    use super::UnitVector;

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
}
