//! What stands around each request: it lets `/api/v1` in, and writes how the windows stand on every answer.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, header};

use super::Standing;
use crate::app::App;
use crate::auth;
use crate::error::Error;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const WINDOW: HeaderName = HeaderName::from_static("x-ratelimit-window");

/// The window that the answer to this request tells of; the last that was noted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told(Arc<Mutex<Option<Noted>>>);

#[derive(Debug, Clone, Copy)]
enum Noted {
    Unlimited,
    Limited(Standing),
}

/// Notes for the answer how the caller's tightest window stands; `None` when nothing is limited.
pub(super) fn note(extensions: &Extensions, standing: Option<Standing>) {
    if let Some(Told(told)) = extensions.get() {
        let noted = standing.map_or(Noted::Unlimited, Noted::Limited);
        *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(noted);
    }
}

impl Told {
    /// Lets what is noted while a request is served be told on its answer.
    pub(crate) fn listen(extensions: &mut Extensions) -> Self {
        let told = Self::default();
        extensions.insert(told.clone());
        told
    }

    /// Tells how the window stands, if one was noted.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        if let Some(Noted::Limited(standing)) = self.noted() {
            write(standing, headers);
        }
    }

    fn noted(&self) -> Option<Noted> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where limits hold, by path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surface {
    /// Every request counts.
    Rest,
    /// What the body asks for counts: [`crate::mcp`] knows.
    Mcp,
    /// The console API: sign-ins only.
    Console,
}

impl Surface {
    fn of(path: &str) -> Option<Self> {
        let is =
            |base: &str| path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if is("/api/v1") {
            return Some(Self::Rest);
        }
        if is("/mcp") {
            return Some(Self::Mcp);
        }
        is("/api").then_some(Self::Console)
    }
}

/// Serves a request within its limits, inside of what gives errors their body.
pub(crate) async fn serve(app: &App, request: Request, next: Next) -> Response {
    let Some(surface) = Surface::of(request.uri().path()) else { return next.run(request).await };
    let (mut parts, body) = request.into_parts();
    let told = Told::listen(&mut parts.extensions);
    let source = app.limits.source(&parts);
    let entered = if surface == Surface::Rest { enter(&mut parts, app).await } else { Ok(()) };
    let mut response = match entered {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(error) => error.into_response(),
    };
    let noted = match (told.noted(), surface) {
        // Nobody is known here but the address.
        (None, Surface::Rest | Surface::Mcp) => {
            app.limits.address_window(source).await.tightest().map(Noted::Limited)
        }
        (noted, _) => noted,
    };
    if let Some(Noted::Limited(standing)) = noted {
        write(standing, response.headers_mut());
    }
    response
}

/// A request with a token counts before anybody looks at what it asks for; one without is let in, to be told by its
/// handler what is missing.
async fn enter(parts: &mut Parts, app: &App) -> Result<(), Error> {
    if parts.headers.contains_key(header::AUTHORIZATION) {
        auth::enter(parts, app).await?;
    }
    Ok(())
}

fn write(standing: Standing, headers: &mut HeaderMap) {
    headers.insert(LIMIT, HeaderValue::from(standing.limit));
    headers.insert(REMAINING, HeaderValue::from(standing.remaining));
    headers.insert(RESET, HeaderValue::from(standing.resets_in));
    headers.insert(WINDOW, HeaderValue::from_static(standing.window.as_str()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_surface_is_told_by_whole_segments() {
        assert_eq!(Surface::of("/api/v1"), Some(Surface::Rest));
        assert_eq!(Surface::of("/api/v1/files"), Some(Surface::Rest));
        assert_eq!(Surface::of("/api/v10/files"), Some(Surface::Console));
        assert_eq!(Surface::of("/mcp"), Some(Surface::Mcp));
        assert_eq!(Surface::of("/mcpx"), None);
        assert_eq!(Surface::of("/healthz"), None);
    }
}
