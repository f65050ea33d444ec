//! Diffs: line by line, and word by word within changed lines.

use std::fmt::Write as _;
use std::ops::Range;

use maud::{Markup, PreEscaped, html};
use similar::{Algorithm, DiffOp, DiffTag};

use super::{Lines, escape};

/// With more lines than this between the first and the last change, only counts are shown.
const MAX_LINES: usize = 5_000;
/// Context lines around a change.
const CONTEXT: usize = 3;
/// Limits of word diffs: pairs of lines, and words per line.
const MAX_PAIRS: usize = 200;
const MAX_WORDS: usize = 400;

/// The diff of two texts.
#[derive(Debug)]
pub(in crate::pages) struct Comparison<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    changes: Vec<DiffOp>,
    is_too_large: bool,
}

/// Compares two texts.
pub(in crate::pages) fn compare<'a>(old: &'a str, new: &'a str) -> Comparison<'a> {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (old.get(before..).unwrap_or_default(), new.get(before..).unwrap_or_default());
    let after = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_len, new_len) = (old_rest.len() - after, new_rest.len() - after);
    let is_too_large = old_len > MAX_LINES || new_len > MAX_LINES;
    let mut changes = Vec::new();
    if before > 0 {
        changes.push(DiffOp::Equal { old_index: 0, new_index: 0, len: before });
    }
    if is_too_large {
        changes.push(DiffOp::Replace { old_index: before, old_len, new_index: before, new_len });
    } else {
        let old_part = old_rest.get(..old_len).unwrap_or_default();
        let new_part = new_rest.get(..new_len).unwrap_or_default();
        let found = similar::capture_diff_slices(Algorithm::Myers, old_part, new_part);
        changes.extend(found.into_iter().map(|change| shifted(change, before)));
    }
    if after > 0 {
        changes.push(DiffOp::Equal { old_index: before + old_len, new_index: before + new_len, len: after });
    }
    Comparison { old, new, changes, is_too_large }
}

fn shifted(change: DiffOp, by: usize) -> DiffOp {
    match change {
        DiffOp::Equal { old_index, new_index, len } => {
            DiffOp::Equal { old_index: old_index + by, new_index: new_index + by, len }
        }
        DiffOp::Delete { old_index, old_len, new_index } => {
            DiffOp::Delete { old_index: old_index + by, old_len, new_index: new_index + by }
        }
        DiffOp::Insert { old_index, new_index, new_len } => {
            DiffOp::Insert { old_index: old_index + by, new_index: new_index + by, new_len }
        }
        DiffOp::Replace { old_index, old_len, new_index, new_len } => {
            DiffOp::Replace { old_index: old_index + by, old_len, new_index: new_index + by, new_len }
        }
    }
}

impl<'a> Comparison<'a> {
    /// The numbers of removed and added lines.
    pub(in crate::pages) fn counts(&self) -> (usize, usize) {
        let changed = self.changes.iter().filter(|change| change.tag() != DiffTag::Equal);
        changed.fold((0, 0), |(removed, added), change| {
            (removed + change.old_range().len(), added + change.new_range().len())
        })
    }

    /// Maps lines of the old text to the new one: what is left of them, or their replacement; `None` if they were
    /// removed.
    pub(in crate::pages) fn now(&self, lines: Lines) -> Option<Lines> {
        let wanted = lines.first - 1..lines.last;
        let mut found: Option<Range<usize>> = None;
        for change in &self.changes {
            let (old, new) = (change.old_range(), change.new_range());
            let (start, end) = (wanted.start.max(old.start), wanted.end.min(old.end));
            if start >= end || new.is_empty() {
                continue;
            }
            let place = match change.tag() {
                DiffTag::Equal => new.start + (start - old.start)..new.start + (end - old.start),
                DiffTag::Replace | DiffTag::Insert | DiffTag::Delete => new,
            };
            let first = found.map_or(place.start, |found| found.start.min(place.start));
            found = Some(first..place.end);
        }
        found.map(|found| Lines { first: found.start + 1, last: found.end })
    }

    /// Maps a line of the new text to the old one, from 0; `None` if it was added.
    pub(in crate::pages) fn was(&self, line: usize) -> Option<usize> {
        let after = self.changes.partition_point(|change| change.new_range().end <= line);
        let change = self.changes.get(after)?;
        let is_same = change.tag() == DiffTag::Equal;
        is_same.then(|| change.old_range().start + (line - change.new_range().start))
    }

    /// Both texts in sections: whether they are equal there, and the lines of each.
    pub(in crate::pages) fn parts(&self) -> impl Iterator<Item = (bool, &[&'a str], &[&'a str])> {
        self.changes.iter().map(|change| {
            let old = self.old.get(change.old_range()).unwrap_or_default();
            let new = self.new.get(change.new_range()).unwrap_or_default();
            (change.tag() == DiffTag::Equal, old, new)
        })
    }

    /// The diff as a table, or a sentence if there is none.
    pub(in crate::pages) fn markup(&self) -> Markup {
        let (removed, added) = self.counts();
        if removed == 0 && added == 0 {
            return html! { p { "Both texts are the same." } };
        }
        if self.is_too_large {
            return html! {
                p { "The change is too large to be shown: " (removed) " lines went, " (added) " came." }
            };
        }
        let mut words = MAX_PAIRS;
        let hunks = similar::group_diff_ops(self.changes.clone(), CONTEXT);
        html! {
            @for hunk in &hunks {
                section.hunk {
                    h3 { (heading(hunk)) }
                    div.scroll tabindex="0" role="group" aria-label=(heading(hunk)) {
                        table.diff {
                            thead.sr { tr { th scope="col" { "Before" } th scope="col" { "After" } th scope="col" { "Line" } } }
                            tbody { @for change in hunk { (self.rows(change, &mut words)) } }
                        }
                    }
                }
            }
        }
    }

    fn rows(&self, change: &DiffOp, words: &mut usize) -> Markup {
        let (old, new) = (change.old_range(), change.new_range());
        if change.tag() == DiffTag::Equal {
            return html! {
                @for (old, new) in old.zip(new) {
                    tr { td { (old + 1) } td { (new + 1) } td { (rendered_line("  ", line(&self.old, old), &[])) } }
                }
            };
        }
        let pairs: Vec<(Marks, Marks)> = old
            .clone()
            .zip(new.clone())
            .map(|(old, new)| {
                if *words == 0 {
                    return Default::default();
                }
                *words -= 1;
                changed_words(line(&self.old, old), line(&self.new, new))
            })
            .collect();
        html! {
            @for (index, old) in old.enumerate() {
                @let marks = pairs.get(index).map_or([].as_slice(), |(marks, _)| marks.as_slice());
                tr.del { td { (old + 1) } td {} td { del { (rendered_line("− ", line(&self.old, old), marks)) } } }
            }
            @for (index, new) in new.enumerate() {
                @let marks = pairs.get(index).map_or([].as_slice(), |(_, marks)| marks.as_slice());
                tr.ins { td {} td { (new + 1) } td { ins { (rendered_line("+ ", line(&self.new, new), marks)) } } }
            }
        }
    }
}

/// The changed byte ranges of a line.
type Marks = Vec<Range<usize>>;

fn line<'a>(lines: &[&'a str], index: usize) -> &'a str {
    lines.get(index).copied().unwrap_or_default()
}

fn heading(hunk: &[DiffOp]) -> String {
    let (mut first, mut last, mut changed) = (usize::MAX, 0, 0);
    for change in hunk {
        let new = change.new_range();
        first = first.min(new.start);
        last = last.max(new.end);
        if change.tag() != DiffTag::Equal {
            changed += change.old_range().len().max(new.len());
        }
    }
    let first = first + 1;
    if last <= first {
        return format!("Line {first}, {changed} changed");
    }
    format!("Lines {first} to {last}, {changed} changed")
}

/// A line with its sign, and its changes highlighted.
fn rendered_line(sign: &str, line: &str, marks: &[Range<usize>]) -> Markup {
    let mut out = String::with_capacity(line.len() + 16);
    out.push_str(sign);
    let text = line.strip_suffix('\n').unwrap_or(line);
    let mut at = 0;
    for mark in marks {
        escape(&mut out, text.get(at..mark.start).unwrap_or_default());
        out.push_str("<b>");
        escape(&mut out, text.get(mark.clone()).unwrap_or_default());
        out.push_str("</b>");
        at = mark.end;
    }
    escape(&mut out, text.get(at..).unwrap_or_default());
    if text.len() == line.len() {
        let _ = write!(out, " <small>(without a line break)</small>");
    }
    PreEscaped(out)
}

/// The changed words of two lines; empty if they have hardly anything in common.
fn changed_words(old: &str, new: &str) -> (Marks, Marks) {
    let (old, new) = (old.trim_end_matches('\n'), new.trim_end_matches('\n'));
    let (old_words, new_words) = (words(old), words(new));
    if old_words.len() > MAX_WORDS || new_words.len() > MAX_WORDS {
        return Default::default();
    }
    let changes = similar::capture_diff_slices(Algorithm::Myers, &old_words, &new_words);
    let same: usize = changes
        .iter()
        .filter(|change| change.tag() == DiffTag::Equal)
        .flat_map(|change| old_words.get(change.old_range()).unwrap_or_default())
        .map(|word| word.trim().len())
        .sum();
    if same * 3 < old.trim().len().min(new.trim().len()) {
        return Default::default();
    }
    let changed = changes.iter().filter(|change| change.tag() != DiffTag::Equal);
    changed.fold((Vec::new(), Vec::new()), |(mut of_old, mut of_new), change| {
        of_old.extend(bytes(&old_words, change.old_range()));
        of_new.extend(bytes(&new_words, change.new_range()));
        (of_old, of_new)
    })
}

/// Splits into words and single other characters.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let length = match rest.find(|letter: char| !letter.is_alphanumeric()) {
            Some(0) => first.len_utf8(),
            Some(length) => length,
            None => rest.len(),
        };
        let (word, after) = rest.split_at(length);
        words.push(word);
        rest = after;
    }
    words
}

/// The byte range of consecutive words in their line.
fn bytes(words: &[&str], range: Range<usize>) -> Option<Range<usize>> {
    let length = |words: &[&str]| words.iter().map(|word| word.len()).sum::<usize>();
    let start = length(words.get(..range.start)?);
    let end = start + length(words.get(range)?);
    (start < end).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_and_words_that_changed_are_marked() {
        let old = "a\nb\nThe limit is 100 requests.\nc\n";
        let new = "a\nb\nThe limit is 250 <requests>.\nc\nd";
        let html = compare(old, new).markup().into_string();
        for part in [
            "<del>− The limit is <b>100</b> requests.</del>",
            "<ins>+ The limit is <b>250</b> <b>&lt;</b>requests<b>&gt;</b>.</ins>",
            "<td>3</td><td></td>",
            "<ins>+ d <small>(without a line break)</small></ins>",
            "<h3>Lines 1 to 5, 2 changed</h3>",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
        assert_eq!(compare(old, new).counts(), (1, 2));
        assert!(compare(old, old).markup().into_string().contains("the same"));
    }

    #[test]
    fn cited_lines_are_found_again() {
        let old = "1\n2\n3\n4\n5\n";
        let lines = |first, last| Lines { first, last };
        let now = |new: &str, cited| compare(old, new).now(cited);
        assert_eq!(now("x\n1\n2\n3\n4\n5\n", lines(2, 3)), Some(lines(3, 4)));
        assert_eq!(now("1\ntwo\n3\n4\n5\n", lines(2, 2)), Some(lines(2, 2)));
        assert_eq!(now("1\n3\n4\n5\n", lines(2, 2)), None);
        assert_eq!(now("1\n3\n4\n5\n", lines(2, 3)), Some(lines(2, 2)));
        assert_eq!(now("", lines(1, 5)), None);
        assert_eq!(compare("", "a\n").now(lines(7, 9)), None);
    }

    #[test]
    fn large_changes_are_told_as_numbers() {
        let text = |word: &str| (0..6_000).map(|line| format!("{word} {line}\n")).collect::<String>();
        let (old, new) = (text("old"), text("new"));
        let html = compare(&old, &new).markup().into_string();
        assert!(html.contains("6000 lines went, 6000 came"), "{html}");
        let long = "a ".repeat(100_000);
        assert!(compare(&long, &format!("{long}b")).markup().into_string().len() > 400_000);
    }

    proptest! {
        #[test]
        fn the_new_text_can_be_read_off(old in "[ab\\n]{0,40}", new in "[ab\\n]{0,40}") {
            let comparison = compare(&old, &new);
            let mut read = String::new();
            for change in &comparison.changes {
                let (old, new) = (change.old_range(), change.new_range());
                if change.tag() == DiffTag::Equal {
                    prop_assert_eq!(&comparison.old[old], &comparison.new[new.clone()]);
                }
                read.extend(comparison.new[new].iter().copied());
            }
            prop_assert_eq!(read, new);
        }
    }
}
