//! The cursor of a listing or of changes.

use serde::{Deserialize, Serialize};

use crate::{Fault, Partial, Position};

const SHAPE: u16 = 1;
/// Queued ids: the 100 of a search page, and their children.
const MAX_WAITING: usize = 170;
/// Data sources of a connection that are polled for changes.
const MAX_SOURCES: usize = 120;
const MAX_PARTIAL: usize = 5;

/// The remaining work, and the high-water marks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) stage: Stage,
    /// Queued pages and blocks, whose children are read before the stage continues.
    pub(super) waiting: Vec<String>,
    /// The known data sources, and how many of them were read.
    pub(super) sources: Vec<String>,
    pub(super) sources_read: usize,
    /// The latest edit at the start, in microseconds.
    pub(super) latest: Option<i64>,
    /// The high-water mark of the previous run; `None` in a listing.
    pub(super) since: Option<i64>,
    pub(super) partial: Vec<Partial>,
}

/// The stages of reading a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stage {
    /// Pages from the search, the latest edit first.
    #[default]
    Pages,
    MorePages(String),
    /// Data sources from the search.
    Sources(Option<String>),
    /// Rows of the first unread data source that were edited at or after that time, from that cursor.
    Rows {
        from: Option<String>,
        cursor: Option<String>,
    },
    /// The trash.
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

    /// The position for the next changes.
    pub(super) fn next(self) -> Self {
        let since = self.latest.max(self.since);
        Self { sources: self.sources, since, ..Self::default() }
    }

    pub(super) fn wait_for(&mut self, id: &str) {
        if self.waiting.iter().any(|known| known == id) {
            return;
        }
        if self.waiting.len() < MAX_WAITING && is_id(id) {
            self.waiting.push(id.to_owned());
        } else {
            self.leave_out("pages below pages were left out, since there are too many of them at once");
        }
    }

    pub(super) fn know_source(&mut self, id: &str) {
        if self.sources.iter().any(|known| known == id) {
            return;
        }
        if self.sources.len() < MAX_SOURCES && is_id(id) {
            self.sources.push(id.to_owned());
        } else {
            self.leave_out("more data sources are shared than one connection asks for their rows");
        }
    }

    pub(super) fn leave_out(&mut self, reason: &'static str) {
        let is_known = self.partial.iter().any(|partial| partial.reason == reason);
        if !is_known && self.partial.len() < MAX_PARTIAL {
            self.partial.push(Partial::everywhere(reason));
        }
    }
}

/// Whether a text has the format of Notion's ids, with or without hyphens: only those may go into URLs and positions.
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
            (MAX_WAITING, MAX_SOURCES, 2)
        );
        assert!(place.position().is_ok());
        assert_eq!(Place::read(&place.position().unwrap()).unwrap(), place);
    }
}
