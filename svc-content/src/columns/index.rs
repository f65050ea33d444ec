//! What tells which rows of a column may hold a text, so that few are read.
//!
//! The rows of common words are kept (`words.rs`). What else stands in texts, the trigrams of all other words and those in
//! which something other than a word stands, is in signatures of blocks (`signatures.rs`): a row that holds what is looked
//! for has each word of it among the common ones, or its block has the trigrams of that word.

use super::bits::{Bits, LANES, split};
use super::blocks::Blocks;
use super::signatures::{Signatures, TRIGRAM};
use super::words::{Words, is_of_word, parts, words};

/// Rows that are read to tell which words are common.
const SAMPLED: usize = 16_384;

#[derive(Debug, Clone)]
pub(super) struct Index {
    words: Words,
    signatures: Signatures,
}

/// What an index tells of rows.
#[derive(Debug)]
pub(super) struct Told {
    /// These hold the text.
    pub(super) holding: Bits,
    /// Of the others, these may hold it.
    pub(super) possible: Bits,
}

impl Index {
    /// Of all rows; 2 to the power of `exponent` trigrams are told apart.
    pub(super) fn of(texts: &Blocks<u8>, exponent: u32) -> Self {
        let rows = texts.rows();
        let every = (rows as usize / SAMPLED).max(1);
        let sample = (0..rows).step_by(every).map(|row| texts.list(row));
        let signatures = Signatures::new(exponent, (rows as usize).div_ceil(LANES));
        let mut index = Self { words: Words::common_in(sample, rows), signatures };
        for row in 0..rows {
            index.add(row, texts.list(row));
        }
        index
    }

    /// Takes a row for what its text is now.
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
        // Where the first trigram begins that is not in a common word, as far as is known.
        let mut from = 0;
        for (begin, word) in words(text) {
            let Some(place) = self.words.place(word) else { continue };
            self.words.add(place, row);
            // Up to the trigram that begins right before the word.
            let until = (begin + TRIGRAM - 1).min(text.len());
            self.signatures.add(block, text.get(from..until).unwrap_or_default());
            from = begin + (word.len() + 1).saturating_sub(TRIGRAM);
        }
        self.signatures.add(block, text.get(from..).unwrap_or_default());
    }

    /// Which of some rows hold a text, and which may.
    pub(super) fn tell(&self, text: &[u8], within: &Bits) -> Told {
        let mut told = Told { holding: Bits::none_of(within), possible: within.clone() };
        let trigrams = text.windows(TRIGRAM);
        let between = trigrams.filter(|trigram| !trigram.iter().all(|byte| is_of_word(*byte)));
        if let Some(blocks) = self.signatures.blocks(between) {
            told.possible.mask(|word| rows_of(&blocks, word));
        }
        for part in parts(text) {
            let common = self.words.holding(&part, within);
            let blocks = self.signatures.blocks(part.bytes.windows(TRIGRAM));
            // What stands within one word is held by whoever holds the word.
            if part.bytes.len() == text.len() {
                told.holding = within.clone();
                told.holding.mask(|word| common.word(word));
                told.possible.subtract(&common);
            }
            if let Some(blocks) = blocks {
                told.possible.mask(|word| common.word(word) | rows_of(&blocks, word));
            }
        }
        told
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.bytes() + self.signatures.bytes()
    }
}

/// All rows of a block that is among some; none of another.
fn rows_of(blocks: &Bits, number: usize) -> u64 {
    if blocks.has(number as u32) { u64::MAX } else { 0 }
}
