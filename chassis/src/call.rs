//! The context of an outgoing call: identity, deadline, request id, and the channel by which the request came in.

use std::str::FromStr;
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use tonic::Request;
use tonic::metadata::MetadataMap;

use crate::deadline;

/// The metadata and header name of the request id.
pub const REQUEST_ID: &str = "x-request-id";
/// The metadata name of the channel.
pub const CHANNEL: &str = "x-cairn-channel";
/// The metadata name of the client program's name.
const CLIENT: &str = "x-cairn-client";
/// A longer client name is truncated.
const MAX_CLIENT_CHARACTERS: usize = 100;
// Parsed once instead of at every call.
const REQUEST_ID_NAME: HeaderName = HeaderName::from_static(REQUEST_ID);
const CHANNEL_NAME: HeaderName = HeaderName::from_static(CHANNEL);
const CLIENT_NAME: HeaderName = HeaderName::from_static(CLIENT);
/// The capacity for the headers of a request, including those of tonic.
const HEADERS: usize = 8;

/// The interface by which a request came in. A direct caller of a service may claim any: it is for statistics only and grants
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    /// The REST API.
    Rest,
    /// MCP.
    Mcp,
    /// The console.
    Console,
    /// Direct gRPC.
    Grpc,
}

impl Channel {
    /// Every channel.
    pub const ALL: [Self; 4] = [Self::Rest, Self::Mcp, Self::Console, Self::Grpc];

    /// The spelling in metadata, tables and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::Mcp => "mcp",
            Self::Console => "console",
            Self::Grpc => "grpc",
        }
    }
}

impl FromStr for Channel {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|channel| channel.as_str() == text).ok_or(())
    }
}

/// A signed identity as a header value, created once for many calls. One that is not ASCII is not sent.
#[derive(Debug, Clone)]
pub struct Credential(Option<HeaderValue>);

impl Credential {
    /// From an identity signed by svc-auth.
    pub fn of(identity: &str) -> Self {
        let mut value = HeaderValue::from_str(&format!("Bearer {identity}")).ok();
        if let Some(value) = value.as_mut() {
            value.set_sensitive(true);
        }
        Self(value)
    }
}

/// The context of a chain of calls: created at the edge or read from an incoming call, and passed on hop by hop.
#[derive(Debug, Clone)]
pub struct Call {
    authorization: Option<HeaderValue>,
    request_id: Option<HeaderValue>,
    channel: Channel,
    client: Option<HeaderValue>,
    deadline: Instant,
}

impl Call {
    /// A call that starts here, with that timeout.
    pub fn within(budget: Duration) -> Self {
        Self {
            authorization: None,
            request_id: None,
            channel: Channel::Grpc,
            client: None,
            deadline: Instant::now() + budget,
        }
    }

    /// The context of an incoming call: the same identity, request id and channel, and the remaining time.
    pub fn from_metadata(metadata: &MetadataMap) -> Self {
        let headers: &HeaderMap = metadata.as_ref();
        let budget = deadline::budget(headers).unwrap_or(deadline::DEFAULT);
        let channel = headers.get(CHANNEL_NAME).and_then(|value| value.to_str().ok()?.parse().ok());
        Self {
            authorization: headers.get(header::AUTHORIZATION).cloned(),
            request_id: headers.get(REQUEST_ID_NAME).cloned(),
            channel: channel.unwrap_or(Channel::Grpc),
            client: headers.get(CLIENT_NAME).and_then(received_client),
            deadline: deadline::current().unwrap_or_else(|| Instant::now() + budget),
        }
    }

    /// The same call with this signed identity. An identity that is not ASCII is not sent.
    #[must_use]
    pub fn with_identity(self, identity: &str) -> Self {
        self.with_credential(&Credential::of(identity))
    }

    /// The same call with this credential.
    #[must_use]
    pub fn with_credential(mut self, credential: &Credential) -> Self {
        self.authorization.clone_from(&credential.0);
        self
    }

    /// The same call with this request id. An id that is not ASCII is not sent.
    #[must_use]
    pub fn with_request_id(mut self, request_id: &str) -> Self {
        self.request_id = HeaderValue::from_str(request_id).ok();
        self
    }

    /// The same call with this channel.
    #[must_use]
    pub const fn with_channel(mut self, channel: Channel) -> Self {
        self.channel = channel;
        self
    }

    /// The same call with this client name. It is for people to read and grants nothing; a name that is not ASCII is omitted.
    #[must_use]
    pub fn with_client(mut self, name: &str) -> Self {
        self.client = truncated(name).and_then(|name| HeaderValue::from_str(name).ok());
        self
    }

    /// The name of the client program; empty when unknown.
    pub fn client(&self) -> &str {
        self.client.as_ref().and_then(|client| client.to_str().ok()).unwrap_or_default()
    }

    /// The channel by which the request came in.
    pub const fn channel(&self) -> Channel {
        self.channel
    }

    /// The time until the deadline.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// A request for the next hop.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        *request.metadata_mut() = MetadataMap::with_capacity(HEADERS);
        request.set_timeout(self.remaining());
        let headers: &mut HeaderMap = request.metadata_mut().as_mut();
        if let Some(value) = &self.authorization {
            headers.insert(header::AUTHORIZATION, value.clone());
        }
        if let Some(value) = &self.request_id {
            headers.insert(REQUEST_ID_NAME, value.clone());
        }
        if let Some(client) = &self.client {
            headers.insert(CLIENT_NAME, client.clone());
        }
        if self.channel != Channel::Grpc {
            headers.insert(CHANNEL_NAME, HeaderValue::from_static(self.channel.as_str()));
        }
        request
    }
}

/// A client name, truncated to its limit; `None` unless it is printable ASCII.
fn truncated(name: &str) -> Option<&str> {
    let name = name.trim();
    let is_plain = !name.is_empty() && name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    name.get(..name.len().min(MAX_CLIENT_CHARACTERS)).filter(|_| is_plain)
}

/// The client name of an incoming call, which the gateway has usually truncated already.
fn received_client(value: &HeaderValue) -> Option<HeaderValue> {
    let text = value.to_str().ok()?;
    let name = truncated(text)?;
    if name.len() == text.len() { Some(value.clone()) } else { HeaderValue::from_str(name).ok() }
}

#[cfg(test)]
mod tests {
    use tonic::metadata::AsciiMetadataValue;

    use super::*;

    #[test]
    fn the_channel_travels_and_a_strange_one_is_direct() {
        for channel in Channel::ALL {
            let sent = Call::within(Duration::from_secs(9)).with_channel(channel).request(());
            assert_eq!(Call::from_metadata(sent.metadata()).channel(), channel);
        }
        let mut metadata = MetadataMap::new();
        metadata.insert(CHANNEL, AsciiMetadataValue::from_static("carrier pigeon"));
        assert_eq!(Call::from_metadata(&metadata).channel(), Channel::Grpc);
    }

    #[test]
    fn a_programs_name_travels_and_is_bounded() {
        let named = |name: &str| {
            let sent = Call::within(Duration::from_secs(9)).with_client(name).request(());
            Call::from_metadata(sent.metadata()).client().to_owned()
        };
        assert_eq!(named(" claude-code/2.1 (cli) "), "claude-code/2.1 (cli)");
        assert_eq!(named(&"x".repeat(5_000)), "x".repeat(100));
        for odd in ["", "  ", "a\nb", "Zoë"] {
            assert_eq!(named(odd), "", "{odd}");
        }
    }
}
