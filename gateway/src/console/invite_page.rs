//! `/invite`: the target of an invitation link. Plain HTML; its one script moves the secret from the URL fragment
//! into the form, and people without scripts paste it there.

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use cairn_chassis::call::Call;
use cairn_chassis::status::Problem;
use cairn_proto::auth::v1 as proto;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use maud::{Markup, html};

use super::invitations::AcceptState;
use crate::auth;
use crate::class::Class;
use crate::error::Error;
use crate::operations::invitations;
use crate::operations::sessions::Sessions;
use crate::pages::document::Document;
use crate::pages::{INVITE_JS, words};

const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; \
     base-uri 'none'",
);

/// `GET /invite`.
pub(super) async fn ask() -> Response {
    code_page(StatusCode::OK, None)
}

/// The submitted form.
#[derive(Default)]
struct Form {
    secret: String,
    /// Whether the person has seen the details of the invitation and confirmed.
    is_decided: bool,
    name: String,
    password: String,
}

impl Form {
    fn read(bytes: &[u8]) -> Self {
        let mut form = Self::default();
        for (name, value) in form_urlencoded::parse(bytes) {
            match &*name {
                "secret" => form.secret = value.trim().to_owned(),
                "decided" => form.is_decided = true,
                "name" => form.name = value.into_owned(),
                "password" => form.password = value.into_owned(),
                _ => {}
            }
        }
        form
    }
}

/// `POST /invite`: shows the details of the invitation, then accepts it.
pub(super) async fn answer(State(needed): State<AcceptState>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if let Err(problem) = needed.limits.open_body(&parts).await {
        return code_page(Error::from(problem.clone()).status, Some(&words::describe(&problem)));
    }
    let limit = Class::of(&parts.extensions).max_bytes;
    let bytes = match needed.intake.receive(body, limit, &parts.extensions, None).await {
        Ok(bytes) => bytes,
        Err(error) => return error.into_response(),
    };
    let form = Form::read(&bytes);
    let call = auth::call_of(&parts);
    let offer = match invitations::look_up(&needed.upstreams, &call, form.secret.clone()).await {
        Ok(found) => found,
        Err(problem) => {
            return code_page(Error::from(problem.clone()).status, Some(&words::describe(&problem)));
        }
    };
    let person = person(&needed, &parts).await;
    if !form.is_decided {
        return offer_page(StatusCode::OK, &form, &offer, person.as_ref(), None);
    }
    let accepted = match person.as_ref().filter(|person| person.email == invited_email(&offer)) {
        Some(person) => {
            invitations::join(&needed.upstreams, &person.call, form.secret.clone()).await.map(|()| None)
        }
        None => open(&needed.sessions, &parts, &form).await.map(Some),
    };
    match accepted {
        Ok(cookie) => done_page(&offer, cookie),
        Err(problem) => {
            let status = Error::from(problem.clone()).status;
            offer_page(status, &form, &offer, person.as_ref(), Some(&words::describe(&problem)))
        }
    }
}

/// The signed-in person, if there is one.
struct Person {
    email: String,
    call: Call,
}

async fn person(page: &AcceptState, parts: &Parts) -> Option<Person> {
    let call = page.authenticator.person(parts).await.ok()?.call;
    let asked = page.upstreams.sessions().get_session(call.request(proto::GetSessionRequest {})).await;
    Some(Person { email: asked.ok()?.into_inner().user?.email, call })
}

/// Accepts with the account of the form's password, or a new one; returns the session cookie.
async fn open(sessions: &Sessions, parts: &Parts, form: &Form) -> Result<HeaderValue, Problem> {
    let Form { secret, name, password, .. } = form;
    let message = proto::AcceptInvitationRequest {
        secret: secret.clone(),
        name: name.clone(),
        password: password.clone(),
        source_address: None,
        agent: String::new(),
    };
    let accepted = sessions.accept_invitation(parts, message).await?;
    sessions.cookie(&accepted.session_secret, accepted.expires_at.as_ref())
}

fn invited_email(offer: &proto::LookUpInvitationResponse) -> String {
    offer.invitation.as_ref().map(|invitation| invitation.email.clone()).unwrap_or_default()
}

fn code_page(status: StatusCode, problem: Option<&str>) -> Response {
    let body = html! {
        h1 { "Join a workspace" }
        (error_notice(problem))
        form method="post" action="/invite" {
            label.label for="secret" { "Invitation code" }
            span.hint { "What stands behind the # of your link." }
            input #secret type="password" name="secret" autocomplete="off" required;
            div.buttons { button.primary type="submit" { "Go on" } }
        }
    };
    page(status, "Join a workspace", &body, problem.is_none())
}

fn offer_page(
    status: StatusCode,
    form: &Form,
    offer: &proto::LookUpInvitationResponse,
    person: Option<&Person>,
    problem: Option<&str>,
) -> Response {
    let email = invited_email(offer);
    let inviter = offer.invitation.as_ref().and_then(|invitation| invitation.inviter.as_ref());
    let is_signed_in = person.is_some_and(|person| person.email == email);
    let body = html! {
        h1 { "Join " bdi { (offer.workspace_name) } }
        (error_notice(problem))
        dl {
            dt { "Invited by" }
            dd { @if let Some(inviter) = inviter { bdi { (inviter.name) } " (" (inviter.email) ")" } }
            dt { "Your email" }
            dd { (email) }
        }
        form method="post" action="/invite" {
            input type="hidden" name="secret" value=(form.secret);
            input type="hidden" name="decided" value="yes";
            input type="hidden" name="username" value=(email) autocomplete="username";
            @if !is_signed_in {
                label.label for="name" { "Your name" }
                input #name type="text" name="name" value=(form.name) autocomplete="name" required;
                label.label for="password" { "Your password" }
                span.hint { "Of your account with this email. If you have none, choose one." }
                input #password type="password" name="password" autocomplete="current-password" minlength="8" required;
            }
            div.buttons { button.primary type="submit" { "Join" } }
        }
    };
    page(status, "Join a workspace", &body, false)
}

fn done_page(offer: &proto::LookUpInvitationResponse, cookie: Option<HeaderValue>) -> Response {
    let workspace =
        offer.invitation.as_ref().map(|invitation| invitation.workspace_id.as_str()).unwrap_or_default();
    let body = html! {
        h1 { "Welcome to " bdi { (offer.workspace_name) } }
        p { "You are a member now, and signed in. The link has done its work and opens nothing any more." }
        div.buttons { a.button.primary href={ "/w/" (workspace) } { "Open " bdi { (offer.workspace_name) } } }
    };
    let mut response = page(StatusCode::OK, "Welcome", &body, false);
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

fn error_notice(problem: Option<&str>) -> Markup {
    html! {
        @if let Some(problem) = problem {
            div.problem role="alert" { p { (problem) } }
        }
    }
}

fn page(status: StatusCode, title: &str, body: &Markup, reads_address: bool) -> Response {
    let modules: &[_] = if reads_address { &[INVITE_JS] } else { &[] };
    let document = Document { title, class: "alone", modules, ..Document::default() };
    let mut response = document.around(status, &html! { main { (body) } });
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    // With `no-referrer`, browsers send `Origin: null` with our own forms, which we reject.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}
