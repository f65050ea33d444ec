//! The API tokens of a workspace.

use axum::response::IntoResponse as _;
use cairn_proto::ids::{TokenId, WorkspaceId};
use http::StatusCode;

use super::Answer;
use crate::answers::Token;
use crate::extract::{Json, PathId, PathIds};
use crate::json_body::JsonBody;
use crate::operations::person::Person;
use crate::operations::tokens::{self, CreateToken, UpdateToken};

/// List the API tokens that the person may manage: their own, as owner or admin all.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/tokens", operation_id = "listTokens", tag = "Tokens",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 200, description = "The tokens, the newest first, without their secrets.", body = Vec<Token>)),
)]
pub(super) async fn list(person: Person, PathId(workspace): PathId<WorkspaceId>) -> Answer {
    Ok(JsonBody(tokens::list(&person, workspace).await?).into_response())
}

/// Make an API token, which may at most what its owner's role allows.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/tokens", operation_id = "createToken", tag = "Tokens",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    request_body = CreateToken,
    responses((status = 201, description = "The token; this answer alone has its secret.", body = Token)),
)]
pub(super) async fn create(
    person: Person,
    PathId(workspace): PathId<WorkspaceId>,
    Json(input): Json<CreateToken>,
) -> Answer {
    let made = tokens::create(&person, workspace, input).await?;
    Ok((StatusCode::CREATED, JsonBody(made)).into_response())
}

/// Switch an API token off or on.
#[utoipa::path(
    patch, path = "/api/workspaces/{id}/tokens/{tokenId}", operation_id = "updateToken", tag = "Tokens",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("tokenId" = String, Path, format = "uuid", description = "The token.")),
    request_body = UpdateToken,
    responses((status = 200, description = "The token.", body = Token)),
)]
pub(super) async fn update(
    person: Person,
    PathIds(workspace, token): PathIds<WorkspaceId, TokenId>,
    Json(input): Json<UpdateToken>,
) -> Answer {
    Ok(JsonBody(tokens::update(&person, workspace, token, input).await?).into_response())
}

/// Delete an API token.
#[utoipa::path(
    delete, path = "/api/workspaces/{id}/tokens/{tokenId}", operation_id = "deleteToken", tag = "Tokens",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("tokenId" = String, Path, format = "uuid", description = "The token.")),
    responses((status = 204, description = "The token opens nothing any more.")),
)]
pub(super) async fn delete(
    person: Person,
    PathIds(workspace, token): PathIds<WorkspaceId, TokenId>,
) -> Answer {
    tokens::delete(&person, workspace, token).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
