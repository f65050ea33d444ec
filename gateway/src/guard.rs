//! Lets requests in: each as the class of its route says, counted and within the caller's rate limits.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::request::Parts;
use http::{HeaderValue, header};

use crate::app::App;
use crate::auth::{self, Member};
use crate::class::{Class, Who};
use crate::error::Error;
use crate::rate_limit::headers::{self, ShownWindow};

/// Serves a request that the class lets in, inside of what gives errors their body.
pub(crate) async fn serve(app: &App, class: Class, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let shown = class.surface.shows_limits().then(|| ShownWindow::listen(&mut parts.extensions));
    let source = app.limits.source(&parts);
    let mut response = match admit(&mut parts, class, app).await {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
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
        if let Some(standing) = app.limits.address_window(source).await.tightest() {
            headers::write(standing, response.headers_mut());
        }
    }
    response
}

/// Who calls, judged and counted before anybody looks at what the request says; the handler finds the caller in the
/// request's extensions.
async fn admit(parts: &mut Parts, class: Class, app: &App) -> Result<(), Error> {
    check_origin(parts, class, app)?;
    match class.who {
        Who::Anyone | Who::Agent => {}
        Who::TokenIfSent if !parts.headers.contains_key(header::AUTHORIZATION) => {}
        Who::TokenIfSent | Who::Token(None) => drop(auth::enter(parts, app).await?),
        Who::Token(Some(needed)) => auth::enter(parts, app).await?.identity.claims.require(needed)?,
        Who::Person => {
            let person = auth::person(parts, app).await?;
            parts.extensions.insert(person);
        }
        Who::Member => drop(member(parts, app).await?),
        Who::Manager(what) => {
            if let Some(member) = member(parts, app).await? {
                member.identity.claims.require_manager(what)?;
            }
        }
    }
    Ok(())
}

/// A cookie comes along with requests that other sites' pages make: those may not change anything.
fn check_origin(parts: &Parts, class: Class, app: &App) -> Result<(), Error> {
    if !class.surface.takes_cookies()
        || parts.method.is_safe()
        || app.origins.allow_session_write(&parts.headers)
    {
        return Ok(());
    }
    let message = "requests of another site's page may not change anything here; use the console's own pages";
    Err(Error::origin_not_allowed(message))
}

/// `None` where the request names no workspace that can be read: what it says is refused by the handler.
async fn member(parts: &mut Parts, app: &App) -> Result<Option<Member>, Error> {
    let member = auth::member(parts, app).await?;
    if let Some(member) = &member {
        parts.extensions.insert(member.clone());
    }
    Ok(member)
}
