//! Inner products of codes of one byte.

/// Appends the inner products of a query's codes with those of `rows`, in their order; 0 for a row out of bounds.
pub(in crate::vectors) fn code_products(query: &[i8], codes: &[i8], rows: &[u32], products: &mut Vec<i32>) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[expect(
            unsafe_code,
            reason = "a call of a function compiled for AVX2, after the CPU was checked for it"
        )]
        // SAFETY: its only requirement, AVX2, was checked above.
        unsafe {
            x86::code_products(query, codes, rows, products);
        }
        return;
    }
    code_products_plain(query, codes, rows, products);
}

fn code_products_plain(query: &[i8], codes: &[i8], rows: &[u32], products: &mut Vec<i32>) {
    for row in rows {
        products.push(dot(query, super::row_of(codes, *row, query.len())));
    }
}

/// Does not overflow: 127² times any realistic number of dimensions fits.
fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_shuffle_epi32, _mm256_add_epi32,
        _mm256_castsi256_si128, _mm256_cvtepi8_epi16, _mm256_extracti128_si256, _mm256_loadu_si256,
        _mm256_madd_epi16, _mm256_setzero_si256,
    };

    use super::super::{prefetch, row_of};

    /// Rows between the prefetch of a row and its product.
    const PREFETCH_DISTANCE: usize = 8;

    #[target_feature(enable = "avx2")]
    pub(super) fn code_products(query: &[i8], codes: &[i8], rows: &[u32], products: &mut Vec<i32>) {
        push_products!(dot(query, codes), rows, products, PREFETCH_DISTANCE);
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn dot(a: &[i8], b: &[i8]) -> i32 {
        let (a_blocks, a_rest) = a.as_chunks::<32>();
        let (b_blocks, b_rest) = b.as_chunks::<32>();
        let (mut low_sums, mut high_sums) = (_mm256_setzero_si256(), _mm256_setzero_si256());
        for (a, b) in a_blocks.iter().zip(b_blocks) {
            let ((a_low, a_high), (b_low, b_high)) = (widened(a), widened(b));
            low_sums = _mm256_add_epi32(low_sums, _mm256_madd_epi16(a_low, b_low));
            high_sums = _mm256_add_epi32(high_sums, _mm256_madd_epi16(a_high, b_high));
        }
        sum_of(_mm256_add_epi32(low_sums, high_sums)) + super::dot(a_rest, b_rest)
    }

    /// Sign-extends to two bytes a number: the low sixteen, and the high sixteen.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn widened(block: &[i8; 32]) -> (__m256i, __m256i) {
        #[expect(unsafe_code, reason = "a load of 32 bytes, for which there is no safe function")]
        // SAFETY: the block has 32 bytes, and the load is unaligned.
        let bytes = unsafe { _mm256_loadu_si256(block.as_ptr().cast()) };
        let (low, high) = (_mm256_castsi256_si128(bytes), _mm256_extracti128_si256::<1>(bytes));
        (_mm256_cvtepi8_epi16(low), _mm256_cvtepi8_epi16(high))
    }

    /// Horizontal sum of eight numbers.
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

    use super::super::{normalised, quantise};
    use super::*;

    proptest! {
        #[test]
        fn products_are_close_to_exact(
            pairs in proptest::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0), 1..300)
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            prop_assume!(normalised(&a).is_some() && normalised(&b).is_some());
            let (a, b) = (normalised(&a).unwrap(), normalised(&b).unwrap());
            let exact: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();

            let (mut a_codes, mut b_codes) = (Vec::new(), Vec::new());
            let scale = quantise(&a, &mut a_codes) * quantise(&b, &mut b_codes);
            prop_assert!((dot(&a_codes, &b_codes) as f32 * scale - exact).abs() < 0.03);
        }

        #[test]
        fn products_are_those_of_the_plain_code(
            query in proptest::collection::vec(any::<i8>(), 1..300),
            seed in any::<i8>(),
            rows in proptest::collection::vec(0_u32..7, 0..40),
        ) {
            // Rows 5 and 6 are out of bounds.
            let codes: Vec<i8> = (0..query.len() * 5)
                .map(|place| i8::try_from(place * 31 % 255).unwrap_or(seed).wrapping_mul(seed | 1))
                .collect();
            let (mut fast, mut plain) = (Vec::new(), Vec::new());
            code_products(&query, &codes, &rows, &mut fast);
            code_products_plain(&query, &codes, &rows, &mut plain);
            prop_assert_eq!(fast, plain);
        }
    }
}
