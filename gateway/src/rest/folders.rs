//! Folders (spec 4.2).

use std::sync::Arc;

use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse as _;
use cairn_proto::ids::FolderId;
use http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{Answer, done, paging, written};
use crate::answers::{File, Folder, Links};
use crate::extract::{Json, PathId, Query};
use crate::json_body::JsonBody;
use crate::operations::folders::{self, CreateFolder, Selection, UpdateFolder};
use crate::operations::{Context, Paging, files as file_operations};
use crate::schema::inputs;

inputs!(ListFolders, ListFolderFiles, ListSubfolders);

/// Which folders to list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListFolders {
    /// Only the folders directly in this one; `root` for the root's own folders. Left out: all folders.
    parent_id: Option<String>,
    /// How many at once: 1 to 1000, 1000 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// Which files of a folder to list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListFolderFiles {
    /// Whether files of folders below it count too; `true` when left out.
    recursive: Option<bool>,
    /// How many at once: 1 to 1000, 1000 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// Which subfolders to list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListSubfolders {
    /// How many at once: 1 to 1000, 1000 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// List folders.
#[utoipa::path(
    get, path = "/api/v1/folders", operation_id = "listFolders", tag = "Folders", params(ListFolders),
    responses((status = 200, description = "The folders, by name.", body = Vec<Folder>)),
)]
pub(super) async fn list(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    context: Context,
    Query(query): Query<ListFolders>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    let listed = folders::list(&context, Selection::of_filter(query.parent_id)?, page).await?;
    Ok(paging::respond(listed, &uri, &links))
}

/// Create a folder.
#[utoipa::path(
    post, path = "/api/v1/folders", operation_id = "createFolder", tag = "Folders", request_body = CreateFolder,
    responses((status = 201, description = "The folder that was made.", body = Folder)),
)]
pub(super) async fn create(context: Context, Json(input): Json<CreateFolder>) -> Answer {
    Ok(written(StatusCode::CREATED, folders::create(&context, input).await?))
}

/// Read a folder.
#[utoipa::path(
    get, path = "/api/v1/folders/{id}", operation_id = "getFolder", tag = "Folders",
    params(("id" = String, Path, format = "uuid", description = "The folder.")),
    responses((status = 200, description = "The folder.", body = Folder)),
)]
pub(super) async fn get(context: Context, PathId(id): PathId<FolderId>) -> Answer {
    Ok(JsonBody(folders::get(&context, id).await?).into_response())
}

/// Rename or move a folder.
///
/// A move into itself or below itself is refused.
#[utoipa::path(
    patch, path = "/api/v1/folders/{id}", operation_id = "updateFolder", tag = "Folders", request_body = UpdateFolder,
    params(("id" = String, Path, format = "uuid", description = "The folder.")),
    responses((status = 200, description = "The folder as it is now.", body = Folder)),
)]
pub(super) async fn update(
    context: Context,
    PathId(id): PathId<FolderId>,
    Json(input): Json<UpdateFolder>,
) -> Answer {
    Ok(written(StatusCode::OK, folders::update(&context, id, input).await?))
}

/// Move a folder to trash, with all that it holds.
#[utoipa::path(
    delete, path = "/api/v1/folders/{id}", operation_id = "deleteFolder", tag = "Folders",
    params(("id" = String, Path, format = "uuid", description = "The folder.")),
    responses((status = 204, description = "The folder and its contents are in trash.")),
)]
pub(super) async fn delete(context: Context, PathId(id): PathId<FolderId>) -> Answer {
    Ok(done(&folders::delete(&context, id).await?))
}

/// List the files of a folder, without their content.
#[utoipa::path(
    get, path = "/api/v1/folders/{id}/files", operation_id = "listFolderFiles", tag = "Folders",
    params(("id" = String, Path, format = "uuid", description = "The folder."), ListFolderFiles),
    responses((status = 200, description = "The files, by name.", body = Vec<File>)),
)]
pub(super) async fn files(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    context: Context,
    PathId(id): PathId<FolderId>,
    Query(query): Query<ListFolderFiles>,
) -> Answer {
    let selection = file_operations::Selection::of_folder(id.to_string(), query.recursive.unwrap_or(true));
    let page = Paging { limit: query.limit, cursor: query.cursor };
    Ok(paging::respond(file_operations::list(&context, selection, page).await?, &uri, &links))
}

/// List the folders directly in a folder.
#[utoipa::path(
    get, path = "/api/v1/folders/{id}/subfolders", operation_id = "listSubfolders", tag = "Folders",
    params(("id" = String, Path, format = "uuid", description = "The folder."), ListSubfolders),
    responses((status = 200, description = "The folders, by name.", body = Vec<Folder>)),
)]
pub(super) async fn subfolders(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    context: Context,
    PathId(id): PathId<FolderId>,
    Query(query): Query<ListSubfolders>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    let listed = folders::list(&context, Selection::of_parent(id.to_string()), page).await?;
    Ok(paging::respond(listed, &uri, &links))
}
