//! Folders: create, read, list, rename, move, trash.

use cairn_chassis::status::Problem;
use cairn_proto::content::v1 as proto;
use cairn_proto::ids::FolderId;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Context, Page, Paging, Written, answered, folder_choice, null_or_value, present, update};
use crate::answers::Folder;
use crate::change;
use crate::schema::inputs;

inputs!(CreateFolder, UpdateFolder);

/// A folder to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateFolder {
    /// The name: 1 to 255 characters without `/`.
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    /// The id of the folder it goes into; the root when left out.
    #[schema(format = "uuid")]
    parent_id: Option<String>,
}

/// Changes of a folder: fields that are left out stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct UpdateFolder {
    /// The new name: 1 to 255 characters without `/`.
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255)]
    name: Option<String>,
    /// The folder to move it to, never one below itself; null for the root.
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<String>, format = "uuid")]
    parent_id: Option<Option<String>>,
}

/// Filters of the list.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// `None` for the whole workspace.
    parent: Option<proto::ParentFilter>,
}

impl Selection {
    /// From `parentId`: everywhere, the root's own folders, or a folder's own folders.
    pub(crate) fn of_filter(parent_id: Option<String>) -> Result<Self, Problem> {
        let choice = folder_choice(parent_id, "parentId")?;
        Ok(Self { parent: choice.map(|parent_id| proto::ParentFilter { parent_id }) })
    }

    pub(crate) fn of_parent(parent_id: String) -> Self {
        Self { parent: Some(proto::ParentFilter { parent_id: Some(parent_id) }) }
    }
}

pub(crate) async fn create(context: &Context, input: CreateFolder) -> Result<Written<Folder>, Problem> {
    let request =
        context.call.request(proto::CreateFolderRequest { name: input.name, parent_id: input.parent_id });
    let created = answered(context.upstreams.folders().create_folder(request).await)?;
    written(created.folder, created.change_position)
}

pub(crate) async fn get(context: &Context, id: FolderId) -> Result<Folder, Problem> {
    let request = context.call.request(proto::GetFolderRequest { folder_id: id.to_string() });
    let found = answered(context.upstreams.folders().get_folder(request).await)?;
    present(found.folder)
}

pub(crate) async fn list(
    context: &Context,
    selection: Selection,
    paging: Paging,
) -> Result<Page<Folder>, Problem> {
    let request = context.call.request(proto::ListFoldersRequest {
        parent: selection.parent,
        page_size: paging.limit.unwrap_or_default(),
        page_token: paging.cursor.unwrap_or_default(),
    });
    let listed = answered(context.upstreams.folders().list_folders(request).await)?;
    Ok(Page::read(listed.folders, listed.next_page_token, listed.total_size))
}

pub(crate) async fn update(
    context: &Context,
    id: FolderId,
    input: UpdateFolder,
) -> Result<Written<Folder>, Problem> {
    let request = context.call.request(proto::UpdateFolderRequest {
        folder_id: id.to_string(),
        ..update!(input => UpdateFolderRequest { name, parent_id })
    });
    let updated = answered(context.upstreams.folders().update_folder(request).await)?;
    written(updated.folder, updated.change_position)
}

/// Moves a folder and everything in it to trash.
pub(crate) async fn delete(context: &Context, id: FolderId) -> Result<Written<()>, Problem> {
    let request = context.call.request(proto::DeleteFolderRequest { folder_id: id.to_string() });
    let deleted = answered(context.upstreams.folders().delete_folder(request).await)?;
    Ok(Written { value: (), change: change::of_content(deleted.change_position) })
}

fn written(folder: Option<proto::Folder>, position: u64) -> Result<Written<Folder>, Problem> {
    Ok(Written { value: present(folder)?, change: change::of_content(position) })
}
