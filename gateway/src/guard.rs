//! Request admission by route class: authentication, rate limits, authorization, and the tenant's share of this
//! process's capacity.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRef, MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use cairn_chassis::call::Channel;
use http::request::Parts;
use http::{HeaderValue, header};

use crate::admission::{Admission, Permit, Tenant};
use crate::auth::{Authenticator, Caller, CallerIdentity, Member};
use crate::class::{Class, Surface, Who};
use crate::cost::Cost;
use crate::error::Error;
use crate::events::{self, Events};
use crate::origin::Origins;
use crate::rate_limit::Limits;
use crate::rate_limit::headers::{self, ShownWindow};
use crate::suspension;
use crate::unread_body;

/// What a request passes before its handler runs.
#[derive(Clone)]
pub(crate) struct Guard {
    authenticator: Arc<Authenticator>,
    limits: Arc<Limits>,
    origins: Arc<Origins>,
    events: Arc<Events>,
    admission: Arc<Admission>,
}

impl Guard {
    pub(crate) fn of<S>(state: &S) -> Self
    where
        Arc<Authenticator>: FromRef<S>,
        Arc<Limits>: FromRef<S>,
        Arc<Origins>: FromRef<S>,
        Arc<Events>: FromRef<S>,
        Arc<Admission>: FromRef<S>,
    {
        let (authenticator, limits) = (FromRef::from_ref(state), FromRef::from_ref(state));
        let (origins, events) = (FromRef::from_ref(state), FromRef::from_ref(state));
        Self { authenticator, limits, origins, events, admission: FromRef::from_ref(state) }
    }
}

/// Serves a request if its class admits it. Runs inside the layer that renders error bodies.
pub(crate) async fn serve(guard: &Guard, class: Class, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let shown_window = class.surface.shows_limits().then(|| ShownWindow::listen(&mut parts.extensions));
    let source = guard.limits.source(&parts);
    let mut response = match enter(&mut parts, class, guard).await {
        Ok(permit) => {
            let body = match &permit {
                Some(permit) => suspension::track_body(permit, body),
                None => body,
            };
            handled(guard, class, Request::from_parts(parts, body), next).await
        }
        Err(error) => {
            unread_body::discard(body);
            error.into_response()
        }
    };
    if class.surface.takes_cookies() {
        // Console responses are personal: no cache on the way may store them unless the handler says otherwise.
        let caching = response.headers_mut().entry(header::CACHE_CONTROL);
        caching.or_insert(HeaderValue::from_static("no-store"));
    }
    let Some(shown_window) = shown_window else { return response };
    shown_window.write(response.headers_mut());
    if class.surface.counts_addresses() && !shown_window.is_reported() {
        // No caller is known here but the address.
        if let Some(window) = guard.limits.address_window(source).await.tightest() {
            headers::write(window, response.headers_mut());
        }
    }
    response
}

async fn handled(guard: &Guard, class: Class, request: Request, next: Next) -> Response {
    let api_call = ApiCall::of(&request, class);
    let response = next.run(request).await;
    if let Some(api_call) = api_call {
        api_call.note(&guard.events, &response);
    }
    response
}

/// Authenticates, counts and admits a request before any of its content is looked at. The handler finds the caller
/// in the request's extensions.
async fn enter(parts: &mut Parts, class: Class, guard: &Guard) -> Result<Option<Arc<Permit>>, Error> {
    check_origin(parts, class, guard)?;
    let tenant =
        admit(parts, class, guard).await?.unwrap_or_else(|| Tenant::Address(guard.limits.source(parts)));
    // The cost of an agent's request depends on its body; the MCP handler admits it.
    let cost = if class.who == Who::Agent { Cost::FREE } else { class.cost };
    Ok(guard.admission.enter(tenant, cost, &mut parts.extensions).await?)
}

/// Authenticates and authorizes the caller; `None` if the class allows anonymous requests.
async fn admit(parts: &mut Parts, class: Class, guard: &Guard) -> Result<Option<Tenant>, Error> {
    match class.who {
        Who::Anyone | Who::Agent => Ok(None),
        Who::TokenIfSent if !parts.headers.contains_key(header::AUTHORIZATION) => Ok(None),
        Who::TokenIfSent | Who::Token(None) => {
            let caller = guard.authenticator.enter(parts).await?;
            Ok(Some(Tenant::of(&caller.identity.claims)))
        }
        Who::Token(Some(needed)) => {
            let caller = guard.authenticator.enter(parts).await?;
            caller.identity.claims.require(needed)?;
            Ok(Some(Tenant::of(&caller.identity.claims)))
        }
        Who::Person => {
            let person = guard.authenticator.person(parts).await?;
            let tenant = Tenant::of(&person.identity.claims);
            parts.extensions.insert(person);
            Ok(Some(tenant))
        }
        Who::Member => Ok(member(parts, guard).await?.map(|member| Tenant::of(&member.identity.claims))),
        Who::Manager(what) => {
            let Some(member) = member(parts, guard).await? else { return Ok(None) };
            member.identity.claims.require_manager(what)?;
            Ok(Some(Tenant::of(&member.identity.claims)))
        }
    }
}

/// Browsers attach the session cookie to cross-site requests too, so those must not change anything (CSRF).
fn check_origin(parts: &Parts, class: Class, guard: &Guard) -> Result<(), Error> {
    if !class.surface.takes_cookies()
        || parts.method.is_safe()
        || guard.origins.allow_session_write(&parts.headers)
    {
        return Ok(());
    }
    let message = "requests of another site's page may not change anything here; use the console's own pages";
    Err(Error::origin_not_allowed(message))
}

/// `None` if the request names no parsable workspace: the handler rejects it.
async fn member(parts: &mut Parts, guard: &Guard) -> Result<Option<Member>, Error> {
    let member = guard.authenticator.member(parts).await?;
    if let Some(member) = &member {
        parts.extensions.insert(member.clone());
    }
    Ok(member)
}

/// An API call to be shown in the workspace's live view. MCP tools report themselves.
struct ApiCall {
    identity: Arc<CallerIdentity>,
    tool: String,
    channel: Channel,
    started: Instant,
}

impl ApiCall {
    fn of(request: &Request, class: Class) -> Option<Self> {
        if class.surface != Surface::Rest {
            return None;
        }
        let identity = Arc::clone(&request.extensions().get::<Caller>()?.identity);
        let route = request.extensions().get::<MatchedPath>()?.as_str();
        let tool = [request.method().as_str(), " ", route].concat();
        Some(Self { identity, tool, channel: class.surface.channel(), started: Instant::now() })
    }

    fn note(self, events: &Events, response: &Response) {
        let call = events::CompletedCall {
            channel: self.channel,
            tool: self.tool,
            results: response.extensions().get::<events::Results>().map(|results| results.0),
            has_failed: response.status().is_client_error() || response.status().is_server_error(),
            took: self.started.elapsed(),
        };
        events.note(&self.identity.claims, call);
    }
}
