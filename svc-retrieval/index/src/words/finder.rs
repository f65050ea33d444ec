//! Which words of a question stand in a text, told without reading the words of the text that cannot be any of them: to
//! find the words of a page of results in full takes a hundred times as long.

use std::cell::RefCell;

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
    /// The bytes that a word may begin with, in either case: most words of a text begin with another.
    first_bytes: [bool; 256],
    languages: Languages,
    /// What runs hold that were read: the words that are looked for stand in texts that hold them again and again.
    read: RefCell<HashMap<Box<str>, u64>>,
}

/// Runs that are remembered: more than a page of results has that begin like a word of a question.
const MOST_READ: usize = 1_024;

impl<'a> Finder<'a> {
    /// Finds the first [`MOST_FOUND`] of these words in texts of these languages.
    pub fn new(words: impl Iterator<Item = &'a TellingWord>, languages: Languages) -> Self {
        let (mut forms, mut beginnings) = (HashMap::new(), HashSet::<Beginning>::default());
        for (place, word) in words.take(MOST_FOUND).enumerate() {
            for form in &word.forms {
                *forms.entry(form.as_str()).or_insert(0) |= 1 << place;
            }
            // A stem may begin unlike its word, as that of `dying` does.
            for text in word.forms.iter().chain([&word.word]) {
                beginnings.extend(beginning(text.as_bytes()));
            }
        }
        let mut first_bytes = [false; 256];
        for [first, _] in &beginnings {
            for byte in [*first, first.to_ascii_uppercase()] {
                if let Some(begins) = first_bytes.get_mut(usize::from(byte)) {
                    *begins = true;
                }
            }
        }
        Self { forms, beginnings, first_bytes, languages, read: RefCell::default() }
    }

    /// The words that the text holds: a bit for each, the first word's the lowest.
    pub fn held_by(&self, text: &str) -> u64 {
        if self.forms.is_empty() {
            return 0;
        }
        if text.is_ascii() {
            return self.held_by_ascii(text);
        }
        let runs = text.split_whitespace().filter(|run| self.may_hold(run.as_bytes()));
        runs.fold(0, |held, run| held | self.held_by_run(run))
    }

    /// The same, byte by byte.
    fn held_by_ascii(&self, text: &str) -> u64 {
        let bytes = text.as_bytes();
        let (mut held, mut start, mut may_hold, mut before) = (0, 0, false, b' ');
        for (place, byte) in bytes.iter().enumerate() {
            if matches!(byte, b' ' | b'\t'..=b'\r') {
                if may_hold {
                    held |= self.held_by_run(text.get(start..place).unwrap_or_default());
                }
                (start, may_hold) = (place + 1, false);
            } else {
                may_hold = may_hold || self.may_begin(before, bytes, place);
            }
            before = *byte;
        }
        if may_hold {
            held |= self.held_by_run(text.get(start..).unwrap_or_default());
        }
        held
    }

    /// Whether a part of a name in the run begins like one of the words.
    fn may_hold(&self, run: &[u8]) -> bool {
        let mut before = b' ';
        for (place, byte) in run.iter().enumerate() {
            if !byte.is_ascii() || self.may_begin(before, run, place) {
                return true;
            }
            before = *byte;
        }
        false
    }

    /// Whether a part of a name that is like one of the words begins at that place, behind that byte.
    fn may_begin(&self, before: u8, text: &[u8], place: usize) -> bool {
        let Some(byte) = text.get(place) else { return false };
        let may_be_first = self.first_bytes.get(usize::from(*byte)).copied().unwrap_or_default();
        if !may_be_first {
            return false;
        }
        let is_begun = byte.is_ascii_alphanumeric()
            && (!before.is_ascii_alphanumeric()
                || byte.is_ascii_uppercase()
                || before.is_ascii_digit() != byte.is_ascii_digit());
        let is_known = |[first, second]: Beginning| {
            // A part of one character may have another part right behind it.
            self.beginnings.contains(&[first, second]) || self.beginnings.contains(&[first, 0])
        };
        is_begun && beginning(text.get(place..).unwrap_or_default()).is_some_and(is_known)
    }

    fn held_by_run(&self, run: &str) -> u64 {
        if let Some(held) = self.read.borrow().get(run) {
            return *held;
        }
        let held = self.read_run(run);
        let mut read = self.read.borrow_mut();
        if read.len() < MOST_READ {
            read.insert(run.into(), held);
        }
        held
    }

    fn read_run(&self, run: &str) -> u64 {
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
            text in "([a-zA-Z]{1,9}|rotates|KEY|getUserName|get_user|v1.2|1.2|cafe|Café|c\\+\\+|runs|HTTPKey|x86keys|[ .,_\\n\\t\u{b}-]){0,12}",
        ) {
            let languages = Languages::from(Language::English);
            let telling = Telling::of(&question, languages);
            let searched = Searched::text(&text, Language::English);
            let all = telling.held_each(&searched, &mut Stems::default());
            let finder = Finder::new(telling.words().iter(), languages);
            let found = finder.held_by(&text);
            prop_assert_eq!(finder.held_by(&text), found, "what was read says the same again");
            for (place, is_held) in all.into_iter().enumerate() {
                prop_assert_eq!(found >> place & 1 == 1, is_held, "{} in {:?}", telling.words()[place].word, &text);
            }
        }
    }
}
