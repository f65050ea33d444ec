//! The trigrams of one body as a set of bits.

/// A filter is folded in half while fewer than one bit in 8 is set. So one bit in eight to one in four ends up set, and the false
/// positive rate for a text of eight letters, which has six trigrams, is at most one in four thousand.
const SPARSE: u64 = 8;
/// For the largest bodies: a filter of 1 MiB has room for all trigrams of 5 MiB of text.
const MAX_BITS: usize = 1 << 23;
pub(super) const WORD_BITS: usize = 64;

/// The trigrams of one body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filter {
    /// The bits: a power of two of them, at least one word.
    words: Vec<u64>,
}

impl Filter {
    /// The filter of a body.
    pub(super) fn of(body: &[u8]) -> Self {
        let bits = body.len().saturating_mul(8).next_power_of_two().clamp(WORD_BITS, MAX_BITS);
        Self { words: folded(Self::with_bits(body, bits).words) }
    }

    /// A filter of that many bits: a power of two and a multiple of the word size.
    pub(super) fn with_bits(body: &[u8], bits: usize) -> Self {
        let mut words = vec![0u64; bits / WORD_BITS];
        for hash in hashes(body) {
            let at = place(hash, bits);
            if let Some(word) = words.get_mut(at / WORD_BITS) {
                *word |= 1 << (at % WORD_BITS);
            }
        }
        Self { words }
    }

    /// How many bits it has.
    pub(super) const fn bits(&self) -> usize {
        self.words.len() * WORD_BITS
    }

    /// The positions of the set bits.
    pub(super) fn set(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = usize::try_from(left.trailing_zeros()).ok().filter(|bit| *bit < WORD_BITS)?;
                left &= left - 1;
                Some(at * WORD_BITS + bit)
            })
        })
    }
}

/// Folds the upper half onto the lower one while the result is sparse enough: a position is the hash modulo a power of two, so each
/// bit keeps its position modulo half the size.
fn folded(mut words: Vec<u64>) -> Vec<u64> {
    let mut set: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
    while words.len() > 1 && set.saturating_mul(SPARSE) < u64::try_from(words.len() * WORD_BITS).unwrap_or(0)
    {
        let upper = words.split_off(words.len() / 2);
        for (lower, upper) in words.iter_mut().zip(upper) {
            *lower |= upper;
        }
        set = words.iter().map(|word| u64::from(word.count_ones())).sum();
    }
    words.shrink_to_fit();
    words
}

/// The bit of a trigram in a filter of that many bits, a power of two.
pub(super) fn place(hash: u32, bits: usize) -> usize {
    usize::try_from(hash).unwrap_or_default() & (bits - 1)
}

/// The hashes of a text's trigrams, ASCII letters in lower case.
pub(super) fn hashes(text: &[u8]) -> impl Iterator<Item = u32> + '_ {
    text.windows(3).map(|window| {
        let trigram = window.iter().fold(0, |sum, byte| sum << 8 | u32::from(byte.to_ascii_lowercase()));
        mixed(trigram)
    })
}

/// Spreads neighbouring trigrams over all bits (the finalizer of MurmurHash3).
const fn mixed(trigram: u32) -> u32 {
    let mut hash = trigram;
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}
