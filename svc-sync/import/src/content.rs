//! The text of a file with the places of its links, which are filled in when the ids of what they lead to are known.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::report::UnresolvedReason;

/// The text of a file, ready to be written but for its links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The text as it was written.
    pub text: String,
    /// Without `#`, each once.
    pub tags: Vec<String>,
    /// What is replaced in the text: in its order, without overlap.
    pub links: Vec<Link>,
    /// Links that are listed in the report.
    pub unresolved: Vec<Listed>,
    /// Links within the archive: those that are replaced, and those that stay.
    pub found: usize,
}

/// A place in a text that is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// What is replaced, in bytes.
    pub range: Range<usize>,
    /// What stands before the address of the target.
    pub before: String,
    /// The item that it leads to; `None` for a place in the same text.
    pub target: Option<usize>,
    /// What stands behind the address.
    pub after: String,
}

/// A link that is listed.
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
    /// The text with its links. `address` is where an item is found; a link to one that has none stays as it was written.
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

/// Lines of growing places in a text.
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

    /// The line of a place, from 1. A place before the last one has the line of that.
    pub(crate) fn at(&mut self, place: usize) -> usize {
        let passed = self.text.as_bytes().get(self.place..place).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.place = self.place.max(place);
        self.line
    }
}

/// What of a link's target is kept in a report.
pub(crate) fn reported(target: &str) -> String {
    const MOST_CHARS: usize = 300;
    target.chars().take(MOST_CHARS).collect()
}
