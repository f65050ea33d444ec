//! Maps byte ranges of a text to lines.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::super::Lines;

/// The start of each line.
#[derive(Debug)]
pub(super) struct Places {
    first_line: usize,
    starts: Vec<usize>,
    /// For each line, the last non-blank line up to it.
    written: Vec<usize>,
}

impl Places {
    pub(super) fn of(text: &str, first_line: usize) -> Self {
        let (mut starts, mut written, mut last) = (Vec::new(), Vec::new(), 0);
        let mut at = 0;
        for (index, line) in text.split_inclusive('\n').enumerate() {
            if line.bytes().any(|byte| !byte.is_ascii_whitespace() && byte != b'>') {
                last = index;
            }
            starts.push(at);
            written.push(last);
            at += line.len();
        }
        Self { first_line, starts, written }
    }

    /// The lines of a byte range, without trailing blank ones.
    pub(super) fn lines(&self, range: &Range<usize>) -> Lines {
        let first = self.index(range.start);
        let end = self.index(range.end.saturating_sub(1));
        let last = self.written.get(end).copied().unwrap_or(end);
        Lines { first: self.first_line + first, last: self.first_line + last.max(first) }
    }

    fn index(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at).saturating_sub(1)
    }
}

/// The end of each list item's own text, in the order of the items: where its first nested list starts, or where it
/// ends itself.
pub(super) fn own_ends(text: &str, options: Options) -> Vec<usize> {
    let (mut ends, mut open): (Vec<Option<usize>>, Vec<usize>) = (Vec::new(), Vec::new());
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        if matches!(event, Event::Start(Tag::Item)) {
            open.push(ends.len());
            ends.push(None);
        }
        let ended = if matches!(event, Event::Start(Tag::List(_))) {
            // Without the indentation of the list.
            let own = text.get(..range.start).unwrap_or_default().trim_end();
            open.last().copied().map(|item| (item, own.len()))
        } else if matches!(event, Event::End(TagEnd::Item)) {
            open.pop().map(|item| (item, range.end))
        } else {
            None
        };
        if let Some((item, end)) = ended
            && let Some(slot) = ends.get_mut(item)
        {
            slot.get_or_insert(end);
        }
    }
    ends.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_without_the_blank_ones_at_the_end() {
        let text = "# A\n\none\ntwo\n\n\n";
        let places = Places::of(text, 1);
        assert_eq!(places.lines(&(0..4)), Lines { first: 1, last: 1 });
        assert_eq!(places.lines(&(5..text.len())), Lines { first: 3, last: 4 });
        assert_eq!(Places::of("", 1).lines(&(0..0)), Lines { first: 1, last: 1 });
        assert_eq!(Places::of(text, 10).lines(&(5..8)), Lines { first: 12, last: 12 });
    }

    #[test]
    fn an_item_ends_for_itself_where_a_list_in_it_begins() {
        let text = "- a\n  - b\n- c\n";
        let ends = own_ends(text, Options::empty());
        let own: Vec<&str> =
            ends.iter().map(|end| text[..*end].trim_end().rsplit('\n').next().unwrap()).collect();
        assert_eq!(own, ["- a", "  - b", "- c"]);
    }
}
