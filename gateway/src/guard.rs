//! Lets requests in: each as the class of its route says, counted and within the caller's rate limits.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRef, MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use cairn_chassis::call::Channel;
use http::request::Parts;
use http::{HeaderValue, header};

use crate::auth::{Authenticator, Caller, CallerIdentity, Member};
use crate::class::{Class, Surface, Who};
use crate::error::Error;
use crate::events::{self, Events};
use crate::origin::Origins;
use crate::rate_limit::Limits;
use crate::rate_limit::headers::{self, ShownWindow};

/// What judges a request before its handler does.
#[derive(Clone)]
pub(crate) struct Guard {
    authenticator: Arc<Authenticator>,
    limits: Arc<Limits>,
    origins: Arc<Origins>,
    events: Arc<Events>,
}

impl Guard {
    pub(crate) fn of<S>(state: &S) -> Self
    where
        Arc<Authenticator>: FromRef<S>,
        Arc<Limits>: FromRef<S>,
        Arc<Origins>: FromRef<S>,
        Arc<Events>: FromRef<S>,
    {
        let (authenticator, limits) = (FromRef::from_ref(state), FromRef::from_ref(state));
        let (origins, events) = (FromRef::from_ref(state), FromRef::from_ref(state));
        Self { authenticator, limits, origins, events }
    }
}

/// Serves a request that the class lets in, inside of what gives errors their body.
pub(crate) async fn serve(guard: &Guard, class: Class, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let shown = class.surface.shows_limits().then(|| ShownWindow::listen(&mut parts.extensions));
    let source = guard.limits.source(&parts);
    let mut response = match admit(&mut parts, class, guard).await {
        Ok(()) => {
            let called = Called::of(&parts, class);
            let response = next.run(Request::from_parts(parts, body)).await;
            if let Some(called) = called {
                called.note(&guard.events, &response);
            }
            response
        }
        Err(error) => error.into_response(),
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

/// Who calls, judged and counted before anybody looks at what the request says; the handler finds the caller in the
/// request's extensions.
async fn admit(parts: &mut Parts, class: Class, guard: &Guard) -> Result<(), Error> {
    check_origin(parts, class, guard)?;
    match class.who {
        Who::Anyone | Who::Agent => {}
        Who::TokenIfSent if !parts.headers.contains_key(header::AUTHORIZATION) => {}
        Who::TokenIfSent | Who::Token(None) => drop(guard.authenticator.enter(parts).await?),
        Who::Token(Some(needed)) => {
            guard.authenticator.enter(parts).await?.identity.claims.require(needed)?
        }
        Who::Person => {
            let person = guard.authenticator.person(parts).await?;
            parts.extensions.insert(person);
        }
        Who::Member => drop(member(parts, guard).await?),
        Who::Manager(what) => {
            if let Some(member) = member(parts, guard).await? {
                member.identity.claims.require_manager(what)?;
            }
        }
    }
    Ok(())
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
    fn of(parts: &Parts, class: Class) -> Option<Self> {
        if class.surface != Surface::Rest {
            return None;
        }
        let identity = Arc::clone(&parts.extensions.get::<Caller>()?.identity);
        let route = parts.extensions.get::<MatchedPath>()?.as_str();
        let tool = format!("{} {route}", parts.method);
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
