//! Splits a passage into sentences, lines and rows: the units of highlights.

use crate::search::tuning::SHORT_SENTENCE;

/// A line of at least this length may continue in the next one, as hard-wrapped prose does.
const WRAPPED_FROM: usize = 50;

/// Lines of a sentence at most.
const MAX_LINES: u32 = 6;

/// A sentence, or a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sentence<'a> {
    pub(super) text: &'a str,
    /// Its first and its last line in the passage, from 0.
    pub(super) first: u32,
    pub(super) last: u32,
}

impl Sentence<'_> {
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// The sentences of a passage in their order. They have all of its text but for blanks between them.
pub(super) fn sentences(content: &str) -> Vec<Sentence<'_>> {
    let mut cutter = Cutter { content, sentences: Vec::new(), begun: None };
    let mut at = 0;
    for (number, line) in (0..).zip(content.split_inclusive('\n')) {
        cutter.line(number, at, line, content.get(at + line.len()..).unwrap_or_default());
        at += line.len();
    }
    cutter.end(at);
    cutter.sentences
}

struct Cutter<'a> {
    content: &'a str,
    sentences: Vec<Sentence<'a>>,
    /// Where the sentence that is read began, and in which lines it stands so far.
    begun: Option<(usize, u32, u32)>,
}

impl Cutter<'_> {
    fn line(&mut self, number: u32, start: usize, line: &str, rest: &str) {
        let text = line.trim_end();
        if text.trim_start().is_empty() {
            // A heading and the text below it are one unit.
            let is_short = self.begun.is_some_and(|(from, ..)| self.length(from, start) < SHORT_SENTENCE);
            if !is_short {
                self.end(start);
            }
            return;
        }
        let mut from = 0;
        for end in sentence_ends(text) {
            self.take(start + from, number);
            self.end_unless_short(start + end);
            from = end;
        }
        if !text.get(from..).unwrap_or_default().trim().is_empty() {
            self.take(start + from, number);
        }
        if !goes_on(text, rest) {
            self.end_unless_short(start + text.len());
        }
    }

    /// Text of that line belongs to the sentence.
    fn take(&mut self, at: usize, number: u32) {
        if self.begun.is_some_and(|(_, first, _)| number - first >= MAX_LINES) {
            self.end(at);
        }
        self.begun = match self.begun {
            Some((from, first, _)) => Some((from, first, number)),
            None => Some((at, number, number)),
        };
    }

    fn end_unless_short(&mut self, end: usize) {
        if self.begun.is_some_and(|(from, ..)| self.length(from, end) >= SHORT_SENTENCE) {
            self.end(end);
        }
    }

    fn end(&mut self, end: usize) {
        let Some((from, first, last)) = self.begun.take() else { return };
        let text = self.content.get(from..end).unwrap_or_default().trim();
        if !text.is_empty() {
            self.sentences.push(Sentence { text, first, last });
        }
    }

    /// The length in bytes without surrounding whitespace: close enough to characters.
    fn length(&self, from: usize, end: usize) -> usize {
        self.content.get(from..end).unwrap_or_default().trim().len()
    }
}

/// Where sentences end within a line: behind a full stop, a question mark or the like that blanks follow.
fn sentence_ends(line: &str) -> impl Iterator<Item = usize> + '_ {
    let ends = line
        .char_indices()
        .filter(|(_, character)| matches!(character, '.' | '!' | '?' | '。' | '！' | '？'));
    ends.filter_map(|(at, character)| {
        let end = at + character.len_utf8();
        let rest = line.get(end..)?;
        let closed = rest.trim_start_matches(['"', '\'', ')', ']', '”', '’', '*', '_', '`']);
        let end = end + rest.len() - closed.len();
        let is_wide = character.len_utf8() > 1;
        (is_wide || closed.starts_with(char::is_whitespace)).then_some(end)
    })
}

/// Whether a line of prose continues in the next.
fn goes_on(line: &str, rest: &str) -> bool {
    if line.len() < WRAPPED_FROM || line.ends_with(['.', '!', '?', ':', ';', '{', '}', '|']) {
        return false;
    }
    let next = rest.lines().next().unwrap_or_default().trim_start();
    let is_open = !line.ends_with(',') && next.starts_with(['(', '`']);
    is_open || next.starts_with(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(content: &str) -> Vec<(&str, u32, u32)> {
        sentences(content).into_iter().map(|one| (one.text, one.first, one.last)).collect()
    }

    #[test]
    fn sentences_of_a_line_are_apart() {
        let content =
            "The walrus service lost its leader yesterday. Two replicas then took writes at once!\n";
        let expected = [
            ("The walrus service lost its leader yesterday.", 0, 0),
            ("Two replicas then took writes at once!", 0, 0),
        ];
        assert_eq!(cut(content).len(), 2, "{:?}", cut(content));
        assert_eq!(cut(content)[0], expected[0]);
    }

    #[test]
    fn prose_that_was_broken_by_hand_goes_on() {
        let content = "Tokens are rotated every ninety days by the operator who is\non call, and never later than that.\nNext line stands alone because it begins a sentence.";
        assert_eq!(
            cut(content).iter().map(|(_, first, last)| (*first, *last)).collect::<Vec<_>>(),
            [(0, 1), (2, 2)]
        );
    }

    #[test]
    fn a_heading_is_marked_with_what_stands_below_it() {
        let content =
            "## Rotation\n\nTokens are rotated every ninety days by the operator.\n\n## Other\n\nNothing.";
        let lines: Vec<(u32, u32)> = cut(content).iter().map(|(_, first, last)| (*first, *last)).collect();
        assert_eq!(lines, [(0, 2), (4, 6)]);
    }

    #[test]
    fn lines_of_code_and_rows_are_marked_by_themselves_where_they_are_long_enough() {
        let content = "let budget = limits.token_budget.unwrap_or_default();\nreturn limits.token_budget - spent_so_far_in_this_page;\n";
        assert_eq!(cut(content).len(), 2);
        assert_eq!(cut("a\nb\nc"), [("a\nb\nc", 0, 2)]);
        assert_eq!(cut(" \n\n"), []);
    }

    proptest! {
        #[test]
        fn no_text_is_lost_and_lines_are_right(content in "([a-zA-Zé。 .,!?#|`(-]{0,70}\n?){0,12}") {
            let cut = sentences(&content);
            let letters = |text: &str| text.chars().filter(|character| !character.is_whitespace()).collect::<String>();
            prop_assert_eq!(cut.iter().map(|one| letters(one.text)).collect::<String>(), letters(&content));
            let lines: Vec<&str> = content.split('\n').collect();
            for one in &cut {
                prop_assert!(one.first <= one.last && (one.last as usize) < lines.len());
                let spanned = lines[one.first as usize..=one.last as usize].join("\n");
                prop_assert!(spanned.contains(one.text), "{:?} in {:?}", one, spanned);
            }
        }
    }
}
