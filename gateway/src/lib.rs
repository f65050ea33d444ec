//! The edge of the mesh: REST, MCP and the console API, translated into gRPC; it holds no storage and no rule that a
//! service lacks.
//!
//! A request passes `edge` (request id, deadline, panics, metrics, the one error body), is authenticated
//! (`auth`), read and checked (`extract`, `schema`, `validate`), and carried out by an operation
//! (`operations`) that REST and MCP share.

mod app;
mod auth;
mod change;
mod console;
mod edge;
mod error;
mod extract;
mod health;
mod mcp;
mod openapi;
mod operations;
mod origin;
mod records;
mod rest;
mod schema;
#[cfg(test)]
mod testing;
mod upstreams;
mod validate;

use axum::Router;
use cairn_chassis::ambient::Ambient;

use crate::app::App;
use crate::origin::Origins;
pub use crate::upstreams::Upstreams;

/// Uploads of a sync run are the largest thing that is sent: 24 MB of content, and JSON around it.
const DEFAULT_BODY_BYTES: usize = 32 * 1024 * 1024;

/// How the gateway presents itself.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address that people and agents use, such as `https://cairn.example`: links, cookies and the origin check
    /// follow it. Without one, links are paths and only loopback counts as our own origin.
    pub base_url: Option<String>,
    /// Further origins that may call `/mcp` (`MCP_ALLOWED_ORIGINS`).
    pub allowed_origins: Vec<String>,
    /// The largest request body.
    pub max_body_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { base_url: None, allowed_origins: Vec::new(), max_body_bytes: DEFAULT_BODY_BYTES }
    }
}

impl Config {
    /// Checks the addresses, so that a start can fail with a reason.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn check(&self) -> Result<(), ConfigError> {
        Origins::new(self.base_url.as_deref(), &self.allowed_origins).map(drop)
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
}

/// The gateway; cheap to clone.
#[derive(Debug, Clone)]
pub struct Gateway {
    app: App,
}

impl Gateway {
    /// A gateway in front of those services. Nothing is contacted before the first request.
    /// Check the configuration first: of one that is wrong, only loopback is left as our own origin.
    pub fn new(config: Config, upstreams: Upstreams, ambient: Ambient) -> Self {
        Self { app: App::new(config, upstreams, ambient) }
    }

    /// All that is served over public HTTP.
    pub fn router(&self) -> Router {
        let (api, document) = openapi::split(rest::routes());
        let routes = api
            .merge(console::routes(&self.app))
            .merge(mcp::routes())
            .merge(health::routes())
            .merge(openapi::routes(document));
        edge::around(routes, self.app.clone())
    }
}
