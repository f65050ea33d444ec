//! An inverted index of the most frequent words of a column, with a bitmap of rows as the posting list of each.
//!
//! Block signatures do not filter by a word that occurs in every block of 64 rows. Texts contain few such words, so each gets
//! a bitmap, and a search within one of them is answered without reading a text.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::RangeInclusive;

use memchr::memmem;

use super::bitmap::Bitmap;

/// Distinct words that are counted, in order of first occurrence. It bounds memory when most words are unique.
const MAX_COUNTED: usize = 65_536;
/// The maximum number of common words; the bitmap of each takes 1/8 byte per row.
const MAX_WORDS: usize = 256;
/// A word is common if at least one row in this many contains it. Signatures find rarer ones.
const COMMON_ROW_RATIO: usize = 128;
/// Lengths in bytes of indexed words. Fragments of two bytes match too much to filter by.
const WORD_BYTES: RangeInclusive<usize> = 3..=32;

#[derive(Debug, Clone)]
pub(super) struct CommonWords {
    places: HashMap<Box<[u8]>, usize>,
    /// The posting list of each word, by the word's place.
    rows: Vec<Bitmap>,
}

/// A fragment of a search text that must occur within one word.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub(super) bytes: &'a [u8],
    /// Whether it must be a prefix of the word.
    is_prefix: bool,
    /// Whether it must be a suffix of the word.
    is_suffix: bool,
}

impl Part<'_> {
    fn matches(&self, word: &[u8]) -> bool {
        match (self.is_prefix, self.is_suffix) {
            (true, true) => word == self.bytes,
            (true, false) => word.starts_with(self.bytes),
            (false, true) => word.ends_with(self.bytes),
            (false, false) => memmem::find(word, self.bytes).is_some(),
        }
    }
}

impl CommonWords {
    /// Selects the common words of sample texts; posting lists are empty, with capacity for `rows` rows.
    pub(super) fn common_in<'a>(texts: impl Iterator<Item = &'a [u8]>, rows: u32) -> Self {
        let (mut counts, mut sampled): (HashMap<&[u8], usize>, usize) = (HashMap::new(), 0);
        for text in texts {
            sampled += 1;
            for (_, word) in words(text).filter(|(_, word)| WORD_BYTES.contains(&word.len())) {
                let is_full = counts.len() >= MAX_COUNTED;
                match counts.entry(word) {
                    Entry::Occupied(mut count) => *count.get_mut() += 1,
                    Entry::Vacant(_) if is_full => {}
                    Entry::Vacant(first) => _ = first.insert(1),
                }
            }
        }
        let counted = counts.into_iter().map(|(word, count)| (count, word));
        let mut common: Vec<(usize, &[u8])> =
            counted.filter(|(count, _)| *count * COMMON_ROW_RATIO >= sampled).collect();
        common.sort_unstable_by(|one, other| other.cmp(one));
        common.truncate(MAX_WORDS);
        let words = common.iter().enumerate();
        let places: HashMap<Box<[u8]>, usize> =
            words.map(|(place, (_, word))| (Box::from(*word), place)).collect();
        Self { rows: vec![Bitmap::with_capacity(rows); places.len()], places }
    }

    /// The place of a word; `None` if it is not common.
    pub(super) fn place(&self, word: &[u8]) -> Option<usize> {
        self.places.get(word).copied()
    }

    /// Adds a row to the posting list of the word at a place.
    pub(super) fn add(&mut self, place: usize, row: u32) {
        if let Some(rows) = self.rows.get_mut(place) {
            rows.add(row);
        }
    }

    /// Removes a row from the posting list of the word at a place.
    pub(super) fn remove(&mut self, place: usize, row: u32) {
        if let Some(rows) = self.rows.get_mut(place) {
            rows.remove(row);
        }
    }

    /// The rows that contain a common word which the part matches; the result has the capacity of `like`.
    pub(super) fn matching(&self, part: &Part<'_>, like: &Bitmap) -> Bitmap {
        let mut found = Bitmap::empty_like(like);
        for (word, place) in &self.places {
            if part.matches(word)
                && let Some(rows) = self.rows.get(*place)
            {
                found.union_with(rows);
            }
        }
        found
    }

    pub(super) fn bytes(&self) -> usize {
        const ENTRY: usize = size_of::<(Box<[u8]>, usize)>() + 1;
        let rows: usize = self.rows.iter().map(Bitmap::bytes).sum();
        let words: usize = self.places.keys().map(|word| word.len()).sum();
        rows + words + self.places.capacity() * ENTRY + self.rows.capacity() * size_of::<Bitmap>()
    }
}

/// Whether a byte belongs to a word; every byte of a non-ASCII character does.
pub(super) const fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

/// The words of a text, each with its offset.
pub(super) fn words(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut next = 0;
    let pieces = text.split(|byte| !is_word_byte(*byte)).map(move |piece| {
        let begin = next;
        next += piece.len() + 1;
        (begin, piece)
    });
    pieces.filter(|(_, piece)| !piece.is_empty())
}

/// The fragments of a search text, each of which must occur within one word.
pub(super) fn parts(text: &[u8]) -> Vec<Part<'_>> {
    let found = words(text).map(|(begin, bytes)| {
        let end = begin + bytes.len();
        Part { bytes, is_prefix: begin > 0, is_suffix: end < text.len() }
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_with_their_places() {
        let told: Vec<(usize, &str)> = words(" ab, särskild-7x!".as_bytes())
            .map(|(begin, word)| (begin, std::str::from_utf8(word).unwrap()))
            .collect();
        assert_eq!(told, [(1, "ab"), (5, "särskild"), (15, "7x")]);
        assert_eq!(words(b"--").count(), 0);
    }

    #[test]
    fn parts_stand_where_the_text_lets_them() {
        let is_in =
            |text: &str, place: usize, word: &str| parts(text.as_bytes())[place].matches(word.as_bytes());
        assert!(is_in("uor", 0, "quorum") && !is_in("uorr", 0, "quorum"));
        assert!(is_in("rum re", 0, "quorum") && !is_in("quo re", 0, "quorum"));
        assert!(is_in("rum re", 1, "retry") && !is_in("rum try", 1, "retry"));
        assert!(is_in("a quorum b", 1, "quorum") && !is_in("a quorum b", 1, "quorums"));
    }

    #[test]
    fn common_words_are_those_of_many_texts() {
        let texts: Vec<String> = (0..1_000).map(|number| format!("note {number:04} is md")).collect();
        let mut common = CommonWords::common_in(texts.iter().map(String::as_bytes), 64);
        assert_eq!(
            (common.place(b"note"), common.place(b"0007"), common.place(b"md")),
            (Some(0), None, None)
        );
        common.add(0, 70);
        common.add(0, 3);
        common.remove(0, 70);
        let mut like = Bitmap::default();
        like.add(100);
        let part = &parts(b"ot")[0];
        assert_eq!(common.matching(part, &like).rows().collect::<Vec<_>>(), [3]);
    }
}
