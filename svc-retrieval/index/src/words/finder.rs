//! Which words of a question stand in a text, told without reading the words of the text that cannot be any of them: to
//! find the words of a page of results in full takes a hundred times as long.

use foldhash::{HashMap, HashMapExt as _, HashSet};

use super::{Languages, TellingWord, fold, split};

/// Words that are told apart: as many as a mask has bits.
pub const MOST_FOUND: usize = u64::BITS as usize;

/// The first two bytes of a word in lower case, the second 0 where there is none.
type Beginning = [u8; 2];

/// Finds the words of one question.
#[derive(Debug)]
pub struct Finder<'a> {
    /// The words by the forms that they are indexed in, one bit each.
    forms: HashMap<&'a str, u64>,
    beginnings: HashSet<Beginning>,
    /// The first bytes among the beginnings that are ASCII, a bit each: most words of a text begin with another.
    first_bytes: u128,
    languages: Languages,
}

impl<'a> Finder<'a> {
    /// Finds the first [`MOST_FOUND`] of these words in texts of these languages.
    pub fn new(words: impl Iterator<Item = &'a TellingWord>, languages: Languages) -> Self {
        let (mut forms, mut beginnings) = (HashMap::new(), HashSet::default());
        for (place, word) in words.take(MOST_FOUND).enumerate() {
            for form in &word.forms {
                *forms.entry(form.as_str()).or_insert(0) |= 1 << place;
            }
            // A stem may begin unlike its word, as that of `dying` does.
            for text in word.forms.iter().chain([&word.word]) {
                beginnings.extend(beginning(text.as_bytes()));
            }
        }
        let ascii = beginnings.iter().map(|[first, _]: &Beginning| *first).filter(u8::is_ascii);
        let first_bytes = ascii.fold(0_u128, |bytes, first| bytes | (1_u128 << first));
        Self { forms, beginnings, first_bytes, languages }
    }

    /// The words that the text holds: a bit for each, the first word's the lowest.
    pub fn held_by(&self, text: &str) -> u64 {
        if self.forms.is_empty() {
            return 0;
        }
        let runs = text.split_whitespace().filter(|run| self.may_hold(run.as_bytes()));
        runs.fold(0, |held, run| held | self.held_by_run(run))
    }

    /// Whether a part of a name in the run begins like one of the words.
    fn may_hold(&self, run: &[u8]) -> bool {
        let mut before = b' ';
        for (place, byte) in run.iter().enumerate() {
            if !byte.is_ascii() {
                return true;
            }
            let is_begun = byte.is_ascii_alphanumeric()
                && (!before.is_ascii_alphanumeric()
                    || byte.is_ascii_uppercase()
                    || before.is_ascii_digit() != byte.is_ascii_digit());
            let rest = run.get(place..).unwrap_or_default();
            let is_known = |[first, second]: Beginning| {
                // A part of one character may have another part right behind it.
                self.beginnings.contains(&[first, second]) || self.beginnings.contains(&[first, 0])
            };
            let may_begin = (self.first_bytes >> byte.to_ascii_lowercase()) & 1 == 1;
            if is_begun && may_begin && beginning(rest).is_some_and(is_known) {
                return true;
            }
            before = *byte;
        }
        false
    }

    fn held_by_run(&self, run: &str) -> u64 {
        let mut held = 0;
        for word in split(run) {
            let folded = fold::fold(&word.text);
            for language in self.languages.iter() {
                for spelling in [word.text.as_str(), folded.as_ref()] {
                    held |= self.forms.get(language.stem(spelling).as_ref()).copied().unwrap_or_default();
                }
            }
        }
        held
    }
}

fn beginning(text: &[u8]) -> Option<Beginning> {
    let first = text.first()?.to_ascii_lowercase();
    let second = text.get(1).filter(|byte| byte.is_ascii_alphanumeric()).map_or(0, u8::to_ascii_lowercase);
    Some([first, second])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Language, Searched, Stems, Telling};
    use super::*;

    fn held(question: &str, text: &str) -> u64 {
        let languages = Languages::from(Language::English);
        let telling = Telling::of(question, languages);
        Finder::new(telling.words().iter(), languages).held_by(text)
    }

    #[test]
    fn words_are_found_in_every_form() {
        let question = "how do I rotate the signing keys of getUserName";
        assert_eq!(held(question, "A key was rotated; signed by nobody."), 0b111);
        assert_eq!(held(question, "call get_user_name or (USER)"), 0b11_1000);
        assert_eq!(held("user", "call getUserName"), 1);
        assert_eq!(held("getusername", "call getUserName"), 1);
        assert_eq!(held("http", "the HTTPServer of utf8http"), 1);
        assert_eq!(held("resume of Müller", "Résumé: muller"), 0b11);
        assert_eq!(held("検索", "検索拡張"), held("検索", "検索"));
        assert_eq!(held("", "anything"), 0);
        assert_eq!(held("zebra", "nothing of the kind"), 0);
    }

    #[test]
    fn no_more_words_are_told_than_there_are_bits() {
        let many: String = (0..100).map(|number| format!("word{number}x ")).collect();
        assert_eq!(held(&many, &many), u64::MAX);
    }

    proptest! {
        #[test]
        fn it_finds_what_reading_everything_finds(
            question in "(rotate |keys |getUser |v1.2 |café |C\\+\\+ |die |run){1,4}",
            text in "([a-zA-Z]{1,9}|rotates|KEY|getUserName|get_user|v1.2|1.2|cafe|Café|c\\+\\+|runs|HTTPKey|x86keys|[ .,_-]){0,12}",
        ) {
            let languages = Languages::from(Language::English);
            let telling = Telling::of(&question, languages);
            let searched = Searched::text(&text, Language::English);
            let all = telling.held_each(&searched, &mut Stems::default());
            let found = Finder::new(telling.words().iter(), languages).held_by(&text);
            for (place, is_held) in all.into_iter().enumerate() {
                prop_assert_eq!(found >> place & 1 == 1, is_held, "{} in {:?}", telling.words()[place].word, &text);
            }
        }
    }
}
