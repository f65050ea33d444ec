//! When a tree is of that shows how things stood, and what it does not show.

use std::collections::{HashMap, HashSet};

use cairn_chassis::clock::Timestamp;
use cairn_proto::content::v1::FileType;
use cairn_proto::retrieval::v1::CoverageNote;
use uuid::Uuid;

/// When a tree is of, and what is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) at: Timestamp,
    /// What has changed since, of every kind, whoever may see it.
    pub(crate) changed: HashSet<Uuid>,
    /// What kinds of text the files that have changed are.
    pub(crate) types: HashMap<Uuid, FileType>,
    /// How many files and memories are left out, since what they were is not kept; 0 for a caller of some folders, whom a number
    /// would tell of others.
    pub(super) unknown: u32,
}

impl Past {
    /// What the tree does not show.
    pub(crate) fn notes(&self) -> Vec<CoverageNote> {
        let note = |message: String, count: Option<u32>| CoverageNote {
            code: "not_kept".to_owned(),
            message,
            source_id: None,
            count,
        };
        let shown = format!(
            "files, folders and memories that are there now are shown as they stood at {}; what was deleted since is left out, and so \
             are what is kept no more, and databases, records and documents from outside, which are known as they are now only",
            self.at.to_rfc3339()
        );
        let mut notes = vec![note(shown, None)];
        if self.unknown > 0 {
            let left_out =
                format!("{} more are left out, since what they were then is not kept", self.unknown);
            notes.push(note(left_out, Some(self.unknown)));
        }
        notes
    }
}
