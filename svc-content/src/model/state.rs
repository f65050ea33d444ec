//! States of items, for callers that compare them with something else.

use cairn_proto::ids::{AssetId, DatabaseId, FileId, FolderId, RecordId};

/// The state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileState {
    pub(crate) id: FileId,
    pub(crate) in_trash: bool,
    /// Absent in the root.
    pub(crate) folder_id: Option<FolderId>,
    pub(crate) name: String,
    pub(crate) version: u64,
    pub(crate) content_hash: String,
    pub(crate) tags: Vec<String>,
}

/// The state of a folder.
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

/// The state of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatabaseState {
    pub(crate) id: DatabaseId,
    pub(crate) in_trash: bool,
    /// Absent in the root.
    pub(crate) folder_id: Option<FolderId>,
    pub(crate) name: String,
    /// Microseconds since the epoch.
    pub(crate) version: u64,
    /// The number of live records.
    pub(crate) records: u64,
}

/// The state of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordState {
    pub(crate) id: RecordId,
    pub(crate) database_id: DatabaseId,
    /// By itself, or with its database.
    pub(crate) in_trash: bool,
    pub(crate) version: u64,
}

/// The items of a request for states.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatesRequest {
    pub(crate) files: Vec<FileId>,
    pub(crate) folders: Vec<FolderId>,
    pub(crate) databases: Vec<DatabaseId>,
    pub(crate) records: Vec<RecordId>,
    pub(crate) assets: Vec<AssetId>,
}

impl StatesRequest {
    pub(crate) const fn count(&self) -> usize {
        self.files.len() + self.folders.len() + self.databases.len() + self.records.len() + self.assets.len()
    }
}

/// The states of the items that exist, in no particular order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct States {
    pub(crate) files: Vec<FileState>,
    pub(crate) folders: Vec<FolderState>,
    pub(crate) databases: Vec<DatabaseState>,
    pub(crate) records: Vec<RecordState>,
    /// Those that exist.
    pub(crate) assets: Vec<AssetId>,
}
