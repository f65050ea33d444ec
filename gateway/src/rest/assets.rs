//! Assets, for programs: metadata and bytes.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{OriginalUri, State};
use axum::response::{IntoResponse as _, Response};
use cairn_proto::ids::AssetId;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::files::{NO_SNIFF, disposition, tagged};
use super::{Answer, conditional, paging};
use crate::answers::{Asset, Links};
use crate::extract::{PathId, Query};
use crate::operations::{Context, Paging, assets};
use crate::schema::inputs;

inputs!(ListAssets);

/// Which part of the list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListAssets {
    /// How many at once: 1 to 1000, 1000 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// List the attachments of the workspace, without their bytes. Takes a workspace-wide token.
#[utoipa::path(
    get, path = "/api/v1/assets", operation_id = "listAssets", tag = "Assets", params(ListAssets),
    responses((status = 200, description = "The attachments, by their age.", body = Vec<Asset>)),
)]
pub(super) async fn list(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    context: Context,
    Query(query): Query<ListAssets>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    Ok(paging::respond(assets::list(&context, page).await?, &uri, &links))
}

/// Download an attachment as it is.
///
/// Takes `If-None-Match` with an entity tag that an earlier read answered.
#[utoipa::path(
    get, path = "/api/v1/assets/{id}/content", operation_id = "downloadAsset", tag = "Assets",
    params(("id" = String, Path, format = "uuid", description = "The attachment.")),
    responses(
        (status = 200, description = "The bytes.", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 304, description = "The content is the one that `If-None-Match` names."),
    ),
)]
pub(super) async fn content(context: Context, PathId(id): PathId<AssetId>, headers: HeaderMap) -> Answer {
    let (asset, bytes) = assets::open(&context, id).await?;
    let tag = conditional::etag(&asset.content_hash);
    if conditional::is_current(&headers, &asset.content_hash) {
        return Ok(tagged(StatusCode::NOT_MODIFIED.into_response(), tag));
    }
    let media_type = HeaderValue::from_str(&asset.media_type)
        .unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"));
    let described = [
        (header::CONTENT_TYPE, media_type),
        (header::CONTENT_DISPOSITION, disposition(&asset.name)),
        // A failure midway truncates the response below its length, so that clients detect it.
        (header::CONTENT_LENGTH, HeaderValue::from(asset.size_bytes)),
        NO_SNIFF,
    ];
    let response: Response = (described, Body::from_stream(bytes)).into_response();
    Ok(tagged(response, tag))
}
