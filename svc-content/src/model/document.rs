//! Documents for the search index.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_proto::ids::{DatabaseId, DocumentId, FolderId};

use super::{File, FileType};

/// A live document without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) kind: Kind,
    pub(crate) id: DocumentId,
    /// From the root to its folder; empty in the root, which is outside of every folder scope.
    pub(crate) folders: Vec<FolderId>,
    pub(crate) title: String,
    pub(crate) path: String,
    /// For a file.
    pub(crate) tags: Vec<String>,
    pub(crate) format: FileType,
    pub(crate) content_hash: String,
    pub(crate) updated_at: Timestamp,
    /// For a record.
    pub(crate) database_id: Option<DatabaseId>,
}

impl From<File> for Document {
    fn from(file: File) -> Self {
        Self {
            kind: Kind::File,
            id: DocumentId(file.id.0),
            folders: file.folders,
            title: file.name,
            path: file.path,
            tags: file.tags,
            format: file.file_type,
            content_hash: file.content_hash,
            updated_at: file.updated_at,
            database_id: None,
        }
    }
}
