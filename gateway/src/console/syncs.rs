//! Runs of directory syncs, for people. Programs create the previews, from the directory.

use std::sync::Arc;

use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse as _;
use cairn_proto::ids::{SyncRunId, WorkspaceId};
use http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::Answer;
use crate::answers::{Links, SyncRun};
use crate::extract::{PathIds, Query};
use crate::json_body::JsonBody;
use crate::operations::Paging;
use crate::operations::person::Person;
use crate::operations::syncs;
use crate::rest::paging;
use crate::schema::inputs;

inputs!(ListSyncs);

/// Which part of the list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListSyncs {
    /// How many at once: 1 to 1000, 50 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
    /// Those of the sync of that name; all when left out.
    name: Option<String>,
}

/// List the sync runs of a workspace, without warnings, results and what would be pruned.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/sync", operation_id = "listSyncs", tag = "Sync",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ListSyncs),
    responses((status = 200, description = "The runs, newest first.", body = Vec<SyncRun>)),
)]
pub(super) async fn list(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    person: Person,
    Query(query): Query<ListSyncs>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    Ok(paging::respond(syncs::list(&person, query.name, page).await?, &uri, &links))
}

/// Read a sync run: how far it is, and what became of each document when it is over.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/sync/{runId}", operation_id = "getSyncOfWorkspace", tag = "Sync",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("runId" = String, Path, format = "uuid", description = "The run.")),
    responses((status = 200, description = "The run.", body = SyncRun)),
)]
pub(super) async fn get(person: Person, PathIds(_, id): PathIds<WorkspaceId, SyncRunId>) -> Answer {
    Ok(JsonBody(syncs::get(&person.upstreams, &person.call, id).await?).into_response())
}

/// Start a sync run, or one that failed or was cancelled where it stopped. Takes the permission to write.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/sync/{runId}/start", operation_id = "startSyncOfWorkspace", tag = "Sync",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("runId" = String, Path, format = "uuid", description = "The run.")),
    responses(
        (status = 202, description = "The run, which is queued.", body = SyncRun),
        (status = 409, description = "It cannot be started now.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn start(person: Person, PathIds(_, id): PathIds<WorkspaceId, SyncRunId>) -> Answer {
    let run = syncs::start(&person.upstreams, &person.call, id).await?;
    Ok((StatusCode::ACCEPTED, JsonBody(run)).into_response())
}

/// Cancel a sync run that is not over. What was written so far stays. Takes the permission to write.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/sync/{runId}/cancel", operation_id = "cancelSync", tag = "Sync",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("runId" = String, Path, format = "uuid", description = "The run.")),
    responses(
        (status = 202, description = "The run, which ends within moments.", body = SyncRun),
        (status = 409, description = "It is over.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn cancel(person: Person, PathIds(_, id): PathIds<WorkspaceId, SyncRunId>) -> Answer {
    Ok((StatusCode::ACCEPTED, JsonBody(syncs::cancel(&person, id).await?)).into_response())
}

/// Remove a sync run with its manifest. What it wrote stays, and can no longer be rolled back. Takes the permission to write.
#[utoipa::path(
    delete, path = "/api/workspaces/{id}/sync/{runId}", operation_id = "deleteSyncOfWorkspace", tag = "Sync",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("runId" = String, Path, format = "uuid", description = "The run.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = 409, description = "It is queued or running.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn delete(person: Person, PathIds(_, id): PathIds<WorkspaceId, SyncRunId>) -> Answer {
    syncs::delete(&person.upstreams, &person.call, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Roll a completed run back, within 7 days; takes the permission to delete. What was changed since stays.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/sync/{runId}/rollback", operation_id = "rollBackSync", tag = "Sync",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("runId" = String, Path, format = "uuid", description = "The run.")),
    responses(
        (status = 202, description = "The run, which is running while it goes back.", body = SyncRun),
        (status = 409, description = "It cannot be rolled back.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn roll_back(person: Person, PathIds(_, id): PathIds<WorkspaceId, SyncRunId>) -> Answer {
    Ok((StatusCode::ACCEPTED, JsonBody(syncs::roll_back(&person, id).await?)).into_response())
}
