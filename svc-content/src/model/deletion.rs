//! What is in trash.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_proto::ids::{DatabaseId, DeletionId, FolderId, WorkspaceId};

use super::{Activity, Author, Operation};

/// One deletion: an item and all that it took along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deletion {
    pub(crate) workspace: WorkspaceId,
    pub(crate) id: DeletionId,
    pub(crate) kind: Kind,
    pub(crate) item_id: String,
    /// The folder that held it; absent for the root and for a record.
    pub(crate) parent_id: Option<FolderId>,
    /// What held a record.
    pub(crate) database_id: Option<DatabaseId>,
    pub(crate) name: String,
    /// Where it stood.
    pub(crate) path: String,
    /// How many items it took, the one itself included.
    pub(crate) items: u64,
    pub(crate) at: Timestamp,
    /// Absent for what was deleted before that was kept.
    pub(crate) by: Option<Author>,
}

impl Deletion {
    /// The same of an item that a folder holds, or the root.
    pub(crate) fn in_folder(self, folder: Option<FolderId>) -> Self {
        Self { parent_id: folder, ..self }
    }

    /// The same of a record.
    pub(crate) fn in_database(self, database: DatabaseId) -> Self {
        Self { database_id: Some(database), ..self }
    }

    /// What held the item; absent for the root.
    pub(crate) fn holder(&self) -> Option<String> {
        let folder = self.parent_id.map(|id| id.to_string());
        folder.or_else(|| self.database_id.map(|id| id.to_string()))
    }

    /// What is noted of it, or of its end.
    pub(crate) fn activity(&self, operation: Operation) -> Activity {
        Activity {
            database_id: self.database_id,
            items: self.items,
            ..Activity::of(operation, self.kind, &self.item_id, &self.name).at(&self.path, self.parent_id)
        }
    }
}
