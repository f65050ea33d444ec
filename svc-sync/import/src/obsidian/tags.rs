//! Tags of notes.

use std::collections::HashSet;
use std::ops::Range;

use cairn_proto::domain::limits::{TAG_CHARS, TAGS};

use crate::markdown::Inside;
use crate::text::fold;

/// Tags, each once without regard to case, as many as a file may have.
#[derive(Debug, Default)]
pub(super) struct Tags {
    pub(super) kept: Vec<String>,
    /// Whether some were left out.
    pub(super) is_truncated: bool,
    seen: HashSet<String>,
}

impl Tags {
    /// Adds a tag as it is written, with or without `#`.
    pub(super) fn add(&mut self, tag: &str) {
        let tag = tag.trim().trim_start_matches('#').trim_matches('/').trim();
        if tag.is_empty() || tag.chars().all(char::is_numeric) || tag.contains(char::is_control) {
            return;
        }
        if self.seen.contains(&fold(tag)) {
            return;
        }
        if self.kept.len() == TAGS || tag.chars().count() > TAG_CHARS {
            self.is_truncated = true;
            return;
        }
        self.seen.insert(fold(tag));
        self.kept.push(tag.to_owned());
    }

    /// Adds the tags of running text, from `begin` on. What lies in `opaque` is none.
    pub(super) fn add_inline(&mut self, text: &str, begin: usize, opaque: &[Range<usize>]) {
        let mut inside = Inside::of(opaque);
        let body = text.get(begin..).unwrap_or_default();
        for (place, _) in body.match_indices('#') {
            let place = begin + place;
            let is_hidden = inside.holds(place);
            let before = text.get(..place).and_then(|before| before.chars().next_back());
            if is_hidden || before.is_some_and(|char| !char.is_whitespace()) {
                continue;
            }
            let rest = text.get(place + 1..).unwrap_or_default();
            let end = rest.find(|char| !is_of_tag(char)).unwrap_or(rest.len());
            // Two hashes are no tag, and neither is what a link's end follows.
            self.add(rest.get(..end).unwrap_or_default());
        }
    }
}

/// Letters, digits, `_`, `-` and `/`, and beyond ASCII all but blanks and punctuation (Obsidian's help, "Tag format").
fn is_of_tag(char: char) -> bool {
    if char.is_ascii() {
        return char.is_ascii_alphanumeric() || "_-/".contains(char);
    }
    let is_punctuation = matches!(char, '\u{2000}'..='\u{206F}' | '\u{2E00}'..='\u{2E7F}' | '\u{3000}'..='\u{303F}' | '\u{FF00}'..='\u{FF0F}' | '\u{A1}'..='\u{BF}');
    char.is_alphanumeric()
        || char == '\u{200D}'
        || !(char.is_whitespace() || char.is_control() || is_punctuation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inline(text: &str) -> Vec<String> {
        let mut tags = Tags::default();
        tags.add_inline(text, 0, &crate::markdown::places(text, 0).unwrap().opaque);
        tags.kept
    }

    #[test]
    fn inline_tags_are_found_behind_blanks() {
        assert_eq!(
            inline("#one text #two/three\n#vier-ä #日本 # no x#no (#no) #fünf, #six."),
            ["one", "two/three", "vier-ä", "日本", "fünf", "six"]
        );
    }

    #[test]
    fn none_is_found_in_code_links_or_addresses() {
        let text = "`#a` [x #b](y#c) <https://d.e/#f>\n```\n#g\n```\nhttps://h.i/#j <b title=' #k'>";
        assert_eq!(inline(text), [""; 0]);
    }

    #[test]
    fn headings_and_digits_are_no_tags() {
        assert_eq!(inline("# Heading\n## Two\n#2024 #1a"), ["1a"]);
    }

    #[test]
    fn they_are_compared_without_case_and_bounded() {
        let mut tags = Tags::default();
        ["Book", "#book", "BOOK", ""].iter().for_each(|tag| tags.add(tag));
        assert_eq!(tags.kept, ["Book"]);
        (0..60).for_each(|number| tags.add(&format!("t{number}")));
        assert!(tags.is_truncated && tags.kept.len() == TAGS);
        let mut long = Tags::default();
        long.add(&"a".repeat(101));
        assert!(long.is_truncated && long.kept.is_empty());
    }
}
