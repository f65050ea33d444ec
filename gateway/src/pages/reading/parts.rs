//! Splits texts that are too large for one page into parts at line boundaries.

use crate::pages::text::Lines;

/// The target size of a part.
const PART_BYTES: usize = 256 * 1024;
/// The most lines of a part: a hundred thousand short ones keep a browser busy for minutes.
const PART_LINES: usize = 5_000;

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pages) struct Part<'a> {
    pub(in crate::pages) text: &'a str,
    /// The range of lines.
    pub(in crate::pages) lines: Lines,
    /// The first lines of the next and the previous part.
    pub(in crate::pages) next: Option<usize>,
    pub(in crate::pages) previous: Option<usize>,
    /// The number of lines of the text.
    pub(in crate::pages) total: usize,
}

impl Part<'_> {
    /// Whether this is the whole text.
    pub(in crate::pages) const fn is_all(&self) -> bool {
        self.next.is_none() && self.previous.is_none()
    }
}

/// The part that contains the line; the last part if there are fewer lines.
pub(in crate::pages) fn around(text: &str, line: usize) -> Part<'_> {
    // Starts of parts: line number and byte offset.
    let (mut starts, mut at, mut number) = (vec![(1, 0)], 0, 0);
    for part in text.split_inclusive('\n') {
        let (first, begun) = starts.last().copied().unwrap_or((1, 0));
        number += 1;
        let is_full = at + part.len() - begun > PART_BYTES || number - first >= PART_LINES;
        if at > begun && is_full {
            starts.push((number, at));
        }
        at += part.len();
    }
    let index = starts.partition_point(|(first, _)| *first <= line).saturating_sub(1);
    let start = |index: usize| starts.get(index).copied();
    let (first, begun) = start(index).unwrap_or((1, 0));
    let next = start(index + 1);
    let end = next.map_or(text.len(), |(_, end)| end);
    Part {
        text: text.get(begun..end).unwrap_or_default(),
        lines: Lines { first, last: next.map_or(number.max(1), |(next, _)| next - 1) },
        next: next.map(|(next, _)| next),
        previous: index.checked_sub(1).and_then(start).map(|(previous, _)| previous),
        total: number.max(1),
    }
}

/// The text with a range of lines replaced.
pub(in crate::pages) fn replaced(text: &str, lines: Lines, with: &str) -> String {
    let mut parts = text.split_inclusive('\n');
    let before: usize = parts.by_ref().take(lines.first - 1).map(str::len).sum();
    let within: usize = parts.take(lines.last + 1 - lines.first).map(str::len).sum();
    let (start, end) = (before, before + within);
    let rest = text.get(end..).unwrap_or_default();
    // The text after it stays on a line of its own.
    let gap = if rest.is_empty() || with.is_empty() || with.ends_with('\n') { "" } else { "\n" };
    [text.get(..start).unwrap_or_default(), with, gap, rest].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_small_text_is_one_part() {
        for (text, last) in [("", 1), ("a", 1), ("a\nb\n", 2)] {
            let part = around(text, 1);
            assert_eq!((part.text, part.lines, part.total), (text, Lines { first: 1, last }, last));
            assert!(part.is_all());
            assert_eq!(around(text, 999).text, text);
        }
    }

    #[test]
    fn many_short_lines_are_cut_too() {
        let text = "a\n".repeat(12_000);
        let part = around(&text, 5_001);
        assert_eq!(part.lines, Lines { first: 5_001, last: 10_000 });
        assert_eq!((part.previous, part.next, part.total), (Some(1), Some(10_001), 12_000));
        assert_eq!(around(&text, 12_000).lines, Lines { first: 10_001, last: 12_000 });
    }

    #[test]
    fn parts_follow_each_other_without_a_gap() {
        let line = format!("{}\n", "x".repeat(999));
        let text = line.repeat(1_000);
        let (mut read, mut from, mut before) = (String::new(), Some(1), None);
        while let Some(first) = from {
            let part = around(&text, first);
            assert_eq!((part.lines.first, part.previous), (first, before));
            assert!(part.text.len() <= PART_BYTES);
            assert_eq!(around(&text, part.lines.last).lines, part.lines, "each of its lines leads to it");
            read.push_str(part.text);
            (before, from) = (Some(first), part.next);
        }
        assert_eq!(read, text);
        let long = "y".repeat(PART_BYTES * 2);
        assert_eq!(around(&format!("{long}\nz"), 1).text.len(), long.len() + 1);
    }

    proptest! {
        #[test]
        fn a_part_is_replaced_and_nothing_else(
            lines in prop::collection::vec("[a-c]{0,3}", 1..8), first in 1_usize..8, more in 0_usize..4, with in "[x\\n]{0,6}",
        ) {
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            let first = first.min(lines.len());
            let last = (first + more).min(lines.len());
            let changed = replaced(&text, Lines { first, last }, &with);
            let before: String = lines[..first - 1].iter().map(|line| format!("{line}\n")).collect();
            let after: String = lines[last..].iter().map(|line| format!("{line}\n")).collect();
            prop_assert!(changed.starts_with(&before) && changed.ends_with(&after), "{}", changed);
            let middle = &changed[before.len()..changed.len() - after.len()];
            let ended = format!("{with}\n");
            prop_assert!(middle == with || middle == ended, "{}", middle);
        }
    }
}
