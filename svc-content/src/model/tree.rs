//! The items of a workspace as another service builds a tree from them.

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{DatabaseId, FileId, FolderId, MemoryId, RecordId};

use super::{FileType, MemberTarget, content_hash};

/// A live folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeFolder {
    pub(crate) id: FolderId,
    pub(crate) parent_id: Option<FolderId>,
    pub(crate) name: String,
    pub(crate) updated_at: Timestamp,
}

/// A live file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeFile {
    pub(crate) id: FileId,
    pub(crate) folder_id: Option<FolderId>,
    pub(crate) name: String,
    pub(crate) file_type: FileType,
    pub(crate) size_bytes: u64,
    pub(crate) content_hash: String,
    pub(crate) updated_at: Timestamp,
}

/// A reference to a text, which is read separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeText {
    pub(crate) hash: String,
    pub(crate) size_bytes: u64,
}

impl TreeText {
    pub(crate) fn of(text: &str) -> Self {
        Self { hash: content_hash(text), size_bytes: text.len() as u64 }
    }
}

/// A live database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeDatabase {
    pub(crate) id: DatabaseId,
    pub(crate) folder_id: Option<FolderId>,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) schema: TreeText,
    pub(crate) updated_at: Timestamp,
}

/// A live database by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedDatabase {
    pub(crate) id: DatabaseId,
    pub(crate) folder_id: Option<FolderId>,
    pub(crate) name: String,
}

/// A live record of a live database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeRecord {
    pub(crate) id: RecordId,
    pub(crate) database_id: DatabaseId,
    pub(crate) title: String,
    pub(crate) content_file_id: Option<FileId>,
    pub(crate) front_matter: TreeText,
    /// Absent when equal.
    pub(crate) without_references: Option<TreeText>,
    pub(crate) updated_at: Timestamp,
}

/// A member of a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeMember {
    pub(crate) target: MemberTarget,
    /// Whether it selects only some of the records of a database.
    pub(crate) is_query: bool,
}

/// A memory with its members in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeMemory {
    pub(crate) id: MemoryId,
    pub(crate) slug: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) use_when: Option<String>,
    pub(crate) members: Vec<TreeMember>,
    pub(crate) updated_at: Timestamp,
}
