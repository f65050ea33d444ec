//! Versions of files.

use cairn_proto::content::v1 as proto;
use serde::Serialize;
use utoipa::ToSchema;

use super::time;

/// A content that a file has or had.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileVersion {
    #[schema(format = "uuid")]
    pub(crate) file_id: String,
    /// The file's version when it got this content. Changes of name, folder or tags have no version of their own here.
    pub(crate) version: u64,
    /// `blake3:` and 64 hexadecimal digits, of the content.
    pub(crate) content_hash: String,
    /// The size of the content in bytes of UTF-8.
    pub(crate) size_bytes: u64,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    /// Null when nobody knows.
    #[schema(required = true)]
    pub(crate) created_by: Option<FileAuthor>,
    /// Left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
}

/// Who gave a file its content.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileAuthor {
    /// `token`, `user` or `sync`.
    pub(crate) kind: String,
    id: String,
    pub(crate) name: String,
}

impl From<proto::FileVersion> for FileVersion {
    fn from(version: proto::FileVersion) -> Self {
        let author = |by: proto::Author| FileAuthor { kind: by.kind, id: by.id, name: by.name };
        Self {
            created_at: time(version.created_at.as_ref()),
            created_by: version.created_by.map(author),
            file_id: version.file_id,
            version: version.version,
            content_hash: version.content_hash,
            size_bytes: version.size_bytes,
            content: version.content,
        }
    }
}
