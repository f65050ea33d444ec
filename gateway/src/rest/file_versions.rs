//! Versions of files (beyond the spec).

use std::sync::Arc;

use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse as _;
use cairn_proto::ids::FileId;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{Answer, conditional, paging, written};
use crate::answers::{File, FileVersion, Links};
use crate::extract::{PathId, PathIds, Query};
use crate::json_body::JsonBody;
use crate::operations::{Context, Paging, file_versions};
use crate::schema::inputs;

inputs!(ListFileVersions);

/// Which part of the list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListFileVersions {
    /// How many at once: 1 to 1000, 1000 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// List the contents that a file has and had, the newest first.
#[utoipa::path(
    get, path = "/api/v1/files/{id}/versions", operation_id = "listFileVersions", tag = "Files",
    params(("id" = String, Path, format = "uuid", description = "The file."), ListFileVersions),
    responses((status = 200, description = "The versions, without their content.", body = Vec<FileVersion>)),
)]
pub(super) async fn list(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    context: Context,
    PathId(id): PathId<FileId>,
    Query(query): Query<ListFileVersions>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    Ok(paging::respond(file_versions::list(&context, id, page).await?, &uri, &links))
}

/// Read a version with its content.
#[utoipa::path(
    get, path = "/api/v1/files/{id}/versions/{version}", operation_id = "getFileVersion", tag = "Files",
    params(
        ("id" = String, Path, format = "uuid", description = "The file."),
        ("version" = u64, Path, description = "One of the list."),
    ),
    responses((status = 200, description = "The version.", body = FileVersion)),
)]
pub(super) async fn get(context: Context, PathIds(id, version): PathIds<FileId, u64>) -> Answer {
    Ok(JsonBody(file_versions::get(&context, id, version).await?).into_response())
}

/// Make the content of a version the file's content again, as a new version.
#[utoipa::path(
    post, path = "/api/v1/files/{id}/versions/{version}/restore", operation_id = "restoreFileVersion",
    tag = "Files",
    params(
        ("id" = String, Path, format = "uuid", description = "The file."),
        ("version" = u64, Path, description = "One of the list."),
        ("If-Match" = Option<String>, Header, description = "Change the file only while it has this content."),
    ),
    responses(
        (status = 200, description = "The file as it is now, without its content.", body = File,
            headers(("ETag" = String, description = "Names the content, for `If-Match` and `If-None-Match`."))),
        (status = 409, description = "The content is not the one that `If-Match` names.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn restore(
    context: Context,
    PathIds(id, version): PathIds<FileId, u64>,
    headers: HeaderMap,
) -> Answer {
    let restored = file_versions::restore(&context, id, version, conditional::required(&headers)).await?;
    let tag = conditional::etag(&restored.value.content_hash);
    Ok(super::files::tagged(written(StatusCode::OK, restored), tag))
}
