//! The question log of a workspace. What a person sees of it depends on their role there.

use std::sync::Arc;

use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse as _;
use cairn_proto::ids::{QuestionId, WorkspaceId};
use http::{HeaderMap, StatusCode};

use super::Answer;
use crate::answers::{AskedAgain, Links, Question, QuestionGroup, QuestionReplay};
use crate::extract::{PathIds, Query};
use crate::json_body::JsonBody;
use crate::operations::person::Person;
use crate::operations::questions::{self, ListQuestionGroups, ListQuestions};
use crate::rest::paging;
use crate::rest::search::freshness;

/// List what was asked.
///
/// Nothing while the log is off (`questionLogDays` of the workspace). A viewer sees what they asked, or their tokens and apps
/// did.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/questions", operation_id = "listQuestions", tag = "Questions",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ListQuestions),
    responses((status = 200, description = "The questions, the latest first.", body = Vec<Question>)),
)]
pub(super) async fn list(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    person: Person,
    Query(wanted): Query<ListQuestions>,
) -> Answer {
    Ok(paging::respond(questions::list(&person, wanted).await?, &uri, &links))
}

/// Group questions by what they mean.
///
/// Of the latest 500 that the person may see. A group whose latest question was not answered well is a gap in what the workspace
/// knows.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/question-groups", operation_id = "listQuestionGroups", tag = "Questions",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ListQuestionGroups),
    responses((status = 200, description = "The groups, those asked last first.", body = Vec<QuestionGroup>)),
)]
pub(super) async fn groups(person: Person, Query(wanted): Query<ListQuestionGroups>) -> Answer {
    Ok(JsonBody(questions::groups(&person, wanted.gaps.unwrap_or_default()).await?).into_response())
}

/// Read a question, with what was answered.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/questions/{questionId}", operation_id = "getQuestion", tag = "Questions",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("questionId" = String, Path, format = "uuid", description = "The question.")),
    responses((status = 200, description = "The question, its arguments, the passages in their order.", body = QuestionReplay)),
)]
pub(super) async fn get(person: Person, PathIds(_, id): PathIds<WorkspaceId, QuestionId>) -> Answer {
    Ok(JsonBody(questions::get(&person, id).await?).into_response())
}

/// Ask a question again, with its arguments, as the person who calls.
///
/// It is a question of its own, and is kept as any.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/questions/{questionId}/ask", operation_id = "askQuestionAgain", tag = "Questions",
    params(
        ("id" = String, Path, format = "uuid", description = "The workspace."),
        ("questionId" = String, Path, format = "uuid", description = "The question."),
        ("X-Cairn-Change" = Option<String>, Header, description = "The value that a write answered: the answer sees at least that write."),
    ),
    responses((status = 200, description = "What is answered now, and where each passage stood then.", body = AskedAgain)),
)]
pub(super) async fn ask_again(
    person: Person,
    PathIds(_, id): PathIds<WorkspaceId, QuestionId>,
    headers: HeaderMap,
) -> Answer {
    let after = freshness(&headers)?.after;
    Ok(JsonBody(questions::ask_again(&person, id, after).await?).into_response())
}

/// Remove a question from the log; for owners and admins.
#[utoipa::path(
    delete, path = "/api/workspaces/{id}/questions/{questionId}", operation_id = "deleteQuestion", tag = "Questions",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("questionId" = String, Path, format = "uuid", description = "The question.")),
    responses((status = 204, description = "It is gone.")),
)]
pub(super) async fn delete(person: Person, PathIds(_, id): PathIds<WorkspaceId, QuestionId>) -> Answer {
    questions::delete(&person, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
