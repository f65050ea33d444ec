//! Near-duplicate detection: copies and versions of one passage.

use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::{LazyLock, OnceLock};

use foldhash::quality::RandomState;

use super::tuning::{MIN_COMPARED_WORDS, SAME_TEXT_SHARE, SHINGLE_WORDS};

/// Hashes are compared only within this process. The seed is random, so that nobody can craft collisions.
static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// The signature of a text: a hash of its numbers, and its shingles (runs of words); both computed lazily.
///
/// A number is often the only difference of two versions of a passage, and just what the question is about: texts with different
/// numbers are never duplicates. Nor are short texts: they take little room, and title pages, headings and stubs of different things
/// read alike.
#[derive(Debug, Default)]
pub(super) struct Signature {
    /// The hash of the words with digits, in their order.
    numbers: OnceLock<u64>,
    /// Hashes of the shingles, sorted and distinct; empty for a short text.
    runs: OnceLock<Vec<u64>>,
}

/// A text with its signature. Case, whitespace and punctuation are ignored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compared<'a, T> {
    pub(super) signature: &'a Signature,
    /// Returns the text.
    pub(super) text: T,
}

impl<'a, T: Fn() -> &'a str> Compared<'a, T> {
    /// Whether the Jaccard index of the shingles is above the threshold and the numbers are equal.
    pub(super) fn is_nearly<'b>(&self, other: &Compared<'b, impl Fn() -> &'b str>) -> bool {
        self.numbers() == other.numbers() && are_nearly(self.runs(), other.runs())
    }

    fn numbers(&self) -> u64 {
        *self.signature.numbers.get_or_init(|| numbers_of((self.text)()))
    }

    fn runs(&self) -> &'a [u64] {
        self.signature.runs.get_or_init(|| runs_of((self.text)()))
    }
}

fn numbers_of(text: &str) -> u64 {
    let mut numbers = HASHES.build_hasher();
    let may_hold_some = !text.is_ascii() || text.bytes().any(|byte| byte.is_ascii_digit());
    if may_hold_some {
        let mut lower = String::new();
        for word in words(text).filter(|word| word.contains(char::is_numeric)) {
            numbers.write_u64(hash_of_word(word, &mut lower));
        }
    }
    numbers.finish()
}

fn runs_of(text: &str) -> Vec<u64> {
    let mut lower = String::new();
    let words: Vec<u64> = words(text).map(|word| hash_of_word(word, &mut lower)).collect();
    if words.len() < MIN_COMPARED_WORDS {
        return Vec::new();
    }
    let mut runs: Vec<u64> = words.windows(SHINGLE_WORDS).map(hash_of_run).collect();
    runs.sort_unstable();
    runs.dedup();
    runs
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The hash of the word in lower case; `lower` is a reusable buffer.
fn hash_of_word(word: &str, lower: &mut String) -> u64 {
    lower.clear();
    if word.is_ascii() {
        lower.push_str(word);
        lower.make_ascii_lowercase();
    } else {
        lower.extend(word.chars().flat_map(char::to_lowercase));
    }
    HASHES.hash_one(lower.as_str())
}

fn are_nearly(one: &[u64], other: &[u64]) -> bool {
    let (fewer, more) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let are_enough = |shared: usize| {
        let all = fewer.len() + more.len() - shared;
        shared as f64 >= all as f64 * SAME_TEXT_SHARE
    };
    // Upper bound: the smaller set is shared completely. Rejects most pairs of texts without numbers.
    if fewer.is_empty() || !are_enough(fewer.len()) {
        return false;
    }
    let (mut shared_at_most, mut rest) = (fewer.len(), more);
    for run in fewer {
        let before = rest.iter().take_while(|other| *other < run).count();
        rest = rest.get(before..).unwrap_or_default();
        if rest.first() != Some(run) {
            shared_at_most -= 1;
            // Early exit: most other pairs are rejected after a few shingles.
            if !are_enough(shared_at_most) {
                return false;
            }
        }
    }
    true
}

fn hash_of_run(words: &[u64]) -> u64 {
    let mut hasher = HASHES.build_hasher();
    words.iter().for_each(|word| hasher.write_u64(*word));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn same(one: &str, other: &str) -> bool {
        let (first, second) = (Signature::default(), Signature::default());
        let compared = Compared { signature: &first, text: || one };
        let is_nearly = compared.is_nearly(&Compared { signature: &second, text: || other });
        assert_eq!(compared.is_nearly(&Compared { signature: &second, text: || other }), is_nearly);
        is_nearly
    }

    fn words(count: usize) -> Vec<String> {
        let letter = |number: usize| char::from(b'a' + u8::try_from(number % 26).unwrap());
        (0..count).map(|place| format!("{}{}word", letter(place), letter(place / 26))).collect()
    }

    #[test]
    fn form_makes_no_difference() {
        let text = words(40).join(" ");
        assert!(same(&text, &text));
        assert!(same(&text, &format!("  {}!\n", text.to_uppercase().replace(' ', ",\n"))));
        assert!(!same("", "") && !same("...", "---"), "without words there is nothing to compare");
    }

    #[test]
    fn a_long_text_may_differ_in_a_word_and_a_short_one_not_at_all() {
        let long = words(200);
        let mut edited = long.clone();
        edited[100] = "changed".to_owned();
        assert!(same(&long.join(" "), &edited.join(" ")));
        assert!(!same(&long.join(" "), &long[..150].join(" ")));
        let mut shorter = long[..40].to_vec();
        shorter[20] = "changed".to_owned();
        assert!(!same(&shorter.join(" "), &long[..40].join(" ")));
        assert!(!same("Minutes of the meeting", "Minutes of the meeting"), "stubs say too little");
    }

    #[test]
    fn numbers_must_be_the_same() {
        let text = words(200).join(" ");
        assert!(same(&format!("{text} 30 days"), &format!("{text} 30 days")));
        assert!(!same(&format!("{text} 30 days"), &format!("{text} 60 days")));
        assert!(!same(&format!("v1.2 {text}"), &format!("v1.3 {text}")));
    }

    proptest! {
        #[test]
        fn it_is_mutual(one in "([ab] ?){25,60}[12]?", other in "([ab] ?){25,60}[12]?") {
            prop_assert_eq!(same(&one, &other), same(&other, &one));
        }

        #[test]
        fn a_text_is_like_itself_unless_it_is_short(count in 0_usize..60) {
            let text = words(count).join("; ");
            prop_assert_eq!(same(&text, &text), count >= MIN_COMPARED_WORDS);
        }
    }
}
