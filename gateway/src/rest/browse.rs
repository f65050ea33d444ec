//! Scripts over the workspace as a file system (spec 4.5).

use axum::response::IntoResponse as _;

use super::Answer;
use crate::answers::ScriptAnswer;
use crate::extract::Json;
use crate::json_body::JsonBody;
use crate::operations::Context;
use crate::operations::browse::{self, ExecuteScript};

/// Run a read-only shell script over the workspace.
///
/// The tree: `/README.md`, `/files`, `/memories`, `/databases`, `/sources`. It shows the workspace as it is at this
/// moment, so every write that was answered before is in it; with `asOf` as it was. A script that fails is answered with 200
/// and `failed`.
#[utoipa::path(
    post, path = "/api/v1/vfs/exec", operation_id = "executeScript", tag = "Retrieval",
    request_body = ExecuteScript,
    responses(
        (status = 200, description = "What the script printed.", body = ScriptAnswer),
        (status = 410, description = "`asOf` is longer ago, or more changes ago, than it is known how things stood.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn execute(context: Context, Json(input): Json<ExecuteScript>) -> Answer {
    Ok(JsonBody(browse::execute(&context, input).await?).into_response())
}
