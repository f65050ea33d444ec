//! Finds the code and the link targets in Markdown. `pulldown-cmark` parses the text; this module adds the ranges of the targets within
//! links, which it does not report.

use std::ops::Range;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

/// Characters that may create a node of the parser's tree, each over a hundred bytes: 5 MiB of nothing else would take half a gigabyte.
const MAX_MARKS: usize = 1_000_000;

/// A link or an image, with the range of its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Linked {
    /// The range of the link.
    pub(crate) whole: Range<usize>,
    /// The range of the target, without `<` and `>`.
    pub(crate) target: Range<usize>,
    /// The unescaped target.
    pub(crate) to: String,
    pub(crate) is_image: bool,
}

/// The ranges of a text.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Blocks and spans of code, in order and without overlap.
    pub(crate) code: Vec<Range<usize>>,
    /// Everything that is not running text (code, links, HTML), ordered by start.
    pub(crate) opaque: Vec<Range<usize>>,
    /// Tables, in order.
    pub(crate) tables: Vec<Range<usize>>,
    /// Links, images and definitions of references.
    pub(crate) links: Vec<Linked>,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "of the parser's many events these have places")]
/// Parses the text from `begin` on; ranges refer to the whole text. `None` when it is too complex.
pub(crate) fn places(text: &str, begin: usize) -> Option<Places> {
    let body = text.get(begin..).unwrap_or_default();
    let is_mark = |byte: &&u8| b"\n[]`*_<&|!\\~#:$^>".contains(byte);
    if body.as_bytes().iter().filter(is_mark).count() > MAX_MARKS {
        return None;
    }
    let mut places = Places::default();
    let parser = Parser::new_ext(
        body,
        Options::ENABLE_TABLES
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS,
    );
    for (_, definition) in parser.reference_definitions().iter() {
        let whole = shifted(&definition.span, begin);
        let to = definition.dest.to_string();
        if let Some(target) = target_behind(text, &whole, whole.start, "]:").filter(|at| says(text, at, &to))
        {
            places.links.push(Linked { whole, target, to, is_image: false });
        }
    }
    let mut open: Vec<Open> = Vec::new();
    for (event, range) in parser.into_offset_iter() {
        let range = shifted(&range, begin);
        if let Some(outer) = open.last_mut()
            && range != outer.whole
        {
            outer.inner_end = outer.inner_end.max(range.end);
        }
        match event {
            Event::Start(Tag::CodeBlock(_)) | Event::Code(_) => {
                places.code.push(range.clone());
                places.opaque.push(range);
            }
            Event::Start(Tag::Table(_)) => places.tables.push(range),
            Event::Html(_) | Event::InlineHtml(_) => places.opaque.push(range),
            Event::Start(Tag::Link { link_type, dest_url, .. }) => {
                places.opaque.push(range.clone());
                open.push(Open::new(range, link_type, dest_url.to_string(), false));
            }
            Event::Start(Tag::Image { link_type, dest_url, .. }) => {
                places.opaque.push(range.clone());
                open.push(Open::new(range, link_type, dest_url.to_string(), true));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                let closed = open.pop();
                places.links.extend(closed.and_then(|closed| closed.linked(text)));
            }
            _ => {}
        }
    }
    places.links.sort_unstable_by_key(|link| (link.target.start, link.target.end));
    places.opaque.sort_unstable_by_key(|range| range.start);
    Some(places)
}

fn shifted(range: &Range<usize>, begin: usize) -> Range<usize> {
    range.start + begin..range.end + begin
}

/// A link whose end has not been parsed yet.
struct Open {
    whole: Range<usize>,
    link_type: LinkType,
    to: String,
    is_image: bool,
    inner_end: usize,
}

impl Open {
    fn new(whole: Range<usize>, link_type: LinkType, to: String, is_image: bool) -> Self {
        let inner_end = whole.start + if is_image { 2 } else { 1 };
        Self { whole, link_type, to, is_image, inner_end }
    }

    /// The finished link, if its target was found in the source.
    fn linked(self, text: &str) -> Option<Linked> {
        if self.link_type != LinkType::Inline {
            return None;
        }
        let target = target_behind(text, &self.whole, self.inner_end, "](")?;
        if !says(text, &target, &self.to) {
            return None;
        }
        Some(Linked { whole: self.whole, target, to: self.to, is_image: self.is_image })
    }
}

/// The range of the target after `mark` (CommonMark 0.31, "link destination").
fn target_behind(text: &str, whole: &Range<usize>, from: usize, mark: &str) -> Option<Range<usize>> {
    let found = from + text.get(from..whole.end)?.find(mark)? + mark.len();
    let rest = text.get(found..whole.end)?;
    // A target may be on the next line, after the markers of a block quote.
    let begin = found + rest.find(|char: char| !char.is_whitespace())?;
    let rest = text.get(begin..whole.end)?;
    if let Some(inner) = rest.strip_prefix('<') {
        return Some(begin + 1..begin + 1 + unescaped(inner, |byte, _| byte == b'>')?);
    }
    let ends = |byte: u8, depth: &mut usize| match byte {
        b'(' => {
            *depth += 1;
            false
        }
        b')' if *depth > 0 => {
            *depth -= 1;
            false
        }
        b')' => true,
        byte => byte.is_ascii_whitespace(),
    };
    Some(begin..begin + unescaped(rest, ends).unwrap_or(rest.len()))
}

/// Whether the source at an offset is that target, apart from escapes. False if the target is on the next line of a block quote, after its
/// marker.
fn says(text: &str, place: &Range<usize>, to: &str) -> bool {
    let written = text.get(place.clone()).unwrap_or_default();
    // Entities are not decoded here, so a target with one is accepted.
    written.contains('&') || written.replace('\\', "") == to.replace('\\', "")
}

/// The offset of the first unescaped character that ends a target.
fn unescaped(text: &str, mut ends: impl FnMut(u8, &mut usize) -> bool) -> Option<usize> {
    let mut depth = 0;
    let mut is_escaped = false;
    for (place, byte) in text.bytes().enumerate() {
        if is_escaped {
            is_escaped = false;
        } else if byte == b'\\' {
            is_escaped = true;
        } else if ends(byte, &mut depth) {
            return Some(place);
        }
    }
    None
}

/// Whether an offset is in one of these ranges, which are ordered by start. Queries must be ascending.
#[derive(Debug)]
pub(crate) struct Inside<'a> {
    ranges: std::slice::Iter<'a, Range<usize>>,
    /// The maximum end of the ranges that have started.
    end: usize,
}

impl<'a> Inside<'a> {
    pub(crate) fn of(ranges: &'a [Range<usize>]) -> Self {
        Self { ranges: ranges.iter(), end: 0 }
    }

    pub(crate) fn holds(&mut self, place: usize) -> bool {
        while let Some(next) = self.ranges.as_slice().first()
            && next.start <= place
        {
            self.end = self.end.max(next.end);
            self.ranges.next();
        }
        place < self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<(&str, String)> {
        let links = places(text, 0).unwrap().links;
        links.into_iter().map(|link| (&text[link.target], link.to)).collect()
    }

    #[test]
    fn targets_are_found_where_they_stand() {
        for (text, target, to) in [
            ("[x](a.md)", "a.md", "a.md"),
            ("[x]( <a b.md> 'title')", "a b.md", "a b.md"),
            ("![a](b(1).png \"t)\")", "b(1).png", "b(1).png"),
            ("[`](`](a\\).md)", "a\\).md", "a).md"),
            ("[](a.md)", "a.md", "a.md"),
            ("[x]: a.md 'title'\n", "a.md", "a.md"),
        ] {
            assert_eq!(targets(text), [(target, to.to_owned())], "{text}");
        }
    }

    #[test]
    fn a_target_behind_the_mark_of_a_quote_is_left_alone() {
        assert!(targets("> [x](\n> a.md)").is_empty());
    }

    #[test]
    fn an_image_in_a_link_has_a_target_of_its_own() {
        let found = targets("[![i](i.png)](n.md) and [a](b.md)");
        assert_eq!(found.iter().map(|(target, _)| *target).collect::<Vec<_>>(), ["i.png", "n.md", "b.md"]);
    }

    #[test]
    fn code_has_no_links() {
        assert!(targets("`[x](a.md)`\n\n```\n[x](a.md)\n```\n\n    [x](a.md)\n\n~~~\n[x](b.md)").is_empty());
    }

    #[test]
    fn autolinks_and_references_have_no_target_in_place() {
        assert!(targets("<https://a.b> [x] [y][x]").is_empty());
    }

    #[test]
    fn a_text_of_nothing_but_marks_is_not_looked_at() {
        assert!(places(&"[[a]]".repeat(300_000), 0).is_none());
        assert!(places(&"[[a]]".repeat(1_000), 0).is_some());
    }

    #[test]
    fn places_are_asked_in_order() {
        let ranges = [2..5, 3..4, 8..9];
        let mut inside = Inside::of(&ranges);
        let held: Vec<usize> = (0..12).filter(|place| inside.holds(*place)).collect();
        assert_eq!(held, [2, 3, 4, 8]);
    }
}
