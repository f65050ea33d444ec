//! What an outgoing call carries: whose identity, how much time is left, which request it belongs to.

use std::time::{Duration, Instant};

use tonic::Request;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};

use crate::deadline;

/// The metadata and header name of the request id.
pub const REQUEST_ID: &str = "x-request-id";
const AUTHORIZATION: &str = "authorization";

/// The context of a chain of calls; made at the edge or read from a call that came in, and passed on hop by hop.
#[derive(Debug, Clone)]
pub struct Call {
    authorization: Option<AsciiMetadataValue>,
    request_id: Option<AsciiMetadataValue>,
    deadline: Instant,
}

impl Call {
    /// A call that begins here, with that much time.
    pub fn within(budget: Duration) -> Self {
        Self { authorization: None, request_id: None, deadline: Instant::now() + budget }
    }

    /// The context of a call that came in: the same identity and request id, and the time that is left.
    pub fn from_metadata(metadata: &MetadataMap) -> Self {
        let budget = deadline::budget(metadata.as_ref()).unwrap_or(deadline::DEFAULT);
        Self {
            authorization: metadata.get(AUTHORIZATION).cloned(),
            request_id: metadata.get(REQUEST_ID).cloned(),
            deadline: deadline::current().unwrap_or_else(|| Instant::now() + budget),
        }
    }

    /// The same call with this signed identity. An identity that is not ASCII is not sent.
    #[must_use]
    pub fn with_identity(mut self, identity: &str) -> Self {
        self.authorization = AsciiMetadataValue::try_from(format!("Bearer {identity}")).ok();
        if let Some(value) = self.authorization.as_mut() {
            value.set_sensitive(true);
        }
        self
    }

    /// The same call with this request id. An id that is not ASCII is not sent.
    #[must_use]
    pub fn with_request_id(mut self, request_id: &str) -> Self {
        self.request_id = AsciiMetadataValue::try_from(request_id).ok();
        self
    }

    /// What is left of the time.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// A request for the next hop.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.remaining());
        let metadata = request.metadata_mut();
        if let Some(value) = &self.authorization {
            metadata.insert(AUTHORIZATION, value.clone());
        }
        if let Some(value) = &self.request_id {
            metadata.insert(REQUEST_ID, value.clone());
        }
        request
    }
}
