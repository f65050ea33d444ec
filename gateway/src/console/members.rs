//! The members of a workspace.

use axum::response::IntoResponse as _;
use cairn_proto::ids::{UserId, WorkspaceId};
use http::StatusCode;

use super::Answer;
use crate::answers::{AddedMember, WorkspaceMember};
use crate::extract::{Json, PathId, PathIds};
use crate::json_body::JsonBody;
use crate::operations::members::{self, AddMember, UpdateMember};
use crate::operations::person::Person;

/// List the members of a workspace.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/members", operation_id = "listMembers", tag = "Members",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 200, description = "The members, the longest-standing first.", body = Vec<WorkspaceMember>)),
)]
pub(super) async fn list(person: Person, PathId(workspace): PathId<WorkspaceId>) -> Answer {
    Ok(JsonBody(members::list(&person, workspace).await?).into_response())
}

/// Invite an email, whoever has it; for owners and admins.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/members", operation_id = "addMember", tag = "Members",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    request_body = AddMember,
    responses((status = 201, description = "The invitation, with its link where it was not mailed.", body = AddedMember)),
)]
pub(super) async fn add(
    person: Person,
    PathId(workspace): PathId<WorkspaceId>,
    Json(input): Json<AddMember>,
) -> Answer {
    let added = members::add(&person, workspace, input).await?;
    Ok((StatusCode::CREATED, JsonBody(added)).into_response())
}

/// Change a member's role; for owners and admins.
#[utoipa::path(
    patch, path = "/api/workspaces/{id}/members/{userId}", operation_id = "updateWorkspaceMember", tag = "Members",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("userId" = String, Path, format = "uuid", description = "The member.")),
    request_body = UpdateMember,
    responses((status = 200, description = "The member.", body = WorkspaceMember)),
)]
pub(super) async fn update(
    person: Person,
    PathIds(workspace, member): PathIds<WorkspaceId, UserId>,
    Json(input): Json<UpdateMember>,
) -> Answer {
    Ok(JsonBody(members::update(&person, workspace, member, input).await?).into_response())
}

/// End a membership: for owners and admins, and for the member.
#[utoipa::path(
    delete, path = "/api/workspaces/{id}/members/{userId}", operation_id = "removeMember", tag = "Members",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("userId" = String, Path, format = "uuid", description = "The member.")),
    responses((status = 204, description = "The membership has ended, and its tokens with it.")),
)]
pub(super) async fn remove(
    person: Person,
    PathIds(workspace, member): PathIds<WorkspaceId, UserId>,
) -> Answer {
    members::remove(&person, workspace, member).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
