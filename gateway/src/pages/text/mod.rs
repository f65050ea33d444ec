//! Renders untrusted texts as HTML: nothing in them becomes an element, an attribute name or an executable URL. Time
//! and memory are linear in the text, however odd it is.

mod class;
mod code;
mod diff;
mod front_matter;
mod json;
mod links;
mod markdown;
mod nearest;
pub(super) mod problems;
mod source;
mod yaml;

use std::fmt;

pub(super) use self::diff::compare;
pub(crate) use self::links::Relative;
pub(crate) use self::markdown::{Style, render};
pub(super) use self::nearest::{Nearest, nearest};
pub(super) use self::source::{Language, lines as source_lines};

/// A range of lines, from 1, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl Lines {
    /// Parses `12` or `12-18`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (1 <= first && first <= last).then_some(Self { first, last })
    }

    /// Whether the ranges overlap.
    pub(super) const fn meet(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    pub(super) const fn has(self, line: usize) -> bool {
        self.first <= line && line <= self.last
    }
}

impl fmt::Display for Lines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return write!(formatter, "{}", self.first);
        }
        write!(formatter, "{}-{}", self.first, self.last)
    }
}

/// Writes a text escaped for element content and attributes. Characters forbidden in HTML become replacement
/// characters.
fn escape(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(is_refused) {
        let (before, after) = rest.split_at(at);
        escape_part(out, before);
        out.push('\u{fffd}');
        rest = after.get(after.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default();
    }
    escape_part(out, rest);
}

/// Whether HTML forbids the character.
fn is_refused(letter: char) -> bool {
    let number = letter as u32;
    let is_no_character = number & 0xfffe == 0xfffe || (0xfdd0..=0xfdef).contains(&number);
    is_no_character || (letter.is_control() && !matches!(letter, '\n' | '\t' | '\r'))
}

fn escape_part(out: &mut String, text: &str) {
    use fmt::Write as _;
    // Writing to a string does not fail.
    let _ = maud::Escaper::new(out).write_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_one_or_from_to() {
        assert_eq!(Lines::parse("12"), Some(Lines { first: 12, last: 12 }));
        assert_eq!(Lines::parse("12-18"), Some(Lines { first: 12, last: 18 }));
        for odd in ["", "0", "0-3", "5-3", "a", "1-", "-1", "1-2-3", "99999999999999999999999", " 1"] {
            assert_eq!(Lines::parse(odd), None, "{odd}");
        }
        let lines = Lines { first: 3, last: 5 };
        assert_eq!(lines.to_string(), "3-5");
        assert!(lines.meet(Lines { first: 5, last: 9 }) && !lines.meet(Lines { first: 6, last: 9 }));
        assert!(lines.has(3) && lines.has(5) && !lines.has(2) && !lines.has(6));
    }

    #[test]
    fn a_text_is_shown_as_it_is() {
        let mut out = String::new();
        escape(&mut out, "<a b=\"c\"> & \0\u{1}\u{fffe} it's");
        assert_eq!(out, "&lt;a b=&quot;c&quot;&gt; &amp; \u{fffd}\u{fffd}\u{fffd} it's");
    }
}
