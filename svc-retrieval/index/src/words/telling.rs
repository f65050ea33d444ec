//! Finds which significant words of a question occur in a text.

use std::collections::HashSet;

use super::sought::{looked_up, spellings, without_stop_words};
use super::{Kind, Language, Languages, Searched, Stems, split};

/// The significant words of a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Telling {
    /// Distinct words.
    words: Vec<TellingWord>,
}

/// A significant word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TellingWord {
    /// The word in lower case.
    pub word: String,
    /// Every indexed form of it.
    pub forms: Vec<String>,
}

impl Telling {
    /// The significant words of a question, for texts in these languages and English.
    pub fn of(question: &str, languages: Languages) -> Self {
        let languages = languages.with(Language::English);
        let asked = looked_up(split(question));
        let language = languages.of_question(asked.iter().map(|word| word.text.as_str()));
        let mut words: Vec<TellingWord> = Vec::new();
        // Names are covered by their parts.
        for word in without_stop_words(&asked, language).into_iter().filter(|word| word.kind != Kind::Name) {
            let forms = spellings(&word.text, languages).into_iter().map(|(form, _)| form).collect();
            if words.iter().all(|known| known.forms != forms) {
                words.push(TellingWord { word: word.text.clone(), forms });
            }
        }
        Self { words }
    }

    /// The number of words.
    pub fn count(&self) -> usize {
        self.words.len()
    }

    /// The words.
    pub fn words(&self) -> &[TellingWord] {
        &self.words
    }

    /// How many of the words a text contains.
    pub fn held_by(&self, text: &Searched<'_>) -> usize {
        self.held_each(text, &mut Stems::default()).into_iter().filter(|is_held| *is_held).count()
    }

    /// For each word, in order, whether a text contains it.
    pub fn held_each(&self, text: &Searched<'_>, stems: &mut Stems) -> Vec<bool> {
        let tokens = text.tokens(stems);
        let held: HashSet<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
        self.words.iter().map(|word| word.forms.iter().any(|form| held.contains(form.as_str()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(question: &str, title: &str, path: &str) -> (usize, usize) {
        let telling = Telling::of(question, Languages::default());
        let text = Searched { title, path, ..Searched::text("", Language::English) };
        (telling.held_by(&text), telling.count())
    }

    #[test]
    fn words_are_compared_as_they_are_indexed() {
        assert_eq!(held("how do I rotate the signing keys", "Rotating a signing key", ""), (3, 3));
        assert_eq!(
            held("rotate keys in production", "Rotating keys", "/wiki/Production/Rotating keys"),
            (3, 3)
        );
        assert_eq!(held("ENG-123", "ENG-123 Login fails", ""), (2, 2));
        assert_eq!(held("resume of the meeting", "Résumé", ""), (1, 2));
        assert_eq!(held("検索拡張", "検索拡張の概要", ""), (3, 3));
        assert_eq!(held("", "Anything", ""), (0, 0));
    }

    #[test]
    fn each_word_is_told_with_its_stems() {
        let telling = Telling::of("how do I rotate the signing keys", Languages::default());
        let text = Searched::text("A rotated key", Language::English);
        let words: Vec<&str> = telling.words().iter().map(|word| word.word.as_str()).collect();
        assert_eq!(words, ["rotate", "signing", "keys"]);
        assert_eq!(telling.words()[2].forms, ["key"]);
        assert_eq!(telling.held_each(&text, &mut Stems::default()), [true, false, true]);
    }
}
