//! Versions of memories (beyond the spec).

use std::sync::Arc;

use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse as _;
use cairn_proto::ids::MemoryId;
use http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{Answer, paging, written};
use crate::answers::{Links, Memory, MemoryVersion};
use crate::extract::{PathId, PathIds, Query};
use crate::json_body::JsonBody;
use crate::operations::{Context, Paging, memory_versions};
use crate::schema::inputs;

inputs!(ListMemoryVersions);

/// Which part of the list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListMemoryVersions {
    /// How many at once: 1 to 1000, 1000 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// List the versions of a memory, the newest first; the newest hundred are kept.
#[utoipa::path(
    get, path = "/api/v1/memories/{id}/versions", operation_id = "listMemoryVersions", tag = "Memories",
    params(("id" = String, Path, format = "uuid", description = "The memory's id."), ListMemoryVersions),
    responses((status = 200, description = "The versions, without what the memory was.", body = Vec<MemoryVersion>)),
)]
pub(super) async fn list(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    context: Context,
    PathId(id): PathId<MemoryId>,
    Query(query): Query<ListMemoryVersions>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    Ok(paging::respond(memory_versions::list(&context, id, page).await?, &uri, &links))
}

/// Read a version with what the memory was.
#[utoipa::path(
    get, path = "/api/v1/memories/{id}/versions/{version}", operation_id = "getMemoryVersion", tag = "Memories",
    params(
        ("id" = String, Path, format = "uuid", description = "The memory's id."),
        ("version" = u64, Path, description = "One of the list."),
    ),
    responses((status = 200, description = "The version.", body = MemoryVersion)),
)]
pub(super) async fn get(context: Context, PathIds(id, version): PathIds<MemoryId, u64>) -> Answer {
    Ok(JsonBody(memory_versions::get(&context, id, version).await?).into_response())
}

/// Make a memory what agents read of it at a version, as a new version.
///
/// Name, description, `useWhen`, members and their order become what they were; the slug, and who else reads the memory, stay.
/// Members that the version does not have are taken out, which takes `delete` too.
#[utoipa::path(
    post, path = "/api/v1/memories/{id}/versions/{version}/restore", operation_id = "restoreMemoryVersion",
    tag = "Memories",
    params(
        ("id" = String, Path, format = "uuid", description = "The memory's id."),
        ("version" = u64, Path, description = "One of the list."),
    ),
    responses((status = 200, description = "The memory as it is now.", body = Memory)),
)]
pub(super) async fn restore(context: Context, PathIds(id, version): PathIds<MemoryId, u64>) -> Answer {
    Ok(written(StatusCode::OK, memory_versions::restore(&context, id, version).await?))
}
