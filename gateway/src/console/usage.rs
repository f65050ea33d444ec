//! The usage of a workspace against the limits of its plan.

use axum::response::IntoResponse as _;
use cairn_proto::ids::WorkspaceId;

use super::Answer;
use crate::answers::Usage;
use crate::extract::PathId;
use crate::json_body::JsonBody;
use crate::operations::person::Person;
use crate::operations::workspace;

/// Read what a workspace uses of what its plan limits.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/usage", operation_id = "getUsage", tag = "Workspaces",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 200, description = "What is used, and the limits.", body = Usage)),
)]
pub(super) async fn get(person: Person, PathId(id): PathId<WorkspaceId>) -> Answer {
    Ok(JsonBody(workspace::of_member(&person, id).await?).into_response())
}
