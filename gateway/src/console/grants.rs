//! OAuth grants of agents in a workspace.

use axum::response::IntoResponse as _;
use cairn_proto::ids::{GrantId, WorkspaceId};
use http::StatusCode;

use super::Answer;
use crate::answers::Grant;
use crate::extract::{PathId, PathIds};
use crate::json_body::JsonBody;
use crate::operations::grants;
use crate::operations::person::Person;

/// List what people allowed agents: their own, as owner or admin all.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/grants", operation_id = "listGrants", tag = "Grants",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 200, description = "The grants.", body = Vec<Grant>)),
)]
pub(super) async fn list(person: Person, PathId(workspace): PathId<WorkspaceId>) -> Answer {
    Ok(JsonBody(grants::list(&person, workspace).await?).into_response())
}

/// End what an agent was allowed.
#[utoipa::path(
    delete, path = "/api/workspaces/{id}/grants/{grantId}", operation_id = "revokeGrant", tag = "Grants",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("grantId" = String, Path, format = "uuid", description = "The grant.")),
    responses((status = 204, description = "The grant has ended, and its tokens with it.")),
)]
pub(super) async fn revoke(
    person: Person,
    PathIds(workspace, grant): PathIds<WorkspaceId, GrantId>,
) -> Answer {
    grants::revoke(&person, workspace, grant).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
