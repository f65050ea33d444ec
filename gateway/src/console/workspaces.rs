//! Workspaces of the signed-in person.

use axum::response::IntoResponse as _;
use cairn_proto::ids::WorkspaceId;
use http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::Answer;
use crate::answers::Workspace;
use crate::extract::{Json, PathId, Query};
use crate::json_body::JsonBody;
use crate::operations::person::Person;
use crate::operations::workspaces::{self, CreateWorkspace, UpdateWorkspace};
use crate::schema::inputs;

inputs!(ListWorkspaces);

/// Which workspaces.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListWorkspaces {
    /// Instead of those that live, the deleted ones that the person owns and can restore.
    deleted: Option<bool>,
}

/// List the workspaces of the signed-in person.
#[utoipa::path(
    get, path = "/api/workspaces", operation_id = "listWorkspaces", tag = "Workspaces",
    params(ListWorkspaces),
    responses((status = 200, description = "The workspaces, by name, with the role in each.", body = Vec<Workspace>)),
)]
pub(super) async fn list(person: Person, Query(query): Query<ListWorkspaces>) -> Answer {
    let deleted = query.deleted.unwrap_or_default();
    Ok(JsonBody(workspaces::list(&person, deleted).await?).into_response())
}

/// Make a workspace, which the person then owns.
#[utoipa::path(
    post, path = "/api/workspaces", operation_id = "createWorkspace", tag = "Workspaces",
    request_body = CreateWorkspace,
    responses((status = 201, description = "The workspace.", body = Workspace)),
)]
pub(super) async fn create(person: Person, Json(input): Json<CreateWorkspace>) -> Answer {
    let made = workspaces::create(&person, input).await?;
    Ok((StatusCode::CREATED, JsonBody(made)).into_response())
}

/// Read a workspace.
#[utoipa::path(
    get, path = "/api/workspaces/{id}", operation_id = "getWorkspace", tag = "Workspaces",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 200, description = "The workspace, with the role.", body = Workspace)),
)]
pub(super) async fn get(person: Person, PathId(id): PathId<WorkspaceId>) -> Answer {
    Ok(JsonBody(workspaces::get(&person, id).await?).into_response())
}

/// Change a workspace; for its owners and admins, the plan and the question log for its owners.
#[utoipa::path(
    patch, path = "/api/workspaces/{id}", operation_id = "updateWorkspace", tag = "Workspaces",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    request_body = UpdateWorkspace,
    responses((status = 200, description = "The workspace.", body = Workspace)),
)]
pub(super) async fn update(
    person: Person,
    PathId(id): PathId<WorkspaceId>,
    Json(input): Json<UpdateWorkspace>,
) -> Answer {
    Ok(JsonBody(workspaces::update(&person, id, input).await?).into_response())
}

/// Delete a workspace; for its owners.
#[utoipa::path(
    delete, path = "/api/workspaces/{id}", operation_id = "deleteWorkspace", tag = "Workspaces",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 204, description = "It is deleted, and can be restored for a while.")),
)]
pub(super) async fn delete(person: Person, PathId(id): PathId<WorkspaceId>) -> Answer {
    workspaces::delete(&person, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Take a deleted workspace back, until `purgeAt`; for its owners.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/restore", operation_id = "restoreWorkspace", tag = "Workspaces",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 200, description = "The workspace.", body = Workspace)),
)]
pub(super) async fn restore(person: Person, PathId(id): PathId<WorkspaceId>) -> Answer {
    Ok(JsonBody(workspaces::restore(&person, id).await?).into_response())
}
