//! What a person sees when a page cannot be shown: what happened, what to do, and the request's id.

use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode, header};
use maud::{Markup, html};

use super::assets;
use super::document::{self, Document};
use super::frame::Page;
use super::look::Look;
use super::parts;
use super::sign_in;
use super::visitor::{Here, Seen, see_other};
use super::words;
use crate::class::{Class, Surface};
use crate::error::Error;

/// A request of a browser for a page, kept for the case that the page fails.
#[derive(Debug)]
pub(crate) struct Asked {
    seen: Seen,
    method: Method,
    address: String,
    /// Where the form stands that was sent.
    referer: Option<String>,
    look: Look,
}

impl Asked {
    /// `None` for what programs ask, which are answered with JSON.
    pub(crate) fn read(class: Class, request: &mut Request) -> Option<Self> {
        let is_page = class.surface == Surface::Page
            || (class == Class::UNKNOWN
                && is_browser(request.headers())
                && !is_of_programs(request.uri().path()));
        if !is_page {
            return None;
        }
        let seen = Seen::default();
        request.extensions_mut().insert(seen.clone());
        let headers = request.headers();
        Some(Self {
            seen,
            method: request.method().clone(),
            address: request.uri().path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
            referer: own_path(headers),
            look: Look::of(headers),
        })
    }

    /// The answer to it, in place of the error.
    pub(crate) fn answer(&self, error: &Error, request_id: &str) -> Response {
        if error.status == StatusCode::UNAUTHORIZED {
            return see_other(&sign_in::address(self.page()));
        }
        let told = Told::of(error);
        let body = html! {
            p { (told.sentence) }
            @if let Some(wait) = error.retry_after.filter(|_| self.method.is_safe()) {
                p { "This page tries again in " span data-retry=(seconds(wait)) { (seconds(wait)) } " s." }
            }
            p { @for (at, (address, label)) in self.ways(error).into_iter().enumerate() {
                @if at > 0 { " · " }
                a href=(address) { (label) }
            } }
            p.hint { "Request " code #request { (request_id) } " " (parts::copy("request")) }
        };
        match self.seen.visitor() {
            Some(visitor) => {
                let role = error_role(error, visitor.here_if_any());
                let body = html! { (role) (body) };
                let visitor = visitor.without_notice();
                Page::new(told.title).with_error(error.status).show(&visitor, &body)
            }
            None => self.alone(told.title, error.status, &body),
        }
    }

    /// For somebody who is not known here.
    fn alone(&self, title: &str, status: StatusCode, body: &Markup) -> Response {
        let whole = html! { main { h1 { (title) } (body) } };
        let title = format!("Error: {title}");
        let document =
            Document { title: &title, class: "alone", modules: &[assets::APP_JS], look: self.look };
        let mut response = document.around(status, &whole);
        document::guard(&mut response);
        response
    }

    /// The page that the person was at: a form's address is none.
    fn page(&self) -> &str {
        if self.method.is_safe() { &self.address } else { self.referer.as_deref().unwrap_or("/") }
    }

    fn ways(&self, error: &Error) -> Vec<(String, &'static str)> {
        let mut ways = Vec::new();
        if error.status.is_server_error() || error.status == StatusCode::TOO_MANY_REQUESTS {
            ways.push((self.page().to_owned(), "Try again"));
        } else if let Some(referer) = &self.referer {
            ways.push((referer.clone(), "Back"));
        }
        ways.push(("/".to_owned(), "To the overview"));
        ways
    }
}

/// A title, and what happened with what to do.
struct Told {
    title: &'static str,
    sentence: String,
}

impl Told {
    fn of(error: &Error) -> Self {
        let title = match error.status {
            StatusCode::BAD_REQUEST => "That could not be read",
            StatusCode::FORBIDDEN => "You may not do that",
            StatusCode::NOT_FOUND | StatusCode::GONE => "There is nothing here",
            StatusCode::METHOD_NOT_ALLOWED => "This address takes no such request",
            StatusCode::CONFLICT => "That was changed meanwhile",
            StatusCode::PAYLOAD_TOO_LARGE => "That is too large",
            StatusCode::TOO_MANY_REQUESTS => "Too many requests",
            status if status.is_server_error() => "Something does not work now",
            _ => "That did not work",
        };
        let sentence = match error.status {
            StatusCode::NOT_FOUND => {
                "It does not exist, it was deleted, or it is in a workspace that you do not \
                belong to."
                    .to_owned()
            }
            StatusCode::METHOD_NOT_ALLOWED => "Forms are sent here. Nothing was changed.".to_owned(),
            _ if error.violations.is_empty() => words::sentence(&error.message),
            _ => {
                let each = error
                    .violations
                    .iter()
                    .map(|broken| format!("{} {}.", words::capital(&broken.path), broken.message));
                each.collect::<Vec<_>>().join(" ")
            }
        };
        Self { title, sentence }
    }
}

/// Who could do what the visitor may not.
fn error_role(error: &Error, here: Option<&Here>) -> Markup {
    let Some(here) = here.filter(|_| error.status == StatusCode::FORBIDDEN) else { return html! {} };
    html! {
        p { "Your role in " bdi { (here.name) } " is " strong { (here.role.as_str()) } ". Ask an owner to do it, or for another role." }
    }
}

fn seconds(wait: Duration) -> u64 {
    wait.as_secs().max(1)
}

fn is_browser(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// What stands below these is for programs, whatever a browser says.
fn is_of_programs(path: &str) -> bool {
    ["/api", "/mcp", "/oauth", "/.well-known"].into_iter().any(|base| path.starts_with(base))
}

/// The path of the `Referer`, which a browser sends along with forms of our own pages alone: anybody else's is not
/// followed further than to a path of ours.
fn own_path(headers: &HeaderMap) -> Option<String> {
    let referer: http::Uri = headers.get(header::REFERER)?.to_str().ok()?.parse().ok()?;
    let path = referer.path_and_query()?.to_string();
    sign_in::is_own_path(&path).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: Method, address: &str, referer: Option<&str>) -> Asked {
        let mut request =
            http::Request::builder().method(method).uri(address).body(axum::body::Body::empty()).unwrap();
        if let Some(referer) = referer {
            request.headers_mut().insert(header::REFERER, referer.parse().unwrap());
        }
        let class = Class::new(Surface::Page, crate::class::Who::Anyone);
        Asked::read(class, &mut request).unwrap()
    }

    async fn text(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[tokio::test]
    async fn an_error_is_a_page_with_the_requests_id() {
        let mut error = Error::unknown_route();
        let response = asked(Method::GET, "/nowhere", None).answer(&error, "r-<1>");
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        assert_eq!(response.headers()[header::CONTENT_SECURITY_POLICY], document::POLICY);
        let html = text(response).await;
        assert!(
            html.contains("r-&lt;1&gt;")
                && html.contains("<title>Error: There is nothing here – Cairn</title>"),
            "{html}"
        );
        error.status = StatusCode::SERVICE_UNAVAILABLE;
        error.retry_after = Some(Duration::from_secs(7));
        let html = text(asked(Method::GET, "/w/1?a=b", None).answer(&error, "r")).await;
        assert!(html.contains("data-retry=\"7\"") && html.contains("href=\"/w/1?a=b\""), "{html}");
    }

    #[test]
    fn who_is_not_signed_in_is_sent_to_sign_in_and_comes_back_to_the_page() {
        let mut error = Error::unknown_route();
        error.status = StatusCode::UNAUTHORIZED;
        let to = |asked: &Asked| {
            asked.answer(&error, "r").headers()[header::LOCATION].to_str().unwrap().to_owned()
        };
        assert_eq!(to(&asked(Method::GET, "/w/1?a=b", None)), "/sign-in?return_to=%2Fw%2F1%3Fa%3Db");
        let sent = asked(Method::POST, "/w/1/tokens", Some("http://127.0.0.1:8700/w/1/tokens/new"));
        assert_eq!(to(&sent), "/sign-in?return_to=%2Fw%2F1%2Ftokens%2Fnew");
        assert_eq!(to(&asked(Method::POST, "/w/1/tokens", None)), "/sign-in?return_to=%2F");
    }

    #[test]
    fn programs_get_json() {
        for (path, accept, is_page) in [
            ("/nowhere", "text/html,*/*", true),
            ("/nowhere", "application/json", false),
            ("/api/nowhere", "text/html", false),
            ("/mcp/x", "text/html", false),
        ] {
            let request = http::Request::builder().uri(path).header(header::ACCEPT, accept);
            let mut request = request.body(axum::body::Body::empty()).unwrap();
            assert_eq!(Asked::read(Class::UNKNOWN, &mut request).is_some(), is_page, "{path} {accept}");
        }
    }
}
