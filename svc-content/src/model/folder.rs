//! Folders.

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{FolderId, WorkspaceId};

/// A live folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder {
    pub(crate) id: FolderId,
    pub(crate) workspace_id: WorkspaceId,
    /// From the root to its parent.
    pub(crate) folders_above: Vec<FolderId>,
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

impl Folder {
    /// The parent.
    pub(crate) fn parent_id(&self) -> Option<FolderId> {
        self.folders_above.last().copied()
    }

    /// From the root to this folder itself.
    pub(crate) fn path_ids(&self) -> Vec<FolderId> {
        let mut ids = self.folders_above.clone();
        ids.push(self.id);
        ids
    }
}
