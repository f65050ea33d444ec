//! Where a listing, or the changes, of repositories go on.

use std::collections::BTreeMap;

use cairn_chassis::clock::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Fault, Partial, Position};

const SHAPE: u16 = 1;

/// The most bytes that the names of repositories and what is known of them may take in a position.
const MOST_BYTES: usize = 9_000;
/// What is kept of a repository beside its name.
const MARK_BYTES: usize = 115;
/// The most bytes of the parts that were left out; beyond that all of it counts as left out.
const MOST_PARTIAL_BYTES: usize = 2_000;
/// The most bytes of folders that are still to be read.
const MOST_FOLDER_BYTES: usize = 3_500;

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
    /// The latest comment, which is read behind the issues and says nothing about how far those were read.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(super) comments: Option<i64>,
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
    /// Comments of these, for those whose comments changed alone.
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

impl Walk {
    /// Notes a folder that is still to be read; false when there are too many.
    pub(super) fn wait_for(&mut self, path: String, tree: String) -> bool {
        let bytes = |path: &str, tree: &str| path.len() + tree.len();
        let waiting: usize = self.folders.iter().map(|(path, tree)| bytes(path, tree)).sum();
        let has_room = waiting + bytes(&path, &tree) <= MOST_FOLDER_BYTES;
        if has_room {
            self.folders.insert(0, (path, tree));
        }
        has_room
    }
}

impl Mark {
    /// Notes when an issue was written.
    pub(super) fn saw_issue(&mut self, at: Timestamp) {
        self.latest = self.latest.max(Some(at.as_micros()));
    }

    /// Notes when a comment was written.
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

    /// The repository that is read now.
    pub(super) fn repository(&self) -> Option<&str> {
        self.queue.as_ref()?.first().map(String::as_str)
    }

    /// What was known of it before.
    pub(super) fn before(&self) -> Mark {
        self.repository().and_then(|name| self.marks.get(name)).cloned().unwrap_or_default()
    }

    /// Begins with these repositories, which may not be all. What does not fit is told.
    pub(super) fn begin(&mut self, names: Vec<String>, is_whole: bool) {
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
            self.leave_out(Partial::everywhere(words));
        } else if !is_whole {
            self.leave_out(Partial::everywhere("GitHub does not tell all repositories of the owner"));
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
            let mark = Mark {
                latest: now.latest.max(before.latest),
                comments: now.comments.max(before.comments),
                head: now.head.or(before.head),
            };
            self.marks.insert(queue.remove(0), mark);
        }
        self.stage = Stage::Begin;
    }

    /// Goes on to the next repository without the present one: what is known of it stays as it was.
    pub(super) fn leave_out_repository(&mut self, owner: &str) {
        if let Some(name) = self.repository().map(str::to_owned) {
            for scope in [format!("{owner}/{name}#"), format!("{name}/")] {
                self.leave_out(Partial::below(scope, "a repository of the owner cannot be read"));
            }
        }
        self.now = Mark::default();
        self.finish_repository();
    }

    /// Notes what is not read. Parts beyond the bound are one: all of it.
    pub(super) fn leave_out(&mut self, part: Partial) {
        let bytes = |part: &Partial| 40 + part.reason.len() + part.scope.as_ref().map_or(0, String::len);
        let is_everywhere = self.partial.iter().any(|known| known.scope.is_none());
        if self.partial.contains(&part) || (is_everywhere && part.scope.is_some()) {
            return;
        }
        let noted: usize = self.partial.iter().map(bytes).sum();
        if noted + bytes(&part) > MOST_PARTIAL_BYTES {
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
