//! The authorization endpoint: sign-in, consent, and the redirect to the client.

use axum::extract::{Request, State};
use axum::response::Response;
use cairn_chassis::call::Call;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::auth::v1 as proto;
use http::StatusCode;
use http::request::Parts;

use super::fields::{Fields, without_nul};
use super::pages::{self, Choice, ConsentPage, SignInPage};
use super::redirect::{Redirect, see_other};
use super::refusal::Refusal;
use super::server::Server;
use crate::auth::call_of;
use crate::class::Class;
use crate::error::{self, Error};

/// The parameters of an authorization request (RFC 6749, 7636, 8707). They travel through the forms as one field.
pub(super) const PARAMETERS: [&str; 8] = [
    "client_id",
    "redirect_uri",
    "response_type",
    "scope",
    "state",
    "resource",
    "code_challenge",
    "code_challenge_method",
];
/// Only `resource` may be repeated.
const SINGLE: [&str; 7] = [
    "client_id",
    "redirect_uri",
    "response_type",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
];

const NOT_IN_ROLE: &str =
    "Your role in this workspace allows none of that: choose something else, or another workspace.";

/// An authorization request, and the base URL under which it arrived.
#[derive(Clone)]
pub(super) struct PendingRequest {
    fields: Fields,
    base: String,
}

impl PendingRequest {
    fn read(query: &str, parts: &Parts, server: &Server) -> Result<Self, Refusal> {
        let fields = Fields::read(query.as_bytes());
        without_nul(&fields)?;
        // With an ambiguous client or redirect URI, nothing may be redirected to the client.
        fields.require_single(&["client_id", "redirect_uri"])?;
        if fields.first("client_id").is_none() {
            return Err(Refusal::invalid_request("client_id is required"));
        }
        Ok(Self { fields, base: server.origins.base_url(&parts.headers).ok_or_else(Refusal::no_address)? })
    }

    /// The request as a query string, for the next step.
    pub(super) fn query(&self) -> String {
        self.fields.encoded(&PARAMETERS)
    }

    fn message(&self) -> proto::AuthorizationRequest {
        proto::AuthorizationRequest {
            client_id: self.fields.text("client_id"),
            redirect_uri: self.fields.first("redirect_uri"),
            response_type: self.fields.text("response_type"),
            scope: self.fields.first("scope"),
            resources: self.fields.all("resource").map(ToOwned::to_owned).collect(),
            code_challenge: self.fields.text("code_challenge"),
            code_challenge_method: self.fields.text("code_challenge_method"),
            base_url: self.base.clone(),
        }
    }

    fn redirect(&self, uri: String) -> Redirect {
        Redirect { uri, state: self.fields.first("state"), issuer: self.base.clone() }
    }
}

/// A person with a session.
struct Person {
    call: Call,
    /// The session secret, which binds a form to it.
    secret: String,
}

/// Shows the consent page, after sign-in.
pub(super) async fn ask(State(server): State<Server>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let page = async {
        let asked = PendingRequest::read(parts.uri.query().unwrap_or_default(), &parts, &server)?;
        ask_for(&server, &parts, &asked, None).await
    };
    page.await.unwrap_or_else(|refusal| pages::failure(&refusal))
}

/// Redirects to the client with the person's decision.
pub(super) async fn answer(State(server): State<Server>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let answered = async {
        let form = read_form(&server, &parts, body).await?;
        let asked = PendingRequest::read(&form.text("request"), &parts, &server)?;
        let Some(person) = person(&server, &parts).await? else {
            return Ok(see_other(&format!("/oauth/authorize?{}", asked.query())));
        };
        if !is_own_form(&form, &person, &asked) {
            let description = "this form is not of your present session: go back to the app and start again";
            return Err(Refusal::new(StatusCode::FORBIDDEN, "invalid_request", description));
        }
        match form.text("decision").as_str() {
            "allow" => allow(&server, &parts, &asked, &person, &form).await,
            _ => deny(&server, &person, &asked).await,
        }
    };
    answered.await.unwrap_or_else(|refusal| pages::failure(&refusal))
}

/// Reads a form of one of our pages, with CSRF protection.
pub(super) async fn read_form(
    server: &Server,
    parts: &Parts,
    body: axum::body::Body,
) -> Result<Fields, Refusal> {
    if !server.origins.allow_session_write(&parts.headers) {
        let description =
            "this form was not sent from a page of this server: go back to the app and start again";
        return Err(Refusal::new(StatusCode::FORBIDDEN, "invalid_request", description));
    }
    server.limits.open_body(parts).await?;
    let bytes =
        server.intake.receive(body, Class::of(&parts.extensions).max_bytes, &parts.extensions, None).await;
    let bytes = bytes.map_err(|error: Error| Refusal::new(error.status, "invalid_request", error.message))?;
    let fields = Fields::read(&bytes);
    without_nul(&fields)?;
    Ok(fields)
}

/// The page for the state of the request: sign-in or consent.
async fn ask_for(
    server: &Server,
    parts: &Parts,
    asked: &PendingRequest,
    chosen: Option<Chosen>,
) -> Result<Response, Refusal> {
    let person = person(server, parts).await?;
    let call = person.as_ref().map_or_else(|| call_of(parts), |person| person.call.clone());
    let checked = check(server, &call, asked).await?;
    if checked.sign_in_first {
        let provider = server.sessions.provider(&call).await;
        return Ok(SignInPage { request: asked.query(), provider, ..SignInPage::default() }.render());
    }
    let redirect = asked.redirect(checked.redirect_uri.clone());
    if let Some(name) = asked.fields.repeated(&SINGLE) {
        return Ok(redirect.with_error("invalid_request", &format!("{name} was sent more than once")));
    }
    if let Some(refusal) = &checked.refusal {
        return Ok(redirect.with_error(&refusal.error, &refusal.description));
    }
    let Some(person) = person else {
        let client = Some((checked.client_name, checked.redirect_host, checked.redirect_uri));
        let provider = server.sessions.provider(&call).await;
        return Ok(SignInPage { request: asked.query(), client, provider, ..SignInPage::default() }.render());
    };
    consent_page(server, asked, &person, checked, chosen).await
}

/// The person's choices, for showing the form again with an error.
struct Chosen {
    workspace: String,
    permissions: Vec<proto::Permission>,
    problem: (&'static str, String),
}

async fn consent_page(
    server: &Server,
    asked: &PendingRequest,
    person: &Person,
    checked: proto::CheckAuthorizationResponse,
    chosen: Option<Chosen>,
) -> Result<Response, Refusal> {
    let profile =
        server.upstreams.sessions().get_session(person.call.request(proto::GetSessionRequest {})).await;
    let profile = profile.map_err(|status| error::from_upstream(&status))?.into_inner();
    let wanted: Vec<_> = checked.permissions().collect();
    let (workspace, granted, problem) = match chosen {
        Some(Chosen { workspace, permissions, problem }) => (Some(workspace), permissions, Some(problem)),
        None => (None, wanted.clone(), None),
    };
    let permissions = wanted.into_iter().map(|permission| (permission, granted.contains(&permission)));
    let page = ConsentPage {
        request: asked.query(),
        csrf: form_mark(&person.secret, &asked.query()).to_hex().to_string(),
        email: profile.user.unwrap_or_default().email,
        client: checked.client_name,
        redirect_uri: checked.redirect_uri,
        redirect_host: checked.redirect_host,
        is_loopback: checked.is_loopback,
        workspaces: profile
            .memberships
            .into_iter()
            .filter_map(|of| Choice::read(of, workspace.as_deref()))
            .collect(),
        permissions: permissions.collect(),
        problem,
    };
    Ok(page.render())
}

async fn allow(
    server: &Server,
    parts: &Parts,
    asked: &PendingRequest,
    person: &Person,
    form: &Fields,
) -> Result<Response, Refusal> {
    let permissions: Vec<_> = form.all("permission").filter_map(pages::permission_of).collect();
    let message = proto::AuthorizeRequest {
        authorization: Some(asked.message()),
        workspace_id: form.text("workspace"),
        permissions: permissions.iter().map(|permission| (*permission).into()).collect(),
    };
    let problem = match server.upstreams.oauth().authorize(person.call.request(message)).await {
        Ok(given) => {
            let given = given.into_inner();
            return Ok(asked.redirect(given.redirect_uri).with_code(&given.code));
        }
        Err(status) => error::from_upstream(&status),
    };
    let Some(problem) = to_choose_again(&problem, permissions.is_empty()) else {
        return refused(server, person, asked, problem).await;
    };
    ask_for(server, parts, asked, Some(Chosen { workspace: form.text("workspace"), permissions, problem }))
        .await
}

/// Errors that the person can correct on the page.
fn to_choose_again(problem: &Problem, is_empty: bool) -> Option<(&'static str, String)> {
    if problem.reason == Reason::NotFound {
        return Some(("workspace", "Choose one of your workspaces.".to_owned()));
    }
    if problem.violations.first().is_none_or(|broken| broken.path != "permissions") {
        return None;
    }
    let advice = if is_empty { "Choose at least one thing that it may do." } else { NOT_IN_ROLE };
    Some(("permissions", advice.to_owned()))
}

/// A request that has become invalid since it was shown, or an unavailable service.
async fn refused(
    server: &Server,
    person: &Person,
    asked: &PendingRequest,
    problem: Problem,
) -> Result<Response, Refusal> {
    let checked = check(server, &person.call, asked).await?;
    let refusal = Refusal::from(problem);
    Ok(asked.redirect(checked.redirect_uri).with_error(&refusal.error, &refusal.description))
}

async fn deny(server: &Server, person: &Person, asked: &PendingRequest) -> Result<Response, Refusal> {
    let checked = check(server, &person.call, asked).await?;
    Ok(asked.redirect(checked.redirect_uri).with_error("access_denied", "the person said no"))
}

async fn check(
    server: &Server,
    call: &Call,
    asked: &PendingRequest,
) -> Result<proto::CheckAuthorizationResponse, Refusal> {
    let message = proto::CheckAuthorizationRequest { authorization: Some(asked.message()) };
    let checked = server.upstreams.oauth().check_authorization(call.request(message)).await;
    Ok(checked.map_err(|status| error::from_upstream(&status))?.into_inner())
}

/// The signed-in person; an expired session counts as none.
async fn person(server: &Server, parts: &Parts) -> Result<Option<Person>, Refusal> {
    let Some(identity) = server.authenticator.live_session(parts).await? else { return Ok(None) };
    let secret = server.authenticator.session_secret(&parts.headers).unwrap_or_default().to_owned();
    Ok(Some(Person { call: call_of(parts).with_identity(&identity.signed), secret }))
}

/// The CSRF token: binds a form to its session and its request.
fn form_mark(session: &str, request: &str) -> blake3::Hash {
    let key = blake3::derive_key("cairn 2026-11 oauth consent form", session.as_bytes());
    blake3::keyed_hash(&key, request.as_bytes())
}

fn is_own_form(form: &Fields, person: &Person, asked: &PendingRequest) -> bool {
    // Hash comparison is constant-time.
    let sent = blake3::Hash::from_hex(form.text("csrf"));
    sent.is_ok_and(|sent| sent == form_mark(&person.secret, &asked.query()))
}
