//! Finds which significant words of a question occur in a text.

use std::collections::HashSet;

use super::analysed::{looked_up, spellings, without_stop_words};
use super::{Kind, Language, Languages, SearchableText, Stems, split};

/// The significant words of a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignificantWords {
    /// Distinct words.
    words: Vec<SignificantWord>,
}

/// A significant word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignificantWord {
    /// The word in lower case.
    pub word: String,
    /// Every indexed form of it.
    pub forms: Vec<String>,
}

impl SignificantWords {
    /// The significant words of a question, for texts in these languages and English.
    pub fn of(question: &str, languages: Languages) -> Self {
        let languages = languages.with(Language::English);
        let asked = looked_up(split(question));
        let language = languages.of_question(asked.iter().map(|word| word.text.as_str()));
        let mut words: Vec<SignificantWord> = Vec::new();
        // Names are covered by their parts.
        for word in without_stop_words(&asked, language).into_iter().filter(|word| word.kind != Kind::Name) {
            let forms = spellings(&word.text, languages).into_iter().map(|(form, _)| form).collect();
            if words.iter().all(|known| known.forms != forms) {
                words.push(SignificantWord { word: word.text.clone(), forms });
            }
        }
        Self { words }
    }

    /// The number of words.
    pub fn count(&self) -> usize {
        self.words.len()
    }

    /// The words.
    pub fn words(&self) -> &[SignificantWord] {
        &self.words
    }

    /// How many of the words a text contains.
    pub fn count_in(&self, text: &SearchableText<'_>) -> usize {
        self.contains_each(text, &mut Stems::default())
            .into_iter()
            .filter(|is_contained| *is_contained)
            .count()
    }

    /// For each word, in order, whether a text contains it.
    pub fn contains_each(&self, text: &SearchableText<'_>, stems: &mut Stems) -> Vec<bool> {
        let tokens = text.tokens(stems);
        let contained: HashSet<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
        self.words
            .iter()
            .map(|word| word.forms.iter().any(|form| contained.contains(form.as_str())))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(question: &str, title: &str, path: &str) -> (usize, usize) {
        let significant = SignificantWords::of(question, Languages::default());
        let text = SearchableText { title, path, ..SearchableText::text("", Language::English) };
        (significant.count_in(&text), significant.count())
    }

    #[test]
    fn words_are_compared_as_they_are_indexed() {
        assert_eq!(counts("how do I rotate the signing keys", "Rotating a signing key", ""), (3, 3));
        assert_eq!(
            counts("rotate keys in production", "Rotating keys", "/wiki/Production/Rotating keys"),
            (3, 3)
        );
        assert_eq!(counts("ENG-123", "ENG-123 Login fails", ""), (2, 2));
        assert_eq!(counts("resume of the meeting", "Résumé", ""), (1, 2));
        assert_eq!(counts("検索拡張", "検索拡張の概要", ""), (3, 3));
        assert_eq!(counts("", "Anything", ""), (0, 0));
    }

    #[test]
    fn each_word_has_its_stems() {
        let significant = SignificantWords::of("how do I rotate the signing keys", Languages::default());
        let text = SearchableText::text("A rotated key", Language::English);
        let words: Vec<&str> = significant.words().iter().map(|word| word.word.as_str()).collect();
        assert_eq!(words, ["rotate", "signing", "keys"]);
        assert_eq!(significant.words()[2].forms, ["key"]);
        assert_eq!(significant.contains_each(&text, &mut Stems::default()), [true, false, true]);
    }
}
