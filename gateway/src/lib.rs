//! The edge of the mesh: REST, MCP and the console API, translated into gRPC; it holds no storage and no rule that a
//! service lacks.
//!
//! A request passes `edge` (request id, deadline, panics, metrics, the one error body), is authenticated
//! (`auth`), read and checked (`extract`, `schema`, `validate`), and carried out by an operation
//! (`operations`) that REST and MCP share.

mod answers;
mod app;
mod auth;
mod change;
mod compression;
mod console;
mod edge;
mod error;
mod extract;
mod grpc;
mod guide_pages;
mod guides;
mod health;
mod intake;
mod json_body;
mod mcp;
mod oauth;
mod openapi;
mod operations;
mod origin;
mod own_writes;
mod rate_limit;
mod rest;
mod schema;
mod security_headers;
mod terms;
#[cfg(test)]
mod testing;
mod unread_body;
mod upstreams;
mod validate;

use std::time::Duration;

use axum::Router;
use cairn_chassis::ambient::Ambient;

use crate::app::App;
use crate::origin::Origins;
pub use crate::rate_limit::RedisUrl;
use crate::rate_limit::check as check_limits;
pub use crate::upstreams::Upstreams;

/// Uploads of a sync run are the largest thing that is sent: 24 MB of content, and JSON around it.
const DEFAULT_BODY_BYTES: usize = 32 * 1024 * 1024;
/// Longer than a round trip ever takes, and short enough to wait for once a second when Redis hangs.
const DEFAULT_REDIS_TIMEOUT: Duration = Duration::from_millis(200);

/// How the gateway presents itself.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address that people and agents use, such as `https://cairn.example`: links, cookies and the origin check
    /// follow it. Without one, links are paths and only loopback counts as our own origin.
    pub base_url: Option<String>,
    /// Further origins that may call `/mcp` (`MCP_ALLOWED_ORIGINS`).
    pub allowed_origins: Vec<String>,
    /// The largest request body of any kind; most kinds have a smaller limit of their own (`terms`).
    pub max_body_bytes: usize,
    /// Changes of what plans may ask for, as JSON: `{"free": {"minute": 60, "day": null}}`.
    pub plans: Option<String>,
    /// Networks of proxies whose `X-Forwarded-For` or `Forwarded` is believed.
    pub trusted_proxies: Vec<String>,
    /// Where gateways count together; each counts for itself without it.
    pub redis: Option<RedisUrl>,
    /// When Redis takes longer, this process's own windows count.
    pub redis_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            base_url: None,
            allowed_origins: Vec::new(),
            max_body_bytes: DEFAULT_BODY_BYTES,
            plans: None,
            trusted_proxies: Vec::new(),
            redis: None,
            redis_timeout: DEFAULT_REDIS_TIMEOUT,
        }
    }
}

impl Config {
    /// Checks the addresses and the limits, so that a start can fail with a reason.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn check(&self) -> Result<(), ConfigError> {
        Origins::new(self.base_url.as_deref(), &self.allowed_origins)?;
        check_limits(self)
    }
}

/// The configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The base address is no http(s) URL.
    #[error("the base URL '{0}' must be an http(s) URL such as https://cairn.example")]
    BaseUrl(String),
    /// An entry of the allowed origins is no origin.
    #[error("the allowed origin '{0}' must be an origin such as https://tools.example")]
    AllowedOrigin(String),
    /// The changes of plans cannot be read.
    #[error(
        "the plans (CAIRN_PLANS) must be JSON such as {{\"free\": {{\"minute\": 60, \"day\": null}}}}: {0}"
    )]
    Plans(String),
    /// An entry of the trusted proxies is no network.
    #[error("the trusted proxy '{0}' must be an address or a network such as 10.0.0.0/8")]
    TrustedProxy(String),
    /// The address of Redis cannot be used; it may hold a password, so it is not repeated.
    #[error(
        "the Redis URL (CAIRN_REDIS_URL) must be one such as redis://host:6379 or rediss://user:password@host:6380, \
         several nodes of a cluster with commas between"
    )]
    RedisUrl,
}

/// The gateway; cheap to clone.
#[derive(Debug, Clone)]
pub struct Gateway {
    app: App,
}

impl Gateway {
    /// A gateway in front of those services. Nothing is contacted before the first request.
    /// Check the configuration first: of one that is wrong, only loopback is left as our own origin, and the default
    /// limits in this process.
    pub fn new(config: Config, upstreams: Upstreams, ambient: Ambient) -> Self {
        Self { app: App::new(config, upstreams, ambient) }
    }

    /// All that is served over public gRPC; it needs HTTP/2.
    pub fn grpc_router(&self) -> Router {
        grpc::router(self.app.clone())
    }

    /// All that is served over public HTTP.
    pub fn router(&self) -> Router {
        let (api, document) = openapi::split(rest::routes());
        let routes = api
            .merge(console::routes(&self.app))
            .merge(mcp::routes())
            .merge(oauth::routes())
            .merge(health::routes())
            .merge(guide_pages::routes())
            .merge(openapi::routes(document));
        edge::around(routes, self.app.clone())
    }
}
