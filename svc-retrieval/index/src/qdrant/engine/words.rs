//! The words of chunks and searches in Qdrant's terms: sparse vectors for BM25, and text for phrases.
//!
//! A dimension is a word. Its weight in a chunk, from term frequency and chunk length, is computed here; the idf comes from Qdrant
//! (`modifier: idf`, ln((N − n + 0.5)/(n + 0.5) + 1) over the corpus of the search, as in the embedded index). The product of both,
//! summed over the words of a search, is BM25.
//!
//! Two things differ from the embedded index. The average length is a constant ([`AVERAGE_LENGTH`]): a stored weight cannot follow a
//! moving average, and chunks are cut to a size. And a dimension is a 32-bit hash: of a million different words, one in 4 300
//! collides with another, which adds a little to the score of chunks that contain the other.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::tuning::{AVERAGE_LENGTH, B, K1};
use crate::words::{AnalysedQuery, MIN_PREFIX_CHARS, Phrase, SearchableText, Stems, Token};
use crate::{IndexedChunk, IndexedDocument};

/// Placeholder for a position without a word, so that only adjacent words match a phrase.
pub(super) const GAP: &str = "_";
/// A boundary that no phrase may cross.
pub(super) const WALL: &str = "|";
/// Empty positions that are written as gaps; more of them become a wall.
const MAX_GAPS: u32 = 8;

/// The indexed words of a chunk.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Words {
    /// The weights by dimension.
    pub(super) weights: BTreeMap<u32, f32>,
    /// The tokens in sequence, followed by every other form of a word at its position.
    pub(super) tokens: String,
    /// The distinct forms that can complete a prefix.
    pub(super) forms: String,
}

impl Words {
    /// Analyses a chunk.
    pub(super) fn of_chunk(document: &IndexedDocument, chunk: &IndexedChunk) -> Self {
        Self::of(SearchableText {
            title: &document.title,
            path: &document.path,
            tags: &document.tags,
            container: document.named_parent(),
            headings: &chunk.heading_path,
            table_header: &chunk.table_header,
            text: &chunk.text,
            language: document.language,
        })
    }

    /// Whether it contains one of the token sequences; equivalent to a filter by [`rows`].
    pub(super) fn hold(&self, rows: &[String]) -> bool {
        let tokens: Vec<&str> = self.tokens.split(' ').collect();
        rows.iter().any(|row| {
            let row: Vec<&str> = row.split(' ').collect();
            tokens.windows(row.len()).any(|window| window == row)
        })
    }

    pub(super) fn of(searched: SearchableText<'_>) -> Self {
        let tokens = searched.tokens(&mut Stems::default());
        let mut counts: BTreeMap<u32, f32> = BTreeMap::new();
        for token in &tokens {
            *counts.entry(dimension(&token.text)).or_default() += 1.0;
        }
        let length = tokens.len() as f32 / AVERAGE_LENGTH;
        let weights = counts.into_iter().map(|(dimension, count)| (dimension, saturated(count, length)));
        let row = in_rows(&searched.row(), &tokens);
        Self { weights: weights.collect(), tokens: row, forms: prefix_forms(&tokens) }
    }
}

/// BM25's weight of a word that occurs `count` times in a chunk of `length` times the average length.
fn saturated(count: f32, length: f32) -> f32 {
    count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length))
}

/// FNV-1a in 64 bits, folded to 32.
pub(super) fn dimension(word: &str) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in word.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    (hash ^ (hash >> 32)) as u32
}

/// The distinct forms that are long enough to be completions. Words of containers are not among them.
fn prefix_forms(tokens: &[Token]) -> String {
    let words = tokens.iter().map(|token| token.text.as_str());
    let long = words
        .filter(|word| word.starts_with(char::is_alphanumeric) && word.chars().count() >= MIN_PREFIX_CHARS);
    let forms: BTreeSet<&str> = long.collect();
    forms.into_iter().collect::<Vec<&str>>().join(" ")
}

/// The token sequence of a chunk, followed by each other form once.
fn in_rows(row: &[Token], all: &[Token]) -> String {
    let mut text = in_a_row(row.iter().map(|token| (token.position, token.text.as_str())));
    let mut known: HashSet<&str> = row.iter().map(|token| token.text.as_str()).collect();
    for token in all {
        if known.insert(&token.text) {
            for part in [" ", WALL, " ", &token.text] {
                text.push_str(part);
            }
        }
    }
    text
}

/// The words in order of position, with placeholders for empty positions.
fn in_a_row<'a>(words: impl Iterator<Item = (u32, &'a str)>) -> String {
    let mut row = String::new();
    let mut next = None;
    for (place, word) in words {
        let free = next.map_or(0, |next| place.saturating_sub(next));
        let between = if free > MAX_GAPS { vec![WALL] } else { vec![GAP; free as usize] };
        for part in between.into_iter().chain([word]) {
            if !row.is_empty() {
                row.push(' ');
            }
            row.push_str(part);
        }
        next = Some(place + 1);
    }
    row
}

/// The idf of a word that `containing` of `all` chunks contain, as Qdrant computes it.
pub(super) fn idf(all: u64, containing: u64) -> f32 {
    let containing = containing.min(all);
    (((all - containing) as f32 + 0.5) / (containing as f32 + 0.5) + 1.0).ln()
}

/// The distinct forms that a search looks for.
pub(super) fn forms(analysed: &AnalysedQuery) -> BTreeSet<&str> {
    let words = analysed.words.iter().map(|(word, _)| word.as_str());
    let in_phrases = analysed.phrases.iter().flat_map(|phrase| phrase.rows.iter().flatten());
    words.chain(in_phrases.map(|(_, word)| word.as_str())).collect()
}

/// The sparse vector of a search. The words of a phrase contribute to the score of chunks that contain it.
pub(super) fn query(analysed: &AnalysedQuery) -> BTreeMap<u32, f32> {
    let mut weights: BTreeMap<u32, f32> = BTreeMap::new();
    for (word, weight) in &analysed.words {
        *weights.entry(dimension(word)).or_default() += weight;
    }
    let in_phrases = analysed.phrases.iter().flat_map(|phrase| phrase.rows.iter().flatten());
    for (_, word) in in_phrases {
        weights.entry(dimension(word)).or_insert(1.0);
    }
    weights
}

/// The token sequences that match a phrase.
pub(super) fn rows(phrase: &Phrase) -> Vec<String> {
    let row = |row: &Vec<(u32, String)>| in_a_row(row.iter().map(|(place, word)| (*place, word.as_str())));
    phrase.rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BTreeMap, Words, dimension, forms, idf, in_a_row, query, rows, saturated};
    use crate::ParsedQuery;
    use crate::words::{AnalysedQuery, Language, Languages, SearchableText};

    fn words(text: &str) -> Words {
        Words::of(SearchableText::text(text, Language::English))
    }

    fn analysed(text: &str) -> AnalysedQuery {
        AnalysedQuery::new(&ParsedQuery::parse(text), Languages::default())
    }

    #[test]
    fn a_word_weighs_what_bm25_says() {
        assert!((saturated(1.0, 1.0) - 1.0).abs() < 1e-6);
        assert!((saturated(3.0, 1.0) - 3.0 * 2.2 / 4.2).abs() < 1e-6);
        assert!((saturated(1.0, 2.0) - 2.2 / (1.0 + 1.2 * 1.75)).abs() < 1e-6);
        assert!(saturated(1_000.0, 1.0) < 2.2 && saturated(2.0, 0.5) > saturated(2.0, 1.0));
    }

    #[test]
    fn a_word_is_rarer_the_fewer_hold_it() {
        assert!((idf(3, 1) - (2.5_f32 / 1.5 + 1.0).ln()).abs() < 1e-6);
        assert!(idf(10, 1) > idf(10, 2) && idf(10, 10) > 0.0);
        // A concurrent write may make the later count exceed the total.
        assert!(idf(1, 2) > 0.0 && idf(0, 0) > 0.0);
    }

    #[test]
    fn each_form_is_counted_once() {
        let analysed = analysed("key \"signing key\"");
        let forms: Vec<&str> = forms(&analysed).into_iter().collect();
        assert_eq!(forms, ["key", "sign"]);
    }

    #[test]
    fn dimensions_are_the_same_on_every_machine() {
        // FNV-1a's published value for "a" is af63dc4c8601ec8c.
        assert_eq!(dimension("a"), 0xaf63_dc4c ^ 0x8601_ec8c);
        assert_ne!(dimension("deploy"), dimension("deployed"));
    }

    #[test]
    fn a_search_looks_in_the_dimensions_that_a_chunk_has() {
        let chunk = words("Deploying the getUserName service");
        for text in ["deploys", "getUserName", "user", "\"user name\""] {
            let asked = query(&analysed(text));
            assert!(asked.keys().any(|dimension| chunk.weights.contains_key(dimension)), "{text}");
        }
        assert_eq!(query(&analysed("")), BTreeMap::new());
    }

    #[test]
    fn phrases_reach_over_neither_gaps_nor_fields() {
        assert_eq!(in_a_row([(0, "a"), (1, "b"), (3, "c"), (103, "d")].into_iter()), "a b _ c | d");
        let headings = ["second part".to_owned()];
        let searched = SearchableText {
            title: "first",
            headings: &headings,
            ..SearchableText::text("third", Language::English)
        };
        let chunk = Words::of(searched);
        let found = |text: &str| analysed(text).phrases.iter().any(|phrase| chunk.hold(&rows(phrase)));
        assert!(found("\"second part\"") && found("\"third\""));
        assert!(!found("\"first second\"") && !found("\"part third\""));
    }

    proptest! {
        #[test]
        fn a_phrase_of_the_text_is_found(text in "[a-zé]{1,6}( [a-z]{1,6}|-[A-Z][a-z]{1,4}){0,8}", from in 0..4_usize) {
            let chunk = words(&text);
            let part: Vec<&str> = text.split(' ').skip(from).take(3).collect();
            let parsed = ParsedQuery::parse(&format!("\"{}\"", part.join(" ")));
            for phrase in AnalysedQuery::new(&parsed, Languages::default()).phrases {
                prop_assert!(chunk.hold(&rows(&phrase)), "{phrase:?} in {}", chunk.tokens);
            }
        }

        #[test]
        fn any_text_makes_finite_weights_and_plain_tokens(text in any::<String>()) {
            let words = words(&text);
            prop_assert!(words.weights.values().all(|weight| weight.is_finite() && *weight > 0.0));
            prop_assert!(!words.tokens.starts_with(' ') && !words.tokens.contains("  "));
        }
    }
}
