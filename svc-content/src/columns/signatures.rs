//! Bit-sliced trigram signatures of blocks of 64 rows.
//!
//! Each block has a set of hashed trigrams. The sets are stored transposed, one bit vector of blocks per hash, so that the
//! candidate blocks of a text are the intersection of a few bit vectors. The trigrams of a replaced text stay in the signature
//! of its block, as in a Bloom filter: that costs false positives, never false negatives.

use super::bitmap::{Bitmap, LANES};

/// Bytes per trigram.
pub(super) const TRIGRAM: usize = 3;

/// For each trigram hash a bit vector with one bit per block.
#[derive(Debug, Clone)]
pub(super) struct Signatures {
    /// The binary logarithm of the number of hash values.
    exponent: u32,
    /// Words per bit vector.
    width: usize,
    words: Vec<u64>,
}

impl Signatures {
    /// Empty signatures with capacity for `blocks` blocks and 2 to the power of `exponent` hash values.
    pub(super) fn new(exponent: u32, blocks: usize) -> Self {
        let width = blocks.div_ceil(LANES);
        Self { exponent, width, words: vec![0; (1_usize << exponent) * width] }
    }

    /// Adds the trigrams of a text to the signature of its block.
    pub(super) fn add(&mut self, block: usize, text: &[u8]) {
        let (word, lane) = (block / LANES, block % LANES);
        for trigram in text.windows(TRIGRAM) {
            if word >= self.width {
                self.widen((word + 1).max(self.width * 5 / 4));
            }
            let place = self.place(trigram) + word;
            if let Some(word) = self.words.get_mut(place) {
                *word |= 1 << lane;
            }
        }
    }

    /// The blocks that may hold all of these trigrams; `None`, which means all blocks, if there is no trigram.
    pub(super) fn blocks<'a>(&self, trigrams: impl Iterator<Item = &'a [u8]>) -> Option<Bitmap> {
        let mut found: Option<Bitmap> = None;
        for trigram in trigrams {
            let from = self.place(trigram);
            let vector = self.words.get(from..from + self.width).unwrap_or_default();
            match &mut found {
                None => found = Some(Bitmap::from_words(vector.to_vec())),
                Some(found) => found.mask(|word| vector.get(word).copied().unwrap_or(0)),
            }
        }
        found
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    fn widen(&mut self, width: usize) {
        let mut words = vec![0; (1_usize << self.exponent) * width];
        if self.width > 0 {
            for (wide, narrow) in words.chunks_exact_mut(width).zip(self.words.chunks_exact(self.width)) {
                for (to, from) in wide.iter_mut().zip(narrow) {
                    *to = *from;
                }
            }
        }
        (self.width, self.words) = (width, words);
    }

    /// The offset of a trigram's bit vector, by Fibonacci hashing of its bytes.
    fn place(&self, trigram: &[u8]) -> usize {
        let number = trigram.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        let hash = number.wrapping_mul(0x9E37_79B1) >> (u32::BITS - self.exponent);
        hash as usize * self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_told_of_that_holds_all_trigrams() {
        let mut signatures = Signatures::new(13, 70);
        for block in 0..200 {
            signatures.add(block, if block % 50 == 7 { "zebra".as_bytes() } else { b"some words" });
        }
        let blocks = |text: &str| {
            let found = signatures.blocks(text.as_bytes().windows(TRIGRAM));
            found.map(|blocks| blocks.rows().collect::<Vec<_>>())
        };
        assert_eq!(blocks("zebra"), Some(vec![7, 57, 107, 157]));
        assert_eq!(blocks("zebras"), Some(vec![]));
        assert_eq!(blocks("ze"), None);
    }
}
