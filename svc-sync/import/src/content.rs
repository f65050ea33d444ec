//! The text of a file with the ranges of its links, which are filled in once the ids of their targets are known.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::report::UnresolvedReason;

/// The text of a file as a template: only its links are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The original text.
    pub text: String,
    /// Tags without `#`, deduplicated.
    pub tags: Vec<String>,
    /// Replacements, in order and without overlap.
    pub links: Vec<Link>,
    /// Links for the report.
    pub unresolved: Vec<Listed>,
    /// The number of links within the archive: replaced, and left as they are.
    pub found: usize,
}

/// A replacement in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The byte range to replace.
    pub range: Range<usize>,
    /// The text before the target's address.
    pub before: String,
    /// The target; `None` for a fragment of the same text.
    pub target: Option<usize>,
    /// The text after the address.
    pub after: String,
}

/// A link for the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// From 1.
    pub line: usize,
    /// As it is written.
    pub target: String,
    /// Why.
    pub reason: UnresolvedReason,
}

impl Content {
    /// Fills in the links. `address` resolves an item; a link to an item without an address stays as it is.
    pub fn fill(&self, mut address: impl FnMut(usize) -> Option<String>) -> String {
        let mut filled = String::with_capacity(self.text.len() + 64 * self.links.len());
        let mut done = 0;
        for link in &self.links {
            let address = match link.target {
                None => String::new(),
                Some(target) => match address(target) {
                    Some(address) => address,
                    None => continue,
                },
            };
            filled.push_str(self.text.get(done..link.range.start).unwrap_or_default());
            filled.push_str(&link.before);
            filled.push_str(&address);
            filled.push_str(&link.after);
            done = link.range.end;
        }
        filled.push_str(self.text.get(done..).unwrap_or_default());
        filled
    }
}

/// Line numbers of ascending offsets in a text.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    text: &'a str,
    place: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self { text, place: 0, line: 1 }
    }

    /// The line of an offset, from 1. An offset before the previous one gets its line.
    pub(crate) fn at(&mut self, place: usize) -> usize {
        let passed = self.text.as_bytes().get(self.place..place).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.place = self.place.max(place);
        self.line
    }
}

/// Truncates a link's target for the report.
pub(crate) fn reported(target: &str) -> String {
    const MAX_CHARS: usize = 300;
    target.chars().take(MAX_CHARS).collect()
}
