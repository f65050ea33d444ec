//! The HTTP client for URLs that users provide, guarded against SSRF.
//!
//! It accepts `https` only, connects to public addresses only, and connects to exactly the addresses that it checked, so that
//! DNS rebinding gains nothing. It follows no redirects, uses no proxy, stores no cookies, and limits the size and the time of
//! a response. An operator may allow further networks, also with `http`: an internal identity provider or wiki.

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
use reqwest::redirect;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use url::{Host, Url};

/// The limits of one request.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the DNS look-up to the last byte.
    pub time: Duration,
    /// Of the response body.
    pub bytes: usize,
}

/// Why a request failed. The texts are for the user who provided the URL: they reveal nothing about the host behind it, so
/// that nobody can probe our network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// An unsupported URL.
    #[error("the address must be an https URL with a host, and without user name, password or fragment")]
    Url,
    /// The name resolves to an address that is not public, or `http` is not allowed for it.
    #[error("the address does not lead to a public host over https")]
    NotPublic,
    /// The DNS look-up, the connection, the certificate check or the transfer failed.
    #[error("the host does not answer")]
    Unreachable,
    /// The time limit was exceeded.
    #[error("the host does not answer in time")]
    TimedOut,
    /// The size limit was exceeded.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// Not 200.
    #[error("the host answers with the status {0}")]
    Status(u16),
    /// The response has another media type than those requested.
    #[error("the answer is not of the expected content type")]
    ContentType,
}

/// The client could not be built.
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
    https: reqwest::Client,
    http: reqwest::Client,
    allowed: Arc<[Network]>,
}

crate::debug_fields!(Guard { allowed });

impl Guard {
    /// A client that reaches public addresses and these networks.
    ///
    /// # Errors
    /// When the client cannot be built.
    pub fn new(allowed: &[Network]) -> Result<Self, GuardError> {
        let allowed: Arc<[Network]> = allowed.into();
        let client = |public: bool| {
            reqwest::Client::builder()
                .tls_backend_preconfigured(tls()?)
                .dns_resolver(GuardedResolver(Policy { public, allowed: Arc::clone(&allowed) }))
                .redirect(redirect::Policy::none())
                .no_proxy()
                .referer(false)
                .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
                .build()
                .map_err(GuardError::from)
        };
        Ok(Self { https: client(true)?, http: client(false)?, allowed })
    }

    /// Parses and checks a URL without connecting. Host names are checked later, when they are resolved.
    ///
    /// # Errors
    /// When the URL is not allowed.
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
        // IP literals bypass the resolver.
        let policy = self.policy(&url);
        if literal.is_some_and(|ip| !policy.allows(ip)) || (!policy.public && policy.allowed.is_empty()) {
            return Err(Refused::NotPublic);
        }
        Ok(url)
    }

    /// Gets a document of one of these media types (`application/json` stands for `…+json` too).
    ///
    /// # Errors
    /// When the URL is not allowed, or the response is not usable.
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

    /// Sends any request; every status is a success.
    ///
    /// # Errors
    /// When the URL is not allowed, or no complete response arrives within the limits.
    pub async fn send(&self, request: Request<Bytes>, limits: Limits) -> Result<Response<Bytes>, Refused> {
        let url = self.check(&request.uri().to_string())?;
        let (head, body) = request.into_parts();
        let sending = self.client(&url).request(head.method, url).headers(head.headers).body(body).send();
        let exchange = async { read(sending.await.map_err(|error| refused_by(&error))?, limits.bytes).await };
        tokio::time::timeout(limits.time, exchange).await.unwrap_or(Err(Refused::TimedOut))
    }

    /// Sends a request and returns only the status and the headers: the response body is not read. Every status is a success.
    ///
    /// # Errors
    /// When the URL is not allowed, or no response arrives in that time.
    pub async fn deliver(&self, request: Request<Bytes>, time: Duration) -> Result<Response<()>, Refused> {
        let url = self.check(&request.uri().to_string())?;
        let (head, body) = request.into_parts();
        let sending = self.client(&url).request(head.method, url).headers(head.headers).body(body).send();
        let mut response = match tokio::time::timeout(time, sending).await {
            Ok(response) => response.map_err(|error| refused_by(&error))?,
            Err(_elapsed) => return Err(Refused::TimedOut),
        };
        let mut head = Response::new(());
        *head.status_mut() = response.status();
        std::mem::swap(head.headers_mut(), response.headers_mut());
        Ok(head)
    }

    fn client(&self, url: &Url) -> &reqwest::Client {
        if url.scheme() == "https" { &self.https } else { &self.http }
    }

    fn policy(&self, url: &Url) -> Policy {
        Policy { public: url.scheme() == "https", allowed: Arc::clone(&self.allowed) }
    }
}

/// Installs ring as the default crypto provider of this process. The guard names its provider; a plain `reqwest` client in the
/// same build does not, and needs the default. Idempotent.
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

/// The addresses that a connection may be made to.
#[derive(Debug, Clone)]
struct Policy {
    public: bool,
    allowed: Arc<[Network]>,
}

impl Policy {
    fn allows(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        (self.public && address::is_public(ip)) || self.allowed.iter().any(|network| network.contains(&ip))
    }
}

/// Resolves names and returns only addresses that passed the check; the connection is made to one of these.
struct GuardedResolver(Policy);

/// Marks a rejection by [`GuardedResolver`] in the causes of an error of the HTTP client.
#[derive(Debug, Error)]
#[error("the name does not lead to a public address")]
struct NotPublic;

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // A name with a private address among public ones is likely an attack.
            if found.is_empty() || !found.iter().all(|found| policy.allows(found.ip())) {
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
    // Only logged, since its text names the host and the network error.
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
