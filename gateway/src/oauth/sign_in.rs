//! Sign-in and sign-out within the consent flow.

use axum::extract::{Request, State};
use axum::response::Response;
use cairn_chassis::status::{Problem, Reason};
use http::header;
use http::request::Parts;

use super::authorize::read_form;
use super::fields::Fields;
use super::pages::{self, SignInPage};
use super::redirect::see_other;
use super::refusal::Refusal;
use super::server::Server;
use crate::auth::call_of;
use crate::error::Error;
use crate::pages::words;

/// Signs in and continues with the pending request.
pub(super) async fn sign_in(State(server): State<Server>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let form = match read_form(&server, &parts, body).await {
        Ok(form) => form,
        Err(refusal) => return pages::failure(&refusal),
    };
    let (email, password) = (form.text("email"), form.text("password"));
    if email.is_empty() || password.is_empty() {
        return sign_in_page(&server, &parts, &form, "Enter your email and your password.").await;
    }
    match server.sessions.open(&parts, email, password).await {
        Ok(opened) => match server.sessions.cookie(&opened.session_secret, opened.expires_at.as_ref()) {
            Ok(cookie) => with_cookie(go_on(&form), cookie),
            Err(problem) => failed(problem),
        },
        Err(problem) if problem.reason == Reason::Unauthorized => {
            sign_in_page(&server, &parts, &form, "The email or the password is wrong.").await
        }
        Err(problem) if problem.reason == Reason::RateLimited => {
            sign_in_page(&server, &parts, &form, &words::sentence(&problem.message)).await
        }
        Err(problem) => pages::failure(&Refusal::from(problem)),
    }
}

/// Signs out and shows the sign-in page.
pub(super) async fn sign_out(State(server): State<Server>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let form = match read_form(&server, &parts, body).await {
        Ok(form) => form,
        Err(refusal) => return pages::failure(&refusal),
    };
    if let Err(problem) = server.sessions.close(&parts).await {
        return pages::failure(&Refusal::from(problem));
    }
    match server.sessions.no_cookie() {
        Ok(cookie) => with_cookie(go_on(&form), cookie),
        Err(problem) => failed(problem),
    }
}

/// The location is built from our own path and parsed parameters, so that a form cannot redirect elsewhere (open
/// redirect).
fn go_on(form: &Fields) -> Response {
    let request = Fields::read(form.text("request").as_bytes());
    see_other(&format!("/oauth/authorize?{}", request.encoded(&super::authorize::PARAMETERS)))
}

async fn sign_in_page(server: &Server, parts: &Parts, form: &Fields, problem: &str) -> Response {
    let request = Fields::read(form.text("request").as_bytes()).encoded(&super::authorize::PARAMETERS);
    let page = SignInPage {
        request,
        email: form.text("email"),
        problem: Some(problem.to_owned()),
        provider: server.sessions.provider(&call_of(parts)).await,
        ..SignInPage::default()
    };
    page.render()
}

fn with_cookie(mut response: Response, cookie: http::HeaderValue) -> Response {
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    response
}

fn failed(problem: Problem) -> Response {
    let error = Error::from(problem);
    pages::failure(&Refusal::new(error.status, "server_error", error.message))
}
