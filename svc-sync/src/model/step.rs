//! What a run does to the workspace, and what it leaves alone.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Entry, FileType, Kind, SyncAction};

/// What one step writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Write {
    /// Makes a file or a folder of that name in that folder; the root, when there is none.
    Create { name: String, folder: Option<Uuid>, file_type: Option<FileType> },
    /// Gives a file the document's content.
    Update,
    /// Moves a file, or an empty folder, to trash.
    Trash,
    /// Gives a file the content again that it had in that version.
    Revert { to: u64 },
    /// Brings back what was moved to trash.
    Restore,
}

/// One write, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    /// In the directory.
    pub(crate) path: String,
    pub(crate) write: Write,
    pub(crate) id: Uuid,
    /// Of the file before the write; 0 for what is made, and for folders.
    pub(crate) version: u64,
    /// Of the content after the write; empty where that is not known or is none.
    pub(crate) hash: String,
    /// What was remembered under the path before.
    pub(crate) before: Option<Entry>,
}

impl Step {
    /// The version of the file after the write.
    pub(crate) const fn version_after(&self) -> u64 {
        match self.write {
            Write::Create { .. } | Write::Update | Write::Revert { .. } => self.version + 1,
            Write::Trash | Write::Restore => self.version,
        }
    }

    /// What callers are told that became of the document.
    pub(crate) const fn action(&self) -> SyncAction {
        match self.write {
            Write::Create { .. } => SyncAction::Created,
            Write::Update | Write::Revert { .. } => SyncAction::Updated,
            Write::Trash => SyncAction::Pruned,
            Write::Restore => SyncAction::Created,
        }
    }
}

/// Steps that are carried out together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) place: i64,
    /// Whether all of them are known to be done.
    pub(crate) is_settled: bool,
    pub(crate) steps: Vec<Step>,
}

/// A document that nothing is written for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Still {
    pub(crate) path: String,
    /// Skipped, a conflict, or failed.
    pub(crate) action: SyncAction,
    pub(crate) id: Option<Uuid>,
    /// Why, for a person; with the code of a warning.
    pub(crate) why: Option<(String, String)>,
}

/// Something that a rollback left as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) path: String,
    pub(crate) id: Uuid,
    pub(crate) code: String,
    pub(crate) why: String,
}
