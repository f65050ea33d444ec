//! What a workspace uses of what its plan limits.

use axum::extract::State;
use axum::response::IntoResponse as _;
use cairn_proto::ids::WorkspaceId;

use super::Answer;
use crate::app::App;
use crate::auth::Member;
use crate::extract::PathId;
use crate::json_body::JsonBody;
use crate::operations::workspace;

pub(super) async fn get(State(app): State<App>, member: Member, PathId(id): PathId<WorkspaceId>) -> Answer {
    Ok(JsonBody(workspace::of_member(&app, &member.call, id).await?).into_response())
}
