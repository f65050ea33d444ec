//! Text in a pipeline, with its origin: the lines of the files that it comes from.

use std::cell::Cell;
use std::ops::Range;

use crate::tree::Node;

/// The maximum span length; it bounds the cost of finding a line within a span.
const SPAN: usize = 4096;

/// A range of bytes that was copied verbatim from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) node: Node,
    /// The line of its first byte, counted from 1.
    pub(crate) first: u64,
    /// The line of its last byte.
    pub(crate) last: u64,
}

/// Owned text with its origins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) bytes: Vec<u8>,
    /// In ascending order, without overlap.
    pub(crate) spans: Vec<Span>,
}

impl Block {
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// Appends text without an origin.
    pub(crate) fn text(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
    }

    /// Appends a range of a chunk with its origins.
    pub(crate) fn carry(&mut self, chunk: &Chunk<'_>, range: Range<usize>) {
        let at = self.bytes.len();
        let text = chunk.bytes.get(range.clone()).unwrap_or_default();
        self.bytes.extend_from_slice(text);
        match chunk.origin {
            Origin::File(node) => {
                let mut line = chunk.line_at(range.start);
                let mut offset = at;
                for piece in text.chunks(SPAN) {
                    let end = offset + piece.len();
                    let last = line + newlines(piece) - u64::from(piece.ends_with(b"\n"));
                    self.note(Span { start: offset, end, node, first: line, last });
                    line = last + u64::from(piece.ends_with(b"\n"));
                    offset = end;
                }
            }
            Origin::Spans(spans) => {
                let from = spans.partition_point(|span| span.end <= range.start);
                for span in spans.iter().skip(from).take_while(|span| span.start < range.end) {
                    let start = span.start.max(range.start);
                    let end = span.end.min(range.end);
                    let before = chunk.bytes.get(span.start..start).unwrap_or_default();
                    let kept = chunk.bytes.get(start..end).unwrap_or_default();
                    let first = span.first + newlines(before);
                    let last = first + newlines(kept) - u64::from(kept.ends_with(b"\n"));
                    let offset = at + start - range.start;
                    self.note(Span { start: offset, end: offset + kept.len(), node: span.node, first, last });
                }
            }
        }
    }

    /// Appends a span; merges it with the last one if they are contiguous.
    fn note(&mut self, span: Span) {
        if let Some(previous) = self.spans.last_mut() {
            let next_line = previous.last + u64::from(self.bytes.get(previous.end - 1) == Some(&b'\n'));
            let goes_on = previous.node == span.node && previous.end == span.start && next_line == span.first;
            if goes_on && span.end - previous.start <= SPAN {
                previous.end = span.end;
                previous.last = span.last;
                return;
            }
        }
        self.spans.push(span);
    }

    /// Truncates to this length.
    pub(crate) fn truncate(&mut self, length: usize) {
        while let Some(last) = self.spans.last().copied() {
            if last.end <= length {
                break;
            }
            self.spans.pop();
            if last.start < length {
                let kept = self.bytes.get(last.start..length).unwrap_or_default();
                let line = last.first + newlines(kept) - u64::from(kept.ends_with(b"\n"));
                self.spans.push(Span { end: length, last: line, ..last });
            }
        }
        self.bytes.truncate(length);
    }

    pub(crate) fn as_chunk(&self) -> Chunk<'_> {
        Chunk::new(&self.bytes, Origin::Spans(&self.spans))
    }
}

/// Borrowed text: the body of a file, or a part of a pipe.
#[derive(Debug)]
pub(crate) struct Chunk<'a> {
    pub(crate) bytes: &'a [u8],
    origin: Origin<'a>,
    /// A position and its line, from which the next count continues.
    counted: Cell<(usize, u64)>,
}

/// The origin of a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// The whole body of this file.
    File(Node),
    /// These parts of it come from files.
    Spans(&'a [Span]),
}

impl<'a> Chunk<'a> {
    pub(crate) fn new(bytes: &'a [u8], origin: Origin<'a>) -> Self {
        Self { bytes, origin, counted: Cell::new((0, 1)) }
    }

    /// Whether it is a complete input.
    pub(crate) const fn is_whole(&self) -> bool {
        matches!(self.origin, Origin::File(_))
    }

    /// The line of a position, counted from 1 at the start of the chunk. Cheap for ascending positions.
    pub(crate) fn line_at(&self, place: usize) -> u64 {
        let (mut offset, mut line) = self.counted.get();
        if place < offset {
            (offset, line) = (0, 1);
        }
        line += newlines(self.bytes.get(offset..place).unwrap_or_default());
        self.counted.set((place, line));
        line
    }

    /// Its lines, each with its line terminator if it has one.
    pub(crate) fn lines(&self) -> Lines<'a> {
        Lines { bytes: self.bytes, next: 0 }
    }

    /// The text of a range without the line terminator.
    pub(crate) fn line(&self, range: Range<usize>) -> &'a [u8] {
        let text = self.bytes.get(range).unwrap_or_default();
        text.strip_suffix(b"\n").unwrap_or(text)
    }
}

/// Iterates over the lines of a chunk as ranges.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    bytes: &'a [u8],
    next: usize,
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let rest = self.bytes.get(self.next..).filter(|rest| !rest.is_empty())?;
        let start = self.next;
        self.next = memchr::memchr(b'\n', rest).map_or(self.bytes.len(), |at| start + at + 1);
        Some(start..self.next)
    }
}

/// The number of line terminators in a text.
pub(crate) fn newlines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines_of(block: &Block) -> Vec<(String, u64, u64)> {
        block
            .spans
            .iter()
            .map(|s| (String::from_utf8_lossy(&block.bytes[s.start..s.end]).into_owned(), s.first, s.last))
            .collect()
    }

    #[test]
    fn a_line_keeps_its_number_through_two_blocks() {
        let file = Chunk::new(b"a\nbb\nccc\n", Origin::File(Node(7)));
        let mut first = Block::default();
        first.text(b"x: ");
        first.carry(&file, 2..5);
        first.text(b"y: ");
        first.carry(&file, 5..9);
        let mut second = Block::default();
        second.carry(&first.as_chunk(), 6..13);
        assert_eq!(lines_of(&first), [("bb\n".to_owned(), 2, 2), ("ccc\n".to_owned(), 3, 3)]);
        assert_eq!(lines_of(&second), [("ccc\n".to_owned(), 3, 3)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn every_byte_keeps_its_line(
            body in "[ab\n]{0,9000}",
            cuts in prop::collection::vec((0_usize..9000, 0_usize..9000), 0..12),
            keep in 0_usize..20_000,
        ) {
            let file = Chunk::new(body.as_bytes(), Origin::File(Node(1)));
            let mut block = Block::default();
            let mut expected: Vec<u64> = Vec::new();
            for (from, to) in cuts {
                let to = to.min(body.len());
                let from = from.min(to);
                block.carry(&file, from..to);
                let mut line = 1 + newlines(&body.as_bytes()[..from]);
                for byte in &body.as_bytes()[from..to] {
                    expected.push(line);
                    line += u64::from(*byte == b'\n');
                }
            }
            let mut again = Block::default();
            again.carry(&block.as_chunk(), 0..block.len());
            again.truncate(keep.min(again.len()));
            let mut counted = 0;
            for span in &again.spans {
                prop_assert_eq!(span.start, counted);
                let mut line = span.first;
                for (byte, expected) in again.bytes.iter().zip(&expected).take(span.end).skip(span.start) {
                    prop_assert_eq!(line, *expected);
                    line += u64::from(*byte == b'\n');
                }
                prop_assert_eq!(span.last, expected[span.end - 1]);
                counted = span.end;
            }
            prop_assert_eq!(counted, again.len());
        }
    }
}
