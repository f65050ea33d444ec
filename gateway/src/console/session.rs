//! Signing in and out.

use std::time::Duration;

use axum::extract::{FromRequest as _, Request, State};
use axum::response::IntoResponse as _;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::Problem;
use cairn_proto::auth::v1 as proto;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use serde::Deserialize;
use tonic::Code;
use utoipa::ToSchema;

use super::{Answer, answered};
use crate::answers::Session;
use crate::app::App;
use crate::auth::{self, SignedIn};
use crate::error::{self, Error};
use crate::extract::Json;
use crate::json_body::JsonBody;
use crate::schema::inputs;

inputs!(SignIn);

/// The sign-in form.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SignIn {
    #[schema(min_length = 1, max_length = 320)]
    email: String,
    #[schema(min_length = 1, max_length = 1024)]
    password: String,
}

/// Signs in: the answer sets the session cookie.
pub(super) async fn create(State(app): State<App>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    app.limits.open_body(&parts).await?;
    let head = parts.clone();
    let Json(form) = Json::<SignIn>::from_request(Request::from_parts(parts, body), &app).await?;
    let created = open(&app, &head, form.email, form.password).await?;
    let cookie = cookie_of(&app, &created)?;
    let session = Session::read(created.user, created.memberships, created.pending_invitations);
    Ok(([(header::SET_COOKIE, cookie)], JsonBody(session)).into_response())
}

/// Who is signed in, and their workspaces and roles.
pub(super) async fn read(State(app): State<App>, person: SignedIn) -> Answer {
    let message = person.call.request(proto::GetSessionRequest {});
    let session = answered(app.upstreams.sessions().get_session(message).await)?;
    let session = Session::read(session.user, session.memberships, session.pending_invitations);
    Ok(JsonBody(session).into_response())
}

/// Signs out. Without a session there is nothing to do, and that is fine.
pub(super) async fn delete(State(app): State<App>, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    close(&app, &parts).await?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, no_cookie(&app)?)]).into_response())
}

/// Ends the session that came along, if it lives.
pub(crate) async fn close(app: &App, parts: &Parts) -> Result<(), Problem> {
    let live = auth::live_session(parts, app).await?;
    let Some(secret) = auth::session_secret(app, &parts.headers).filter(|_| live.is_some()) else {
        return Ok(());
    };
    let message = proto::DeleteSessionRequest { session_secret: secret.to_owned() };
    let ended = app.upstreams.sessions().delete_session(auth::call_of(parts).request(message)).await;
    ended.map_err(|status| error::from_upstream(&status))?;
    app.token_cache.forget_session(secret);
    Ok(())
}

/// Opens a session for whoever knows the password; a failure counts, here and in svc-auth.
pub(crate) async fn open(
    app: &App,
    parts: &Parts,
    email: String,
    password: String,
) -> Result<proto::CreateSessionResponse, Problem> {
    let source = app.limits.source(parts);
    let attempt = app.limits.begin_sign_in(&parts.extensions, source).await?;
    let source_address = Some(source.to_string());
    let message =
        auth::call_of(parts).request(proto::CreateSessionRequest { email, password, source_address });
    let opened = app.upstreams.sessions().create_session(message).await;
    if !opened.as_ref().is_err_and(|status| status.code() == Code::Unauthenticated) {
        app.limits.forget_sign_in(attempt).await;
    }
    opened.map(tonic::Response::into_inner).map_err(|status| error::from_upstream(&status))
}

/// The cookie of a session that was just opened.
pub(crate) fn cookie_of(app: &App, opened: &proto::CreateSessionResponse) -> Result<HeaderValue, Error> {
    cookie(app, &opened.session_secret, lifetime(app, opened.expires_at.as_ref()))
}

/// The cookie that takes the session's away.
pub(crate) fn no_cookie(app: &App) -> Result<HeaderValue, Error> {
    cookie(app, "", Duration::ZERO)
}

/// How long a session that was just opened lives.
pub(crate) fn lifetime(app: &App, end: Option<&prost_types::Timestamp>) -> Duration {
    end.map_or(Duration::ZERO, |at| Timestamp::from_proto(at).since(app.ambient.clock.now()))
}

pub(crate) fn cookie(app: &App, secret: &str, lifetime: Duration) -> Result<HeaderValue, Error> {
    if !secret.is_empty() {
        app.token_cache.note_session(secret);
    }
    let needs_tls = app.origins.is_https() || !app.origins.is_loopback();
    let text = cookie_text(auth::session_cookie(app), secret, lifetime, needs_tls);
    let mut value =
        HeaderValue::from_str(&text).map_err(|_| Problem::internal("a session secret is no cookie value"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Only on loopback may the cookie travel without TLS.
fn cookie_text(name: &str, secret: &str, lifetime: Duration, needs_tls: bool) -> String {
    let secure = if needs_tls { "; Secure" } else { "" };
    let seconds = lifetime.as_secs();
    format!("{name}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::{Method, Request};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Answer, Bench, PASSWORD, bench};

    async fn send(bench: &Bench, method: Method, path: &str, cookie: &str, body: &Value) -> Answer {
        let request = Request::builder().method(method).uri(path).header("cookie", cookie);
        let request = request.header("content-type", "application/json").body(Body::from(body.to_string()));
        bench.send_as_is(request.unwrap()).await
    }

    #[tokio::test]
    async fn a_person_signs_in_asks_who_they_are_and_signs_out() {
        let bench = bench().await;
        let form = json!({"email": "a@b.example", "password": PASSWORD});
        let opened = send(&bench, Method::POST, "/api/session", "", &form).await;
        assert_eq!(opened.status, 200, "{}", opened.text);
        assert_eq!(opened.json()["workspaces"][0]["role"], "owner");
        let cookie = opened.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        assert_eq!(opened.headers["cache-control"], "no-store");
        let who = send(&bench, Method::GET, "/api/session", &cookie, &json!({})).await;
        assert_eq!(who.json()["user"]["email"], "a@b.example");
        let out = send(&bench, Method::DELETE, "/api/session", &cookie, &json!({})).await;
        assert_eq!(out.status, 204);
        let after = send(&bench, Method::GET, "/api/session", &cookie, &json!({})).await;
        assert_eq!(after.status, 401, "a session that has ended is not remembered");
    }

    #[tokio::test]
    async fn a_wrong_password_opens_nothing() {
        let bench = bench().await;
        let form = json!({"email": "a@b.example", "password": "wrong-one"});
        let refused = send(&bench, Method::POST, "/api/session", "", &form).await;
        assert_eq!(refused.status, 401);
        assert!(refused.headers.get("set-cookie").is_none() && !refused.text.contains("wrong-one"));
    }

    #[test]
    fn outside_loopback_the_cookie_needs_tls() {
        let text = cookie_text("name", "s", Duration::from_secs(9), true);
        assert_eq!(text, "name=s; Path=/; Max-Age=9; HttpOnly; SameSite=Lax; Secure");
    }
}
