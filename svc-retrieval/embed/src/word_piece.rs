//! BERT's uncased WordPiece: which rows of the vocabulary a text is made of.
//!
//! It gives the tokens of the reference tokenizer that have a row, with one intended difference. There a word
//! with any character the vocabulary lacks is unknown as a whole, and the vocabulary knows more characters than
//! have rows. Here a character without a row is passed over, so `done✅` still counts as `done`. Nothing is cut
//! off: a text may have any length.

use unicode_normalization::char::{decompose_canonical, is_combining_mark};

use super::unicode::{is_ideograph, is_punctuation, is_removed};
use super::vocabulary::Vocabulary;

/// The reference takes a longer word for unknown. Such a run is data, not language.
const MAX_WORD_CHARACTERS: usize = 100;

/// Calls `visit` with the row of each token of the text, in order.
pub(crate) fn for_each_row(vocabulary: &Vocabulary, text: &str, visit: impl FnMut(u16)) {
    let mut words = Words { vocabulary, visit, word: String::new(), characters: 0 };
    for character in text.chars() {
        words.read(character);
    }
    words.end_word();
}

struct Words<'a, V> {
    vocabulary: &'a Vocabulary,
    visit: V,
    /// The word so far, lower-cased and without accents; never longer than the longest known word.
    word: String,
    /// How long the word is in the text.
    characters: usize,
}

impl<V: FnMut(u16)> Words<'_, V> {
    fn read(&mut self, character: char) {
        if character.is_ascii_alphanumeric() {
            self.push(character.to_ascii_lowercase());
        } else if is_removed(character) {
            // Removed rather than read as a space: a soft hyphen stands inside a word.
        } else if character.is_whitespace() {
            self.end_word();
        } else if is_ideograph(character) {
            self.push_alone(character);
        } else {
            decompose_canonical(character, |part| self.read_decomposed(part));
        }
    }

    fn read_decomposed(&mut self, part: char) {
        if is_combining_mark(part) {
            return;
        }
        for lower in part.to_lowercase() {
            if is_punctuation(lower) {
                self.push_alone(lower);
            } else {
                self.push(lower);
            }
        }
    }

    fn push_alone(&mut self, character: char) {
        self.end_word();
        self.push(character);
        self.end_word();
    }

    fn push(&mut self, character: char) {
        self.characters += 1;
        if self.characters <= MAX_WORD_CHARACTERS {
            self.word.push(character);
        }
    }

    fn end_word(&mut self) {
        if self.characters <= MAX_WORD_CHARACTERS {
            self.split_word();
        }
        self.word.clear();
        self.characters = 0;
    }

    fn split_word(&mut self) {
        let mut rest = self.word.as_str();
        let mut continuation = false;
        while let Some(first) = rest.chars().next() {
            let length = match self.vocabulary.longest_prefix(rest, continuation) {
                Some((row, length)) => {
                    (self.visit)(row);
                    length
                }
                None => first.len_utf8(),
            };
            rest = rest.get(length..).unwrap_or_default();
            continuation = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde::Deserialize;

    use super::*;

    static VOCABULARY: LazyLock<Vocabulary> =
        LazyLock::new(|| Vocabulary::new(include_str!("../model/vocab.txt")));

    #[derive(Debug, Deserialize)]
    struct Case {
        text: String,
        tokens: Vec<String>,
    }

    fn tokens(text: &str) -> Vec<&'static str> {
        let mut tokens = Vec::new();
        for_each_row(&VOCABULARY, text, |row| tokens.push(VOCABULARY.token(row).unwrap()));
        tokens
    }

    #[test]
    fn gives_the_tokens_of_the_reference() {
        let fixture = include_str!("../model/fixtures/tokens.json");
        let cases: Vec<Case> = serde_json::from_str(fixture).unwrap();
        assert!(cases.len() >= 40);
        let differing: Vec<&Case> = cases.iter().filter(|case| tokens(&case.text) != case.tokens).collect();
        assert!(differing.is_empty(), "{differing:#?}");
    }

    #[test]
    fn a_character_without_a_row_does_not_hide_the_rest_of_its_word() {
        assert_eq!(tokens("done✅"), ["done"]);
        assert_eq!(tokens("CO₂"), ["co"]);
    }

    #[test]
    fn a_word_of_more_than_a_hundred_characters_is_unknown() {
        assert!(!tokens(&"é".repeat(100)).is_empty());
        assert_eq!(tokens(&format!("one {} two", "é".repeat(101))), ["one", "two"]);
    }

    #[test]
    fn a_long_text_is_not_cut_off() {
        assert_eq!(tokens(&"word ".repeat(2000)).len(), 2000);
    }
}
