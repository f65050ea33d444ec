//! How things are spelled as segments of paths.
//!
//! Names are chosen by users: siblings may share one, and the title of a record may be anything. A segment is sanitized first. Of
//! siblings with the same segment the oldest (with the smallest id) keeps it unchanged; the others get a mark after their stem,
//! `~` and the last eight hexadecimal digits of their id: `Plan.md`, `Plan~3f2a91bc.md`. So a newer sibling changes no other
//! spelling. A name that itself looks marked always gets a mark, so that spellings are unique.

use std::collections::HashMap;

use uuid::Uuid;

/// What separates a stem from a mark.
const MARK: char = '~';
const SHORT: usize = 8;
const FULL: usize = 32;
const MAX_EXTENSION: usize = 10;
/// Bytes of a record's title that are spelled: with a mark and `.md` a segment stays below what file systems allow.
const MAX_TITLE_BYTES: usize = 200;
const UNTITLED: &str = "Untitled";

/// The segment of something with a name that can be one, as the names of files, folders and databases can.
pub(super) fn of_name(name: &str) -> String {
    let clean: String = name.chars().map(|c| if c == '/' || c.is_control() { ' ' } else { c }).collect();
    not_special(clean)
}

/// The segment of a record with a title.
pub(super) fn of_title(title: &str) -> String {
    let spaced = title.replace('/', "-").replace(|c: char| c.is_control() || is_break(c), " ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut clean = words.join(" ");
    let end = (0..=MAX_TITLE_BYTES.min(clean.len())).rev().find(|end| clean.is_char_boundary(*end));
    clean.truncate(end.unwrap_or(0));
    let clean = clean.trim_end();
    format!("{}.md", if clean.is_empty() { UNTITLED } else { clean })
}

const fn is_break(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

fn not_special(segment: String) -> String {
    match segment.trim() {
        "" => "_".to_owned(),
        "." | ".." => format!("_{}", segment.trim()),
        _ => segment,
    }
}

/// How a segment is cut for a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Before the extension.
    Extension,
    /// At its end, as of folders, whose names have no extensions.
    End,
}

fn split(segment: &str, cut: Cut) -> (&str, &str) {
    if cut == Cut::End {
        return (segment, "");
    }
    match segment.rfind('.').and_then(|dot| segment.split_at_checked(dot)) {
        Some((stem, extension)) if !stem.is_empty() && is_extension(extension) => (stem, extension),
        _ => (segment, ""),
    }
}

/// With its dot.
fn is_extension(text: &str) -> bool {
    let letters = text.get(1..).unwrap_or_default();
    (1..=MAX_EXTENSION).contains(&letters.len()) && letters.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Whether a segment needs a mark in any case: it looks marked, or its name is reserved in the folder.
pub(super) fn needs_mark(segment: &str, reserved: Option<&str>) -> bool {
    let looks_marked = |stem: &str| {
        let digits = stem.rsplit_once(MARK).map_or("", |(_, digits)| digits);
        let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        [SHORT, FULL].contains(&digits.len()) && digits.chars().all(is_digit)
    };
    reserved == Some(segment) || looks_marked(segment) || looks_marked(split(segment, Cut::Extension).0)
}

/// The digits of a mark: the end of the id, which is random, and if that is not unique, followed by its beginning.
fn digits(id: Uuid, length: usize) -> String {
    let all = id.simple().to_string();
    let (start, end) = all.split_at_checked(FULL - SHORT).unwrap_or(("", &all));
    if length == SHORT { end.to_owned() } else { format!("{end}{start}") }
}

fn with_mark(segment: &str, cut: Cut, id: Uuid, length: usize) -> String {
    let (stem, extension) = split(segment, cut);
    format!("{stem}{MARK}{}{extension}", digits(id, length))
}

/// The usual marked spelling.
pub(super) fn marked(segment: &str, cut: Cut, id: Uuid) -> String {
    with_mark(segment, cut, id, SHORT)
}

/// Whether a spelling of the segment has the long mark, which only siblings with equal short marks have.
pub(super) fn is_long(name: &str, segment: &str) -> bool {
    name.len() == segment.len() + 1 + FULL
}

/// The common prefix of all marked spellings of a segment.
pub(super) fn marked_prefix(segment: &str, cut: Cut) -> String {
    format!("{}{MARK}", split(segment, cut).0)
}

/// The common prefix of the marked spellings of a segment for ids with the same end as this one.
pub(super) fn prefix_of(segment: &str, cut: Cut, id: Uuid) -> String {
    format!("{}{MARK}{}", split(segment, cut).0, digits(id, SHORT))
}

/// A child of a folder.
#[derive(Debug, Clone)]
pub(super) struct Sibling<'a> {
    pub(super) id: Uuid,
    pub(super) segment: &'a str,
    pub(super) cut: Cut,
}

/// The spellings of all children of one folder, in the given order. Ids must differ.
pub(super) fn spell(siblings: &[Sibling<'_>], reserved: Option<&str>) -> Vec<String> {
    let mut groups: HashMap<&str, Vec<usize>> = HashMap::with_capacity(siblings.len());
    for (place, sibling) in siblings.iter().enumerate() {
        groups.entry(sibling.segment).or_default().push(place);
    }
    let mut spelled = vec![String::new(); siblings.len()];
    let mut put = |place: usize, name: String| {
        if let Some(slot) = spelled.get_mut(place) {
            *slot = name;
        }
    };
    for (segment, mut places) in groups {
        let of = |place: &usize| siblings.get(*place);
        places.sort_by_key(|place| of(place).map(|sibling| sibling.id));
        let mut marked = places.as_slice();
        if !needs_mark(segment, reserved)
            && let Some((oldest, rest)) = places.split_first()
        {
            put(*oldest, segment.to_owned());
            marked = rest;
        }
        let short = |sibling: &Sibling<'_>| with_mark(segment, sibling.cut, sibling.id, SHORT);
        let mut seen: HashMap<String, u32> = HashMap::new();
        for sibling in marked.iter().filter_map(of) {
            *seen.entry(short(sibling)).or_default() += 1;
        }
        for place in marked {
            let Some(sibling) = of(place) else { continue };
            let usual = short(sibling);
            let is_shared = seen.get(&usual).is_some_and(|count| *count > 1);
            put(*place, if is_shared { with_mark(segment, sibling.cut, sibling.id, FULL) } else { usual });
        }
    }
    spelled
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    #[test]
    fn titles_become_segments() {
        for (title, segment) in [
            ("Plan", "Plan.md"),
            ("A/B test", "A-B test.md"),
            ("two\nlines\tand\0more", "two lines and more.md"),
            ("", "Untitled.md"),
            (" \n ", "Untitled.md"),
            ("..", "...md"),
            (".", "..md"),
            ("../../etc/passwd", "..-..-etc-passwd.md"),
        ] {
            assert_eq!(of_title(title), segment, "{title:?}");
        }
        let long = of_title(&"é".repeat(300));
        assert_eq!(long, format!("{}.md", "é".repeat(100)));
    }

    #[test]
    fn names_become_segments() {
        for (name, segment) in
            [("a b.md", "a b.md"), (".", "_."), ("..", "_.."), ("", "_"), ("a/b", "a b"), ("a\nb", "a b")]
        {
            assert_eq!(of_name(name), segment, "{name:?}");
        }
    }

    #[test]
    fn the_oldest_has_the_name() {
        let (old, new, newer) = (id((1 << 80) | 7), id((2 << 80) | 8), id((3 << 80) | 9));
        let sibling = |id, cut| Sibling { id, segment: "Plan.v1.md", cut };
        let files = [sibling(newer, Cut::Extension), sibling(old, Cut::Extension), sibling(new, Cut::End)];
        assert_eq!(spell(&files, None), ["Plan.v1~00000009.md", "Plan.v1.md", "Plan.v1.md~00000008"]);
        assert_eq!(spell(&files[1..2], Some("Plan.v1.md")), ["Plan.v1~00000007.md"]);
    }

    #[test]
    fn what_looks_marked_is_marked() {
        for segment in ["a~0123abcd.md", "a~0123abcd", &format!("a~{}.md", "0".repeat(32)), "~deadbeef"] {
            assert!(needs_mark(segment, None), "{segment}");
        }
        for segment in ["a~0123abc.md", "a~0123ABCD", "a~0123abcd.md.txt", "a.md~x", "~", "a"] {
            assert!(!needs_mark(segment, None), "{segment}");
        }
    }

    /// Names that meet each other's marks.
    fn nasty() -> impl Strategy<Value = String> {
        prop_oneof![
            "[ab]{1,2}(\\.md)?",
            "[ab]~0000000[0-3](\\.md)?",
            "[ab]~0000000[0-3]~0000000[0-3]",
            "[ab]~000000000000000000000000000000[0-3][0-3](\\.[a-z]{1,12})?",
            "\\.{1,3}",
            "\\PC{0,8}",
            "[\\x00-\\x20/.~]{0,4}",
        ]
    }

    proptest! {
        #[test]
        fn spellings_are_segments_that_differ(names in prop::collection::vec((nasty(), 0..3), 0..40), spread in 1_u128..9) {
            let segments: Vec<(String, Cut)> = names
                .iter()
                .map(|(name, kind)| match kind {
                    0 => (of_name(name), Cut::End),
                    1 => (of_name(name), Cut::Extension),
                    _ => (of_title(name), Cut::Extension),
                })
                .collect();
            // Many ids end alike.
            let siblings: Vec<Sibling<'_>> = (0_u128..)
                .zip(&segments)
                .map(|(number, (segment, cut))| Sibling { id: id((number << 64) | (number % spread)), segment, cut: *cut })
                .collect();
            let spelled = spell(&siblings, Some("a.md"));
            prop_assert_eq!(spelled.iter().collect::<HashSet<_>>().len(), spelled.len(), "{:?}", spelled);
            for name in &spelled {
                prop_assert!(!name.is_empty() && name != "." && name != ".." && name != "a.md");
                prop_assert!(!name.contains(['/', '\0', '\n']), "{:?}", name);
            }
        }

        #[test]
        fn a_newer_sibling_changes_no_spelling(names in prop::collection::vec("[ab]{1,2}", 1..20)) {
            let all: Vec<Sibling<'_>> = (0_u128..)
                .zip(&names)
                .map(|(number, segment)| Sibling { id: id((number << 64) | number), segment, cut: Cut::Extension })
                .collect();
            let before = spell(&all[..all.len() - 1], None);
            let after = spell(&all, None);
            prop_assert_eq!(&before[..], &after[..before.len()]);
        }
    }
}
