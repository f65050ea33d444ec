//! Sign-in and sign-out: the form, also used in the consent flow of agents.

use axum::extract::State;
use axum::response::Response;
use cairn_chassis::status::{Problem, Reason};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use maud::{Markup, html};

use super::Answer;
use super::FORM;
use super::document::{self, Document};
use super::form::Form;
use super::look::Look;
use super::visitor::see_other;
use super::words;
use crate::auth::{Authenticator, call_of};
use crate::cost::Cost;
use crate::error::Error;
use crate::operations::sessions::Sessions;
use crate::routes::Routes;
use std::sync::Arc;

/// The start of a sign-in by the identity provider.
pub(crate) const PROVIDER_START: &str = "/oauth/oidc/start";
const PAGE: &str = "/sign-in";
/// The limit of a return path in an OIDC sign-in.
const MAX_PATH_LENGTH: usize = 2_800;

pub(super) fn routes() -> Routes {
    Routes::default().get(FORM, PAGE, ask).post(FORM.costing(Cost::PASSWORD), PAGE, answer).post(
        FORM,
        "/sign-out",
        leave,
    )
}

/// The sign-in form.
#[derive(Debug)]
pub(crate) struct SignInForm<'a> {
    pub(crate) action: &'a str,
    /// A hidden field: name and value.
    pub(crate) carried: (&'a str, &'a str),
    /// Markup between the heading and the form.
    pub(crate) lead: Markup,
    pub(crate) email: &'a str,
    pub(crate) problem: Option<&'a str>,
    /// The name of the identity provider, if there is one, and the return path.
    pub(crate) provider: Option<(&'a str, &'a str)>,
}

impl SignInForm<'_> {
    pub(crate) fn render(&self) -> Markup {
        let (name, value) = self.carried;
        html! {
            h1 { "Sign in to Cairn" }
            (self.lead)
            @if let Some(problem) = self.problem {
                div #problem .problem role="alert" { p { a href="#email" { (problem) } } }
            }
            form method="post" action=(self.action) {
                input type="hidden" name=(name) value=(value);
                label.label for="email" { "Email" }
                input #email type="email" name="email" value=(self.email) autocomplete="username" required
                    aria-invalid=[self.problem.map(|_| "true")] aria-describedby=[self.problem.map(|_| "problem")];
                label.label for="password" { "Password" }
                input #password type="password" name="password" autocomplete="current-password" required;
                div.buttons { button.primary type="submit" { "Sign in" } }
            }
            @if let Some((provider, back)) = self.provider {
                p.or { "or" }
                // A link rather than a form: browsers apply `form-action` to the redirects after a form.
                div.buttons { a.button href=(with_return(PROVIDER_START, back)) { "Sign in with " (provider) } }
            }
        }
    }
}

/// The sign-in page, which returns to the path.
pub(crate) fn address(return_to: &str) -> String {
    with_return(PAGE, if is_own_path(return_to) { return_to } else { "/" })
}

fn with_return(path: &str, return_to: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("return_to", return_to).finish();
    format!("{path}?{query}")
}

/// Whether a redirect to the path stays on our origin. `//host` and `/\host` do not.
pub(crate) fn is_own_path(path: &str) -> bool {
    let mut letters = path.chars();
    letters.next() == Some('/')
        && !matches!(letters.next(), Some('/' | '\\'))
        && path.len() <= MAX_PATH_LENGTH
        && path.bytes().all(|byte| matches!(byte, b'!'..=b'~'))
}

/// The return path of a form or a query.
fn return_to(text: &str) -> &str {
    if is_own_path(text) { text } else { "/" }
}

fn asked_return(parts: &Parts) -> String {
    let mut query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    let asked = query.find(|(name, _)| name == "return_to").map(|(_, path)| path.into_owned());
    return_to(asked.as_deref().unwrap_or("/")).to_owned()
}

/// `GET /sign-in`.
async fn ask(
    State(sessions): State<Sessions>,
    State(authenticator): State<Arc<Authenticator>>,
    parts: Parts,
) -> Answer {
    let back = asked_return(&parts);
    if authenticator.live_session(&parts).await?.is_some() {
        return Ok(see_other(&back));
    }
    Ok(page(&sessions, &parts, &back, "", None).await)
}

/// `POST /sign-in`.
async fn answer(State(sessions): State<Sessions>, parts: Parts, form: Form) -> Answer {
    let (email, password) = (form.trimmed("email"), form.text("password"));
    let back = return_to(form.text("return_to"));
    if email.is_empty() || password.is_empty() {
        return Ok(page(&sessions, &parts, back, email, Some(&SignInError::empty())).await);
    }
    match sessions.open(&parts, email.to_owned(), password.to_owned()).await {
        Ok(opened) => {
            let cookie = sessions.cookie(&opened.session_secret, opened.expires_at.as_ref())?;
            Ok(with_cookie(see_other(back), cookie))
        }
        Err(problem) => match SignInError::of(problem) {
            Ok(wrong) => Ok(page(&sessions, &parts, back, email, Some(&wrong)).await),
            Err(problem) => Err(problem.into()),
        },
    }
}

/// `POST /sign-out`.
async fn leave(State(sessions): State<Sessions>, parts: Parts) -> Answer {
    sessions.close(&parts).await?;
    Ok(with_cookie(see_other(PAGE), sessions.no_cookie()?))
}

/// Why the sign-in failed.
struct SignInError {
    status: StatusCode,
    message: String,
    retry_after: Option<HeaderValue>,
}

impl SignInError {
    fn empty() -> Self {
        let message = "Enter your email and your password.".to_owned();
        Self { status: StatusCode::BAD_REQUEST, message, retry_after: None }
    }

    /// An error that the person can correct; others are failures of the page.
    fn of(problem: Problem) -> Result<Self, Problem> {
        let can_be_put_right =
            [Reason::Unauthorized, Reason::ValidationError, Reason::RateLimited].contains(&problem.reason);
        if !can_be_put_right {
            return Err(problem);
        }
        let is_wrong = problem.reason == Reason::Unauthorized;
        let message = if is_wrong {
            "The email or the password is wrong.".to_owned()
        } else {
            words::describe(&problem)
        };
        // 401 would make the browser ask for a password.
        let is_limited = problem.reason == Reason::RateLimited;
        let error = Error::from(problem);
        let retry_after = error.retry_after.map(|wait| HeaderValue::from(wait.as_secs().max(1)));
        let status = if is_limited { error.status } else { StatusCode::BAD_REQUEST };
        Ok(Self { status, message, retry_after })
    }
}

async fn page(
    sessions: &Sessions,
    parts: &Parts,
    back: &str,
    email: &str,
    wrong: Option<&SignInError>,
) -> Response {
    let provider = sessions.provider(&call_of(parts)).await;
    let form = SignInForm {
        action: PAGE,
        carried: ("return_to", back),
        lead: html! {},
        email,
        problem: wrong.map(|wrong| wrong.message.as_str()),
        provider: provider.as_deref().map(|provider| (provider, back)),
    };
    let status = wrong.map_or(StatusCode::OK, |wrong| wrong.status);
    let title = if wrong.is_some() { "Error: Sign in" } else { "Sign in" };
    let mut response = standalone(status, title, &parts.headers, &html! { main { (form.render()) } });
    if let Some(wait) = wrong.and_then(|wrong| wrong.retry_after.clone()) {
        response.headers_mut().insert(header::RETRY_AFTER, wait);
    }
    response
}

/// A console page without its frame.
fn standalone(status: StatusCode, title: &str, headers: &HeaderMap, body: &Markup) -> Response {
    let document = Document { title, class: "alone", modules: &document::MODULES, look: Look::of(headers) };
    let mut response = document.around(status, body);
    document::guard(&mut response);
    response
}

pub(super) fn with_cookie(mut response: Response, cookie: HeaderValue) -> Response {
    response.headers_mut().append(header::SET_COOKIE, cookie);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_come_back_to_paths_of_our_own_alone() {
        for own in ["/", "/w/1?a=b%20c#x", "/file/1?lines=1-2"] {
            assert_eq!(return_to(own), own);
        }
        let long = format!("/{}", "x".repeat(MAX_PATH_LENGTH));
        for other in [
            "",
            "w/1",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\nb",
            "/a b",
            "/é",
            &long,
        ] {
            assert_eq!(return_to(other), "/", "{other}");
        }
        assert_eq!(address("//evil.example"), "/sign-in?return_to=%2F");
    }
}
