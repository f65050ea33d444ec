//! The account of the signed-in person: its password, and all of its sessions.

use axum::extract::{FromRequest as _, FromRequestParts as _, Request, State};
use axum::response::IntoResponse as _;
use cairn_proto::ids::SessionId;
use http::request::Parts;
use http::{StatusCode, header};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::ToSchema;

use super::Answer;
use crate::answers::OwnSession;
use crate::auth::SignedIn;
use crate::extract::{Json, PathId};
use crate::intake::Intake;
use crate::json_body::JsonBody;
use crate::operations::sessions::Sessions;
use crate::schema::inputs;

inputs!(ChangePassword);

/// The old and the new password.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ChangePassword {
    #[schema(min_length = 1, max_length = 1024)]
    current_password: String,
    #[schema(min_length = 1, max_length = 1024)]
    new_password: String,
}

/// Set a new password; every other session of the person ends.
#[utoipa::path(
    post, path = "/api/account/password", operation_id = "changePassword", tag = "Account",
    request_body = ChangePassword,
    responses((status = 204, description = "The password is changed.")),
)]
pub(super) async fn change_password(
    State(sessions): State<Sessions>,
    State(intake): State<Arc<Intake>>,
    request: Request,
) -> Answer {
    let (mut parts, body) = request.into_parts();
    let person = SignedIn::from_request_parts(&mut parts, &()).await?;
    let head = parts.clone();
    let request = Request::from_parts(parts, body);
    let Json(input) = Json::<ChangePassword>::from_request(request, &intake).await?;
    sessions.change_password(&head, &person.call, input.current_password, input.new_password).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// List the live sessions of the signed-in person, the newest 100.
#[utoipa::path(
    get, path = "/api/account/sessions", operation_id = "listSessions", tag = "Account",
    responses((status = 200, description = "The sessions, the newest first, without their secrets.", body = Vec<OwnSession>)),
)]
pub(super) async fn list_sessions(
    State(sessions): State<Sessions>,
    person: SignedIn,
    parts: Parts,
) -> Answer {
    Ok(JsonBody(sessions.list(&parts, &person.call).await?).into_response())
}

/// End one session of the signed-in person.
#[utoipa::path(
    delete, path = "/api/account/sessions/{sessionId}", operation_id = "endSession", tag = "Account",
    params(("sessionId" = String, Path, format = "uuid", description = "The session.")),
    responses((status = 204, description = "It opens nothing any more.")),
)]
pub(super) async fn end_session(
    State(sessions): State<Sessions>,
    person: SignedIn,
    PathId(id): PathId<SessionId>,
) -> Answer {
    sessions.end(&person.call, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Sign out everywhere.
#[utoipa::path(
    delete, path = "/api/account/sessions", operation_id = "deleteSessions", tag = "Account",
    responses((status = 204, description = "No session of the person lives any more.")),
)]
pub(super) async fn delete_sessions(
    State(sessions): State<Sessions>,
    person: SignedIn,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    sessions.close_all(&parts, &person.call).await?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, sessions.no_cookie()?)]).into_response())
}
