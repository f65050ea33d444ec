//! A substring index of a text column, so that a search reads few texts.
//!
//! Common words have posting lists (`words.rs`). The trigrams of all other words, and those that contain a separator, are in
//! block signatures (`signatures.rs`). So each word of a search text is within a common word of a matching row, or its
//! trigrams are in the signature of the row's block.

use super::bitmap::{Bitmap, LANES, split};
use super::blocks::Blocks;
use super::signatures::{Signatures, TRIGRAM};
use super::words::{CommonWords, is_word_byte, parts, words};

/// Rows that are sampled to select the common words.
const SAMPLE_ROWS: usize = 16_384;

#[derive(Debug, Clone)]
pub(super) struct Index {
    words: CommonWords,
    signatures: Signatures,
}

/// The result of an index lookup.
#[derive(Debug)]
pub(super) struct Lookup {
    /// Rows that contain the text for certain.
    pub(super) matching: Bitmap,
    /// Other rows that may contain it, which the caller must verify.
    pub(super) candidates: Bitmap,
}

impl Index {
    /// Builds the index of all rows, with 2 to the power of `exponent` trigram hashes.
    pub(super) fn of(texts: &Blocks<u8>, exponent: u32) -> Self {
        let rows = texts.rows();
        let every = (rows as usize / SAMPLE_ROWS).max(1);
        let sample = (0..rows).step_by(every).map(|row| texts.list(row));
        let signatures = Signatures::new(exponent, (rows as usize).div_ceil(LANES));
        let mut index = Self { words: CommonWords::common_in(sample, rows), signatures };
        for row in 0..rows {
            index.add(row, texts.list(row));
        }
        index
    }

    /// Replaces the text of a row.
    pub(super) fn replace(&mut self, row: u32, old: &[u8], new: &[u8]) {
        for (_, word) in words(old) {
            if let Some(place) = self.words.place(word) {
                self.words.remove(place, row);
            }
        }
        self.add(row, new);
    }

    fn add(&mut self, row: u32, text: &[u8]) {
        let (block, _) = split(row);
        // The start of the text that is not yet covered by a common word or a signature.
        let mut from = 0;
        for (begin, word) in words(text) {
            let Some(place) = self.words.place(word) else { continue };
            self.words.add(place, row);
            // Includes the last trigram that begins before the word.
            let until = (begin + TRIGRAM - 1).min(text.len());
            self.signatures.add(block, text.get(from..until).unwrap_or_default());
            from = begin + (word.len() + 1).saturating_sub(TRIGRAM);
        }
        self.signatures.add(block, text.get(from..).unwrap_or_default());
    }

    /// The rows of `within` that contain a text, and those that may.
    pub(super) fn lookup(&self, text: &[u8], within: &Bitmap) -> Lookup {
        let mut found = Lookup { matching: Bitmap::empty_like(within), candidates: within.clone() };
        let trigrams = text.windows(TRIGRAM);
        let between = trigrams.filter(|trigram| !trigram.iter().all(|byte| is_word_byte(*byte)));
        if let Some(blocks) = self.signatures.blocks(between) {
            found.candidates.mask(|word| block_mask(&blocks, word));
        }
        for part in parts(text) {
            let common = self.words.matching(&part, within);
            let blocks = self.signatures.blocks(part.bytes.windows(TRIGRAM));
            // The whole text lies within one word, so every row with such a common word matches.
            if part.bytes.len() == text.len() {
                found.matching = within.clone();
                found.matching.mask(|word| common.word(word));
                found.candidates.subtract(&common);
            }
            if let Some(blocks) = blocks {
                found.candidates.mask(|word| common.word(word) | block_mask(&blocks, word));
            }
        }
        found
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.bytes() + self.signatures.bytes()
    }
}

/// All rows of a block that is in the set; no row of another block.
fn block_mask(blocks: &Bitmap, number: usize) -> u64 {
    if blocks.contains(number as u32) { u64::MAX } else { 0 }
}
