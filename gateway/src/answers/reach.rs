//! The reach of a token, counted from what the services show to such a caller.

use cairn_proto::domain::Permission;
use serde::Serialize;
use utoipa::ToSchema;

/// What a token sees and may change now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenReach {
    /// What it may do now, as far as you may do it, too.
    pub(crate) permissions: Vec<Permission>,
    /// Whether it is bound to no folder.
    pub(crate) whole_workspace: bool,
    /// The paths of its folders that are there; none for the whole workspace.
    pub(crate) folder_paths: Vec<String>,
    /// Folders of its scope that are gone.
    pub(crate) folders_gone: u64,
    /// What it reads, everything below its folders counted; 0 without the permission to read.
    pub(crate) files: u64,
    pub(crate) folders: u64,
    pub(crate) databases: u64,
    pub(crate) memories: u64,
    /// The first ten folders of the root that it sees nothing of.
    pub(crate) hidden_folders: Vec<String>,
    /// How many such folders there are.
    pub(crate) hidden_folders_total: u64,
}
