//! What a workspace uses of what its plan limits.

use axum::extract::State;
use axum::response::IntoResponse as _;

use super::Answer;
use crate::app::App;
use crate::auth::Member;
use crate::json_body::JsonBody;
use crate::operations::workspace;

pub(super) async fn get(State(app): State<App>, member: Member) -> Answer {
    Ok(JsonBody(workspace::usage(&app, &member.call).await?).into_response())
}
