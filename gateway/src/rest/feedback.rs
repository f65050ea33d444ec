//! Feedback (spec 4.8).

use axum::response::IntoResponse as _;

use super::Answer;
use crate::error::ErrorBody;
use crate::extract::Json;
use crate::json_body::JsonBody;
use crate::operations::Context;
use crate::operations::feedback::{self, FeedbackSent, SubmitFeedback};

/// Tell the owners and admins of the workspace what is missing, wrong or hard. They get
/// it by mail; where there is none it is stored for them, and the answer says so. A token may report 10 times in an hour,
/// the callers of a workspace together 30 times.
#[utoipa::path(
    post, path = "/api/v1/feedback", operation_id = "submitFeedback", tag = "Feedback",
    request_body = SubmitFeedback,
    responses(
        (status = 200, description = "It was sent, or stored.", body = FeedbackSent),
        (status = 429, description = "That were too many reports in an hour.", body = ErrorBody),
        (status = 502, description = "Mail is configured, and nobody could be mailed.", body = ErrorBody),
    ),
)]
pub(super) async fn submit(context: Context, Json(input): Json<SubmitFeedback>) -> Answer {
    Ok(JsonBody(feedback::submit(&context, input).await?).into_response())
}
