//! Folded texts, one for each row, in which a part is looked for.
//!
//! Of each block of 64 rows there are signatures: a set of hashed trigrams of its texts. They lie by trigram, so that the
//! blocks that may hold a word are an intersection of a few bit vectors. What a text held before it was replaced stays in
//! the signature of its block, which makes the block looked at in vain and nothing worse.

use memchr::memmem::Finder;

use super::bits::{Bits, LANES, lanes, split};
use super::blocks::Blocks;

/// Hashed trigrams that are told apart.
const SIGNATURE_BITS: usize = 8_192;
/// Fewer rows are read sooner than signatures of them.
const SIGNED_FROM: u32 = 16_384;
/// With fewer rows asked for in a block, each is looked at by itself.
const FEW: u32 = 4;
const TRIGRAM: usize = 3;

#[derive(Debug, Clone, Default)]
pub(super) struct Texts {
    texts: Blocks<u8>,
    signatures: Option<Signatures>,
    is_signed: bool,
}

impl Texts {
    /// Texts among which words are looked for, so that signatures of many pay.
    pub(super) fn signed() -> Self {
        Self { is_signed: true, ..Self::default() }
    }

    /// The text of a row; empty for none.
    pub(super) fn text(&self, row: u32) -> &[u8] {
        self.texts.list(row)
    }

    pub(super) fn set(&mut self, row: u32, text: &str) {
        self.texts.set(row, text.as_bytes());
        if !self.is_signed || row < SIGNED_FROM && self.signatures.is_none() {
            return;
        }
        match &mut self.signatures {
            Some(signatures) => signatures.add(split(row).0, text.as_bytes()),
            None => {
                let mut signatures = Signatures::default();
                for row in 0..=row {
                    signatures.add(split(row).0, self.texts.list(row));
                }
                self.signatures = Some(signatures);
            }
        }
    }

    /// Those of some rows that have a text.
    pub(super) fn present(&self, within: &Bits) -> Bits {
        let mut found = Bits::none_of(within);
        for (number, rows) in within.words() {
            let Some(block) = self.texts.block(number) else { continue };
            let present = lanes(rows).filter(|lane| !block.list(*lane as usize).is_empty());
            found.add_word(number, present.fold(0, |bits, lane| bits | 1 << lane));
        }
        found
    }

    /// Those of some rows whose text holds a part.
    pub(super) fn holding(&self, part: &str, within: &Bits) -> Bits {
        if part.is_empty() {
            return self.present(within);
        }
        let mut found = Bits::none_of(within);
        let finder = Finder::new(part.as_bytes());
        let candidates = self.signatures.as_ref().and_then(|all| all.candidates(part.as_bytes()));
        for (number, rows) in within.words() {
            if candidates.as_ref().is_some_and(|candidates| !is_set(candidates, number)) {
                continue;
            }
            found.add_word(number, self.holding_in(number, &finder, rows));
        }
        found
    }

    fn holding_in(&self, number: usize, finder: &Finder<'_>, rows: u64) -> u64 {
        let Some(block) = self.texts.block(number) else { return 0 };
        if rows.count_ones() < FEW {
            let hits = lanes(rows).filter(|lane| finder.find(block.list(*lane as usize)).is_some());
            return hits.fold(0, |bits, lane| bits | 1 << lane);
        }
        let (mut hits, mut from) = (0_u64, 0);
        while let Some(place) = block.items().get(from..).and_then(|rest| finder.find(rest)) {
            let place = from + place;
            let (lane, end) = block.owner(place);
            // One that reaches into the next row's text is none.
            let is_whole = place + finder.needle().len() <= end;
            hits |= u64::from(is_whole) << (lane % LANES);
            from = if is_whole { end } else { place + 1 };
        }
        hits & rows
    }

    pub(super) fn bytes(&self) -> usize {
        self.texts.bytes() + self.signatures.as_ref().map_or(0, Signatures::bytes)
    }
}

/// For each hashed trigram a bit of each block.
#[derive(Debug, Clone, Default)]
struct Signatures {
    /// Words of a bit vector.
    width: usize,
    words: Vec<u64>,
}

impl Signatures {
    fn add(&mut self, block: usize, text: &[u8]) {
        let (word, lane) = (block / LANES, block % LANES);
        if word >= self.width {
            self.widen((word + 1).max(self.width * 5 / 4));
        }
        for trigram in text.windows(TRIGRAM) {
            let place = hash(trigram) * self.width + word;
            if let Some(word) = self.words.get_mut(place) {
                *word |= 1 << lane;
            }
        }
    }

    fn widen(&mut self, width: usize) {
        let mut words = vec![0; SIGNATURE_BITS * width];
        if self.width > 0 {
            for (wide, narrow) in words.chunks_exact_mut(width).zip(self.words.chunks_exact(self.width)) {
                for (to, from) in wide.iter_mut().zip(narrow) {
                    *to = *from;
                }
            }
        }
        (self.width, self.words) = (width, words);
    }

    /// The blocks that may hold a part; `None` for all, where it is too short to say.
    fn candidates(&self, part: &[u8]) -> Option<Vec<u64>> {
        let mut found: Option<Vec<u64>> = None;
        for trigram in part.windows(TRIGRAM) {
            let from = hash(trigram) * self.width;
            let vector = self.words.get(from..from + self.width).unwrap_or_default();
            match &mut found {
                None => found = Some(vector.to_vec()),
                Some(found) => found.iter_mut().zip(vector).for_each(|(one, other)| *one &= other),
            }
        }
        found
    }

    fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

fn is_set(words: &[u64], place: usize) -> bool {
    words.get(place / LANES).is_some_and(|word| word >> (place % LANES) & 1 == 1)
}

/// Fibonacci hashing of three bytes.
fn hash(trigram: &[u8]) -> usize {
    const SHIFT: u32 = u32::BITS - SIGNATURE_BITS.trailing_zeros();
    let number = trigram.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    (number.wrapping_mul(0x9E37_79B1) >> SHIFT) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_where_it_stands() {
        let mut texts = Texts::signed();
        let mut all = Bits::default();
        let rows = SIGNED_FROM + 2_000;
        let text =
            |row: u32| format!("row {row} of words{}", if row % 1_000 == 7 { " särskild" } else { "" });
        for row in 0..rows {
            texts.set(row, &text(row));
            all.add(row);
        }
        assert!(texts.signatures.is_some());
        texts.set(7, "");
        texts.set(8, "särskild too");
        for part in ["särskild", "row 17", "0 of", "words", "rdsrow", "zebra", "o"] {
            let expected: Vec<u32> = (0..rows)
                .filter(|row| match row {
                    7 => false,
                    8 => "särskild too".contains(part),
                    row => text(*row).contains(part),
                })
                .collect();
            assert_eq!(texts.holding(part, &all).rows().collect::<Vec<_>>(), expected, "{part}");
        }
        let mut few = Bits::none_of(&all);
        few.add(8);
        few.add(1_007);
        few.add(9);
        assert_eq!(texts.holding("särskild", &few).rows().collect::<Vec<_>>(), [8, 1_007]);
        assert_eq!(texts.holding("", &few).count(), 3);
    }
}
