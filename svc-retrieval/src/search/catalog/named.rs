//! Exact references in a question: URLs, keys such as `ENG-123`, titles.

use cairn_index::words::{Kind, Languages, SignificantWords, split};

use super::{Candidate, Match};
use crate::entry::address_word;
use crate::search::tuning::{MAX_BODIES, MAX_NAMED};

/// The maximum length of a key: letters, digits and the dash.
const MAX_KEY_BYTES: usize = 20;

/// The URLs and keys in a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Named {
    /// The URLs, encoded as words ([`address_word`]).
    addresses: Vec<String>,
    /// In lower case.
    keys: Vec<String>,
}

impl Named {
    /// The first few of each.
    pub(super) fn in_text(question: &str) -> Self {
        let mut named = Self::default();
        for word in question.split_whitespace() {
            if let Some(address) = address(word).filter(|_| named.addresses.len() < MAX_NAMED) {
                named.addresses.push(address_word(address));
            } else if let Some(key) = key(word).filter(|_| named.keys.len() < MAX_NAMED) {
                named.keys.push(key);
            }
        }
        named
    }

    /// The words to look up, to find the entries that are named.
    pub(super) fn phrases(&self) -> impl Iterator<Item = &str> {
        self.addresses.iter().chain(&self.keys).map(String::as_str)
    }

    /// The candidates that are named: by URL, else by key, else by title. A name that matches more of them than are fetched is
    /// ambiguous and matches none.
    pub(super) fn among(&self, question: &str, candidates: &[Candidate<'_>]) -> Vec<Match> {
        let addressed =
            |candidate: &Candidate<'_>| self.addresses.iter().any(|it| it == candidate.entry.address);
        let keyed =
            |candidate: &Candidate<'_>| self.keys.iter().any(|key| has_key(candidate.entry.title, key));
        let asked = words(question);
        let titled = |candidate: &Candidate<'_>| {
            let title = candidate.entry.title;
            // People omit the extension of a file.
            names_title(&asked, title) || names_title(&asked, without_ending(title))
        };
        let these = |is: &dyn Fn(&Candidate<'_>) -> bool| -> Vec<Match> {
            let found = candidates.iter().filter(|candidate| is(candidate)).map(|candidate| candidate.is);
            let found: Vec<Match> = found.take(MAX_BODIES + 1).collect();
            if found.len() > MAX_BODIES { Vec::new() } else { found }
        };
        let ways: [&dyn Fn(&Candidate<'_>) -> bool; 3] = [&addressed, &keyed, &titled];
        ways.into_iter().map(these).find(|found| !found.is_empty()).unwrap_or_default()
    }
}

/// An address of the web without what quotes or ends a sentence around it.
fn address(word: &str) -> Option<&str> {
    let begins = word.find("https://").or_else(|| word.find("http://"))?;
    let ends_sentence = |character: char| ".,;:!?\"'”’)]}>".contains(character);
    let address = word.get(begins..)?.trim_end_matches(ends_sentence);
    address.contains("://").then_some(address)
}

/// A key as trackers give them, in lower case: letters, a dash, a number.
fn key(word: &str) -> Option<String> {
    let word = word.trim_matches(|character: char| !character.is_alphanumeric());
    let (project, number) = word.split_once('-')?;
    let is_project = project.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
        && project.len() >= 2
        && project.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_project && is_number && word.len() <= MAX_KEY_BYTES).then(|| word.to_ascii_lowercase())
}

/// Whether a title begins with a key.
fn has_key(title: &str, key: &str) -> bool {
    title.split_whitespace().next().and_then(self::key).is_some_and(|own| own == key)
}

/// Whether the words of a title stand in a question in a row. A title of one telling word, which many a question holds by
/// chance, has to be the whole question.
fn names_title(asked: &[String], title: &str) -> bool {
    let without_key = match title.split_once(char::is_whitespace) {
        Some((first, rest)) if key(first).is_some() => rest,
        Some(_) | None => title,
    };
    let wanted = words(without_key);
    if wanted.is_empty() || wanted.len() > asked.len() {
        return false;
    }
    let tells = SignificantWords::of(without_key, Languages::default()).count() >= 2;
    wanted == asked || (tells && asked.windows(wanted.len()).any(|row| row == wanted))
}

/// The name of a file without what says its type.
fn without_ending(title: &str) -> &str {
    let is_ending = |ending: &str| {
        (1..=5).contains(&ending.len()) && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    match title.rsplit_once('.') {
        Some((name, ending)) if is_ending(ending) => name,
        Some(_) | None => title,
    }
}

/// The words of a text in a row, in lower case.
fn words(text: &str) -> Vec<String> {
    let parts = split(text).into_iter().filter(|word| matches!(word.kind, Kind::Part | Kind::Character));
    parts.map(|word| word.text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_keys_are_read_out_of_sentences() {
        let named =
            Named::in_text("what says (https://wiki.example/p/1), and ENG-123? Not GPT-4o or -ops-12 v1-2");
        assert_eq!(named.addresses, [address_word("https://wiki.example/p/1")]);
        assert_eq!(named.keys, ["eng-123", "ops-12", "v1-2"]);
        for none in
            ["", "https", "a-1", "eng-", "-123", "eng-12-3", "eng 123", "éng-1", "x".repeat(30).as_str()]
        {
            assert_eq!(key(none), None, "{none}");
        }
        assert_eq!(Named::in_text(&"AB-1 ".repeat(1_000)).keys.len(), MAX_NAMED);
    }

    #[test]
    fn a_title_is_named_by_its_words_in_a_row() {
        let named = |question: &str, title: &str| names_title(&words(question), title);
        assert!(named("where is the Zanzibar rollout-plan now", "Zanzibar Rollout Plan"));
        assert!(named("login fails on Safari", "ENG-12 Login fails"));
        assert!(named("onboarding", "Onboarding") && !named("onboarding of guests", "Onboarding"));
        assert!(!named("plan of the rollout", "Rollout plan") && !named("a", "") && !named("", ""));
        assert!(!named("what is the plan", "What is the plan of it"));
        let plain = ["Rollout plan.md", "Pros and cons. Thoughts", "v1.", ".env"].map(without_ending);
        assert_eq!(plain, ["Rollout plan", "Pros and cons. Thoughts", "v1.", ""]);
    }
}
