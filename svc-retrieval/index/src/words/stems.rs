//! A cache of stems.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::Language;

/// The capacity per language: more distinct words than a batch of prose has. Beyond it, stems are computed without caching.
const CAPACITY_PER_LANGUAGE: usize = 65_536;

/// Caches the stems of the words of a batch: most words occur many times, and stemming takes several times as long as a lookup.
#[derive(Debug, Default)]
pub struct Stems(HashMap<Language, HashMap<String, String, RandomState>>);

impl Stems {
    /// The stem of a word.
    pub(super) fn of(&mut self, language: Language, word: &str) -> String {
        if !language.inflects(word) {
            return word.to_owned();
        }
        let cache = self.0.entry(language).or_default();
        if let Some(stem) = cache.get(word) {
            return stem.clone();
        }
        let stem = language.stem(word).into_owned();
        if cache.len() < CAPACITY_PER_LANGUAGE {
            cache.insert(word.to_owned(), stem.clone());
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
        for number in 0..CAPACITY_PER_LANGUAGE + 10 {
            assert_eq!(
                stems.of(Language::English, &letters(number)),
                Language::English.stem(&letters(number))
            );
        }
        assert_eq!(stems.0.values().map(HashMap::len).sum::<usize>(), CAPACITY_PER_LANGUAGE);
    }
}
