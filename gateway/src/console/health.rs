//! The health of the services with regard to a workspace.

use axum::response::IntoResponse as _;
use cairn_proto::ids::WorkspaceId;

use super::Answer;
use crate::answers::WorkspaceHealth;
use crate::extract::PathId;
use crate::json_body::JsonBody;
use crate::operations::health;
use crate::operations::person::Person;

/// Read how the services stand, how far the index is, how documents from outside stand, and what is kept; for members. What a
/// service that is away would say is null.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/health", operation_id = "getWorkspaceHealth", tag = "Workspaces",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 200, description = "How the parts stand.", body = WorkspaceHealth)),
)]
pub(super) async fn get(person: Person, PathId(id): PathId<WorkspaceId>) -> Answer {
    Ok(JsonBody(health::of_workspace(&person, id).await?).into_response())
}
