//! Lets requests in: each as the class of its route says, counted, within the caller's rate limits and the caller's share
//! of what this process can do.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRef, MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use cairn_chassis::call::Channel;
use http::request::Parts;
use http::{HeaderValue, header};

use crate::admission::{Admission, Place, Tenant};
use crate::auth::{Authenticator, Caller, CallerIdentity, Member};
use crate::class::{Class, Surface, Who};
use crate::cost::Cost;
use crate::error::Error;
use crate::events::{self, Events};
use crate::held;
use crate::origin::Origins;
use crate::rate_limit::Limits;
use crate::rate_limit::headers::{self, ShownWindow};
use crate::unread_body;

/// What judges a request before its handler does.
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

/// Serves a request that the class lets in, inside of what gives errors their body.
pub(crate) async fn serve(guard: &Guard, class: Class, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let shown = class.surface.shows_limits().then(|| ShownWindow::listen(&mut parts.extensions));
    let source = guard.limits.source(&parts);
    let mut response = match enter(&mut parts, class, guard).await {
        Ok(place) => {
            let body = match &place {
                Some(place) => held::counted(place, body),
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
        // What the console reads is for one person: nothing on the way may keep it, unless the handler says how.
        let caching = response.headers_mut().entry(header::CACHE_CONTROL);
        caching.or_insert(HeaderValue::from_static("no-store"));
    }
    let Some(shown) = shown else { return response };
    shown.write(response.headers_mut());
    if class.surface.counts_addresses() && !shown.is_reported() {
        // Nobody is known here but the address.
        if let Some(standing) = guard.limits.address_window(source).await.tightest() {
            headers::write(standing, response.headers_mut());
        }
    }
    response
}

async fn handled(guard: &Guard, class: Class, request: Request, next: Next) -> Response {
    let called = Called::of(&request, class);
    let response = next.run(request).await;
    if let Some(called) = called {
        called.note(&guard.events, &response);
    }
    response
}

/// Who calls, judged and counted before anybody looks at what the request says, and then a place for it. The handler finds
/// the caller in the request's extensions.
async fn enter(parts: &mut Parts, class: Class, guard: &Guard) -> Result<Option<Arc<Place>>, Error> {
    check_origin(parts, class, guard)?;
    let tenant =
        admit(parts, class, guard).await?.unwrap_or_else(|| Tenant::Address(guard.limits.source(parts)));
    // What an agent's request costs stands in its body.
    let cost = if class.who == Who::Agent { Cost::FREE } else { class.cost };
    Ok(guard.admission.enter(tenant, cost, &mut parts.extensions).await?)
}

/// Whose request it is, where somebody is known.
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

/// A cookie comes along with requests that other sites' pages make: those may not change anything.
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

/// `None` where the request names no workspace that can be read: what it says is refused by the handler.
async fn member(parts: &mut Parts, guard: &Guard) -> Result<Option<Member>, Error> {
    let member = guard.authenticator.member(parts).await?;
    if let Some(member) = &member {
        parts.extensions.insert(member.clone());
    }
    Ok(member)
}

/// A call of a program, for those who look at its workspace. Tools tell of themselves.
struct Called {
    identity: Arc<CallerIdentity>,
    tool: String,
    channel: Channel,
    started: Instant,
}

impl Called {
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
        let call = events::Asked {
            channel: self.channel,
            tool: self.tool,
            results: response.extensions().get::<events::Results>().map(|results| results.0),
            has_failed: response.status().is_client_error() || response.status().is_server_error(),
            took: self.started.elapsed(),
        };
        events.note(&self.identity.claims, call);
    }
}
