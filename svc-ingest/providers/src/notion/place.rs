//! Where a listing, or the changes, of a Notion workspace go on.

use serde::{Deserialize, Serialize};

use crate::{Fault, Partial, Position};

const SHAPE: u16 = 1;
/// The most ids that wait to be looked into: 100 of a page of a search, and what they hold.
const MOST_WAITING: usize = 170;
/// The most data sources of a connection that are asked for changes.
const MOST_SOURCES: usize = 120;
const MOST_PARTIAL: usize = 5;

/// What is to be read, and what is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) stage: Stage,
    /// Pages and blocks whose children are read next, before the stage goes on.
    pub(super) waiting: Vec<String>,
    /// Data sources that are known, and how many of them were read.
    pub(super) sources: Vec<String>,
    pub(super) sources_read: usize,
    /// The latest edit that was seen when this began, in microseconds.
    pub(super) latest: Option<i64>,
    /// What was written before this moment is known; `None` in a listing.
    pub(super) since: Option<i64>,
    pub(super) partial: Vec<Partial>,
}

/// What is read, one after another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stage {
    /// Pages that the search knows, the latest edit first.
    #[default]
    Pages,
    MorePages(String),
    /// Data sources that the search knows.
    Sources(Option<String>),
    /// Rows of the first data source that was not read yet: edited at that time or later, and from that cursor on.
    Rows {
        from: Option<String>,
        cursor: Option<String>,
    },
    /// What lies in the trash.
    Trash(Option<String>),
    End,
}

impl Place {
    pub(super) fn read(position: &Position) -> Result<Self, Fault> {
        position.read(SHAPE)
    }

    pub(super) fn position(&self) -> Result<Position, Fault> {
        Position::new(SHAPE, self)
    }

    /// Where the next changes begin: what was seen is known.
    pub(super) fn next(self) -> Self {
        let since = self.latest.max(self.since);
        Self { sources: self.sources, since, ..Self::default() }
    }

    pub(super) fn wait_for(&mut self, id: &str) {
        if self.waiting.iter().any(|known| known == id) {
            return;
        }
        if self.waiting.len() < MOST_WAITING && is_id(id) {
            self.waiting.push(id.to_owned());
        } else {
            self.leave_out("pages below pages were left out, since there are too many of them at once");
        }
    }

    pub(super) fn know_source(&mut self, id: &str) {
        if self.sources.iter().any(|known| known == id) {
            return;
        }
        if self.sources.len() < MOST_SOURCES && is_id(id) {
            self.sources.push(id.to_owned());
        } else {
            self.leave_out("more data sources are shared than one connection asks for their rows");
        }
    }

    pub(super) fn leave_out(&mut self, reason: &'static str) {
        let is_known = self.partial.iter().any(|partial| partial.reason == reason);
        if !is_known && self.partial.len() < MOST_PARTIAL {
            self.partial.push(Partial::everywhere(reason));
        }
    }
}

/// Whether a text is an id as Notion writes them, with or without hyphens: only such stand in addresses and positions.
pub(super) fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_place_fits_into_a_position() {
        let mut place = Place { stage: Stage::MorePages("c".repeat(1_000)), ..Place::default() };
        for number in 0..500 {
            let id = format!("{number:08}-0000-0000-0000-000000000000");
            place.wait_for(&id);
            place.wait_for(&id);
            place.know_source(&id);
        }
        place.wait_for("../users");
        assert_eq!(
            (place.waiting.len(), place.sources.len(), place.partial.len()),
            (MOST_WAITING, MOST_SOURCES, 2)
        );
        assert!(place.position().is_ok());
        assert_eq!(Place::read(&place.position().unwrap()).unwrap(), place);
    }
}
