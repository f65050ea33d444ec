//! The API tokens of a workspace.

use axum::extract::State;
use axum::response::IntoResponse as _;
use cairn_proto::ids::{TokenId, WorkspaceId};
use http::{HeaderMap, StatusCode};

use super::Answer;
use crate::answers::{SearchAnswer, Token, TokenReach};
use crate::auth::Member;
use crate::extract::{Json, PathId, PathIds};
use crate::json_body::JsonBody;
use crate::operations::Context;
use crate::operations::person::Person;
use crate::operations::search::{self, SearchContext};
use crate::operations::tokens::{self, CreateToken, UpdateToken};
use crate::operations::views::{TokenViews, ViewTarget, WishedToken};
use crate::rest::search::freshness;

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

/// Switch an API token off or on, or rename it.
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

/// Count what an API token reaches: its folders with everything below them, as every service shows it to such a caller.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/tokens/{tokenId}/reach", operation_id = "getTokenReach", tag = "Tokens",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("tokenId" = String, Path, format = "uuid", description = "The token.")),
    responses((status = 200, description = "What it reaches.", body = TokenReach)),
)]
pub(super) async fn reach(
    State(token_views): State<TokenViews>,
    member: Member,
    PathIds(workspace, token): PathIds<WorkspaceId, TokenId>,
) -> Answer {
    counted(&token_views, member, workspace, ViewTarget::Token(token)).await
}

/// Count what an API token would reach that is not made.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/tokens/reach", operation_id = "previewTokenReach", tag = "Tokens",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    request_body = WishedToken,
    responses((status = 200, description = "What it would reach.", body = TokenReach)),
)]
pub(super) async fn preview_reach(
    State(token_views): State<TokenViews>,
    member: Member,
    PathId(workspace): PathId<WorkspaceId>,
    Json(proposed): Json<WishedToken>,
) -> Answer {
    counted(&token_views, member, workspace, ViewTarget::Proposed(proposed)).await
}

async fn counted(
    token_views: &TokenViews,
    member: Member,
    workspace: WorkspaceId,
    seen: ViewTarget,
) -> Answer {
    let view = token_views.see(&member.call, workspace, seen).await?;
    let own = Context { call: member.call, identity: member.identity, ..view.context.clone() };
    Ok(JsonBody(view.reach(&own).await?).into_response())
}

/// Search as an API token would: with its folders and permissions, for the person who asks.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/tokens/{tokenId}/search", operation_id = "searchAsToken", tag = "Tokens",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("tokenId" = String, Path, format = "uuid", description = "The token.")),
    request_body = SearchContext,
    responses((status = 200, description = "What it would find.", body = SearchAnswer)),
)]
pub(super) async fn search(
    State(token_views): State<TokenViews>,
    member: Member,
    PathIds(workspace, token): PathIds<WorkspaceId, TokenId>,
    headers: HeaderMap,
    Json(input): Json<SearchContext>,
) -> Answer {
    let freshness = freshness(&headers)?;
    let view = token_views.see(&member.call, workspace, ViewTarget::Token(token)).await?;
    let answer = search::search(&view.context, input, freshness).await?;
    Ok(JsonBody(answer).into_response())
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
