//! Stored feedback, for deployments without mail.

use axum::response::IntoResponse as _;
use cairn_proto::ids::WorkspaceId;

use super::Answer;
use crate::answers::FeedbackReport;
use crate::extract::PathId;
use crate::json_body::JsonBody;
use crate::operations::feedback;
use crate::operations::person::Person;

/// List stored feedback; for owners and admins.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/feedback", operation_id = "listFeedback", tag = "Feedback",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 200, description = "The reports.", body = Vec<FeedbackReport>)),
)]
pub(super) async fn list(person: Person, PathId(workspace): PathId<WorkspaceId>) -> Answer {
    Ok(JsonBody(feedback::list(&person, workspace).await?).into_response())
}
