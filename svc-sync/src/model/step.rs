//! The writes of a run, and what it leaves as it is.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Entry, FileType, Kind, SyncAction};

/// The operation of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Write {
    /// Creates an object of that name in that folder, or in the root.
    Create { name: String, folder: Option<Uuid>, file_type: Option<FileType> },
    /// Gives a file the document's content; a record its values, a database its properties.
    Update,
    /// Adds the relations of an object, once all their targets exist.
    Relate,
    /// Moves a file, a record, a database without records, or an empty folder to trash; removes an asset.
    Trash,
    /// Restores the content of an earlier version.
    Revert { to: u64 },
    /// Restores an object from trash.
    Restore,
}

/// One write to an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    /// The path in the directory; of an import, the identity of the object across imports.
    pub(crate) path: String,
    pub(crate) write: Write,
    pub(crate) id: Uuid,
    /// The version before the write; 0 for new objects and for folders.
    pub(crate) version: u64,
    /// The hash of the content after the write, for an import that of the archive's entry; empty when unknown or without content.
    pub(crate) hash: String,
    /// The baseline entry of the path before the write.
    pub(crate) before: Option<Entry>,
    /// The hash of the text after the write, where `hash` is that of the archive's entry.
    #[serde(default)]
    pub(crate) text_hash: Option<String>,
    /// The hash of the text before the write, where the one in `before` is that of an archive's entry.
    #[serde(default)]
    pub(crate) former_hash: Option<String>,
    /// The tags before an update that changes them; of a revert, the tags to restore.
    #[serde(default)]
    pub(crate) tags: Option<Vec<String>>,
    /// The version after the write, as the workspace reported it: not every write raises it.
    #[serde(default)]
    pub(crate) after: Option<u64>,
    /// The file with a record's body.
    #[serde(default)]
    pub(crate) body: Option<Uuid>,
    /// The path in the archive, for the report.
    #[serde(default)]
    pub(crate) source: Option<String>,
}

impl Step {
    /// A step with the other fields as for a new object.
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

    /// Whether the step changes the values of an existing record.
    pub(crate) const fn changes_record(&self) -> bool {
        let is_change = matches!(self.write, Write::Update | Write::Relate | Write::Revert { .. });
        is_change && matches!(self.kind, Kind::Record)
    }

    /// The version of the object after the write.
    pub(crate) const fn version_after(&self) -> u64 {
        if let Some(after) = self.after {
            return after;
        }
        match self.write {
            Write::Create { .. } | Write::Update | Write::Relate | Write::Revert { .. } => self.version + 1,
            Write::Trash | Write::Restore => self.version,
        }
    }

    /// The action that is reported to callers.
    pub(crate) const fn action(&self) -> SyncAction {
        match self.write {
            // Assets are immutable: a new one replaces the old one.
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

/// Steps that are sent together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) place: i64,
    /// Whether all of them are known to be done.
    pub(crate) is_settled: bool,
    pub(crate) steps: Vec<Step>,
}

/// A document, or an object of an archive, that is not written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unwritten {
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) kind: Kind,
    /// Skipped, a conflict, or failed.
    pub(crate) action: SyncAction,
    pub(crate) id: Option<Uuid>,
    /// The code and the message of a warning.
    pub(crate) why: Option<(String, String)>,
}

/// An object that a rollback left as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) path: String,
    pub(crate) id: Uuid,
    pub(crate) code: String,
    pub(crate) why: String,
}
