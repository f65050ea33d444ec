//! The lines of a document: their offsets, their word counts, and which must not be separated.

use std::ops::Range;

use super::{BYTES_PER_WORD, MAX_TABLE_HEADER_BYTES};

/// A document's lines, numbered from 0. Ranges of lines are half-open.
pub(super) struct Lines<'a> {
    content: &'a str,
    lines: Vec<Line>,
    words: usize,
    /// In document order.
    tables: Vec<Table>,
}

/// A table whose header is repeated in chunks.
struct Table {
    lines: Range<usize>,
    /// The number of lines of its header.
    header: usize,
}

#[derive(Clone, Copy)]
struct Line {
    start: usize,
    /// Without the line break.
    end: usize,
    /// The words of all preceding lines: a prefix sum, so that a range is counted in constant time.
    words_before: usize,
    /// Whether it must stay in one chunk with the preceding line.
    glued: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(content: &'a str) -> Self {
        let mut lines = Vec::new();
        let mut start = 0;
        let mut words = 0;
        for line in content.split_inclusive('\n') {
            let body = line.strip_suffix("\r\n").or_else(|| line.strip_suffix('\n')).unwrap_or(line);
            lines.push(Line { start, end: start + body.len(), words_before: words, glued: false });
            start += line.len();
            words += count_words(body);
        }
        Self { content, lines, words, tables: Vec::new() }
    }

    pub(super) fn content(&self) -> &'a str {
        self.content
    }

    pub(super) fn all(&self) -> Range<usize> {
        0..self.lines.len()
    }

    /// The line that contains a byte offset.
    pub(super) fn at_offset(&self, offset: usize) -> usize {
        self.lines.partition_point(|line| line.start <= offset).saturating_sub(1)
    }

    /// Keeps the lines of a block together.
    pub(super) fn glue(&mut self, block: Range<usize>) {
        for line in self.lines.get_mut(block).unwrap_or_default().iter_mut().skip(1) {
            line.glued = true;
        }
    }

    /// Adds a table whose first `header` lines are its header, including a delimiter row. Tables must be added in document order.
    pub(super) fn add_table(&mut self, lines: Range<usize>, header: usize) {
        self.tables.push(Table { lines, header });
    }

    /// The header of the table that contains a line as a row; empty if there is none, or if the header is too long.
    pub(super) fn header_of(&self, line: usize) -> &'a str {
        let before = self.tables.partition_point(|table| table.lines.start <= line);
        let Some(table) = before.checked_sub(1).and_then(|last| self.tables.get(last)) else { return "" };
        let rows = table.lines.start.saturating_add(table.header)..table.lines.end;
        if !rows.contains(&line) {
            return "";
        }
        let header = self.text(table.lines.start..rows.start);
        if header.len() <= MAX_TABLE_HEADER_BYTES { header } else { "" }
    }

    pub(super) fn is_glued(&self, line: usize) -> bool {
        self.lines.get(line).is_some_and(|line| line.glued)
    }

    /// A line with anything but whitespace has at least one word.
    pub(super) fn is_blank(&self, line: usize) -> bool {
        self.words(line..line + 1) == 0
    }

    pub(super) fn words(&self, range: Range<usize>) -> usize {
        self.words_before(range.end).saturating_sub(self.words_before(range.start))
    }

    fn words_before(&self, line: usize) -> usize {
        self.lines.get(line).map_or(self.words, |line| line.words_before)
    }

    /// The text of the range without the last line break.
    pub(super) fn text(&self, range: Range<usize>) -> &'a str {
        let lines = self.lines.get(range).unwrap_or_default();
        match (lines.first(), lines.last()) {
            (Some(first), Some(last)) => self.content.get(first.start..last.end).unwrap_or_default(),
            _ => "",
        }
    }

    /// The text between the end of a line and the start of another one, both numbered from 1.
    pub(super) fn between(&self, line: u32, next: u32) -> &'a str {
        let at = |number: u32| {
            usize::try_from(number).ok().and_then(|number| self.lines.get(number.checked_sub(1)?))
        };
        let (Some(line), Some(next)) = (at(line), at(next)) else { return "" };
        self.content.get(line.end..next.start).unwrap_or_default()
    }

    /// The range without the blank lines at its edges.
    pub(super) fn trim(&self, range: Range<usize>) -> Range<usize> {
        let mut lines = range.clone().filter(|&line| !self.is_blank(line));
        let Some(first) = lines.next() else {
            return range.start..range.start;
        };
        let last = range.rev().find(|&line| !self.is_blank(line)).unwrap_or(first);
        first..last + 1
    }
}

fn count_words(line: &str) -> usize {
    let mut words = 0;
    let mut bytes = 0;
    for word in line.split_whitespace() {
        words += 1;
        bytes += word.len();
    }
    words.max(bytes / BYTES_PER_WORD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_lines_of_both_ends() {
        let lines = Lines::new("one\r\n\r\ntwo three\nfour");
        assert_eq!(lines.all(), 0..4);
        assert_eq!(lines.text(0..3), "one\r\n\r\ntwo three");
        assert_eq!(lines.words(0..4), 4);
        assert!(lines.is_blank(1));
        assert_eq!([0, 4, 5, 7, 20].map(|offset| lines.at_offset(offset)), [0, 0, 1, 2, 3]);
    }

    #[test]
    fn trims_blank_edges() {
        let lines = Lines::new("\n \na\n\nb\n\n");
        assert_eq!(lines.trim(0..6), 2..5);
        assert!(lines.trim(0..2).is_empty());
    }
}
