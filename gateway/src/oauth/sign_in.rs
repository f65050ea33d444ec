//! Signing in on the way to a consent, and out again.

use axum::extract::{Request, State};
use axum::response::Response;
use cairn_chassis::status::Reason;
use http::header;
use http::request::Parts;

use super::authorize::read_form;
use super::fields::Fields;
use super::oidc;
use super::pages::{self, SignInPage};
use super::redirect::see_other;
use super::refusal::Refusal;
use crate::app::App;
use crate::auth::call_of;
use crate::console::session;
use crate::error::Error;

/// Signs in and goes on with the request that is waiting.
pub(super) async fn sign_in(State(app): State<App>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let form = match read_form(&app, &parts, body).await {
        Ok(form) => form,
        Err(refusal) => return pages::failure(&refusal),
    };
    let (email, password) = (form.text("email"), form.text("password"));
    if email.is_empty() || password.is_empty() {
        return again(&app, &parts, &form, "Enter your email and your password.").await;
    }
    match session::open(&app, &parts, email, password).await {
        Ok(opened) => match session::cookie_of(&app, &opened) {
            Ok(cookie) => with_cookie(go_on(&form), cookie),
            Err(error) => failed(&error),
        },
        Err(problem) if problem.reason == Reason::Unauthorized => {
            again(&app, &parts, &form, "The email or the password is wrong.").await
        }
        Err(problem) if problem.reason == Reason::RateLimited => {
            again(&app, &parts, &form, &sentence(&problem.message)).await
        }
        Err(problem) => pages::failure(&Refusal::from(problem)),
    }
}

/// Signs out and asks again who is there.
pub(super) async fn sign_out(State(app): State<App>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let form = match read_form(&app, &parts, body).await {
        Ok(form) => form,
        Err(refusal) => return pages::failure(&refusal),
    };
    if let Err(problem) = session::close(&app, &parts).await {
        return pages::failure(&Refusal::from(problem));
    }
    match session::no_cookie(&app) {
        Ok(cookie) => with_cookie(go_on(&form), cookie),
        Err(error) => failed(&error),
    }
}

/// The address is made of our own path and parameters that were read, so that a form cannot send anybody elsewhere.
fn go_on(form: &Fields) -> Response {
    let request = Fields::read(form.text("request").as_bytes());
    see_other(&format!("/oauth/authorize?{}", request.encoded(&super::authorize::PARAMETERS)))
}

async fn again(app: &App, parts: &Parts, form: &Fields, problem: &str) -> Response {
    let request = Fields::read(form.text("request").as_bytes()).encoded(&super::authorize::PARAMETERS);
    let page = SignInPage {
        request,
        email: form.text("email"),
        problem: Some(problem.to_owned()),
        provider: oidc::provider(app, &call_of(parts)).await,
        ..SignInPage::default()
    };
    page.render()
}

pub(super) fn sentence(message: &str) -> String {
    let mut characters = message.chars();
    characters
        .next()
        .map(|first| first.to_uppercase().chain(characters).chain(['.']).collect())
        .unwrap_or_default()
}

fn with_cookie(mut response: Response, cookie: http::HeaderValue) -> Response {
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    response
}

fn failed(error: &Error) -> Response {
    pages::failure(&Refusal::new(error.status, "server_error", error.message.clone()))
}
