//! Words that two passages have in common.

use std::collections::HashMap;

/// Words that are returned at most.
const MAX_WORDS: usize = 8;
/// Shorter words are mostly grammar.
const MIN_WORD_CHARS: usize = 4;
/// The cap of a word's frequency, against repetition.
const MAX_COUNTED: usize = 3;

/// Words of both texts, the more telling first: longer ones, and those that come more often in both. Equal ones go by the
/// alphabet.
pub(super) fn words(one: &str, other: &str) -> Vec<String> {
    let (one, other) = (counted(one), counted(other));
    let mut shared: Vec<(usize, String)> = one
        .into_iter()
        .filter_map(|(word, count)| {
            let both = count.min(*other.get(&word)?).min(MAX_COUNTED);
            Some((both * (word.chars().count() + 1 - MIN_WORD_CHARS), word))
        })
        .collect();
    shared.sort_unstable_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    shared.truncate(MAX_WORDS);
    shared.into_iter().map(|(_, word)| word).collect()
}

fn counted(text: &str) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    let words = text.split(|character: char| !character.is_alphanumeric());
    let is_telling = |word: &&str| {
        word.chars().count() >= MIN_WORD_CHARS && word.contains(|character: char| !character.is_numeric())
    };
    for word in words.filter(is_telling) {
        *counts.entry(word.to_lowercase()).or_insert(0) += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn telling_words_come_first() {
        let one = "The deployment rolls back when a migration fails; the deployment waits.";
        let other = "A failed migration stops the deployment, and the next deployment rolls it back.";
        assert_eq!(words(one, other), ["deployment", "migration", "rolls", "back"]);
        assert_eq!(words("Überraschung 2024", "überraschung 2024"), ["überraschung"]);
        assert!(words("", "text").is_empty());
    }
}
