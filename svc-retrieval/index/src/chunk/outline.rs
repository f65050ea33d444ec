//! Turns the marks of a document (headings, keys) into sections of a useful size.

use std::ops::Range;

use super::lines::Lines;
use super::{MAX_DEPTH, MAX_HEADING_BYTES, SMALL_WORDS};

/// The start of a section. A document has at most one mark per line, in document order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The first line of the section.
    pub(super) line: usize,
    /// The number of lines from there that are only the title.
    pub(super) title_lines: usize,
    /// The parent of a mark is the nearest preceding mark of a lower level.
    pub(super) level: usize,
    /// The section's entry in the heading path.
    pub(super) label: Option<String>,
}

/// Lines with the same heading path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) range: Range<usize>,
    pub(super) path: Vec<String>,
}

/// Divides the document at its marks into sections that cover it without gaps. A section with all its subsections stays whole up to
/// `whole_up_to` words; small siblings are merged.
pub(super) fn sections(lines: &Lines<'_>, marks: &[Mark], whole_up_to: usize) -> Vec<Section> {
    let document = Part { range: lines.all(), title_lines: 0, marks, path: Vec::new(), depth: 0 };
    Outline { lines, whole_up_to }.divide(document)
}

struct Outline<'a> {
    lines: &'a Lines<'a>,
    whole_up_to: usize,
}

/// A section with the marks inside it.
struct Part<'a> {
    range: Range<usize>,
    title_lines: usize,
    marks: &'a [Mark],
    path: Vec<String>,
    depth: usize,
}

impl Outline<'_> {
    fn divide(&self, part: Part<'_>) -> Vec<Section> {
        let small = self.lines.words(part.range.clone()) <= self.whole_up_to;
        let Some(first) = part.marks.first().filter(|_| !small && part.depth < MAX_DEPTH) else {
            return vec![Section { range: part.range, path: part.path }];
        };
        let mut siblings = Siblings { lines: self.lines, path: &part.path, members: Vec::new() };
        let mut start = part.range.start;
        // A title without a body belongs to its first subsection, whose path contains it.
        if self.has_body(start + part.title_lines..first.line) {
            siblings.push(Section { range: start..first.line, path: part.path.clone() }, true);
            start = first.line;
        }
        let mut marks = part.marks;
        while let Some((mark, rest)) = marks.split_first() {
            let inner_count = rest.iter().take_while(|inner| inner.level > mark.level).count();
            let (inner, following) = rest.split_at(inner_count);
            let end = following.first().map_or(part.range.end, |next| next.line);
            let child = self.divide(Part {
                range: start..end,
                title_lines: mark.line - start + mark.title_lines,
                marks: inner,
                path: extend(&part.path, mark.label.as_deref()),
                depth: part.depth + 1,
            });
            let whole = child.len() == 1;
            for section in child {
                siblings.push(section, whole);
            }
            start = end;
            marks = following;
        }
        siblings.members.into_iter().map(|member| member.section).collect()
    }

    fn has_body(&self, range: Range<usize>) -> bool {
        range.start < range.end && self.lines.text(range).contains(char::is_alphanumeric)
    }
}

/// The sections under one mark so far.
struct Siblings<'a> {
    lines: &'a Lines<'a>,
    path: &'a [String],
    members: Vec<Member>,
}

struct Member {
    section: Section,
    words: usize,
    /// Whether the section is a whole sibling, not a part of one.
    whole: bool,
}

impl Siblings<'_> {
    fn push(&mut self, section: Section, whole: bool) {
        let words = self.lines.words(section.range.clone());
        let small = whole && words < SMALL_WORDS;
        match self.members.last_mut() {
            Some(last) if small && last.whole && last.words < SMALL_WORDS => {
                last.section.range.end = section.range.end;
                last.section.path = self.path.to_vec();
                last.words += words;
            }
            _ => self.members.push(Member { section, words, whole }),
        }
    }
}

fn extend(path: &[String], label: Option<&str>) -> Vec<String> {
    let mut path = path.to_vec();
    if let Some(label) = label {
        let end = label.floor_char_boundary(MAX_HEADING_BYTES);
        path.push(label.get(..end).unwrap_or(label).to_owned());
    }
    path
}
