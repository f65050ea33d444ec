//! Which blocks of 64 rows may hold a trigram.
//!
//! Of each block there is a set of hashed trigrams. They lie by trigram, so that the blocks that may hold a text are an
//! intersection of a few bit vectors. What a text held before it was replaced stays in the signature of its block, which
//! makes the block looked at in vain and nothing worse.

use super::bits::{Bits, LANES};

/// Bytes that are hashed together.
pub(super) const TRIGRAM: usize = 3;

/// For each hashed trigram a bit of each block.
#[derive(Debug, Clone)]
pub(super) struct Signatures {
    /// The logarithm of how many hashed trigrams are told apart.
    exponent: u32,
    /// Words of a bit vector.
    width: usize,
    words: Vec<u64>,
}

impl Signatures {
    /// Of no texts, with room for so many blocks; 2 to the power of `exponent` hashed trigrams are told apart.
    pub(super) fn new(exponent: u32, blocks: usize) -> Self {
        let width = blocks.div_ceil(LANES);
        Self { exponent, width, words: vec![0; (1_usize << exponent) * width] }
    }

    /// Adds the trigrams of a text to those of its block.
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

    /// The blocks that may hold all of some trigrams; `None` for all blocks, where there is no trigram to tell by.
    pub(super) fn blocks<'a>(&self, trigrams: impl Iterator<Item = &'a [u8]>) -> Option<Bits> {
        let mut found: Option<Bits> = None;
        for trigram in trigrams {
            let from = self.place(trigram);
            let vector = self.words.get(from..from + self.width).unwrap_or_default();
            match &mut found {
                None => found = Some(Bits::of_words(vector.to_vec())),
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

    /// Where the bit vector of a trigram begins, by Fibonacci hashing of its bytes.
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
