//! Tells whether two texts are the same or nearly the same: copies and versions of one passage.

use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::LazyLock;

use foldhash::quality::RandomState;

use super::tuning::{FEWEST_COMPARED_WORDS, SAME_TEXT_SHARE, SHINGLE_WORDS};

/// Hashes are compared within a process alone. Nobody knows its seeds, and so nobody writes a text that passes for another.
static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// What is compared of a text: every run of a few words, and its numbers.
///
/// A number is often all that two versions of a passage differ in, and the very thing that is asked for: texts with
/// different numbers are never the same. Nor are short ones: they take little room, and title pages, headings and stubs
/// of different things read alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signature {
    /// Hashes of runs of words, each once, in ascending order; none of a short text.
    runs: Vec<u64>,
    /// The hash of the words with digits, in their order.
    numbers: u64,
}

impl Signature {
    /// The signature of a text; capitals, blanks and punctuation make no difference.
    pub(super) fn new(text: &str) -> Self {
        let mut numbers = HASHES.build_hasher();
        let (mut words, mut lower) = (Vec::new(), String::new());
        for word in text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty())
        {
            lower.clear();
            if word.is_ascii() {
                lower.push_str(word);
                lower.make_ascii_lowercase();
            } else {
                lower.extend(word.chars().flat_map(char::to_lowercase));
            }
            let hashed = HASHES.hash_one(lower.as_str());
            if word.contains(char::is_numeric) {
                numbers.write_u64(hashed);
            }
            words.push(hashed);
        }
        let mut runs: Vec<u64> = match words.len() < FEWEST_COMPARED_WORDS {
            true => Vec::new(),
            false => words.windows(SHINGLE_WORDS).map(hash_of_run).collect(),
        };
        runs.sort_unstable();
        runs.dedup();
        Self { runs, numbers: numbers.finish() }
    }

    /// Whether nearly all runs of both texts are shared (their Jaccard index) and the numbers are the same.
    pub(super) fn is_nearly(&self, other: &Self) -> bool {
        let (fewer, more) = match self.runs.len() <= other.runs.len() {
            true => (&self.runs, &other.runs),
            false => (&other.runs, &self.runs),
        };
        let are_enough = |shared: usize| {
            let all = fewer.len() + more.len() - shared;
            shared as f64 >= all as f64 * SAME_TEXT_SHARE
        };
        // No more runs can be shared than the smaller text has: most pairs end here.
        if fewer.is_empty() || self.numbers != other.numbers || !are_enough(fewer.len()) {
            return false;
        }
        let (mut shared_at_most, mut rest) = (fewer.len(), more.as_slice());
        for run in fewer {
            let before = rest.iter().take_while(|other| *other < run).count();
            rest = rest.get(before..).unwrap_or_default();
            if rest.first() != Some(run) {
                shared_at_most -= 1;
                // And most others after a few runs.
                if !are_enough(shared_at_most) {
                    return false;
                }
            }
        }
        true
    }
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
        Signature::new(one).is_nearly(&Signature::new(other))
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
            prop_assert_eq!(same(&text, &text), count >= FEWEST_COMPARED_WORDS);
        }
    }
}
