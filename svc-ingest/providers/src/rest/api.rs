//! Where a service is, and how requests to it are signed.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, header};
use serde::Serialize;
use url::Url;

use super::link;
use crate::{Call, Fault};

/// A service and the headers that every request to it carries.
#[derive(Clone)]
pub(crate) struct Api {
    base: Url,
    headers: HeaderMap,
}

cairn_chassis::debug_fields!(Api { base });

impl Api {
    /// The service at an address that was checked.
    pub(crate) fn new(base: Url) -> Self {
        Self { base, headers: HeaderMap::new() }
    }

    /// With a header on every request.
    #[must_use]
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The address of the service.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// An address below that of the service; each part is one segment of the path, whatever stands in it.
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

    /// An address that a position kept: at the origin of the service, or the position is of another one.
    ///
    /// # Errors
    /// [`Fault::PositionLost`] when it is elsewhere.
    pub(crate) fn kept(&self, address: &str) -> Result<Url, Fault> {
        link::follow(&self.base, address).map_err(|_| Fault::PositionLost)
    }

    /// Gets an answer whose status is good.
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

    /// Posts JSON, for an answer whose status is good.
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
    /// [`Fault::Refused`] when it cannot be written.
    pub(crate) fn posting(&self, url: &Url, body: &impl Serialize) -> Result<Request<Bytes>, Fault> {
        let body = serde_json::to_vec(body).map_err(|_| Fault::Refused)?;
        let mut request = self.request(Method::POST, url, body.into())?;
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(request)
    }

    /// A request with the headers of this service.
    ///
    /// # Errors
    /// [`Fault::Refused`] when the address is none that HTTP can carry.
    pub(crate) fn request(&self, method: Method, url: &Url, body: Bytes) -> Result<Request<Bytes>, Fault> {
        let mut request =
            Request::builder().method(method).uri(url.as_str()).body(body).map_err(|_| Fault::Refused)?;
        *request.headers_mut() = self.headers.clone();
        Ok(request)
    }
}
