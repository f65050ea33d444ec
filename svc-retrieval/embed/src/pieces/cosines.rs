//! Cosines of quantized rows (int8).

/// A matrix of int8 codes, row-major.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) codes: &'a [u8],
    pub(super) width: usize,
}

impl<'a> Rows<'a> {
    /// Empty for a row out of range.
    #[inline(always)]
    fn row(self, row: u16) -> &'a [u8] {
        let start = usize::from(row) * self.width;
        self.codes.get(start..start + self.width).unwrap_or_default()
    }
}

/// The rows of a query, widened once for many comparisons.
#[derive(Debug)]
pub struct QueryRows {
    width: usize,
    /// Their codes, row-major; zeros for a row out of range.
    codes: Vec<i16>,
    /// The reciprocal norm of each row.
    reciprocals: Vec<f32>,
}

impl QueryRows {
    pub(super) fn new(asked: &[u16], rows: Rows<'_>) -> Self {
        let mut codes = Vec::with_capacity(asked.len() * rows.width);
        let mut reciprocals = Vec::with_capacity(asked.len());
        for row in asked {
            let row = rows.row(*row);
            let end = codes.len() + rows.width;
            codes.extend(row.iter().map(|code| i16::from(code.cast_signed())));
            codes.resize(end, 0);
            reciprocals.push(reciprocal(dot(row, row)));
        }
        Self { width: rows.width, codes, reciprocals }
    }

    /// How many rows there are.
    pub(super) fn count(&self) -> usize {
        self.reciprocals.len()
    }

    #[inline(always)]
    fn rows(&self) -> impl Iterator<Item = (&[i16], f32)> {
        self.codes.chunks_exact(self.width.max(1)).zip(self.reciprocals.iter().copied())
    }
}

/// For each row of `of`, the cosines with all query rows; negative ones are 0.
pub(super) fn cosines_of(asked: &QueryRows, of: &[u16], rows: Rows<'_>, cosines: &mut Vec<f32>) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "it is compiled for AVX2, which this processor was just asked for")]
        // SAFETY: the one condition of calling it, that the processor has AVX2, was checked on the line above.
        unsafe {
            x86::cosines_of(asked, of, rows, cosines);
        }
        return;
    }
    cosines_plain(asked, of, rows, cosines);
}

fn cosines_plain(asked: &QueryRows, of: &[u16], rows: Rows<'_>, cosines: &mut Vec<f32>) {
    for row in of {
        let row = rows.row(*row);
        let of_row = reciprocal(dot(row, row));
        for (asked, of_asked) in asked.rows() {
            cosines.push(cosine(product(asked, row), of_asked, of_row));
        }
    }
}

/// The reciprocal norm of a row, from its product with itself. The cosine with a zero row is 0.
#[inline(always)]
fn reciprocal(square: i32) -> f32 {
    (square.max(1) as f32).sqrt().recip()
}

#[inline(always)]
fn cosine(product: i32, of_asked: f32, of_row: f32) -> f32 {
    (product as f32 * of_asked * of_row).max(0.0)
}

/// Exact: 127² times any sensible number of dimensions fits into an `i32`.
pub(super) fn dot(a: &[u8], b: &[u8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(a.cast_signed()) * i32::from(b.cast_signed())).sum()
}

fn product(asked: &[i16], row: &[u8]) -> i32 {
    asked.iter().zip(row).map(|(a, b)| i32::from(*a) * i32::from(b.cast_signed())).sum()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _MM_HINT_T0, _mm_add_epi32, _mm_cvtsi128_si32, _mm_prefetch, _mm_shuffle_epi32,
        _mm256_add_epi32, _mm256_castsi256_si128, _mm256_cvtepi8_epi16, _mm256_extracti128_si256,
        _mm256_loadu_si256, _mm256_madd_epi16, _mm256_setzero_si256,
    };

    use super::{QueryRows, Rows, cosine, reciprocal};

    /// Codes per SIMD step.
    const BLOCK: usize = 32;

    /// Prefetch distance in rows: they are scattered over megabytes.
    const PREFETCH_DISTANCE: usize = 8;

    /// Bytes of a cache line.
    const CACHE_LINE: usize = 64;

    #[target_feature(enable = "avx2")]
    pub(super) fn cosines_of(asked: &QueryRows, of: &[u16], rows: Rows<'_>, cosines: &mut Vec<f32>) {
        for (place, row) in of.iter().enumerate() {
            if let Some(later) = of.get(place + PREFETCH_DISTANCE) {
                prefetch(rows.row(*later));
            }
            let row = rows.row(*row);
            let of_row = reciprocal(square(row));
            for (asked, of_asked) in asked.rows() {
                cosines.push(cosine(product(asked, row), of_asked, of_row));
            }
        }
    }

    /// Prefetches a row.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn prefetch(row: &[u8]) {
        // Rows are not aligned, so the last byte may be in one more cache line.
        for place in (0..row.len()).step_by(CACHE_LINE).chain(row.len().checked_sub(1)) {
            _mm_prefetch::<_MM_HINT_T0>(row.as_ptr().cast::<i8>().wrapping_add(place));
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn product(asked: &[i16], row: &[u8]) -> i32 {
        let (asked_blocks, asked_rest) = asked.as_chunks::<BLOCK>();
        let (row_blocks, row_rest) = row.as_chunks::<BLOCK>();
        let (mut low_sums, mut high_sums) = (_mm256_setzero_si256(), _mm256_setzero_si256());
        for (asked, row) in asked_blocks.iter().zip(row_blocks) {
            let ((asked_low, asked_high), (low, high)) = (loaded(asked), widened(row));
            low_sums = _mm256_add_epi32(low_sums, _mm256_madd_epi16(asked_low, low));
            high_sums = _mm256_add_epi32(high_sums, _mm256_madd_epi16(asked_high, high));
        }
        sum_of(_mm256_add_epi32(low_sums, high_sums)) + super::product(asked_rest, row_rest)
    }

    /// The product of a row with itself.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn square(row: &[u8]) -> i32 {
        let (blocks, rest) = row.as_chunks::<BLOCK>();
        let (mut low_sums, mut high_sums) = (_mm256_setzero_si256(), _mm256_setzero_si256());
        for block in blocks {
            let (low, high) = widened(block);
            low_sums = _mm256_add_epi32(low_sums, _mm256_madd_epi16(low, low));
            high_sums = _mm256_add_epi32(high_sums, _mm256_madd_epi16(high, high));
        }
        sum_of(_mm256_add_epi32(low_sums, high_sums)) + super::dot(rest, rest)
    }

    #[expect(unsafe_code, reason = "loads of 32 bytes, which have no safe form")]
    #[target_feature(enable = "avx2")]
    #[inline]
    fn loaded(block: &[i16; BLOCK]) -> (__m256i, __m256i) {
        let (low, high) = block.split_at(BLOCK / 2);
        // SAFETY: each half has sixteen numbers of two bytes, and this load asks for no alignment.
        unsafe { (_mm256_loadu_si256(low.as_ptr().cast()), _mm256_loadu_si256(high.as_ptr().cast())) }
    }

    /// Numbers of two bytes: the first sixteen, and the others.
    #[expect(unsafe_code, reason = "a load of 32 bytes, which has no safe form")]
    #[target_feature(enable = "avx2")]
    #[inline]
    fn widened(block: &[u8; BLOCK]) -> (__m256i, __m256i) {
        // SAFETY: the block has 32 bytes, and this load asks for no alignment.
        let bytes = unsafe { _mm256_loadu_si256(block.as_ptr().cast()) };
        let (low, high) = (_mm256_castsi256_si128(bytes), _mm256_extracti128_si256::<1>(bytes));
        (_mm256_cvtepi8_epi16(low), _mm256_cvtepi8_epi16(high))
    }

    /// The sum of eight numbers: of halves of them, which are swapped to be added.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn sum_of(lanes: __m256i) -> i32 {
        let four = _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256::<1>(lanes));
        let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0x4e>(four));
        let one = _mm_add_epi32(two, _mm_shuffle_epi32::<0xb1>(two));
        _mm_cvtsi128_si32(one)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn cosines_are_those_of_the_plain_code(
            width in 1_usize..300,
            codes in proptest::collection::vec(any::<u8>(), 1..2_000),
            asked in proptest::collection::vec(0_u16..8, 0..6),
            of in proptest::collection::vec(0_u16..8, 0..30),
        ) {
            // Some of the rows are not there.
            let rows = Rows { codes: &codes, width };
            let asked = QueryRows::new(&asked, rows);
            let (mut fast, mut plain) = (Vec::new(), Vec::new());
            cosines_of(&asked, &of, rows, &mut fast);
            cosines_plain(&asked, &of, rows, &mut plain);
            prop_assert_eq!(fast, plain);
        }
    }
}
