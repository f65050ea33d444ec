//! Sums the numbers of a query at the dimensions where its sign differs from that of a row.

/// A query as bit planes, 64 dimensions per word: the signs, and the three bits of the magnitudes.
#[derive(Debug)]
pub(in crate::vectors) struct SignQuery {
    pub(in crate::vectors) signs: Vec<u64>,
    pub(in crate::vectors) ones: Vec<u64>,
    pub(in crate::vectors) twos: Vec<u64>,
    pub(in crate::vectors) fours: Vec<u64>,
}

/// Appends, for each row of signs, the sum of the query's numbers whose sign differs.
pub(in crate::vectors) fn differing_signs(query: &SignQuery, rows: &[u64], sums: &mut Vec<u32>) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512f")
        && x86::KNOWN_WORDS.contains(&query.signs.len())
    {
        #[expect(
            unsafe_code,
            reason = "a call of a function compiled for AVX-512 with VPOPCNTDQ, after the CPU was checked for it"
        )]
        // SAFETY: its only requirements, the three features, were checked above.
        unsafe {
            x86::differing_signs_avx512(query, rows, sums);
        }
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
        #[expect(
            unsafe_code,
            reason = "a call of a function compiled for AVX2 and POPCNT, after the CPU was checked for them"
        )]
        // SAFETY: its only requirements, AVX2 and POPCNT, were checked above.
        unsafe {
            differing_signs_avx2(query, rows, sums);
        }
        return;
    }
    differing_signs_plain(query, rows, sums);
}

/// The scalar code compiled for AVX2 and POPCNT: without the latter a popcount takes a dozen instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn differing_signs_avx2(query: &SignQuery, rows: &[u64], sums: &mut Vec<u32>) {
    differing_signs_plain(query, rows, sums);
}

#[inline(always)]
fn differing_signs_plain(query: &SignQuery, rows: &[u64], sums: &mut Vec<u32>) {
    // A constant number of words for common dimensions halves the time.
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

// Loops instead of iterator closures: a closure that is not inlined is compiled without the target features.
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

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm_storeu_si128, _mm256_add_epi64, _mm256_and_si256, _mm256_cvtepi64_epi32,
        _mm256_loadu_si256, _mm256_permute2x128_si256, _mm256_popcnt_epi64, _mm256_setzero_si256,
        _mm256_slli_epi64, _mm256_unpackhi_epi64, _mm256_unpacklo_epi64, _mm256_xor_si256,
    };

    use super::SignQuery;

    /// The row widths in words that have a kernel: 256, 512 and 1024 dimensions.
    pub(super) const KNOWN_WORDS: [usize; 3] = [4, 8, 16];

    /// Words in a register.
    const LANES: usize = 4;

    /// Rows whose counts are reduced together.
    const ROWS: usize = 4;

    /// One row, in registers.
    type Row<const REGISTERS: usize> = [[u64; LANES]; REGISTERS];

    /// Does nothing for a width that is not in `KNOWN_WORDS`.
    #[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
    pub(super) fn differing_signs_avx512(query: &SignQuery, rows: &[u64], sums: &mut Vec<u32>) {
        match query.signs.len() {
            4 => Planes::<1>::of(query).differing_in(rows, sums),
            8 => Planes::<2>::of(query).differing_in(rows, sums),
            16 => Planes::<4>::of(query).differing_in(rows, sums),
            _ => {}
        }
    }

    /// A query in registers.
    struct Planes<const REGISTERS: usize> {
        signs: [__m256i; REGISTERS],
        ones: [__m256i; REGISTERS],
        twos: [__m256i; REGISTERS],
        fours: [__m256i; REGISTERS],
    }

    impl<const REGISTERS: usize> Planes<REGISTERS> {
        #[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
        #[inline]
        fn of(query: &SignQuery) -> Self {
            Self {
                signs: plane(&query.signs),
                ones: plane(&query.ones),
                twos: plane(&query.twos),
                fours: plane(&query.fours),
            }
        }

        #[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
        #[inline]
        fn differing_in(&self, rows: &[u64], sums: &mut Vec<u32>) {
            let (registers, _) = rows.as_chunks::<LANES>();
            let (rows, _) = registers.as_chunks::<REGISTERS>();
            let (fours, rest) = rows.as_chunks::<ROWS>();
            for [first, second, third, fourth] in fours {
                let counts = [
                    self.differing(first),
                    self.differing(second),
                    self.differing(third),
                    self.differing(fourth),
                ];
                sums.extend_from_slice(&row_sums(counts));
            }
            let none = _mm256_setzero_si256();
            for row in rest {
                let [sum, ..] = row_sums([self.differing(row), none, none, none]);
                sums.push(sum);
            }
        }

        /// The weighted popcounts of the differing bits, per 64-bit lane.
        #[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
        #[inline]
        fn differing(&self, row: &Row<REGISTERS>) -> __m256i {
            let mut count = _mm256_setzero_si256();
            let planes = self.signs.iter().zip(&self.ones).zip(&self.twos).zip(&self.fours);
            for (row, (((signs, ones), twos), fours)) in row.iter().zip(planes) {
                let differs = _mm256_xor_si256(load(row), *signs);
                let ones = _mm256_popcnt_epi64(_mm256_and_si256(differs, *ones));
                let twos = _mm256_popcnt_epi64(_mm256_and_si256(differs, *twos));
                let fours = _mm256_popcnt_epi64(_mm256_and_si256(differs, *fours));
                let halved = _mm256_add_epi64(twos, _mm256_slli_epi64::<1>(fours));
                let own = _mm256_add_epi64(ones, _mm256_slli_epi64::<1>(halved));
                count = _mm256_add_epi64(count, own);
            }
            count
        }
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
    #[inline]
    fn plane<const REGISTERS: usize>(words: &[u64]) -> [__m256i; REGISTERS] {
        let mut plane = [_mm256_setzero_si256(); REGISTERS];
        let (blocks, _) = words.as_chunks::<LANES>();
        for (register, block) in plane.iter_mut().zip(blocks) {
            *register = load(block);
        }
        plane
    }

    #[expect(unsafe_code, reason = "a load of 32 bytes, for which there is no safe function")]
    #[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
    #[inline]
    fn load(words: &[u64; LANES]) -> __m256i {
        // SAFETY: four words are 32 bytes, and the load is unaligned.
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    /// Horizontal sums of the four lanes of each row.
    #[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
    #[inline]
    fn row_sums([first, second, third, fourth]: [__m256i; ROWS]) -> [u32; ROWS] {
        let before =
            _mm256_add_epi64(_mm256_unpacklo_epi64(first, second), _mm256_unpackhi_epi64(first, second));
        let behind =
            _mm256_add_epi64(_mm256_unpacklo_epi64(third, fourth), _mm256_unpackhi_epi64(third, fourth));
        let low = _mm256_permute2x128_si256::<0x20>(before, behind);
        let high = _mm256_permute2x128_si256::<0x31>(before, behind);
        let narrow = _mm256_cvtepi64_epi32(_mm256_add_epi64(low, high));
        let mut sums = [0_u32; ROWS];
        #[expect(unsafe_code, reason = "a store of sixteen bytes, for which there is no safe function")]
        // SAFETY: four numbers of four bytes have room for sixteen bytes, and the store is unaligned.
        unsafe {
            _mm_storeu_si128(sums.as_mut_ptr().cast(), narrow);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Tests the AVX2 code also where AVX-512 is available.
    fn differing_signs_without_avx512(query: &SignQuery, rows: &[u64], sums: &mut Vec<u32>) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
            #[expect(
                unsafe_code,
                reason = "a call of a function compiled for AVX2 and POPCNT, after the CPU was checked for them"
            )]
            // SAFETY: its only requirements, AVX2 and POPCNT, were checked above.
            unsafe {
                differing_signs_avx2(query, rows, sums);
            }
            return;
        }
        differing_signs_plain(query, rows, sums);
    }

    proptest! {
        #[test]
        fn counts_are_those_of_the_plain_code(
            words in proptest::collection::vec(any::<[u64; 5]>(), 1..17),
            others in proptest::collection::vec(any::<u64>(), 200),
        ) {
            let plane = |place: usize| words.iter().map(|word| word[place]).collect();
            let query = SignQuery { signs: plane(0), ones: plane(1), twos: plane(2), fours: plane(3) };
            let rows: Vec<u64> = words.iter().map(|word| word[4]).chain(others).collect();
            let (mut fast, mut slower, mut plain) = (Vec::new(), Vec::new(), Vec::new());
            differing_signs(&query, &rows, &mut fast);
            differing_signs_without_avx512(&query, &rows, &mut slower);
            differing_signs_plain(&query, &rows, &mut plain);
            let first: u32 = words.iter().map(|[signs, ones, twos, fours, row]| {
                let differs = signs ^ row;
                (ones & differs).count_ones() + 2 * (twos & differs).count_ones() + 4 * (fours & differs).count_ones()
            }).sum();
            prop_assert_eq!(fast.first(), Some(&first));
            prop_assert_eq!(fast, plain.clone());
            prop_assert_eq!(slower, plain);
        }
    }
}
