//! Golden questions of a workspace. The person's role there decides.

use axum::response::IntoResponse as _;
use cairn_proto::ids::{GoldenQuestionId, WorkspaceId};
use http::StatusCode;

use super::Answer;
use crate::answers::{EditCheck, GoldenQuestion, GoldenRun};
use crate::extract::{Json, PathIds};
use crate::json_body::JsonBody;
use crate::operations::golden::{self, CheckEdit, CreateGoldenQuestion};
use crate::operations::person::Person;

/// List the golden questions of a workspace: what it knows must be found.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/golden-questions", operation_id = "listGoldenQuestions", tag = "Golden questions",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 200, description = "The questions, the oldest first; at most 50.", body = Vec<GoldenQuestion>)),
)]
pub(super) async fn list(person: Person) -> Answer {
    Ok(JsonBody(golden::list(&person).await?).into_response())
}

/// Pin a question with what must be found; the same question for the same document is pinned once.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/golden-questions", operation_id = "pinGoldenQuestion", tag = "Golden questions",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    request_body = CreateGoldenQuestion,
    responses((status = 201, description = "The question.", body = GoldenQuestion)),
)]
pub(super) async fn create(person: Person, Json(input): Json<CreateGoldenQuestion>) -> Answer {
    Ok((StatusCode::CREATED, JsonBody(golden::create(&person, input).await?)).into_response())
}

/// Unpin a question.
#[utoipa::path(
    delete, path = "/api/workspaces/{id}/golden-questions/{questionId}", operation_id = "unpinGoldenQuestion",
    tag = "Golden questions",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("questionId" = String, Path, format = "uuid", description = "The question.")),
    responses((status = 204, description = "It is no golden question any more.")),
)]
pub(super) async fn delete(person: Person, ids: PathIds<WorkspaceId, GoldenQuestionId>) -> Answer {
    golden::delete(&person, ids.1.to_string()).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Ask all golden questions, and learn which of them find what they must.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/golden-questions/run", operation_id = "runGoldenQuestions",
    tag = "Golden questions",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 200, description = "A result for each question, in their order.", body = GoldenRun)),
)]
pub(super) async fn run(person: Person) -> Answer {
    Ok(JsonBody(golden::run(&person).await?).into_response())
}

/// Learn what an edit would do to the golden questions, before it is saved: nothing is stored.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/golden-questions/check", operation_id = "checkEdit", tag = "Golden questions",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    request_body = CheckEdit,
    responses((status = 200, description = "What becomes of each question, in their order.", body = EditCheck)),
)]
pub(super) async fn check(person: Person, Json(input): Json<CheckEdit>) -> Answer {
    Ok(JsonBody(golden::check(&person, input).await?).into_response())
}
