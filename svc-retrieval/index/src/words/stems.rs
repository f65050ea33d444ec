//! Stems that were found before.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::Language;

/// Words of one language that are remembered: more than a batch of prose has. Beyond it, stems are found anew.
const MOST_WORDS: usize = 65_536;

/// The stems of the words of a batch. Most words stand in it many times, and to find a stem takes several times as long as
/// to look it up.
#[derive(Debug, Default)]
pub struct Stems(HashMap<Language, HashMap<String, String, RandomState>>);

impl Stems {
    /// The word without what inflects it.
    pub(super) fn of(&mut self, language: Language, word: &str) -> String {
        if !language.inflects(word) {
            return word.to_owned();
        }
        let known = self.0.entry(language).or_default();
        if let Some(stem) = known.get(word) {
            return stem.clone();
        }
        let stem = language.stem(word).into_owned();
        if known.len() < MOST_WORDS {
            known.insert(word.to_owned(), stem.clone());
        }
        stem
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stem_is_that_of_its_language_however_often_it_is_asked_for() {
        let mut stems = Stems::default();
        for _ in 0..2 {
            for language in [Language::English, Language::German, Language::Other] {
                for word in ["connections", "häuser", "utf8s", ""] {
                    assert_eq!(stems.of(language, word), language.stem(word), "{language:?} {word}");
                }
            }
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut stems = Stems::default();
        let letters = |number: usize| {
            number.to_string().bytes().map(|digit| char::from(digit + b'a' - b'0')).collect::<String>()
        };
        for number in 0..MOST_WORDS + 10 {
            assert_eq!(
                stems.of(Language::English, &letters(number)),
                Language::English.stem(&letters(number))
            );
        }
        assert_eq!(stems.0.values().map(HashMap::len).sum::<usize>(), MOST_WORDS);
    }
}
