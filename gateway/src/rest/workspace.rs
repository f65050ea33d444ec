//! The token's own workspace (contract, "Other paths").

use axum::response::IntoResponse as _;

use super::Answer;
use crate::answers::TokenWorkspace;
use crate::json_body::JsonBody;
use crate::operations::{Context, workspace};

/// Read the workspace of the token: its plan, and what the token may do in it.
#[utoipa::path(
    get, path = "/api/v1/workspace", operation_id = "getWorkspace", tag = "Workspace",
    responses((status = 200, description = "The workspace.", body = TokenWorkspace)),
)]
pub(super) async fn get(context: Context) -> Answer {
    Ok(JsonBody(workspace::of_token(&context).await?).into_response())
}
