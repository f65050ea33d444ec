//! Inner products with numbers of half precision.

use half::f16;
use half::slice::HalfFloatSliceExt as _;

/// Numbers in a register.
const LANES: usize = 8;

/// Accumulators: independent ones, so that no addition waits for the previous one.
const REGISTERS: usize = 4;

/// Numbers of a row in one iteration.
const BLOCK: usize = LANES * REGISTERS;

/// Partial sums. Addition of floats is not associative: every kernel adds in the same order, so that a score does not depend
/// on the CPU.
type Sums = [[f32; LANES]; REGISTERS];

/// Appends the inner products of a query with `rows`, in their order; 0 for a row out of bounds.
pub(in crate::vectors) fn half_products(
    query: &[f32],
    halves: &[f16],
    rows: &[u32],
    products: &mut Vec<f32>,
) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx") && is_x86_feature_detected!("f16c") {
        #[expect(
            unsafe_code,
            reason = "a call of a function compiled for AVX and F16C, after the CPU was checked for them"
        )]
        // SAFETY: its only requirements, AVX and F16C, were checked above.
        unsafe {
            x86::half_products(query, halves, rows, products);
        }
        return;
    }
    half_products_plain(query, halves, rows, products);
}

fn half_products_plain(query: &[f32], halves: &[f16], rows: &[u32], products: &mut Vec<f32>) {
    for row in rows {
        products.push(dot(query, super::row_of(halves, *row, query.len())));
    }
}

fn dot(query: &[f32], row: &[f16]) -> f32 {
    let (query_blocks, query_rest) = query.as_chunks::<BLOCK>();
    let (row_blocks, row_rest) = row.as_chunks::<BLOCK>();
    let mut sums = Sums::default();
    let mut converted = [0.0_f32; BLOCK];
    for (query, row) in query_blocks.iter().zip(row_blocks) {
        row.convert_to_f32_slice(&mut converted);
        for ((sum, asked), number) in sums.as_flattened_mut().iter_mut().zip(query).zip(&converted) {
            *sum += asked * number;
        }
    }
    total(&sums, query_rest, row_rest)
}

/// Adds the partial sums and the products of the remainder.
fn total(sums: &Sums, query: &[f32], row: &[f16]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    for register in sums {
        for (lane, sum) in lanes.iter_mut().zip(register) {
            *lane += sum;
        }
    }
    let rest: f32 = query.iter().zip(row).map(|(asked, number)| asked * number.to_f32()).sum();
    lanes.iter().sum::<f32>() + rest
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256, _mm_loadu_si128, _mm256_add_ps, _mm256_cvtph_ps, _mm256_loadu_ps, _mm256_mul_ps,
        _mm256_setzero_ps, _mm256_storeu_ps,
    };

    use half::f16;

    use super::super::{prefetch, row_of};
    use super::{BLOCK, LANES, REGISTERS, Sums, total};

    /// Rows between the prefetch of a row and its product: half as many as for codes, since rows are twice as long.
    const PREFETCH_DISTANCE: usize = 4;

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn half_products(query: &[f32], halves: &[f16], rows: &[u32], products: &mut Vec<f32>) {
        push_products!(dot(query, halves), rows, products, PREFETCH_DISTANCE);
    }

    #[target_feature(enable = "avx,f16c")]
    #[inline]
    fn dot(query: &[f32], row: &[f16]) -> f32 {
        let (query_blocks, query_rest) = query.as_chunks::<BLOCK>();
        let (row_blocks, row_rest) = row.as_chunks::<BLOCK>();
        let mut registers = [_mm256_setzero_ps(); REGISTERS];
        for (query, row) in query_blocks.iter().zip(row_blocks) {
            let (query, _) = query.as_chunks::<LANES>();
            let (row, _) = row.as_chunks::<LANES>();
            for ((register, asked), numbers) in registers.iter_mut().zip(query).zip(row) {
                // No FMA: the scalar reference rounds each product.
                let products = _mm256_mul_ps(floats(asked), converted(numbers));
                *register = _mm256_add_ps(*register, products);
            }
        }
        total(&stored(registers), query_rest, row_rest)
    }

    #[expect(unsafe_code, reason = "a load of eight floats, for which there is no safe function")]
    #[target_feature(enable = "avx")]
    #[inline]
    fn floats(numbers: &[f32; LANES]) -> __m256 {
        // SAFETY: there are eight floats, and the load is unaligned.
        unsafe { _mm256_loadu_ps(numbers.as_ptr()) }
    }

    #[target_feature(enable = "avx,f16c")]
    #[inline]
    fn converted(halves: &[f16; LANES]) -> __m256 {
        #[expect(unsafe_code, reason = "a load of sixteen bytes, for which there is no safe function")]
        // SAFETY: there are eight halves of two bytes, and the load is unaligned.
        let halves = unsafe { _mm_loadu_si128(halves.as_ptr().cast()) };
        _mm256_cvtph_ps(halves)
    }

    #[expect(unsafe_code, reason = "a store of eight floats, for which there is no safe function")]
    #[target_feature(enable = "avx")]
    #[inline]
    fn stored(registers: [__m256; REGISTERS]) -> Sums {
        let mut sums = Sums::default();
        for (sums, register) in sums.iter_mut().zip(registers) {
            // SAFETY: there is room for eight floats, and the store is unaligned.
            unsafe {
                _mm256_storeu_ps(sums.as_mut_ptr(), register);
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{UnitVector, normalised};
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

            let halves = UnitVector::new(&b).unwrap();
            let mut products = Vec::new();
            half_products(&a, halves.halves(), &[0], &mut products);
            prop_assert!((products[0] - exact).abs() < 0.001, "{products:?}, {exact}");
        }

        #[test]
        fn products_are_those_of_the_plain_code(
            query in proptest::collection::vec(-1.0_f32..1.0, 1..300),
            numbers in proptest::collection::vec(-1.0_f32..1.0, 1..50),
            rows in proptest::collection::vec(0_u32..7, 0..40),
        ) {
            // Rows 5 and 6 are out of bounds.
            let numbers = numbers.iter().map(|number| f16::from_f32(*number));
            let halves: Vec<f16> = numbers.cycle().take(query.len() * 5).collect();
            let (mut fast, mut plain) = (Vec::new(), Vec::new());
            half_products(&query, &halves, &rows, &mut fast);
            half_products_plain(&query, &halves, &rows, &mut plain);
            prop_assert_eq!(fast, plain);
        }
    }
}
