//! What a run does to the workspace, and what it leaves alone.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Entry, FileType, Kind, SyncAction};

/// What one step writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Write {
    /// Makes a file or a folder of that name in that folder; the root, when there is none.
    Create { name: String, folder: Option<Uuid>, file_type: Option<FileType> },
    /// Gives a file the document's content; a record its values, a database its properties.
    Update,
    /// Completes what the run made: relations, when all that they lead to is there.
    Relate,
    /// Moves a file, a record, a database without records, or an empty folder to trash; removes an asset.
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
    /// In the directory; of an import, by what the object is known again.
    pub(crate) path: String,
    pub(crate) write: Write,
    pub(crate) id: Uuid,
    /// Before the write; 0 for what is made, and for folders.
    pub(crate) version: u64,
    /// Of the content after the write, as an import knows it of what the archive has; empty where that is not known or is none.
    pub(crate) hash: String,
    /// What was remembered under the path before.
    pub(crate) before: Option<Entry>,
    /// Of the text that a file gets, where `hash` is of what the archive has.
    #[serde(default)]
    pub(crate) text_hash: Option<String>,
    /// Of the text that a file had before the write, where `before` has the hash of what an archive had.
    #[serde(default)]
    pub(crate) former_hash: Option<String>,
    /// Of a file that is changed with its tags: those before the write; and of one that gets earlier content, with it.
    #[serde(default)]
    pub(crate) tags: Option<Vec<String>>,
    /// The version after the write, where the workspace told it: a database counts none, and not every write makes a new one.
    #[serde(default)]
    pub(crate) after: Option<u64>,
    /// The file that is a record's body.
    #[serde(default)]
    pub(crate) body: Option<Uuid>,
    /// Where the object is in the archive, for a report.
    #[serde(default)]
    pub(crate) source: Option<String>,
}

impl Step {
    /// A write of which the rest is as for what is new.
    pub(crate) const fn of(kind: Kind, path: String, write: Write, id: Uuid) -> Self {
        Self {
            kind,
            path,
            write,
            id,
            version: 0,
            hash: String::new(),
            before: None,
            text_hash: None,
            former_hash: None,
            tags: None,
            after: None,
            body: None,
            source: None,
        }
    }

    /// The version of the file after the write.
    pub(crate) const fn version_after(&self) -> u64 {
        if let Some(after) = self.after {
            return after;
        }
        match self.write {
            Write::Create { .. } | Write::Update | Write::Relate | Write::Revert { .. } => self.version + 1,
            Write::Trash | Write::Restore => self.version,
        }
    }

    /// What callers are told that became of the document.
    pub(crate) const fn action(&self) -> SyncAction {
        match self.write {
            // An asset never changes: the new one takes the place of the former.
            Write::Create { .. } if self.before.is_some() && matches!(self.kind, Kind::Asset) => {
                SyncAction::Updated
            }
            Write::Create { .. } => SyncAction::Created,
            Write::Update | Write::Relate | Write::Revert { .. } => SyncAction::Updated,
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

/// A document, or an object of an archive, that nothing is written for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Still {
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) kind: Kind,
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
