//! Fuzzy matching: finds a quoted passage, or what is left of it, in a text that has changed since.

use std::collections::{HashMap, HashSet};

use super::Lines;

/// The lines most similar to a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nearest {
    pub(crate) lines: Lines,
    /// Whether all of its words are there.
    pub(crate) is_whole: bool,
}

/// Finds the window with the most word bigrams of a passage; at least a third of them. Runs in time linear in both.
pub(crate) fn nearest(text: &str, quote: &str) -> Option<Nearest> {
    let quote = quote.trim();
    let wanted = QuotedPassage::of(quote);
    if let Some((before, _)) = text.split_once(quote).filter(|_| !quote.is_empty()) {
        let first = 1 + newlines(before);
        return Some(Nearest { lines: Lines { first, last: first + newlines(quote) }, is_whole: true });
    }
    let met = wanted.met(text);
    let (best, pairs) = (wanted.densest(&met)?, wanted.pairs.len());
    let is_near = best.pairs * 3 >= pairs;
    let lines = Lines { first: best.first, last: best.last };
    is_near.then_some(Nearest { lines, is_whole: best.pairs == pairs })
}

fn newlines(text: &str) -> usize {
    text.matches('\n').count()
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// The number assigned to a word.
type Word = usize;
/// A bigram; for a passage of one word, that word twice.
type Pair = (Word, Word);

/// The bigrams of a passage.
struct QuotedPassage {
    words: HashMap<String, Word>,
    pairs: HashSet<Pair>,
    /// The number of words in the passage.
    count: usize,
}

/// An occurrence of one of the passage's bigrams in the text.
struct Occurrence {
    pair: Pair,
    /// The index of its second word in the text.
    place: usize,
    /// The lines of both words.
    first: usize,
    last: usize,
}

/// A window of the text, and the number of distinct bigrams in it.
struct Span {
    pairs: usize,
    first: usize,
    last: usize,
}

impl QuotedPassage {
    fn of(quote: &str) -> Self {
        let mut known: HashMap<String, Word> = HashMap::new();
        let mut row = Vec::new();
        for word in words(quote) {
            let next = known.len();
            row.push(*known.entry(word).or_insert(next));
        }
        let mut pairs: HashSet<Pair> = row.iter().copied().zip(row.iter().copied().skip(1)).collect();
        if let [only] = row.as_slice() {
            pairs.insert((*only, *only));
        }
        Self { words: known, pairs, count: row.len() }
    }

    /// The occurrences of the passage's bigrams, in the text's order.
    fn met(&self, text: &str) -> Vec<Occurrence> {
        let mut met = Vec::new();
        let mut place = 0;
        // The previous word with its line, if it is in the passage.
        let mut before: Option<(Word, usize)> = None;
        for (line, content) in (1..).zip(text.lines()) {
            for word in words(content) {
                place += 1;
                let known = self.words.get(&word).map(|word| (*word, line));
                let first = if self.count == 1 { known } else { before };
                if let (Some((one, first)), Some((other, last))) = (first, known)
                    && self.pairs.contains(&(one, other))
                {
                    met.push(Occurrence { pair: (one, other), place, first, last });
                }
                before = known;
            }
        }
        met
    }

    /// The window of 1.5 times the passage's length with the most distinct bigrams; the first of equals.
    fn densest(&self, met: &[Occurrence]) -> Option<Span> {
        let reach = self.count + self.count / 2;
        let mut within: HashMap<Pair, usize> = HashMap::new();
        let mut begin = met.iter().peekable();
        let mut best: Option<Span> = None;
        for end in met {
            *within.entry(end.pair).or_default() += 1;
            while let Some(gone) = begin.next_if(|begin| begin.place + reach <= end.place) {
                if let Some(count) = within.get_mut(&gone.pair) {
                    *count -= 1;
                    if *count == 0 {
                        within.remove(&gone.pair);
                    }
                }
            }
            let first = begin.peek().map_or(end.first, |begin| begin.first);
            if best.as_ref().is_none_or(|best| within.len() > best.pairs) {
                best = Some(Span { pairs: within.len(), first, last: end.last });
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Plan\n\nThe window is seven days.\n\nEvery release can be rolled back\nwithin it by whoever is on call.\n\nKeys are rotated.\n";

    fn found(quote: &str) -> Option<(usize, usize, bool)> {
        nearest(TEXT, quote).map(|found| (found.lines.first, found.lines.last, found.is_whole))
    }

    #[test]
    fn what_stands_there_is_found_wherever_its_lines_end() {
        assert_eq!(found("The window is seven days."), Some((3, 3, true)));
        assert_eq!(found("rolled back\nwithin it by"), Some((5, 6, true)));
        assert_eq!(found("rolled back within it BY whoever"), Some((5, 6, true)));
        assert_eq!(found(" rotated "), Some((8, 8, true)));
        assert_eq!(found("ROTATED"), Some((8, 8, true)));
    }

    #[test]
    fn what_was_mended_is_found_where_most_of_it_is() {
        assert_eq!(
            found("Every release can be taken back within it by whoever is there"),
            Some((5, 6, false))
        );
        assert_eq!(found("The window was seven days"), Some((3, 3, false)));
    }

    #[test]
    fn what_is_gone_is_not_found() {
        for quote in ["", " \n", "…", "Otters float on their backs and eat urchins", "zebra", "days seven"]
        {
            assert_eq!(found(quote), None, "{quote:?}");
        }
        assert_eq!(nearest("", "a b"), None);
    }

    #[test]
    fn a_passage_among_its_own_words_is_found_in_a_moment() {
        let text = "a b ".repeat(100_000);
        let quote = "a b c a b c ".repeat(200);
        assert!(nearest(&text, &quote).is_some_and(|found| !found.is_whole));
    }
}
