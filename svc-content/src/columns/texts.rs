//! Case-folded texts, one per row, with substring search.
//!
//! Large columns have an index that narrows a search to candidate rows, whose texts are then scanned.

use memchr::memmem::Finder;

use super::bitmap::{Bitmap, LANES, lanes};
use super::blocks::Blocks;
use super::index::{Index, Lookup};

/// Below this size of all texts a scan is cheaper than the index.
const MIN_INDEXED_BYTES: usize = 128 * 1_024;
/// The index is rebuilt when the texts have grown by this factor, as other words may be common by then.
const REBUILD_GROWTH: usize = 4;
/// Up to this many rows a scan is cheaper than the index.
const MAX_SCANNED_ROWS: u64 = 64;
/// With fewer selected rows in a block, each text is searched by itself instead of the whole block.
const SPARSE_BLOCK_ROWS: u32 = 16;
/// The binary logarithm of the number of trigram hashes, for texts made of words.
const WORDS_EXPONENT: u32 = 13;
/// The same for numbers and dates, which have a small alphabet.
const NUMBERS_EXPONENT: u32 = 11;

#[derive(Debug, Clone)]
pub(super) struct Texts {
    texts: Blocks<u8>,
    /// Bytes of all texts.
    len: usize,
    index: Option<Index>,
    /// Bytes of all texts when the index was built.
    indexed_len: usize,
    exponent: u32,
}

impl Texts {
    /// Texts made of words.
    pub(super) const fn of_words() -> Self {
        Self::new(WORDS_EXPONENT)
    }

    /// Numbers and dates as they are written.
    pub(super) const fn of_numbers() -> Self {
        Self::new(NUMBERS_EXPONENT)
    }

    const fn new(exponent: u32) -> Self {
        Self { texts: Blocks::new(), len: 0, index: None, indexed_len: 0, exponent }
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

    /// Builds the index once the texts are large enough, and rebuilds it when they have outgrown it. Searches work without it,
    /// too.
    pub(super) fn update_index(&mut self) {
        let due = if self.index.is_some() {
            self.indexed_len.saturating_mul(REBUILD_GROWTH)
        } else {
            MIN_INDEXED_BYTES
        };
        if self.len < due {
            return;
        }
        // Free the old index first, so that both are never in memory at once.
        self.index = None;
        (self.index, self.indexed_len) = (Some(Index::of(&self.texts, self.exponent)), self.len);
    }

    /// The rows of `within` that have a text.
    pub(super) fn present(&self, within: &Bitmap) -> Bitmap {
        let mut found = Bitmap::empty_like(within);
        for (number, rows) in within.words() {
            let Some(block) = self.texts.block(number) else { continue };
            let present = lanes(rows).filter(|lane| !block.list(*lane as usize).is_empty());
            found.add_word(number, present.fold(0, |bits, lane| bits | 1 << lane));
        }
        found
    }

    /// The rows of `within` whose text contains a part.
    pub(super) fn matching(&self, part: &str, within: &Bitmap) -> Bitmap {
        if part.is_empty() {
            return self.present(within);
        }
        let finder = Finder::new(part.as_bytes());
        let Some(index) = self.index.as_ref().filter(|_| within.count() > MAX_SCANNED_ROWS) else {
            let mut found = Bitmap::empty_like(within);
            self.scan(&finder, within, &mut found);
            return found;
        };
        let Lookup { matching: mut found, candidates } = index.lookup(part.as_bytes(), within);
        self.scan(&finder, &candidates, &mut found);
        found
    }

    /// Adds the rows of `within` whose text contains the needle, by scanning the texts.
    fn scan(&self, finder: &Finder<'_>, within: &Bitmap, found: &mut Bitmap) {
        for (number, rows) in within.words() {
            found.add_word(number, self.matching_in_block(number, finder, rows));
        }
    }

    fn matching_in_block(&self, number: usize, finder: &Finder<'_>, rows: u64) -> u64 {
        let Some(block) = self.texts.block(number) else { return 0 };
        if rows.count_ones() < SPARSE_BLOCK_ROWS {
            let hits = lanes(rows).filter(|lane| finder.find(block.list(*lane as usize)).is_some());
            return hits.fold(0, |bits, lane| bits | 1 << lane);
        }
        let (mut hits, mut from) = (0_u64, 0);
        while let Some(place) = block.items().get(from..).and_then(|rest| finder.find(rest)) {
            let place = from + place;
            let (lane, end) = block.owner(place);
            // A match that crosses the end of a row's text is none.
            let is_whole = place + finder.needle().len() <= end;
            hits |= u64::from(is_whole) << (lane % LANES);
            // If this match crosses the end, so does any later one in the same text.
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
        let mut all = Bitmap::default();
        let text =
            |row: u32| format!("row {row} of words{}", if row % 1_000 == 7 { " särskild" } else { "" });
        for row in 0..MANY {
            texts.set(row, &text(row));
            all.add(row);
        }
        texts.update_index();
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
            assert_eq!(texts.matching(part, &all).rows().collect::<Vec<_>>(), expected, "{part}");
        }
        let mut few = Bitmap::empty_like(&all);
        few.add(8);
        few.add(1_007);
        few.add(9);
        assert_eq!(texts.matching("särskild", &few).rows().collect::<Vec<_>>(), [8, 1_007]);
        assert_eq!(texts.matching("", &few).count(), 3);
    }

    #[test]
    fn an_index_is_made_anew_when_there_is_far_more() {
        let mut texts = Texts::of_words();
        let fill = |texts: &mut Texts, rows: std::ops::Range<u32>| {
            rows.for_each(|row| texts.set(row, "words that are in all of these texts"));
            texts.update_index();
        };
        fill(&mut texts, 0..100);
        assert!(texts.index.is_none());
        fill(&mut texts, 100..4_000);
        let then = texts.indexed_len;
        assert!(texts.index.is_some() && then == texts.len);
        fill(&mut texts, 4_000..8_000);
        assert_eq!(texts.indexed_len, then);
        fill(&mut texts, 8_000..17_000);
        assert_eq!(texts.indexed_len, texts.len);
    }

    /// Texts and search texts from shared fragments, so that words are common and rare, and suffixes of each other.
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
            indexed.index = Some(Index::of(&indexed.texts, NUMBERS_EXPONENT));
            for (row, text) in changes {
                let row = row.index(model.len());
                indexed.set(row as u32, &text);
                model[row] = text;
            }
            let mut within = Bitmap::default();
            (0..model.len() as u32).filter(|row| !row.is_multiple_of(left_out)).for_each(|row| within.add(row));
            for part in looked_for.iter().filter(|part| !part.is_empty()) {
                let expected: Vec<u32> =
                    within.rows().filter(|row| model[*row as usize].contains(part.as_str())).collect();
                prop_assert_eq!(indexed.matching(part, &within).rows().collect::<Vec<_>>(), expected, "{}", part);
            }
        }
    }
}
