//! Files similar to a given one (beyond the spec, which has it as a tool).

use axum::response::IntoResponse as _;
use cairn_proto::ids::FileId;
use http::HeaderMap;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{Answer, search};
use crate::answers::RelatedFiles;
use crate::extract::{PathId, Query};
use crate::json_body::JsonBody;
use crate::operations::{Context, related};
use crate::schema::inputs;

inputs!(ListRelatedFiles);

/// How many.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListRelatedFiles {
    /// How many at most: 1 to 20, 5 when left out.
    #[schema(minimum = 1, maximum = 20)]
    #[param(minimum = 1, maximum = 20)]
    limit: Option<u32>,
}

/// Find files that mean nearly the same as a file, and why.
#[utoipa::path(
    get, path = "/api/v1/files/{id}/related", operation_id = "getRelatedFiles", tag = "Retrieval",
    params(
        ("id" = String, Path, format = "uuid", description = "The file."),
        ListRelatedFiles,
        ("X-Cairn-Change" = Option<String>, Header,
            description = "The value that a write answered: the answer sees at least that write."),
        ("X-Cairn-Wait-Ms" = Option<u32>, Header, minimum = 0, maximum = 10000,
            description = "How long to wait for that write at most; 2000 when left out."),
    ),
    responses((status = 200, description = "The files, best first.", body = RelatedFiles)),
)]
pub(super) async fn list(
    context: Context,
    PathId(id): PathId<FileId>,
    Query(query): Query<ListRelatedFiles>,
    headers: HeaderMap,
) -> Answer {
    let freshness = search::freshness(&headers)?;
    Ok(JsonBody(related::files(&context, id.to_string(), query.limit, freshness).await?).into_response())
}
