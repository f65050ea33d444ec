//! Directory sync (spec 4.7).

use axum::response::IntoResponse as _;
use cairn_proto::ids::SyncRunId;
use http::StatusCode;

use super::Answer;
use crate::answers::SyncRun;
use crate::extract::{Json, PathId};
use crate::json_body::JsonBody;
use crate::operations::Context;
use crate::operations::syncs::{self, PreviewSync};

/// Preview the sync of a directory. Takes a workspace-wide token.
///
/// Nothing is written to the workspace: start the run for that. Files that were edited in the workspace since the last sync of
/// that name are never overwritten.
#[utoipa::path(
    post, path = "/api/v1/sync/preview", operation_id = "previewSync", tag = "Sync",
    request_body = PreviewSync,
    responses((status = 201, description = "The run, which is ready.", body = SyncRun)),
)]
pub(super) async fn preview(context: Context, Json(input): Json<PreviewSync>) -> Answer {
    let previewed = syncs::preview(&context, input).await?;
    Ok((StatusCode::CREATED, JsonBody(previewed)).into_response())
}

/// Read a sync run: how far it is, and what became of each document when it is over. Takes a workspace-wide token.
#[utoipa::path(
    get, path = "/api/v1/sync/{runId}", operation_id = "getSync", tag = "Sync",
    params(("runId" = String, Path, format = "uuid", description = "The run.")),
    responses((status = 200, description = "The run.", body = SyncRun)),
)]
pub(super) async fn get(context: Context, PathId(id): PathId<SyncRunId>) -> Answer {
    Ok(JsonBody(syncs::get(&context.upstreams, &context.call, id).await?).into_response())
}

/// Start a sync run, or one that failed or was cancelled where it stopped. Takes a workspace-wide token.
#[utoipa::path(
    post, path = "/api/v1/sync/{runId}/start", operation_id = "startSync", tag = "Sync",
    params(("runId" = String, Path, format = "uuid", description = "The run.")),
    responses(
        (status = 202, description = "The run, which is queued.", body = SyncRun),
        (status = 409, description = "It cannot be started now.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn start(context: Context, PathId(id): PathId<SyncRunId>) -> Answer {
    Ok((StatusCode::ACCEPTED, JsonBody(syncs::start(&context.upstreams, &context.call, id).await?))
        .into_response())
}

/// Remove a sync run with its manifest. What it wrote stays, and can no longer be rolled back. Takes a workspace-wide token.
#[utoipa::path(
    delete, path = "/api/v1/sync/{runId}", operation_id = "deleteSync", tag = "Sync",
    params(("runId" = String, Path, format = "uuid", description = "The run.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = 409, description = "It is queued or running.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn delete(context: Context, PathId(id): PathId<SyncRunId>) -> Answer {
    syncs::delete(&context.upstreams, &context.call, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
