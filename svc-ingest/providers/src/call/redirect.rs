//! Redirects of one request.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, Request, Response, header};
use url::Url;

use crate::Fault;

/// The most redirects of one request.
pub(crate) const MAX_REDIRECTS: usize = 5;

/// Headers that are sent to another origin. Any other header may be a credential.
const HARMLESS: [HeaderName; 5] = [
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::RANGE,
];

/// A request that follows redirects.
pub(super) struct RedirectChain {
    head: Parts,
    body: Bytes,
    url: Url,
    seen: Vec<(Method, Url)>,
}

impl RedirectChain {
    pub(super) fn new(request: Request<Bytes>) -> Result<Self, Fault> {
        let (head, body) = request.into_parts();
        let url = Url::parse(&head.uri.to_string()).map_err(|_| Fault::Address)?;
        Ok(Self { head, body, url, seen: Vec::new() })
    }

    /// The request to send next.
    pub(super) fn request(&self) -> Result<Request<Bytes>, Fault> {
        let mut request = Request::new(self.body.clone());
        *request.method_mut() = self.head.method.clone();
        *request.uri_mut() = self.url.as_str().parse().map_err(|_| Fault::Address)?;
        *request.headers_mut() = self.head.headers.clone();
        Ok(request)
    }

    /// The URL of the last response.
    pub(super) fn into_url(self) -> Url {
        self.url
    }

    /// Follows the redirect of a response, if it is one.
    pub(super) fn follow(&mut self, response: &Response<Bytes>) -> Result<bool, Fault> {
        let status = response.status().as_u16();
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return Ok(false);
        }
        let target = target(&self.url, response.headers())?;
        self.seen.push((self.head.method.clone(), self.url.clone()));
        // As in browsers: POST becomes GET, except for 307 and 308.
        let keeps_method =
            matches!(status, 307 | 308) || matches!(self.head.method, Method::GET | Method::HEAD);
        if !keeps_method {
            self.head.method = Method::GET;
            self.body = Bytes::new();
            self.head.headers.remove(header::CONTENT_TYPE);
        }
        if target.origin() != self.url.origin() {
            self.leave_origin()?;
        }
        if self.seen.iter().any(|(method, url)| *method == self.head.method && *url == target) {
            return Err(Fault::broken("the provider redirects in a circle"));
        }
        if self.seen.len() > MAX_REDIRECTS {
            return Err(Fault::broken("the provider redirects more than five times"));
        }
        self.url = target;
        Ok(true)
    }

    /// Drops credentials, also if a later redirect leads back to the first origin.
    fn leave_origin(&mut self) -> Result<(), Fault> {
        if !self.body.is_empty() {
            return Err(Fault::broken("the provider wants what was sent to it to be sent to another host"));
        }
        let before = std::mem::take(&mut self.head.headers);
        let kept = HARMLESS.iter().filter_map(|name| Some((name.clone(), before.get(name)?.clone())));
        self.head.headers = HeaderMap::from_iter(kept);
        Ok(())
    }
}

/// The target of a redirect, without its fragment.
pub(crate) fn target(from: &Url, headers: &HeaderMap) -> Result<Url, Fault> {
    let location = headers.get(header::LOCATION).and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
    let target = location.and_then(|location| from.join(location).ok());
    let mut target = target.ok_or(Fault::broken("the provider redirects to nowhere"))?;
    target.set_fragment(None);
    Ok(target)
}
