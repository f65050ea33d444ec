//! The cursor of a listing or of changes.

use std::collections::BTreeMap;

use cairn_chassis::clock::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Fault, Partial, Position};

const SHAPE: u16 = 1;

/// Bytes of repositories' names and states in a position.
const MAX_BYTES: usize = 9_000;
/// Bytes of a repository's state, without its name.
const MARK_BYTES: usize = 115;
/// Bytes of the skipped parts; beyond this, everything counts as skipped.
const MAX_PARTIAL_BYTES: usize = 2_000;
/// Bytes of queued folders.
const MAX_FOLDER_BYTES: usize = 3_500;

/// The remaining work, and the known state of repositories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// The remaining repositories, the current one first. `None` before they are listed.
    pub(super) queue: Option<Vec<String>>,
    /// The stage of the current one.
    pub(super) stage: Stage,
    /// The new state of the current one.
    pub(super) now: Mark,
    /// The states from earlier runs.
    pub(super) marks: BTreeMap<String, Mark>,
    pub(super) partial: Vec<Partial>,
}

/// The state of a repository: its high-water marks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// The latest change of an issue, in microseconds.
    #[serde(rename = "t", skip_serializing_if = "Option::is_none")]
    pub(super) latest: Option<i64>,
    /// The latest comment. Comments are read after the issues, so they have a mark of their own.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(super) comments: Option<i64>,
    /// The commit whose files were read last.
    #[serde(rename = "h", skip_serializing_if = "Option::is_none")]
    pub(super) head: Option<String>,
}

/// The stages of reading a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stage {
    #[default]
    Begin,
    /// Issues and pull requests, from this page.
    Issues {
        page: Option<String>,
    },
    /// Comments, for issues of which only comments changed.
    Comments {
        of: CommentsOf,
        page: Option<String>,
    },
    Files(Walk),
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CommentsOf {
    Issues,
    Reviews,
}

/// A walk over the files of one commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Walk {
    /// The commit, once resolved, and the repository's URL for people.
    pub(super) head: Option<String>,
    pub(super) web: String,
    /// Queued folders with their trees: several if the whole tree is too large for one response.
    pub(super) folders: Vec<(String, String)>,
    /// How many files of the first one were reported.
    pub(super) told: usize,
}

impl Walk {
    /// Queues a folder; false if there are too many.
    pub(super) fn wait_for(&mut self, path: String, tree: String) -> bool {
        let bytes = |path: &str, tree: &str| path.len() + tree.len();
        let waiting: usize = self.folders.iter().map(|(path, tree)| bytes(path, tree)).sum();
        let has_room = waiting + bytes(&path, &tree) <= MAX_FOLDER_BYTES;
        if has_room {
            self.folders.insert(0, (path, tree));
        }
        has_room
    }
}

impl Mark {
    /// Raises the mark of issues.
    pub(super) fn saw_issue(&mut self, at: Timestamp) {
        self.latest = self.latest.max(Some(at.as_micros()));
    }

    /// Raises the mark of comments.
    pub(super) fn saw_comment(&mut self, at: Timestamp) {
        self.comments = self.comments.max(Some(at.as_micros()));
    }
}

impl Place {
    pub(super) fn read(position: &Position) -> Result<Self, Fault> {
        position.read(SHAPE)
    }

    pub(super) fn position(&self) -> Result<Position, Fault> {
        Position::new(SHAPE, self)
    }

    /// The current repository.
    pub(super) fn repository(&self) -> Option<&str> {
        self.queue.as_ref()?.first().map(String::as_str)
    }

    /// Its state from the previous run.
    pub(super) fn before(&self) -> Mark {
        self.repository().and_then(|name| self.marks.get(name)).cloned().unwrap_or_default()
    }

    /// Starts with these repositories, which may be incomplete. Records those that do not fit as skipped.
    pub(super) fn begin(&mut self, names: Vec<String>, is_whole: bool) {
        let mut bytes = 0;
        let all = names.len();
        let fitting = names.into_iter().take_while(|name| {
            bytes += name.len() + MARK_BYTES;
            bytes <= MAX_BYTES
        });
        let queue: Vec<String> = fitting.collect();
        if queue.len() < all {
            let words =
                "the owner has more repositories than one connection reads: connect some of them by name";
            self.leave_out(Partial::everywhere(words));
        } else if !is_whole {
            self.leave_out(Partial::everywhere("GitHub does not tell all repositories of the owner"));
        }
        self.marks.retain(|name, _| queue.contains(name));
        self.queue = Some(queue);
    }

    /// Finishes the current repository, and advances to the next.
    pub(super) fn finish_repository(&mut self) {
        let now = std::mem::take(&mut self.now);
        let before = self.before();
        if let Some(queue) = &mut self.queue
            && !queue.is_empty()
        {
            let mark = Mark {
                latest: now.latest.max(before.latest),
                comments: now.comments.max(before.comments),
                head: now.head.or(before.head),
            };
            self.marks.insert(queue.remove(0), mark);
        }
        self.stage = Stage::Begin;
    }

    /// Skips the current repository, whose state stays, and advances to the next.
    pub(super) fn leave_out_repository(&mut self, owner: &str) {
        if let Some(name) = self.repository().map(str::to_owned) {
            for scope in [format!("{owner}/{name}#"), format!("{name}/")] {
                self.leave_out(Partial::below(scope, "a repository of the owner cannot be read"));
            }
        }
        self.now = Mark::default();
        self.finish_repository();
    }

    /// Records a skipped part. Beyond the bound, everything counts as skipped.
    pub(super) fn leave_out(&mut self, part: Partial) {
        let bytes = |part: &Partial| 40 + part.reason.len() + part.scope.as_ref().map_or(0, String::len);
        let is_everywhere = self.partial.iter().any(|known| known.scope.is_none());
        if self.partial.contains(&part) || (is_everywhere && part.scope.is_some()) {
            return;
        }
        let noted: usize = self.partial.iter().map(bytes).sum();
        if noted + bytes(&part) > MAX_PARTIAL_BYTES {
            self.partial = vec![Partial::everywhere("more parts could not be read than are remembered")];
        } else {
            self.partial.push(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_bounded_so_that_a_position_always_fits() {
        let mut place = Place::default();
        place.begin((0..500).map(|number| format!("{number}-{}", "n".repeat(90))).collect(), true);
        assert_eq!(place.partial.len(), 1);
        while place.repository().is_some() {
            let latest = Some(1_795_435_200_000_000);
            place.now = Mark { latest, comments: latest, head: Some("a".repeat(40)) };
            let mut walk = Walk { head: Some("a".repeat(40)), web: "w".repeat(200), ..Walk::default() };
            while walk.wait_for("p".repeat(60), "a".repeat(40)) {}
            place.stage = Stage::Files(walk);
            assert!(place.position().is_ok());
            place.stage = Stage::Issues { page: Some("p".repeat(300)) };
            assert!(place.position().is_ok());
            place.finish_repository();
        }
        assert!(place.marks.len() > 30);
        assert_eq!(Place::read(&place.position().unwrap()).unwrap(), place);
    }

    #[test]
    fn parts_that_are_too_many_to_be_remembered_become_all_of_it() {
        let mut place = Place::default();
        for number in 0..200 {
            let before = place.partial.clone();
            place.leave_out(Partial::below(format!("src/{number}/"), "too large"));
            let is_spared =
                |part: &Partial| place.partial.iter().any(|new| new.scope.is_none() || new == part);
            assert!(before.iter().all(is_spared), "{number}: what was spared stays spared");
        }
        assert_eq!(place.partial.iter().filter(|part| part.scope.is_none()).count(), 1);
    }
}
