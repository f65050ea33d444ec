//! The excerpt of a passage in an answer: all of it, or the highlighted lines with their context.

use cairn_proto::retrieval::v1::Location;

use super::page::{self, Passage};
use super::request::{Detail, SearchRequest};

/// Lines of context before and after highlights.
const CONTEXT_LINES: u32 = 1;

/// Lines of a passage, verbatim, and the highlights among them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Excerpt {
    pub(super) content: String,
    /// The header of the table, when the content begins in the middle of one; else empty.
    pub(super) table_header: String,
    pub(super) start_line: u32,
    pub(super) end_line: u32,
    pub(super) highlights: Vec<Location>,
}

impl Excerpt {
    /// The excerpt with these highlights, best first.
    pub(super) fn of(passage: &Passage<'_>, highlights: Vec<Location>, detail: Detail) -> Self {
        let (start_line, end_line) = (passage.start_line(), passage.end_line());
        let table_header = passage.table_header().to_owned();
        let all = Self { content: passage.content(), table_header, start_line, end_line, highlights };
        match detail {
            Detail::Lines => all.narrowed(),
            Detail::Passages | Detail::Documents => all,
        }
    }

    /// Narrowed to the best highlight and those adjacent to it.
    fn narrowed(self) -> Self {
        let Some(best) = self.highlights.first() else { return self };
        let (mut start, mut end) = (best.start_line, best.end_line);
        for other in self.highlights.iter().skip(1) {
            let is_near = other.start_line <= end.saturating_add(2 * CONTEXT_LINES)
                && start <= other.end_line.saturating_add(2 * CONTEXT_LINES);
            if is_near {
                (start, end) = (start.min(other.start_line), end.max(other.end_line));
            }
        }
        let from = start.saturating_sub(CONTEXT_LINES).max(self.start_line);
        let to = end.saturating_add(CONTEXT_LINES).min(self.end_line);
        self.cut(from, to)
    }

    /// Cut to these lines, without blank ones at the edges.
    fn cut(self, from: u32, to: u32) -> Self {
        let lines: Vec<&str> = self.content.split_inclusive('\n').collect();
        let at =
            |line: u32| lines.get(usize::try_from(line - self.start_line).unwrap_or(usize::MAX)).copied();
        let is_blank = |line: &u32| at(*line).is_none_or(|text| text.trim().is_empty());
        let Some(from) = (from..=to).find(|line| !is_blank(line)) else { return self };
        let to = (from..=to).rev().find(|line| !is_blank(line)).unwrap_or(from);
        // A blank line ends a table in Markdown; CSV may have blank lines between rows and within them.
        let continues_table =
            !is_markdown_header(&self.table_header) || !(self.start_line..from).any(|line| is_blank(&line));
        let content: String = (from..=to).filter_map(at).collect();
        let content = content
            .strip_suffix('\n')
            .map_or(content.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
        let is_within = |place: &Location| from <= place.start_line && place.end_line <= to;
        let highlights = self.highlights.iter().filter(|place| is_within(place)).cloned().collect();
        let table_header = if continues_table { self.table_header } else { String::new() };
        Self { content: content.to_owned(), table_header, start_line: from, end_line: to, highlights }
    }
}

/// Whether the header is one of a Markdown table: with a delimiter row.
fn is_markdown_header(header: &str) -> bool {
    let is_rule = |character: char| matches!(character, '|' | '-' | ':' | '>' | ' ' | '\t' | '\r');
    header.lines().last().is_some_and(|line| line.contains('-') && line.chars().all(is_rule))
}

/// The excerpts that fit the token budget, best first, and how many do not. Whole passages were already measured when the page
/// was made.
pub(super) fn within_budget<'p, 'a>(
    shown: impl Iterator<Item = (&'p Passage<'a>, Excerpt)>,
    request: &SearchRequest,
) -> (Vec<(&'p Passage<'a>, Excerpt)>, usize)
where
    'a: 'p,
{
    let budget = page::budget(request).filter(|_| request.detail == Detail::Lines);
    let Some(mut left) = budget else { return (shown.collect(), 0) };
    let (mut kept, mut over_budget) = (Vec::new(), 0);
    for (passage, shown) in shown {
        match left.checked_sub(shown.table_header.len() + shown.content.len()) {
            Some(rest) => {
                left = rest;
                kept.push((passage, shown));
            }
            None => over_budget += 1,
        }
    }
    (kept, over_budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(start_line: u32, end_line: u32) -> Location {
        Location { start_line, end_line, heading_path: Vec::new() }
    }

    fn shown(content: &str, highlights: &[(u32, u32)]) -> Excerpt {
        let end_line = 10 + u32::try_from(content.matches('\n').count()).unwrap();
        let highlights = highlights.iter().map(|(start, end)| place(*start, *end)).collect();
        let table_header = "| a |\n|---|".to_owned();
        Excerpt { content: content.to_owned(), table_header, start_line: 10, end_line, highlights }
    }

    #[track_caller]
    fn check(content: &str, highlights: &[(u32, u32)], expected: (&str, u32, u32)) {
        let narrowed = shown(content, highlights).narrowed();
        assert_eq!((narrowed.content.as_str(), narrowed.start_line, narrowed.end_line), expected);
        for place in &narrowed.highlights {
            assert!(narrowed.start_line <= place.start_line && place.end_line <= narrowed.end_line);
        }
    }

    #[test]
    fn lines_are_shown_with_those_around_them() {
        check("a\nb\nc\nd\ne", &[(12, 12)], ("b\nc\nd", 11, 13));
        check("a\nb\nc", &[(10, 10)], ("a\nb", 10, 11));
        check("a\n\nc\n\ne", &[(12, 12)], ("c", 12, 12));
        check("a\r\nb\r\nc\r\nd", &[(11, 11)], ("a\r\nb\r\nc", 10, 12));
    }

    #[test]
    fn what_answers_beside_it_is_shown_and_what_is_far_is_not() {
        check("a\nb\nc\nd\ne\nf\ng", &[(11, 11), (13, 13)], ("a\nb\nc\nd\ne", 10, 14));
        let narrowed = shown("a\nb\nc\nd\ne\nf\ng", &[(10, 10), (16, 16)]).narrowed();
        assert_eq!((narrowed.content.as_str(), narrowed.highlights.len()), ("a\nb", 1));
    }

    #[test]
    fn rows_of_a_table_are_shown_under_its_header() {
        let header = |content: &str, highlight| shown(content, &[highlight]).narrowed().table_header;
        assert_eq!(header("| 1 |\n| 2 |\n| 3 |\n| 4 |", (13, 13)), "| a |\n|---|");
        assert_eq!(header("| 1 |\n\nb\nc\nd", (13, 13)), "");
    }

    #[test]
    fn rows_of_csv_are_shown_under_their_header_behind_blank_lines() {
        let rows = "1,\"one\n\ntwo\"\n2,three\n3,four";
        let of_csv =
            Excerpt { table_header: "number,\"what\nit is\"".to_owned(), ..shown(rows, &[(14, 14)]) };
        let narrowed = of_csv.narrowed();
        assert_eq!((narrowed.content.as_str(), narrowed.start_line), ("2,three\n3,four", 13));
        assert_eq!(narrowed.table_header, "number,\"what\nit is\"");
    }

    #[test]
    fn a_piece_of_a_line_and_what_nothing_answers_are_shown_whole() {
        check("one long line", &[(10, 10)], ("one long line", 10, 10));
        check("a\nb\nc\nd", &[], ("a\nb\nc\nd", 10, 13));
    }
}
