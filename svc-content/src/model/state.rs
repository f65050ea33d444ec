//! How files and folders stand, for who compares them with something else.

use cairn_proto::ids::{FileId, FolderId};

/// How a file stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileState {
    pub(crate) id: FileId,
    pub(crate) in_trash: bool,
    /// Absent in the root.
    pub(crate) folder_id: Option<FolderId>,
    pub(crate) name: String,
    pub(crate) version: u64,
    pub(crate) content_hash: String,
}

/// How a folder stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FolderState {
    pub(crate) id: FolderId,
    pub(crate) in_trash: bool,
    /// Absent in the root.
    pub(crate) parent_id: Option<FolderId>,
    pub(crate) name: String,
    /// Live folders, files and databases directly in it.
    pub(crate) children: u64,
}
