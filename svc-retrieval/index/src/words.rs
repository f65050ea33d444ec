//! Text analysis: turns text into index tokens, and a parsed query into the terms to look up. Independent of engines, which all use it.

mod analysed;
mod containers;
mod finder;
mod fold;
mod language;
mod significant;
mod split;
mod stems;

#[cfg(feature = "qdrant")]
pub(crate) use analysed::MIN_PREFIX_CHARS;
pub use analysed::{AnalysedQuery, Phrase, Prefix};
pub(crate) use containers::ContainerExpansion;
pub use containers::{Container, ContainerNames};
pub use finder::{Finder, MAX_FOUND};
pub use language::{Language, Languages, detect};
pub use significant::{SignificantWord, SignificantWords};
pub use split::{Kind, Word, split};
pub use stems::Stems;
use uuid::Uuid;

/// An indexed token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The stem.
    pub text: String,
    /// Its position. Tokens are sorted by position; several may share one, the part of a name first.
    pub position: u32,
}

/// The position gap between two fields, so that no phrase spans both.
const BETWEEN_FIELDS: u32 = 100;

/// How often a chunk's headings are indexed. Twice beat once and three times (nDCG@10 of lexical search .422, .417, .421, averaged over
/// three collections); one field with repeated headings beat separate fields with added scores (.411).
const HEADING_WEIGHT: usize = 2;

/// The searchable texts of a chunk.
#[derive(Debug, Clone, Copy)]
pub struct SearchableText<'a> {
    /// The document's title.
    pub title: &'a str,
    /// The document's path. Its last segment, its own name, is ignored, since the title contains it.
    pub path: &'a str,
    /// The document's tags.
    pub tags: &'a [String],
    /// The document's nearest named container: a chunk is found by its container's names without containing them ([`ContainerNames`]).
    pub container: Option<Uuid>,
    /// The headings above the chunk.
    pub headings: &'a [String],
    /// The header of the table that the text continues.
    pub table_header: &'a str,
    /// The chunk's text.
    pub text: &'a str,
    /// The language of all texts.
    pub language: Language,
}

impl<'a> SearchableText<'a> {
    /// A text without a document.
    pub const fn text(text: &'a str, language: Language) -> Self {
        Self {
            title: "",
            path: "",
            tags: &[],
            container: None,
            headings: &[],
            table_header: "",
            text,
            language,
        }
    }
}

impl SearchableText<'_> {
    /// The tokens of all texts as one field, in which headings are repeated.
    pub fn tokens(&self, stems: &mut Stems) -> Vec<Token> {
        let mut tokens = Vec::new();
        self.each_field(&mut |text, first| index(text, self.language, first, stems, &mut tokens));
        if let Some(container) = self.container {
            let position = tokens.last().map_or(0, |last| last.position.saturating_add(BETWEEN_FIELDS));
            tokens.push(Token { text: containers::word_of(container), position });
        }
        tokens
    }

    /// Calls `add` with each field and its first position; `add` returns the position after the last one.
    fn each_field(&self, add: &mut dyn FnMut(&str, u32) -> u32) {
        let mut first = 0;
        let mut add = |text: &str| first = add(text, first) + BETWEEN_FIELDS;
        add(self.title);
        add(self.path.rsplit_once('/').map_or("", |(folders, _)| folders));
        self.tags.iter().for_each(|tag| add(tag));
        for _ in 0..HEADING_WEIGHT {
            self.headings.iter().for_each(|heading| add(heading));
        }
        if !self.table_header.is_empty() {
            add(self.table_header);
        }
        add(self.text);
    }
}

impl SearchableText<'_> {
    /// One token per position, which [`Phrase`]s are matched against, with the positions of [`Self::tokens`]; for engines whose phrase
    /// queries support only one token per position.
    pub fn row(&self) -> Vec<Token> {
        let mut row = Vec::new();
        self.each_field(&mut |text, first| {
            let words = split(text);
            let next = words.iter().map(|word| first + word.position + 1).max();
            let parts: Vec<Word> = words.into_iter().filter(|word| word.kind != Kind::Name).collect();
            for word in analysed::one_at_a_place(analysed::looked_up(parts)) {
                let text = self.language.stem(&fold::fold(&word.text)).into_owned();
                row.push(Token { text, position: first + word.position });
            }
            next.unwrap_or(first)
        });
        row
    }
}

/// Appends the tokens of a text, starting at position `first`; returns the position after the last one.
fn index(text: &str, language: Language, first: u32, stems: &mut Stems, tokens: &mut Vec<Token>) -> u32 {
    let mut next = first;
    let before = tokens.len();
    for word in split(text) {
        let position = first + word.position;
        next = next.max(position + 1);
        let (stem, plain) = forms(&word.text, language, stems);
        tokens.push(Token { text: stem, position });
        tokens.extend(plain.map(|text| Token { text, position }));
    }
    // Stable: at one position the part stays before the name.
    if let Some(added) = tokens.get_mut(before..) {
        added.sort_by_key(|token| token.position);
    }
    next
}

/// The indexed forms of a word: its stem, and if it has accents, also the stem without them.
fn forms(word: &str, language: Language, stems: &mut Stems) -> (String, Option<String>) {
    let stem = stems.of(language, word);
    let plain = match fold::fold(word) {
        std::borrow::Cow::Borrowed(_) => None,
        std::borrow::Cow::Owned(folded) => Some(stems.of(language, &folded)),
    };
    let plain = plain.filter(|plain| *plain != stem);
    (stem, plain)
}

#[cfg(test)]
mod tests;
