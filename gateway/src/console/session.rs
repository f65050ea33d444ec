//! Sign-in and sign-out.

use std::sync::Arc;

use axum::extract::{FromRequest as _, Request, State};
use axum::response::IntoResponse as _;
use http::{StatusCode, header};
use serde::Deserialize;
use utoipa::ToSchema;

use super::Answer;
use crate::answers::Session;
use crate::auth::SignedIn;
use crate::extract::Json;
use crate::intake::Intake;
use crate::json_body::JsonBody;
use crate::operations::sessions::Sessions;
use crate::rate_limit::Limits;
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

/// Sign in: the answer sets the session cookie.
#[utoipa::path(
    post, path = "/api/session", operation_id = "signIn", tag = "Session",
    request_body = SignIn,
    responses((status = 200, description = "Who is signed in, with workspaces and roles.", body = Session)),
)]
pub(super) async fn create(
    State(sessions): State<Sessions>,
    State(limits): State<Arc<Limits>>,
    State(intake): State<Arc<Intake>>,
    request: Request,
) -> Answer {
    let (parts, body) = request.into_parts();
    limits.open_body(&parts).await?;
    let head = parts.clone();
    let Json(form) = Json::<SignIn>::from_request(Request::from_parts(parts, body), &intake).await?;
    let opened = sessions.open(&head, form.email, form.password).await?;
    let cookie = sessions.cookie(&opened.session_secret, opened.expires_at.as_ref())?;
    let session = Session::read(opened.user, opened.memberships, opened.pending_invitations);
    Ok(([(header::SET_COOKIE, cookie)], JsonBody(session)).into_response())
}

/// Read who is signed in, and their workspaces and roles.
#[utoipa::path(
    get, path = "/api/session", operation_id = "getSession", tag = "Session",
    responses((status = 200, description = "Who is signed in, with workspaces and roles.", body = Session)),
)]
pub(super) async fn read(State(sessions): State<Sessions>, person: SignedIn) -> Answer {
    Ok(JsonBody(sessions.read(&person.call).await?).into_response())
}

/// Sign out. Without a session there is nothing to do, and that is fine.
#[utoipa::path(
    delete, path = "/api/session", operation_id = "signOut", tag = "Session",
    responses((status = 204, description = "There is no session any more; the answer takes the cookie away.")),
)]
pub(super) async fn delete(State(sessions): State<Sessions>, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    sessions.close(&parts).await?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, sessions.no_cookie()?)]).into_response())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::{Method, Request};
    use serde_json::{Value, json};

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
}
