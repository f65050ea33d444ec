//! The folder record.

use cairn_proto::content::v1 as proto;
use serde::Serialize;
use utoipa::ToSchema;

use super::time;

/// A folder of the workspace.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Folder {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    #[schema(format = "uuid")]
    pub(crate) workspace_id: String,
    /// The folder it stands in; null for the root.
    #[schema(required = true)]
    pub(crate) parent_id: Option<String>,
    pub(crate) name: String,
    /// `/` and the names of the folders down to this one, joined by `/`.
    #[schema(examples("/handbook/people"))]
    pub(crate) path: String,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    #[schema(format = DateTime)]
    pub(crate) updated_at: String,
}

impl From<proto::Folder> for Folder {
    fn from(folder: proto::Folder) -> Self {
        Self {
            created_at: time(folder.created_at.as_ref()),
            updated_at: time(folder.updated_at.as_ref()),
            id: folder.id,
            workspace_id: folder.workspace_id,
            parent_id: folder.parent_id,
            name: folder.name,
            path: folder.path,
        }
    }
}
