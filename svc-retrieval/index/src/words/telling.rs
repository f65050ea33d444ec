//! Which of the words of a question stand in a text that is at hand.

use std::collections::HashSet;

use super::sought::{looked_up, spellings, without_stop_words};
use super::{Kind, Language, Languages, Searched, Stems, split};

/// The words of a question that tell what is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Telling {
    /// Each word once, in every form that it may be indexed in.
    words: Vec<Vec<String>>,
}

impl Telling {
    /// Those of a question to text of these languages. English is always among them.
    pub fn of(question: &str, languages: Languages) -> Self {
        let languages = languages.with(Language::English);
        let asked = looked_up(split(question));
        let language = languages.of_question(asked.iter().map(|word| word.text.as_str()));
        let mut words: Vec<Vec<String>> = Vec::new();
        // A name says what its parts say.
        for word in without_stop_words(&asked, language).into_iter().filter(|word| word.kind != Kind::Name) {
            let forms = spellings(&word.text, languages).into_iter().map(|(form, _)| form).collect();
            if !words.contains(&forms) {
                words.push(forms);
            }
        }
        Self { words }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.words.len()
    }

    /// How many of them a text holds.
    pub fn held_by(&self, text: &Searched<'_>) -> usize {
        let tokens = text.tokens(&mut Stems::default());
        let held: HashSet<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
        self.words.iter().filter(|forms| forms.iter().any(|form| held.contains(form.as_str()))).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(question: &str, title: &str, path: &str) -> (usize, usize) {
        let telling = Telling::of(question, Languages::default());
        let text = Searched { title, path, headings: &[], text: "", language: Language::English };
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
}
