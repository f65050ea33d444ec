//! Deletions: the contents of the trash.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_proto::ids::{DatabaseId, DeletionId, FolderId, WorkspaceId};

use super::{Activity, Author, Operation};

/// One deletion: an item and everything in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deletion {
    pub(crate) workspace: WorkspaceId,
    pub(crate) id: DeletionId,
    pub(crate) kind: Kind,
    pub(crate) item_id: String,
    /// The folder it was in; absent for the root and for a record.
    pub(crate) parent_id: Option<FolderId>,
    /// The database of a record.
    pub(crate) database_id: Option<DatabaseId>,
    pub(crate) name: String,
    /// The former path.
    pub(crate) path: String,
    /// The number of items, including the item itself.
    pub(crate) items: u64,
    pub(crate) at: Timestamp,
    /// Absent for deletions from before the author was stored.
    pub(crate) by: Option<Author>,
}

impl Deletion {
    /// Sets the folder; `None` is the root.
    pub(crate) fn in_folder(self, folder: Option<FolderId>) -> Self {
        Self { parent_id: folder, ..self }
    }

    /// Sets the database of a record.
    pub(crate) fn in_database(self, database: DatabaseId) -> Self {
        Self { database_id: Some(database), ..self }
    }

    /// The container of the item; absent for the root.
    pub(crate) fn holder(&self) -> Option<String> {
        let folder = self.parent_id.map(|id| id.to_string());
        folder.or_else(|| self.database_id.map(|id| id.to_string()))
    }

    /// The activity of the deletion, or of its end.
    pub(crate) fn activity(&self, operation: Operation) -> Activity {
        Activity {
            database_id: self.database_id,
            items: self.items,
            ..Activity::of(operation, self.kind, &self.item_id, &self.name).at(&self.path, self.parent_id)
        }
    }
}
