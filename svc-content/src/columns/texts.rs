//! Folded texts, one for each row, in which a part is looked for.
//!
//! Of many, an index tells which rows hold the part or may hold it, and those that may are read.

use memchr::memmem::Finder;

use super::bits::{Bits, LANES, lanes};
use super::blocks::Blocks;
use super::index::Index;

/// So many bytes of texts are read sooner than an index of them.
const INDEXED_FROM: usize = 128 * 1_024;
/// The words of texts that are so many times as many as they were may be others.
const GROWN: usize = 4;
/// So few rows are read sooner than the index.
const FEW_ROWS: u64 = 64;
/// With fewer rows asked for in a block, each is looked at by itself.
const FEW_IN_BLOCK: u32 = 16;
/// Trigrams of words that are told apart, as the logarithm of their number.
const OF_WORDS: u32 = 13;
/// Those of numbers and dates, which have few letters.
const OF_NUMBERS: u32 = 11;

#[derive(Debug, Clone)]
pub(super) struct Texts {
    texts: Blocks<u8>,
    /// How many bytes all of them have.
    len: usize,
    index: Option<Index>,
    /// How many they had when the index was made.
    indexed: usize,
    exponent: u32,
}

impl Texts {
    /// Texts made of words.
    pub(super) const fn of_words() -> Self {
        Self::new(OF_WORDS)
    }

    /// Numbers and dates as they are written.
    pub(super) const fn of_numbers() -> Self {
        Self::new(OF_NUMBERS)
    }

    const fn new(exponent: u32) -> Self {
        Self { texts: Blocks::new(), len: 0, index: None, indexed: 0, exponent }
    }

    /// The text of a row; empty for none.
    pub(super) fn text(&self, row: u32) -> &[u8] {
        self.texts.list(row)
    }

    pub(super) fn set(&mut self, row: u32, text: &str) {
        let (old, new) = (self.texts.list(row), text.as_bytes());
        if old == new {
            return;
        }
        if let Some(index) = &mut self.index {
            index.replace(row, old, new);
        }
        self.len = self.len + new.len() - old.len();
        self.texts.set(row, new);
    }

    /// Makes the index where there are so many texts by now that it pays, or far more than when it was made. Parts are found
    /// without it, too.
    pub(super) fn index(&mut self) {
        let due = if self.index.is_some() { self.indexed.saturating_mul(GROWN) } else { INDEXED_FROM };
        if self.len < due {
            return;
        }
        // The one that was there need not stand beside the new one.
        self.index = None;
        (self.index, self.indexed) = (Some(Index::of(&self.texts, self.exponent)), self.len);
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
        let finder = Finder::new(part.as_bytes());
        let Some(index) = self.index.as_ref().filter(|_| within.count() > FEW_ROWS) else {
            let mut found = Bits::none_of(within);
            self.read(&finder, within, &mut found);
            return found;
        };
        let told = index.tell(part.as_bytes(), within);
        let mut found = told.holding;
        self.read(&finder, &told.possible, &mut found);
        found
    }

    /// Adds those of some rows whose text holds what is looked for, by reading them.
    fn read(&self, finder: &Finder<'_>, within: &Bits, found: &mut Bits) {
        for (number, rows) in within.words() {
            found.add_word(number, self.holding_in(number, finder, rows));
        }
    }

    fn holding_in(&self, number: usize, finder: &Finder<'_>, rows: u64) -> u64 {
        let Some(block) = self.texts.block(number) else { return 0 };
        if rows.count_ones() < FEW_IN_BLOCK {
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
            // What begins later in this text ends past its end, too, where this one does.
            from = end;
        }
        hits & rows
    }

    pub(super) fn bytes(&self) -> usize {
        self.texts.bytes() + self.index.as_ref().map_or(0, Index::bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MANY: u32 = 18_000;

    #[test]
    fn a_part_is_found_where_it_stands() {
        let mut texts = Texts::of_words();
        let mut all = Bits::default();
        let text =
            |row: u32| format!("row {row} of words{}", if row % 1_000 == 7 { " särskild" } else { "" });
        for row in 0..MANY {
            texts.set(row, &text(row));
            all.add(row);
        }
        texts.index();
        assert!(texts.index.is_some());
        texts.set(7, "");
        texts.set(8, "särskild too");
        for part in ["särskild", "row 17", "0 of", "words", "rdsrow", "zebra", "o", "17", "ords", " ", "s s"]
        {
            let expected: Vec<u32> = (0..MANY)
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

    #[test]
    fn an_index_is_made_anew_when_there_is_far_more() {
        let mut texts = Texts::of_words();
        let fill = |texts: &mut Texts, rows: std::ops::Range<u32>| {
            rows.for_each(|row| texts.set(row, "words that are in all of these texts"));
            texts.index();
        };
        fill(&mut texts, 0..100);
        assert!(texts.index.is_none());
        fill(&mut texts, 100..4_000);
        let then = texts.indexed;
        assert!(texts.index.is_some() && then == texts.len);
        fill(&mut texts, 4_000..8_000);
        assert_eq!(texts.indexed, then);
        fill(&mut texts, 8_000..17_000);
        assert_eq!(texts.indexed, texts.len);
    }

    /// Pieces of which texts and what is looked for in them are made, so that words are common and rare, and end in each other.
    fn made_of(pieces: std::ops::Range<usize>) -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            prop::sample::select(vec!["quorum", "retry", "rum", "re", "q", "å", "7", "särskild"]),
            prop::sample::select(vec![" ", " ", ",", "-", ". "]),
            prop::sample::select(vec!["a", "zz", "4711", "words"]),
        ];
        prop::collection::vec(piece, pieces).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn an_index_finds_what_reading_finds(
            texts in prop::collection::vec(made_of(0..9), 130..400),
            changes in prop::collection::vec((any::<prop::sample::Index>(), made_of(0..9)), 0..40),
            looked_for in prop::collection::vec(made_of(1..4), 1..12),
            left_out in 2..5_u32,
        ) {
            let mut model = texts;
            let mut indexed = Texts::of_words();
            for (row, text) in model.iter().enumerate() {
                indexed.set(row as u32, text);
            }
            indexed.index = Some(Index::of(&indexed.texts, OF_NUMBERS));
            for (row, text) in changes {
                let row = row.index(model.len());
                indexed.set(row as u32, &text);
                model[row] = text;
            }
            let mut within = Bits::default();
            (0..model.len() as u32).filter(|row| !row.is_multiple_of(left_out)).for_each(|row| within.add(row));
            for part in looked_for.iter().filter(|part| !part.is_empty()) {
                let expected: Vec<u32> =
                    within.rows().filter(|row| model[*row as usize].contains(part.as_str())).collect();
                prop_assert_eq!(indexed.holding(part, &within).rows().collect::<Vec<_>>(), expected, "{}", part);
            }
        }
    }
}
