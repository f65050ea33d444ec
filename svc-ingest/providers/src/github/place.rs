//! Where a listing, or the changes, of repositories go on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Fault, Partial, Position};

const SHAPE: u16 = 1;

/// The most bytes that the names of repositories and what is known of them may take in a position.
const MOST_BYTES: usize = 10_000;
/// What is kept of a repository beside its name.
const MARK_BYTES: usize = 90;

/// What is to be read, and what is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// The repositories that are still to be read, the present one first. `None` before they are known.
    pub(super) queue: Option<Vec<String>>,
    /// What is read of the present one.
    pub(super) stage: Stage,
    /// What will be known of the present one at its end.
    pub(super) now: Mark,
    /// What is known of each that was read before.
    pub(super) marks: BTreeMap<String, Mark>,
    pub(super) partial: Vec<Partial>,
}

/// What is known of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// The latest change of an issue, in microseconds.
    #[serde(rename = "t", skip_serializing_if = "Option::is_none")]
    pub(super) latest: Option<i64>,
    /// The commit whose files were read.
    #[serde(rename = "h", skip_serializing_if = "Option::is_none")]
    pub(super) head: Option<String>,
}

/// What is read of a repository, one after another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stage {
    #[default]
    Begin,
    /// Issues and pull requests, from this page on.
    Issues {
        page: Option<String>,
    },
    /// Comments of these, for those whose comments changed alone; with the numbers that the issues had already.
    Comments {
        of: CommentsOf,
        page: Option<String>,
        told: Vec<u64>,
    },
    Files(Walk),
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CommentsOf {
    Issues,
    Reviews,
}

/// A walk through the files of one commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Walk {
    /// The commit, once it is known, and the repository's address for people.
    pub(super) head: Option<String>,
    pub(super) web: String,
    /// Folders that are still to be read, with their trees: more than one where a whole tree is too large for an answer.
    pub(super) folders: Vec<(String, String)>,
    /// How many files of the first of them were told.
    pub(super) told: usize,
}

impl Place {
    pub(super) fn read(position: &Position) -> Result<Self, Fault> {
        position.read(SHAPE)
    }

    pub(super) fn position(&self) -> Result<Position, Fault> {
        Position::new(SHAPE, self)
    }

    /// The repository that is read now.
    pub(super) fn repository(&self) -> Option<&str> {
        self.queue.as_ref()?.first().map(String::as_str)
    }

    /// What was known of it before.
    pub(super) fn before(&self) -> Mark {
        self.repository().and_then(|name| self.marks.get(name)).cloned().unwrap_or_default()
    }

    /// Begins with these repositories. What does not fit is told.
    pub(super) fn begin(&mut self, names: Vec<String>) {
        let mut bytes = 0;
        let all = names.len();
        let fitting = names.into_iter().take_while(|name| {
            bytes += name.len() + MARK_BYTES;
            bytes <= MOST_BYTES
        });
        let queue: Vec<String> = fitting.collect();
        if queue.len() < all {
            let words =
                "the owner has more repositories than one connection reads: connect some of them by name";
            self.partial.push(Partial::everywhere(words));
        }
        self.marks.retain(|name, _| queue.contains(name));
        self.queue = Some(queue);
    }

    /// Goes on to the next repository.
    pub(super) fn finish_repository(&mut self) {
        let now = std::mem::take(&mut self.now);
        let before = self.before();
        if let Some(queue) = &mut self.queue
            && !queue.is_empty()
        {
            let latest = now.latest.max(before.latest);
            let head = now.head.or(before.head);
            self.marks.insert(queue.remove(0), Mark { latest, head });
        }
        self.stage = Stage::Begin;
    }

    /// Notes when something was written.
    pub(super) fn saw(&mut self, micros: i64) {
        self.now.latest = self.now.latest.max(Some(micros));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_bounded_so_that_a_position_always_fits() {
        let mut place = Place::default();
        place.begin((0..500).map(|number| format!("{number}-{}", "n".repeat(90))).collect());
        assert_eq!(place.partial.len(), 1);
        while place.repository().is_some() {
            place.now = Mark { latest: Some(1_795_435_200_000_000), head: Some("a".repeat(40)) };
            place.stage = Stage::Issues { page: Some("p".repeat(300)) };
            assert!(place.position().is_ok());
            place.finish_repository();
        }
        assert!(place.marks.len() > 40);
        assert_eq!(Place::read(&place.position().unwrap()).unwrap(), place);
    }
}
