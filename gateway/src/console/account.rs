//! The account of the signed-in person: its password, and all of its sessions.

use axum::extract::{FromRequest as _, FromRequestParts as _, Request, State};
use axum::response::IntoResponse as _;
use cairn_chassis::status::Problem;
use cairn_proto::auth::v1 as proto;
use http::{StatusCode, header};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Answer, answered, session};
use crate::app::App;
use crate::auth::{self, SignedIn};
use crate::error;
use crate::extract::Json;
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

/// Sets a new password; every other session of the person ends. A wrong guess at the old one counts like one at the
/// sign-in: whoever found an open session must not try words here instead.
pub(super) async fn change_password(State(app): State<App>, request: Request) -> Answer {
    let (mut parts, body) = request.into_parts();
    let person = SignedIn::from_request_parts(&mut parts, &app).await?;
    let session_secret = auth::session_secret(&app, &parts.headers).map(ToOwned::to_owned);
    let head = parts.clone();
    let Json(input) = Json::<ChangePassword>::from_request(Request::from_parts(parts, body), &app).await?;
    let source = app.limits.source(&head);
    let attempt = app.limits.begin_sign_in(&head.extensions, source).await?;
    let message = person.call.request(proto::ChangePasswordRequest {
        current_password: input.current_password,
        new_password: input.new_password,
        session_secret,
        source_address: Some(source.to_string()),
    });
    let changed = app.upstreams.sessions().change_password(message).await;
    let problem = changed.err().map(|status| error::from_upstream(&status));
    if !problem.as_ref().is_some_and(is_guess) {
        app.limits.forget_sign_in(attempt).await;
    }
    match problem {
        Some(problem) => Err(problem.into()),
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

fn is_guess(problem: &Problem) -> bool {
    problem.violations.iter().any(|broken| broken.path == "currentPassword")
}

/// Signs out everywhere.
pub(super) async fn delete_sessions(State(app): State<App>, request: Request) -> Answer {
    let (mut parts, _) = request.into_parts();
    let person = SignedIn::from_request_parts(&mut parts, &app).await?;
    let message = person.call.request(proto::DeleteSessionsRequest {});
    answered(app.upstreams.sessions().delete_sessions(message).await)?;
    if let Some(secret) = auth::session_secret(&app, &parts.headers) {
        app.token_cache.forget_session(secret);
    }
    let cookie = session::no_cookie(&app)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}
