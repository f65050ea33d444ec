//! The file record.

use cairn_proto::content::v1 as proto;
use cairn_proto::domain::FileType;
use serde::Serialize;
use utoipa::ToSchema;

use super::time;

/// The Content-Type of a file's text.
pub(crate) const fn content_type(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Markdown => "text/markdown; charset=utf-8",
        FileType::Json => "application/json; charset=utf-8",
        FileType::Yaml => "text/yaml; charset=utf-8",
        FileType::Text => "text/plain; charset=utf-8",
    }
}

/// The type of a file that a service answers; one of tomorrow is read as a text.
pub(super) fn file_type(file: &proto::File) -> FileType {
    FileType::from_number(file.file_type).unwrap_or(FileType::Text)
}

/// A file of the workspace.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct File {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    #[schema(format = "uuid")]
    pub(crate) workspace_id: String,
    /// The folder it stands in; null for the root.
    #[schema(required = true)]
    pub(crate) folder_id: Option<String>,
    pub(crate) name: String,
    /// `/` and the names of the folders and of the file, joined by `/`.
    #[schema(examples("/handbook/onboarding.md"))]
    pub(crate) path: String,
    pub(crate) file_type: FileType,
    /// Left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
    pub(crate) tags: Vec<String>,
    /// The size of the content in bytes of UTF-8.
    pub(crate) size_bytes: u64,
    /// `blake3:` and 64 hexadecimal digits, of the content.
    pub(crate) content_hash: String,
    /// Rises by one with each change.
    pub(crate) version: u64,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    #[schema(format = DateTime)]
    pub(crate) updated_at: String,
}

impl From<proto::File> for File {
    fn from(file: proto::File) -> Self {
        Self {
            file_type: file_type(&file),
            created_at: time(file.created_at.as_ref()),
            updated_at: time(file.updated_at.as_ref()),
            id: file.id,
            workspace_id: file.workspace_id,
            folder_id: file.folder_id,
            name: file.name,
            path: file.path,
            content: file.content,
            tags: file.tags,
            size_bytes: file.size_bytes,
            content_hash: file.content_hash,
            version: file.version,
        }
    }
}
