//! The error page: what happened, which service is unavailable, what to do, the submitted form, and the request id.

use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use cairn_proto::domain::Role;
use http::{HeaderMap, Method, StatusCode, header};
use maud::{Markup, html};

use super::document::{self, Document};
use super::frame::Page;
use super::health;
use super::look::Look;
use super::parts;
use super::recorded_form::{self, RecordedForm};
use super::sign_in;
use super::visitor::{Here, Visitor, VisitorSlot, see_other};
use super::words;
use crate::class::{Class, Surface};
use crate::error::Error;
use crate::health::service_statuses;
use crate::operations::members;
use crate::upstreams::Upstreams;

/// Longer values are shown in a text area.
const MAX_BYTES_OF_A_LINE: usize = 80;
/// Owners named in a sentence.
const MAX_OWNERS: usize = 3;

/// A browser's page request, kept in case the page fails.
#[derive(Debug)]
pub(crate) struct PageRequest {
    seen: VisitorSlot,
    method: Method,
    address: String,
    /// The page of the submitted form.
    referer: Option<String>,
    look: Look,
    /// The submitted form.
    typed: Option<RecordedForm>,
}

/// Context of a failure beside the error.
#[derive(Default)]
struct FailureContext {
    /// The unavailable services.
    away: Vec<&'static str>,
    /// The fields of the submitted form.
    typed: Vec<(String, String)>,
    /// Names of people with the rights that the visitor lacks.
    owners: Vec<String>,
}

impl PageRequest {
    /// `None` for requests of programs, which are answered with JSON.
    pub(crate) fn read(class: Class, request: &mut Request) -> Option<Self> {
        let is_page = class.surface == Surface::Page
            || (class == Class::UNKNOWN
                && is_browser(request.headers())
                && !is_of_programs(request.uri().path()));
        if !is_page {
            return None;
        }
        let seen = VisitorSlot::default();
        request.extensions_mut().insert(seen.clone());
        let typed = RecordedForm::watch(class, request);
        let headers = request.headers();
        Some(Self {
            seen,
            method: request.method().clone(),
            address: request.uri().path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
            referer: own_path(headers),
            look: Look::of(headers),
            typed,
        })
    }

    /// The response in place of the error.
    pub(crate) async fn answer(&self, error: &Error, request_id: &str, upstreams: &Upstreams) -> Response {
        let mut circumstances = FailureContext::default();
        if error.status == StatusCode::SERVICE_UNAVAILABLE {
            let statuses = service_statuses(upstreams).await;
            circumstances.away =
                statuses.into_iter().filter(|(_, answers)| !answers).map(|(name, _)| name).collect();
        }
        if let Some(typed) = self.typed.as_ref().filter(|_| error.status.is_server_error()) {
            let is_known = self.seen.visitor().is_some();
            let most = if is_known { recorded_form::MAX_BYTES } else { recorded_form::MAX_UNKNOWN_BYTES };
            circumstances.typed = typed.fields(most).await.unwrap_or_default();
        }
        if let Some(visitor) = self.seen.visitor().filter(|_| error.status == StatusCode::FORBIDDEN) {
            circumstances.owners = owners(&visitor).await;
        }
        self.tell(error, request_id, &circumstances)
    }

    fn tell(&self, error: &Error, request_id: &str, circumstances: &FailureContext) -> Response {
        if error.status == StatusCode::UNAUTHORIZED {
            return see_other(&sign_in::address(self.page()));
        }
        let told = Explanation::of(error);
        let visitor = self.seen.visitor();
        let ways = self.links(error, visitor.as_ref().and_then(|visitor| visitor.here_if_any()));
        let body = html! {
            p { (told.sentence) }
            (unavailable_services(&circumstances.away))
            @if let Some(wait) = error.retry_after.filter(|_| self.method.is_safe()) {
                p { "This page tries again in " span data-retry=(seconds(wait)) { (seconds(wait)) } " s." }
            }
            p { @for (at, (address, label)) in ways.into_iter().enumerate() {
                @if at > 0 { " · " }
                a href=(address) { (label) }
            } }
            (resubmit_form(&self.address, &circumstances.typed))
            p.hint { "Request " code #request { (request_id) } " " (parts::copy("request")) }
        };
        match visitor {
            Some(visitor) => {
                let role = error_role(error, visitor.here_if_any(), &circumstances.owners);
                let body = html! { (role) (body) };
                let visitor = visitor.without_notice();
                Page::new(told.title).with_error(error.status).show(&visitor, &body)
            }
            None => self.standalone(told.title, error.status, &body),
        }
    }

    /// For somebody who is not signed in.
    fn standalone(&self, title: &str, status: StatusCode, body: &Markup) -> Response {
        let whole = html! { main { h1 { (title) } (body) } };
        let title = format!("Error: {title}");
        let document =
            Document { title: &title, class: "alone", modules: &document::MODULES, look: self.look };
        let mut response = document.around(status, &whole);
        document::guard(&mut response);
        response
    }

    /// The page that the person was at: a form's URL is none.
    fn page(&self) -> &str {
        if self.method.is_safe() { &self.address } else { self.referer.as_deref().unwrap_or("/") }
    }

    fn links(&self, error: &Error, here: Option<&Here>) -> Vec<(String, &'static str)> {
        let mut ways = Vec::new();
        if error.status.is_server_error() || error.status == StatusCode::TOO_MANY_REQUESTS {
            ways.push((self.page().to_owned(), "Try again"));
        } else if let Some(referer) = &self.referer {
            ways.push((referer.clone(), "Back"));
        }
        if let Some(here) = here.filter(|_| error.status.is_server_error()) {
            ways.push((format!("/w/{}/health", here.id), "Which services answer"));
        }
        ways.push(("/".to_owned(), "To the overview"));
        ways
    }
}

/// Which services are unavailable, and what is missing without them.
fn unavailable_services(services: &[&str]) -> Markup {
    html! {
        @if !services.is_empty() {
            p { "What does not answer now, and what it is for:" }
            ul #away { @for service in services { li { strong { (service) } ": " (health::purpose(service)) } } }
        }
    }
}

/// The submitted form, to be sent again; long texts can be copied, too.
fn resubmit_form(address: &str, typed: &[(String, String)]) -> Markup {
    let is_text = |value: &str| value.contains('\n') || value.len() > MAX_BYTES_OF_A_LINE;
    html! {
        @if !typed.is_empty() {
            h2 { "What you sent" }
            p { "It may not have been stored. Send it again from here, or copy it." }
            form #again .fields method="post" action=(address) {
                @for (at, (name, value)) in typed.iter().enumerate() {
                    @if is_text(value) {
                        div.field {
                            label for={ "typed-" (at) } { (words::capital(name)) }
                            // Browsers drop a leading line break.
                            textarea id={ "typed-" (at) } name=(name) rows="12" dir="auto" spellcheck="false" { "\n" (value) }
                        }
                    } @else {
                        input type="hidden" name=(name) value=(value);
                    }
                }
                div.buttons { button.primary type="submit" { "Send again" } }
            }
        }
    }
}

/// A title, and what happened with what to do.
struct Explanation {
    title: &'static str,
    sentence: String,
}

impl Explanation {
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

/// Who has the rights that the visitor lacks.
fn error_role(error: &Error, here: Option<&Here>, owners: &[String]) -> Markup {
    let Some(here) = here.filter(|_| error.status == StatusCode::FORBIDDEN) else { return html! {} };
    html! {
        p {
            "Your role in " bdi { (here.name) } " is " strong { (here.role.as_str()) } ". Ask "
            @if owners.is_empty() { "an owner" } @else {
                @for (at, name) in owners.iter().enumerate() { @if at > 0 { " or " } bdi { (name) } }
                " (owner)"
            }
            " to do it, or for another role."
        }
    }
}

/// Some owners of the workspace; empty if they cannot be determined.
async fn owners(visitor: &Visitor) -> Vec<String> {
    let Some(here) = visitor.here_if_any() else { return Vec::new() };
    let members = members::list(&visitor.person, here.id).await.unwrap_or_default();
    let owners = members.into_iter().filter(|member| member.role == Some(Role::Owner));
    owners.map(|owner| owner.name).take(MAX_OWNERS).collect()
}

fn seconds(wait: Duration) -> u64 {
    wait.as_secs().max(1)
}

fn is_browser(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// Paths for programs, whatever the browser's Accept header says.
fn is_of_programs(path: &str) -> bool {
    ["/api", "/mcp", "/oauth", "/.well-known"].into_iter().any(|base| path.starts_with(base))
}

/// The path of the `Referer`, which browsers send only with forms of our own pages; a foreign one can at most lead
/// to a path of ours.
fn own_path(headers: &HeaderMap) -> Option<String> {
    let referer: http::Uri = headers.get(header::REFERER)?.to_str().ok()?.parse().ok()?;
    let path = referer.path_and_query()?.to_string();
    sign_in::is_own_path(&path).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: Method, address: &str, referer: Option<&str>) -> PageRequest {
        let mut request =
            http::Request::builder().method(method).uri(address).body(axum::body::Body::empty()).unwrap();
        if let Some(referer) = referer {
            request.headers_mut().insert(header::REFERER, referer.parse().unwrap());
        }
        let class = Class::new(Surface::Page, crate::class::Who::Anyone);
        PageRequest::read(class, &mut request).unwrap()
    }

    async fn text(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[tokio::test]
    async fn an_error_is_a_page_with_the_requests_id() {
        let mut error = Error::unknown_route();
        let response = asked(Method::GET, "/nowhere", None).tell(&error, "r-<1>", &FailureContext::default());
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
        let circumstances = FailureContext { away: vec!["content"], ..FailureContext::default() };
        let html = text(asked(Method::GET, "/w/1?a=b", None).tell(&error, "r", &circumstances)).await;
        assert!(html.contains("data-retry=\"7\"") && html.contains("href=\"/w/1?a=b\""), "{html}");
        assert!(html.contains("<strong>content</strong>: Files, databases"), "{html}");
    }

    #[tokio::test]
    async fn what_was_typed_stands_in_the_page_to_be_sent_again() {
        let mut error = Error::unknown_route();
        error.status = StatusCode::SERVICE_UNAVAILABLE;
        let typed = [("hash", "blake3:1"), ("content", "</textarea>\r\n\r\nmine")];
        let typed = typed.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let circumstances = FailureContext { typed, ..FailureContext::default() };
        let html = text(asked(Method::POST, "/file/1/edit", None).tell(&error, "r", &circumstances)).await;
        assert!(html.contains("method=\"post\" action=\"/file/1/edit\""), "{html}");
        assert!(html.contains("<input type=\"hidden\" name=\"hash\" value=\"blake3:1\">"), "{html}");
        assert!(html.contains("\n&lt;/textarea&gt;\r\n\r\nmine</textarea>"), "{html}");
    }

    #[test]
    fn who_is_not_signed_in_is_sent_to_sign_in_and_comes_back_to_the_page() {
        let mut error = Error::unknown_route();
        error.status = StatusCode::UNAUTHORIZED;
        let to = |asked: &PageRequest| {
            let response = asked.tell(&error, "r", &FailureContext::default());
            response.headers()[header::LOCATION].to_str().unwrap().to_owned()
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
            assert_eq!(PageRequest::read(Class::UNKNOWN, &mut request).is_some(), is_page, "{path} {accept}");
        }
    }
}
