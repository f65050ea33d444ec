//! The words that very many rows of a column hold, each with the rows that hold it.
//!
//! A word of which every block of 64 rows has one is not found by signatures of blocks. Texts are made of few such words,
//! so their rows are kept as bits: what is looked for within one of them is found without reading a text.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::RangeInclusive;

use memchr::memmem;

use super::bits::Bits;

/// So many different words are counted, those that are met first: a text may be made of words that no other one has.
const MOST_COUNTED: usize = 65_536;
/// So many words are kept at most: in 1/8 byte of a row each.
const MOST: usize = 256;
/// What fewer than one of so many rows hold is found by signatures.
const ONE_OF: usize = 128;
/// How many bytes a kept word has. Nobody can tell by a part of two.
const LENGTHS: RangeInclusive<usize> = 3..=32;

#[derive(Debug, Clone)]
pub(super) struct Words {
    places: HashMap<Box<[u8]>, usize>,
    /// By the places of the words.
    rows: Vec<Bits>,
}

/// What has to stand within one word when a text is looked for.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub(super) bytes: &'a [u8],
    /// The word begins with it.
    is_begin: bool,
    /// The word ends with it.
    is_end: bool,
}

impl Part<'_> {
    fn is_in(&self, word: &[u8]) -> bool {
        match (self.is_begin, self.is_end) {
            (true, true) => word == self.bytes,
            (true, false) => word.starts_with(self.bytes),
            (false, true) => word.ends_with(self.bytes),
            (false, false) => memmem::find(word, self.bytes).is_some(),
        }
    }
}

impl Words {
    /// The common ones of these texts, with room for so many rows, of which none holds one yet.
    pub(super) fn common_in<'a>(texts: impl Iterator<Item = &'a [u8]>, rows: u32) -> Self {
        let (mut counts, mut looked_at): (HashMap<&[u8], usize>, usize) = (HashMap::new(), 0);
        for text in texts {
            looked_at += 1;
            for (_, word) in words(text).filter(|(_, word)| LENGTHS.contains(&word.len())) {
                let is_full = counts.len() >= MOST_COUNTED;
                match counts.entry(word) {
                    Entry::Occupied(mut count) => *count.get_mut() += 1,
                    Entry::Vacant(_) if is_full => {}
                    Entry::Vacant(first) => _ = first.insert(1),
                }
            }
        }
        let counted = counts.into_iter().map(|(word, count)| (count, word));
        let mut common: Vec<(usize, &[u8])> =
            counted.filter(|(count, _)| *count * ONE_OF >= looked_at).collect();
        common.sort_unstable_by(|one, other| other.cmp(one));
        common.truncate(MOST);
        let words = common.iter().enumerate();
        let places: HashMap<Box<[u8]>, usize> =
            words.map(|(place, (_, word))| (Box::from(*word), place)).collect();
        Self { rows: vec![Bits::for_rows(rows); places.len()], places }
    }

    /// The place of a word; `None` for one that is not common.
    pub(super) fn place(&self, word: &[u8]) -> Option<usize> {
        self.places.get(word).copied()
    }

    /// Notes that a row holds the word at a place.
    pub(super) fn add(&mut self, place: usize, row: u32) {
        if let Some(rows) = self.rows.get_mut(place) {
            rows.add(row);
        }
    }

    /// Notes that a row holds it no more.
    pub(super) fn remove(&mut self, place: usize, row: u32) {
        if let Some(rows) = self.rows.get_mut(place) {
            rows.remove(row);
        }
    }

    /// The rows that hold a word in which the part stands, as a set as large as another.
    pub(super) fn holding(&self, part: &Part<'_>, like: &Bits) -> Bits {
        let mut found = Bits::none_of(like);
        for (word, place) in &self.places {
            if part.is_in(word)
                && let Some(rows) = self.rows.get(*place)
            {
                found.unite(rows);
            }
        }
        found
    }

    pub(super) fn bytes(&self) -> usize {
        const ENTRY: usize = size_of::<(Box<[u8]>, usize)>() + 1;
        let rows: usize = self.rows.iter().map(Bits::bytes).sum();
        let words: usize = self.places.keys().map(|word| word.len()).sum();
        rows + words + self.places.capacity() * ENTRY + self.rows.capacity() * size_of::<Bits>()
    }
}

/// Whether a byte is of a word; all letters beyond ASCII are.
pub(super) const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

/// The words of a text, each with where it begins.
pub(super) fn words(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut next = 0;
    let pieces = text.split(|byte| !is_of_word(*byte)).map(move |piece| {
        let begin = next;
        next += piece.len() + 1;
        (begin, piece)
    });
    pieces.filter(|(_, piece)| !piece.is_empty())
}

/// What of a text that is looked for has to stand within one word each.
pub(super) fn parts(text: &[u8]) -> Vec<Part<'_>> {
    let found = words(text).map(|(begin, bytes)| {
        let end = begin + bytes.len();
        Part { bytes, is_begin: begin > 0, is_end: end < text.len() }
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
            |text: &str, place: usize, word: &str| parts(text.as_bytes())[place].is_in(word.as_bytes());
        assert!(is_in("uor", 0, "quorum") && !is_in("uorr", 0, "quorum"));
        assert!(is_in("rum re", 0, "quorum") && !is_in("quo re", 0, "quorum"));
        assert!(is_in("rum re", 1, "retry") && !is_in("rum try", 1, "retry"));
        assert!(is_in("a quorum b", 1, "quorum") && !is_in("a quorum b", 1, "quorums"));
    }

    #[test]
    fn common_words_are_those_of_many_texts() {
        let texts: Vec<String> = (0..1_000).map(|number| format!("note {number:04} is md")).collect();
        let mut common = Words::common_in(texts.iter().map(String::as_bytes), 64);
        assert_eq!(
            (common.place(b"note"), common.place(b"0007"), common.place(b"md")),
            (Some(0), None, None)
        );
        common.add(0, 70);
        common.add(0, 3);
        common.remove(0, 70);
        let mut like = Bits::default();
        like.add(100);
        let part = &parts(b"ot")[0];
        assert_eq!(common.holding(part, &like).rows().collect::<Vec<_>>(), [3]);
    }
}
