//! Requests to addresses that users name: the one HTTP client that may follow them.
//!
//! It takes `https` only, connects to public addresses only, and connects to exactly the addresses that it checked, so
//! that a name which answers differently the second time (DNS rebinding) gains nothing. It follows no redirect, uses no
//! proxy, keeps no cookie, and reads a bounded answer within a bounded time. An operator may list networks that it may
//! reach besides, with `http` too: an identity provider or a wiki inside.

mod address;
mod download;

use std::error::Error as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

pub use self::download::DownloadError;
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Request, Response, StatusCode, header};
pub use ipnet::IpNet as Network;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use url::{Host, Url};

/// What one request may cost.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the look-up of the name to the last byte.
    pub time: Duration,
    /// Of the answer's body.
    pub bytes: usize,
}

/// Why there is no answer. The texts are for the person who named the address: they tell nothing about what stands
/// behind it, so that nobody can look around in our network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// Not a URL that we go to.
    #[error("the address must be an https URL with a host, and without user name, password or fragment")]
    Url,
    /// The name leads to an address that is not public, or `http` is not allowed for it.
    #[error("the address does not lead to a public host over https")]
    NotPublic,
    /// No connection, no name, no valid certificate, or an answer that breaks off.
    #[error("the host does not answer")]
    Unreachable,
    /// Too slow.
    #[error("the host does not answer in time")]
    TimedOut,
    /// More than we read.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// Not 200.
    #[error("the host answers with the status {0}")]
    Status(u16),
    /// Another kind of document than the one that was asked for.
    #[error("the answer is not of the expected content type")]
    ContentType,
}

/// The client could not be made.
#[derive(Debug, Error)]
pub enum GuardError {
    /// The TLS settings were refused.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// The HTTP client was refused.
    #[error("the HTTP client cannot be made: {0}")]
    Client(#[from] reqwest::Error),
}

/// The guarded client; cheap to clone.
#[derive(Clone)]
pub struct Guard {
    over_tls: reqwest::Client,
    in_clear: reqwest::Client,
    allowed: Arc<[Network]>,
}

crate::debug_fields!(Guard { allowed });

impl Guard {
    /// A client that reaches public addresses and these networks.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(allowed: &[Network]) -> Result<Self, GuardError> {
        let allowed: Arc<[Network]> = allowed.into();
        let client = |public: bool| {
            reqwest::Client::builder()
                .tls_backend_preconfigured(tls()?)
                .dns_resolver(Checked(Reach { public, allowed: Arc::clone(&allowed) }))
                .redirect(Policy::none())
                .no_proxy()
                .referer(false)
                .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
                .build()
                .map_err(GuardError::from)
        };
        Ok(Self { over_tls: client(true)?, in_clear: client(false)?, allowed })
    }

    /// Reads an address without going there. What it cannot know yet is where a name leads.
    ///
    /// # Errors
    /// When we would not go there.
    pub fn check(&self, address: &str) -> Result<Url, Refused> {
        let url = Url::parse(address).map_err(|_| Refused::Url)?;
        let is_plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        if !is_plain || !matches!(url.scheme(), "https" | "http") {
            return Err(Refused::Url);
        }
        let literal = match url.host().ok_or(Refused::Url)? {
            Host::Domain(_) => None,
            Host::Ipv4(ip) => Some(IpAddr::V4(ip)),
            Host::Ipv6(ip) => Some(IpAddr::V6(ip)),
        };
        // The resolver is not asked about an address that is written out.
        let reach = self.reach(&url);
        if literal.is_some_and(|ip| !reach.allows(ip)) || (!reach.public && reach.allowed.is_empty()) {
            return Err(Refused::NotPublic);
        }
        Ok(url)
    }

    /// Gets a document of one of these media types (`application/json` stands for `…+json` too).
    ///
    /// # Errors
    /// When the address is refused, or what it answers.
    pub async fn get(
        &self,
        address: &str,
        media_types: &[&str],
        limits: Limits,
    ) -> Result<Response<Bytes>, Refused> {
        let accept = HeaderValue::from_str(&media_types.join(", ")).map_err(|_| Refused::Url)?;
        let request = Request::get(address).header(header::ACCEPT, accept).body(Bytes::new());
        let response = self.send(request.map_err(|_| Refused::Url)?, limits).await?;
        if response.status() != StatusCode::OK {
            return Err(Refused::Status(response.status().as_u16()));
        }
        if media_types.iter().any(|wanted| is_media_type(&response, wanted)) {
            return Ok(response);
        }
        Err(Refused::ContentType)
    }

    /// Sends any request; every status is an answer.
    ///
    /// # Errors
    /// When the address is refused, or nothing whole comes back within the limits.
    pub async fn send(&self, request: Request<Bytes>, limits: Limits) -> Result<Response<Bytes>, Refused> {
        let url = self.check(&request.uri().to_string())?;
        let (head, body) = request.into_parts();
        let sending = self.client(&url).request(head.method, url).headers(head.headers).body(body).send();
        let exchanged =
            async { read(sending.await.map_err(|error| refused_by(&error))?, limits.bytes).await };
        tokio::time::timeout(limits.time, exchanged).await.unwrap_or(Err(Refused::TimedOut))
    }

    /// Sends a request of which only the status and the headers of the answer matter: its body is not read, however large
    /// it is. Every status is an answer.
    ///
    /// # Errors
    /// When the address is refused, or nothing comes back in that time.
    pub async fn deliver(&self, request: Request<Bytes>, time: Duration) -> Result<Response<()>, Refused> {
        let url = self.check(&request.uri().to_string())?;
        let (head, body) = request.into_parts();
        let sending = self.client(&url).request(head.method, url).headers(head.headers).body(body).send();
        let mut answer = match tokio::time::timeout(time, sending).await {
            Ok(answer) => answer.map_err(|error| refused_by(&error))?,
            Err(_elapsed) => return Err(Refused::TimedOut),
        };
        let mut told = Response::new(());
        *told.status_mut() = answer.status();
        std::mem::swap(told.headers_mut(), answer.headers_mut());
        Ok(told)
    }

    fn client(&self, url: &Url) -> &reqwest::Client {
        if url.scheme() == "https" { &self.over_tls } else { &self.in_clear }
    }

    fn reach(&self, url: &Url) -> Reach {
        Reach { public: url.scheme() == "https", allowed: Arc::clone(&self.allowed) }
    }
}

/// Makes ring the crypto of this process for every TLS client that does not say which it wants. The guard does say;
/// a plain `reqwest` client in the same build does not, and cannot be made without. Calling it again changes nothing.
pub fn install_crypto() {
    // An error means that it was installed before.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn tls() -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(versions.with_root_certificates(roots).with_no_client_auth())
}

/// Which addresses may be connected to.
#[derive(Debug, Clone)]
struct Reach {
    public: bool,
    allowed: Arc<[Network]>,
}

impl Reach {
    fn allows(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        (self.public && address::is_public(ip)) || self.allowed.iter().any(|network| network.contains(&ip))
    }
}

/// Looks names up and gives out only addresses that were checked; the connection is made to one of these.
struct Checked(Reach);

/// The mark of a refusal inside an error of the HTTP client.
#[derive(Debug, Error)]
#[error("the name does not lead to a public address")]
struct NotPublic;

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // A name with one private address among public ones is somebody's attempt.
            if found.is_empty() || !found.iter().all(|found| reach.allows(found.ip())) {
                return Err(NotPublic.into());
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

async fn read(mut response: reqwest::Response, limit: usize) -> Result<Response<Bytes>, Refused> {
    let declared =
        response.content_length().map_or(0, |length| usize::try_from(length).unwrap_or(usize::MAX));
    if declared > limit {
        return Err(Refused::TooLarge(limit));
    }
    let mut body = BytesMut::with_capacity(declared);
    while let Some(chunk) = response.chunk().await.map_err(|error| refused_by(&error))? {
        if body.len() + chunk.len() > limit {
            return Err(Refused::TooLarge(limit));
        }
        body.extend_from_slice(&chunk);
    }
    let mut whole = Response::new(body.freeze());
    *whole.status_mut() = response.status();
    std::mem::swap(whole.headers_mut(), response.headers_mut());
    Ok(whole)
}

fn refused_by(error: &reqwest::Error) -> Refused {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if inner.is::<NotPublic>() {
            return Refused::NotPublic;
        }
        cause = inner.source();
    }
    // Its text names the host and what the network said: for the log.
    tracing::debug!(%error, "an outbound request failed");
    Refused::Unreachable
}

fn is_media_type(response: &Response<Bytes>, wanted: &str) -> bool {
    let sent = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = sent.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = essence.starts_with("application/") && essence.ends_with("+json");
    essence == wanted || (wanted == "application/json" && is_json)
}

#[cfg(test)]
mod tests;
