//! The base URL and headers of a service.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, header};
use serde::Serialize;
use url::Url;

use super::link;
use crate::{Call, Fault};

/// A service, and the headers of every request to it.
#[derive(Clone)]
pub(crate) struct Api {
    base: Url,
    headers: HeaderMap,
}

cairn_chassis::debug_fields!(Api { base });

impl Api {
    /// The service at a validated URL.
    pub(crate) fn new(base: Url) -> Self {
        Self { base, headers: HeaderMap::new() }
    }

    /// Adds a header to every request.
    #[must_use]
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The base URL.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// A URL below the base URL; each part becomes one escaped path segment.
    pub(crate) fn at<'p>(&self, parts: impl IntoIterator<Item = &'p str>) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(parts);
        }
        url
    }

    /// The same with a query.
    pub(crate) fn at_with<'p>(
        &self,
        parts: impl IntoIterator<Item = &'p str>,
        query: &[(&str, &str)],
    ) -> Url {
        let mut url = self.at(parts);
        url.query_pairs_mut().extend_pairs(query);
        url
    }

    /// Parses a URL from a position, which must have the origin of the service.
    ///
    /// # Errors
    /// [`Fault::PositionLost`] if it has another origin.
    pub(crate) fn kept(&self, address: &str) -> Result<Url, Fault> {
        link::follow(&self.base, address).map_err(|_| Fault::PositionLost)
    }

    /// Sends a GET request, and requires a success status.
    ///
    /// # Errors
    /// As [`Call::send`].
    pub(crate) async fn get(
        &self,
        call: &Call,
        url: &Url,
        most_bytes: usize,
    ) -> Result<Response<Bytes>, Fault> {
        call.send(self.request(Method::GET, url, Bytes::new())?, most_bytes).await
    }

    /// Posts JSON, and requires a success status.
    ///
    /// # Errors
    /// As [`Call::send`].
    pub(crate) async fn post(
        &self,
        call: &Call,
        url: &Url,
        body: &impl Serialize,
        most_bytes: usize,
    ) -> Result<Response<Bytes>, Fault> {
        call.send(self.posting(url, body)?, most_bytes).await
    }

    /// A request that posts JSON.
    ///
    /// # Errors
    /// [`Fault::Refused`] if it cannot be serialized.
    pub(crate) fn posting(&self, url: &Url, body: &impl Serialize) -> Result<Request<Bytes>, Fault> {
        let body = serde_json::to_vec(body).map_err(|_| Fault::Refused)?;
        let mut request = self.request(Method::POST, url, body.into())?;
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(request)
    }

    /// A request with the headers of this service.
    ///
    /// # Errors
    /// [`Fault::Refused`] if the URL is not valid in HTTP.
    pub(crate) fn request(&self, method: Method, url: &Url, body: Bytes) -> Result<Request<Bytes>, Fault> {
        let mut request =
            Request::builder().method(method).uri(url.as_str()).body(body).map_err(|_| Fault::Refused)?;
        *request.headers_mut() = self.headers.clone();
        Ok(request)
    }
}
