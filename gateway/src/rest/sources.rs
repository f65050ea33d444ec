//! Connected sources (spec 4.4; the list is the contract's).

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse as _;
use cairn_proto::ids::SourceId;
use http::Uri;

use super::{Answer, paging};
use crate::answers::{Links, Source, SourceAnswer, SourceContent};
use crate::extract::{Json, PathId, PathIds};
use crate::json_body::JsonBody;
use crate::operations::Context;
use crate::operations::sources::{self, SourceQuery};

/// List the connected sources. Takes a workspace-wide token.
#[utoipa::path(
    get, path = "/api/v1/sources", operation_id = "listSources", tag = "Sources",
    responses((status = 200, description = "The sources, by name.", body = Vec<Source>)),
)]
pub(super) async fn list(context: Context, State(links): State<Arc<Links>>, uri: Uri) -> Answer {
    Ok(paging::respond(sources::list(&context).await?, &uri, &links))
}

/// Query one source: what is retained of it; of a catalog the texts of its three best matches, of a live source what its
/// provider finds, both within the source's daily budget. Takes a workspace-wide token.
#[utoipa::path(
    post, path = "/api/v1/sources/{sourceId}/query", operation_id = "querySource", tag = "Sources",
    params(("sourceId" = String, Path, format = "uuid", description = "The source.")),
    request_body = SourceQuery,
    responses((status = 200, description = "The evidence, best first.", body = SourceAnswer)),
)]
pub(super) async fn query(
    context: Context,
    PathId(id): PathId<SourceId>,
    Json(input): Json<SourceQuery>,
) -> Answer {
    Ok(JsonBody(sources::query(&context, id.to_string(), input).await?).into_response())
}

/// Read one document of a source, as retained or from the provider. Takes a workspace-wide token.
#[utoipa::path(
    get, path = "/api/v1/sources/{sourceId}/documents/{externalId}", operation_id = "fetchSourceDocument",
    tag = "Sources",
    params(
        ("sourceId" = String, Path, format = "uuid", description = "The source."),
        ("externalId" = String, Path, description = "The provider's own id of the document, percent-encoded."),
    ),
    responses((status = 200, description = "The document.", body = SourceContent)),
)]
pub(super) async fn fetch(context: Context, PathIds(id, external_id): PathIds<SourceId, String>) -> Answer {
    Ok(JsonBody(sources::fetch(&context, id.to_string(), external_id).await?).into_response())
}
