//! Files and their contents.

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{FileId, FolderId, WorkspaceId};

use super::{Author, FileType};

/// A live file without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) id: FileId,
    pub(crate) workspace_id: WorkspaceId,
    /// From the root to its folder; empty for a file in the root.
    pub(crate) folders: Vec<FolderId>,
    pub(crate) name: String,
    /// What the file is for.
    pub(crate) description: Option<String>,
    pub(crate) path: String,
    pub(crate) file_type: FileType,
    pub(crate) tags: Vec<String>,
    pub(crate) size_bytes: u64,
    pub(crate) content_hash: String,
    pub(crate) version: u64,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

impl File {
    /// The folder it is in.
    pub(crate) fn folder_id(&self) -> Option<FolderId> {
        self.folders.last().copied()
    }
}

/// A current or former content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileVersion {
    pub(crate) file_id: FileId,
    /// The version of the file that introduced the content.
    pub(crate) version: u64,
    pub(crate) content_hash: String,
    pub(crate) size_bytes: u64,
    pub(crate) created_at: Timestamp,
    /// Absent when unknown.
    pub(crate) author: Option<Author>,
}
