//! Polite requests to sites: honors `robots.txt`, also for redirect targets, and delays between requests.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cairn_chassis::clock::Timestamp;
use http::{Request, Response, StatusCode, header};
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use super::page::Facts;
use super::robots::{DISALLOWED, Rules};
use super::version;
use crate::call::{MAX_REDIRECTS, judge, target};
use crate::{Body, Call, Fault, Fetched, MAX_BODY_BYTES, Version, mime};

/// The TTL of cached rules (RFC 9309: at most a day).
const RULES_LAST: Duration = Duration::from_secs(24 * 60 * 60);
/// Cached sites per connection; a feed may link to many.
const MAX_SITES: usize = 200;
/// The delay after a response, as a multiple of its duration; at most a second, unless the site requests more.
const REST: u32 = 5;
const MAX_REST: Duration = Duration::from_secs(1);

const ACCEPT: &str = "text/html, application/xhtml+xml, application/pdf;q=0.9, text/plain;q=0.9, */*;q=0.5";

/// The sites of a connection.
#[derive(Debug, Default)]
pub(super) struct Sites(Mutex<HashMap<String, SiteState>>);

/// The cached state of a site.
#[derive(Debug)]
struct SiteState {
    rules: Arc<Rules>,
    until: Timestamp,
    /// The earliest time of the next request.
    rested: Instant,
}

/// The result of visiting a page.
#[derive(Debug)]
pub(super) enum Visited {
    /// The page.
    Page(Box<Visit>),
    /// Something else.
    Other(Fetched),
}

/// A page that was visited.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) body: Body,
    /// Its metadata.
    pub(super) facts: Facts,
    /// Its URL after redirects.
    pub(super) url: Url,
}

impl Sites {
    /// Whether `robots.txt` allows a URL.
    pub(super) async fn allow(&self, call: &Call, url: &Url) -> Result<bool, Fault> {
        Ok(self.site_state(call, url).await?.0.allow(url))
    }

    /// Fetches a document of the site, such as a sitemap.
    ///
    /// # Errors
    /// The faults of the request and of the status, and [`Fault::Broken`] if `robots.txt` disallows it.
    pub(super) async fn get(
        &self,
        call: &Call,
        url: &Url,
        most_bytes: usize,
    ) -> Result<(Response<Bytes>, Url), Fault> {
        let Some((answer, from)) = self.ask(call, url, None, most_bytes).await? else {
            return Err(Fault::broken("the robots.txt of the site does not allow its address to be read"));
        };
        may_be_seen(answer.status())?;
        judge(answer.status())?;
        Ok((answer, from))
    }

    /// Visits a page; `known` is the caller's version.
    ///
    /// # Errors
    /// Temporary faults. A missing or disallowed page is a result.
    pub(super) async fn visit(
        &self,
        call: &Call,
        url: &Url,
        known: Option<&Version>,
    ) -> Result<Visited, Fault> {
        let other = |fetched| Ok(Visited::Other(fetched));
        let (answer, from) = match self.ask(call, url, known, MAX_BODY_BYTES).await {
            Ok(Some(answered)) => answered,
            Ok(None) => return other(Fetched::Unreadable(Cow::Borrowed(DISALLOWED))),
            Err(Fault::TooLarge(bytes)) => return other(Fetched::TooLarge(bytes)),
            Err(fault) => return Err(fault),
        };
        let status = answer.status();
        if matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE) {
            return other(Fetched::Gone);
        }
        may_be_seen(status)?;
        judge(status)?;
        if status == StatusCode::NOT_MODIFIED {
            return match known {
                Some(_) => other(Fetched::Same),
                None => Err(Fault::broken("the site says that nothing changed, which nobody asked")),
            };
        }
        if asks_to_sign_in(&from) && !asks_to_sign_in(url) {
            return Err(Fault::broken("the page leads to one where people sign in"));
        }
        let mime = media_type(&answer, &from);
        if has_no_text(&mime) {
            return other(Fetched::Unsupported(mime));
        }
        let (facts, answer, from) = facts(answer, from).await?;
        let mut body = Body::new(answer.body().clone(), mime, version::of(&answer));
        body.url = Some(from.to_string());
        Ok(Visited::Page(Box::new(Visit { body, facts, url: from })))
    }

    /// Sends a request, and follows at most five redirects, each checked against the `robots.txt` of its site. `None` if one is disallowed.
    async fn ask(
        &self,
        call: &Call,
        url: &Url,
        known: Option<&Version>,
        most_bytes: usize,
    ) -> Result<Option<(Response<Bytes>, Url)>, Fault> {
        let mut seen = vec![url.clone()];
        let mut url = url.clone();
        loop {
            let (rules, rested) = self.site_state(call, &url).await?;
            if !rules.allow(&url) {
                return Ok(None);
            }
            call.pause(rested.saturating_duration_since(Instant::now())).await?;
            let mut request = Request::get(url.as_str()).header(header::ACCEPT, ACCEPT);
            if let Some((name, value)) = known.and_then(version::condition) {
                request = request.header(name, value);
            }
            let request = request.body(Bytes::new()).map_err(|_| Fault::Address)?;
            let begun = Instant::now();
            let answer = call.exchange_once(request, most_bytes).await;
            self.rest(&url, begun, rules.delay()).await;
            let answer = answer?;
            if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(Some((answer, url)));
            }
            url = target(&url, answer.headers())?;
            if seen.contains(&url) {
                return Err(Fault::broken("the page redirects in a circle"));
            }
            if seen.len() > MAX_REDIRECTS {
                return Err(Fault::broken("the page redirects more than five times"));
            }
            seen.push(url.clone());
        }
    }

    /// The rules of a site, and the earliest time of the next request.
    async fn site_state(&self, call: &Call, url: &Url) -> Result<(Arc<Rules>, Instant), Fault> {
        let site = url.origin().ascii_serialization();
        let mut sites = self.0.lock().await;
        if let Some(state) = sites.get(&site).filter(|state| call.now() < state.until) {
            return Ok((Arc::clone(&state.rules), state.rested));
        }
        let rules = Arc::new(Rules::ask(call, url).await?);
        if sites.len() >= MAX_SITES {
            sites.clear();
        }
        let until = call.now().plus(RULES_LAST);
        // The request for the rules starts no delay.
        let rested = Instant::now();
        sites.insert(site, SiteState { rules: Arc::clone(&rules), until, rested });
        Ok((rules, rested))
    }

    /// Schedules the next request to a host; a slow host gets a longer delay.
    async fn rest(&self, url: &Url, begun: Instant, asked: Duration) {
        let rest = begun.elapsed().saturating_mul(REST).min(MAX_REST).max(asked);
        if let Some(state) = self.0.lock().await.get_mut(&url.origin().ascii_serialization()) {
            state.rested = Instant::now() + rest;
        }
    }
}

/// Access to a page may be granted later, so a denial proves nothing.
fn may_be_seen(status: StatusCode) -> Result<(), Fault> {
    match status.as_u16() {
        401 | 402 | 403 | 407 | 451 => Err(Fault::broken("the site does not show the page to everybody")),
        _ => Ok(()),
    }
}

/// Parses the metadata of a page on a blocking thread.
async fn facts(answer: Response<Bytes>, from: Url) -> Result<(Facts, Response<Bytes>, Url), Fault> {
    let read = tokio::task::spawn_blocking(move || {
        let facts = Facts::of(answer.headers(), answer.body(), &from);
        (facts, answer, from)
    });
    read.await.map_err(|_| Fault::Unavailable)
}

/// A media type without its parameters.
pub(super) fn essence(mime: &str) -> String {
    mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn media_type(answer: &Response<Bytes>, from: &Url) -> String {
    let sent = answer.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let says_something = |sent: &&str| !matches!(essence(sent).as_str(), "" | "application/octet-stream");
    sent.filter(says_something).unwrap_or_else(|| mime::of_name(from.path())).to_owned()
}

fn has_no_text(mime: &str) -> bool {
    let essence = essence(mime);
    let kind = essence.split('/').next().unwrap_or_default();
    matches!(kind, "image" | "audio" | "video" | "font")
        || matches!(essence.as_str(), "text/css" | "text/javascript" | "application/javascript")
}

fn asks_to_sign_in(url: &Url) -> bool {
    const PARTS: [&str; 6] = ["login", "log-in", "signin", "sign-in", "sign_in", "sso"];
    url.path().split('/').any(|part| {
        let name = part.split('.').next().unwrap_or_default();
        PARTS.iter().any(|known| known.eq_ignore_ascii_case(name))
    })
}
