//! Finds the words of a question in a text. A cheap filter by prefix skips words that cannot match: analysing a whole page of results
//! takes a hundred times as long.

use std::cell::RefCell;

use foldhash::{HashMap, HashMapExt as _, HashSet};

use super::{Languages, SignificantWord, fold, split};

/// The maximum number of words: the bits of the result.
pub const MAX_FOUND: usize = u64::BITS as usize;

/// The first two bytes of a word in lower case; the second is 0 if the word has only one.
type PrefixKey = [u8; 2];

/// Finds the words of one question.
#[derive(Debug)]
pub struct Finder<'a> {
    /// A bitmap of words by their indexed forms.
    forms: HashMap<&'a str, u64>,
    prefix_keys: HashSet<PrefixKey>,
    /// The possible first bytes of words, in either case: this rules out most words of a text.
    first_bytes: [bool; 256],
    languages: Languages,
    /// A cache of results by run: matching words recur in texts.
    cache: RefCell<HashMap<Box<str>, u64>>,
}

/// The capacity of the cache: more runs than pass the prefix filter in a page of results.
const CACHE_CAPACITY: usize = 1_024;

impl<'a> Finder<'a> {
    /// Finds the first [`MAX_FOUND`] of these words in texts of these languages.
    pub fn new(words: impl Iterator<Item = &'a SignificantWord>, languages: Languages) -> Self {
        let (mut forms, mut prefix_keys) = (HashMap::new(), HashSet::<PrefixKey>::default());
        for (place, word) in words.take(MAX_FOUND).enumerate() {
            for form in &word.forms {
                *forms.entry(form.as_str()).or_insert(0) |= 1 << place;
            }
            // A stem may start differently from its word, like that of `dying`.
            for text in word.forms.iter().chain([&word.word]) {
                prefix_keys.extend(prefix_key(text.as_bytes()));
            }
        }
        let mut first_bytes = [false; 256];
        for [first, _] in &prefix_keys {
            for byte in [*first, first.to_ascii_uppercase()] {
                if let Some(begins) = first_bytes.get_mut(usize::from(byte)) {
                    *begins = true;
                }
            }
        }
        Self { forms, prefix_keys, first_bytes, languages, cache: RefCell::default() }
    }

    /// A bitmap of the words in the text; the first word is the lowest bit.
    pub fn matches(&self, text: &str) -> u64 {
        if self.forms.is_empty() {
            return 0;
        }
        if text.is_ascii() {
            return self.matches_ascii(text);
        }
        let runs = text.split_whitespace().filter(|run| self.may_contain(run.as_bytes()));
        runs.fold(0, |bitmap, run| bitmap | self.matches_run(run))
    }

    /// The same for ASCII, in one pass over the bytes.
    fn matches_ascii(&self, text: &str) -> u64 {
        let bytes = text.as_bytes();
        let (mut bitmap, mut start, mut may_match, mut before) = (0, 0, false, b' ');
        for (place, byte) in bytes.iter().enumerate() {
            if matches!(byte, b' ' | b'\t'..=b'\r') {
                if may_match {
                    bitmap |= self.matches_run(text.get(start..place).unwrap_or_default());
                }
                (start, may_match) = (place + 1, false);
            } else {
                may_match = may_match || self.may_begin(before, bytes, place);
            }
            before = *byte;
        }
        if may_match {
            bitmap |= self.matches_run(text.get(start..).unwrap_or_default());
        }
        bitmap
    }

    /// Whether a part of a name in the run starts like one of the words.
    fn may_contain(&self, run: &[u8]) -> bool {
        let mut before = b' ';
        for (place, byte) in run.iter().enumerate() {
            if !byte.is_ascii() || self.may_begin(before, run, place) {
                return true;
            }
            before = *byte;
        }
        false
    }

    /// Whether a part of a name that starts like one of the words may start at `place`, after the byte `before`.
    fn may_begin(&self, before: u8, text: &[u8], place: usize) -> bool {
        let Some(byte) = text.get(place) else { return false };
        let may_be_first = self.first_bytes.get(usize::from(*byte)).copied().unwrap_or_default();
        if !may_be_first {
            return false;
        }
        let starts_part = byte.is_ascii_alphanumeric()
            && (!before.is_ascii_alphanumeric()
                || byte.is_ascii_uppercase()
                || before.is_ascii_digit() != byte.is_ascii_digit());
        let is_candidate = |[first, second]: PrefixKey| {
            // A part of one character may be followed directly by another part.
            self.prefix_keys.contains(&[first, second]) || self.prefix_keys.contains(&[first, 0])
        };
        starts_part && prefix_key(text.get(place..).unwrap_or_default()).is_some_and(is_candidate)
    }

    fn matches_run(&self, run: &str) -> u64 {
        if let Some(bitmap) = self.cache.borrow().get(run) {
            return *bitmap;
        }
        let bitmap = self.analyse_run(run);
        let mut cache = self.cache.borrow_mut();
        if cache.len() < CACHE_CAPACITY {
            cache.insert(run.into(), bitmap);
        }
        bitmap
    }

    fn analyse_run(&self, run: &str) -> u64 {
        let mut bitmap = 0;
        for word in split(run) {
            let folded = fold::fold(&word.text);
            for language in self.languages.iter() {
                for spelling in [word.text.as_str(), folded.as_ref()] {
                    bitmap |= self.forms.get(language.stem(spelling).as_ref()).copied().unwrap_or_default();
                }
            }
        }
        bitmap
    }
}

fn prefix_key(text: &[u8]) -> Option<PrefixKey> {
    let first = text.first()?.to_ascii_lowercase();
    let second = text.get(1).filter(|byte| byte.is_ascii_alphanumeric()).map_or(0, u8::to_ascii_lowercase);
    Some([first, second])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Language, SearchableText, SignificantWords, Stems};
    use super::*;

    fn matches(question: &str, text: &str) -> u64 {
        let languages = Languages::from(Language::English);
        let significant = SignificantWords::of(question, languages);
        Finder::new(significant.words().iter(), languages).matches(text)
    }

    #[test]
    fn words_are_found_in_every_form() {
        let question = "how do I rotate the signing keys of getUserName";
        assert_eq!(matches(question, "A key was rotated; signed by nobody."), 0b111);
        assert_eq!(matches(question, "call get_user_name or (USER)"), 0b11_1000);
        assert_eq!(matches("user", "call getUserName"), 1);
        assert_eq!(matches("getusername", "call getUserName"), 1);
        assert_eq!(matches("http", "the HTTPServer of utf8http"), 1);
        assert_eq!(matches("resume of Müller", "Résumé: muller"), 0b11);
        assert_eq!(matches("検索", "検索拡張"), matches("検索", "検索"));
        assert_eq!(matches("", "anything"), 0);
        assert_eq!(matches("zebra", "nothing of the kind"), 0);
    }

    #[test]
    fn no_more_words_are_told_than_there_are_bits() {
        let many: String = (0..100).map(|number| format!("word{number}x ")).collect();
        assert_eq!(matches(&many, &many), u64::MAX);
    }

    proptest! {
        #[test]
        fn it_finds_what_reading_everything_finds(
            question in "(rotate |keys |getUser |v1.2 |café |C\\+\\+ |die |run){1,4}",
            text in "([a-zA-Z]{1,9}|rotates|KEY|getUserName|get_user|v1.2|1.2|cafe|Café|c\\+\\+|runs|HTTPKey|x86keys|[ .,_\\n\\t\u{b}-]){0,12}",
        ) {
            let languages = Languages::from(Language::English);
            let significant = SignificantWords::of(&question, languages);
            let searched = SearchableText::text(&text, Language::English);
            let all = significant.contains_each(&searched, &mut Stems::default());
            let finder = Finder::new(significant.words().iter(), languages);
            let found = finder.matches(&text);
            prop_assert_eq!(finder.matches(&text), found, "what was read says the same again");
            for (place, is_contained) in all.into_iter().enumerate() {
                prop_assert_eq!(found >> place & 1 == 1, is_contained, "{} in {:?}", significant.words()[place].word, &text);
            }
        }
    }
}
