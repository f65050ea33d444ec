//! The edge of the mesh: REST, MCP and the console API, translated into gRPC. It has no storage, and no rule that a
//! service lacks.
//!
//! Each route is registered with its class (`routes`, `class`): who may call it, its deadline, body limit and cost.
//! A request passes `edge` (request id, deadline, panics, metrics, the one error body), is admitted (`guard`,
//! `auth`, `admission`), parsed and validated (`extract`, `schema`, `validate`), and executed by an operation
//! (`operations`) that REST and MCP share.

mod admission;
mod answers;
mod app;
mod auth;
mod change;
mod class;
mod compression;
mod connections;
mod console;
mod cost;
mod edge;
mod error;
mod events;
mod extract;
mod follow;
mod followers;
mod grpc;
mod guard;
mod guide_pages;
mod guides;
mod health;
mod in_flight;
mod intake;
mod json_body;
mod mcp;
mod multipart;
mod oauth;
mod openapi;
mod operations;
mod origin;
mod own_writes;
mod pages;
mod rate_limit;
mod rest;
mod routes;
mod schema;
mod security_headers;
mod seen_contents;
mod suspension;
#[cfg(test)]
mod testing;
mod unread_body;
mod upstreams;
mod validate;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::FromRef as _;
use cairn_chassis::ambient::Ambient;
use utoipa::openapi::OpenApi;

use crate::answers::Links;
use crate::app::App;
use crate::events::Events;
use crate::follow::FollowLimit;
use crate::origin::Origins;
pub use crate::rate_limit::RedisUrl;
use crate::routes::Routes;
pub use crate::upstreams::Upstreams;

/// The largest request is the upload of a sync run: 24 MB of content, and JSON around it.
const DEFAULT_BODY_BYTES: usize = 32 * 1024 * 1024;
/// More than a process answers in a second, while their bodies still fit into memory together.
const DEFAULT_REQUESTS: usize = 512;
/// Longer than any healthy round trip, and short enough to be spent once a second while Redis hangs.
const DEFAULT_REDIS_TIMEOUT: Duration = Duration::from_millis(200);

/// The gateway's configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// The base URL for people and agents, such as `https://cairn.example`: it determines links, cookies and the
    /// origin check. Without one, links are paths and only loopback counts as our own origin.
    pub base_url: Option<String>,
    /// Further origins that may call `/mcp` (`MCP_ALLOWED_ORIGINS`).
    pub allowed_origins: Vec<String>,
    /// Upper bound of request bodies; most routes have a smaller limit of their own (`class`).
    pub max_body_bytes: usize,
    /// Concurrency limit in requests; requests beyond it are rejected.
    pub max_requests: usize,
    /// Concurrency limit in cost units (a unit is reading a file). Requests beyond it are queued briefly, fairly
    /// between workspaces, and then rejected. `None` derives it from the number of cores; 0 disables admission.
    pub capacity: Option<u32>,
    /// Overrides of plan quotas, as JSON: `{"free": {"minute": 60, "day": null}}`.
    pub plans: Option<String>,
    /// Networks of proxies whose `X-Forwarded-For` or `Forwarded` is trusted.
    pub trusted_proxies: Vec<String>,
    /// Redis for rate limits shared by several gateways; without it each counts for itself.
    pub redis: Option<RedisUrl>,
    /// The timeout after which this process's own windows are used.
    pub redis_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            base_url: None,
            allowed_origins: Vec::new(),
            max_body_bytes: DEFAULT_BODY_BYTES,
            max_requests: DEFAULT_REQUESTS,
            capacity: None,
            plans: None,
            trusted_proxies: Vec::new(),
            redis: None,
            redis_timeout: DEFAULT_REDIS_TIMEOUT,
        }
    }
}

/// The configuration is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The base URL is no http(s) URL.
    #[error("the base URL '{0}' must be an http(s) URL such as https://cairn.example")]
    BaseUrl(String),
    /// An entry of the allowed origins is no origin.
    #[error("the allowed origin '{0}' must be an origin such as https://tools.example")]
    AllowedOrigin(String),
    /// The plan overrides cannot be parsed.
    #[error(
        "the plans (CAIRN_PLANS) must be JSON such as {{\"free\": {{\"minute\": 60, \"day\": null}}}}: {0}"
    )]
    Plans(String),
    /// An entry of the trusted proxies is no network.
    #[error("the trusted proxy '{0}' must be an address or a network such as 10.0.0.0/8")]
    TrustedProxy(String),
    /// The Redis URL is invalid; it may contain a password, so it is not repeated.
    #[error(
        "the Redis URL (CAIRN_REDIS_URL) must be one such as redis://host:6379 or rediss://user:password@host:6380, \
         several nodes of a cluster with commas between"
    )]
    RedisUrl,
    /// Redis is configured, but the feature `redis` is not compiled in.
    #[error(
        "Redis is configured (CAIRN_REDIS_URL), and this binary was built without the feature `redis`: each gateway can \
         only count for itself"
    )]
    RedisLeftOut,
}

/// The validated configuration.
#[derive(Debug)]
pub(crate) struct Settings {
    origins: Origins,
    links: Links,
    limits: rate_limit::Settings,
    max_body_bytes: usize,
    max_requests: usize,
    capacity: u32,
}

/// A configured gateway, not yet connected to its services.
#[derive(Debug)]
pub struct Unconnected(Settings);

impl Unconnected {
    /// Connects the gateway to its services. Connections are established with the first request.
    pub fn connect(self, upstreams: Upstreams, ambient: Ambient) -> Gateway {
        Gateway { app: App::new(self.0, upstreams, ambient) }
    }
}

/// The gateway; cheap to clone.
#[derive(Debug, Clone)]
pub struct Gateway {
    app: App,
}

impl Gateway {
    /// Validates the configuration of a gateway.
    ///
    /// # Errors
    /// When an address or a limit is invalid.
    pub fn build(config: &Config) -> Result<Unconnected, ConfigError> {
        Ok(Unconnected(Settings {
            origins: Origins::new(config.base_url.as_deref(), &config.allowed_origins)?,
            links: Links::new(config.base_url.as_deref()),
            limits: rate_limit::Settings::read(config)?,
            max_body_bytes: config.max_body_bytes,
            max_requests: config.max_requests,
            capacity: config.capacity.unwrap_or_else(|| admission::default_capacity(config.max_requests)),
        }))
    }

    /// The router of public gRPC; it needs HTTP/2.
    pub fn grpc_router(&self) -> Router {
        grpc::router(&self.app)
    }

    /// Ends all event streams, so that the server can drain; other requests are unaffected.
    pub fn close(&self) {
        Arc::<Events>::from_ref(&self.app).close();
        Arc::<FollowLimit>::from_ref(&self.app).close();
    }

    /// The router of public HTTP.
    pub fn router(&self) -> Router {
        edge::around(routes(), self.app.clone())
    }
}

/// Every route of public HTTP.
fn routes() -> Routes {
    let (mut rest, mut console) = (rest::routes(), console::routes());
    for described in [&mut rest, &mut console] {
        // Regenerated when it is first requested.
        drop(described.take_document());
    }
    rest.merge(console)
        .merge(mcp::routes())
        .merge(oauth::routes())
        .merge(health::routes())
        .merge(guide_pages::routes())
        .merge(pages::routes())
        .merge(openapi::routes(document_of_programs, document_of_console))
}

fn document_of_programs() -> OpenApi {
    openapi::of_programs(rest::routes().take_document())
}

fn document_of_console() -> OpenApi {
    openapi::of_console(console::routes().take_document())
}

/// Every route of public HTTP: its method (`None`: all of them), and its path with parameters in braces. For callers
/// of all routes, such as a fuzz target, including routes that no OpenAPI document has.
pub fn paths() -> Vec<(Option<http::Method>, String)> {
    let (_, classes) = routes().into_parts();
    classes.all().map(|(method, path, _)| (method.cloned(), path.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use cairn_chassis::testing::Modules;

    use super::*;
    use crate::class::{Surface, Who};

    #[test]
    fn no_modules_form_a_cycle() {
        let modules = Modules::of_crate(env!("CARGO_MANIFEST_DIR")).unwrap();
        assert_eq!(modules.violations(&[]), Vec::<String>::new());
    }

    #[test]
    fn every_route_of_an_api_is_in_its_document() {
        let documents = [(Surface::Rest, document_of_programs()), (Surface::Console, document_of_console())];
        let documents =
            documents.map(|(surface, document)| (surface, serde_json::to_value(document).unwrap()));
        let (_, classes) = routes().into_parts();
        let mut seen = 0;
        for (method, path, class) in classes.all() {
            let Some((_, document)) = documents.iter().find(|(surface, _)| *surface == class.surface) else {
                continue;
            };
            let method = method.unwrap().as_str().to_ascii_lowercase();
            // Deprecated paths are documented under their successors.
            let path = path.replacen("/api/migrations", "/api/import", 1);
            let operation = &document["paths"][&path][&method];
            assert!(operation["operationId"].is_string(), "{method} {path}");
            let is_open = operation["security"] == serde_json::json!([{}]);
            assert_eq!(is_open, class.who == Who::Anyone, "{method} {path} says who may call it");
            seen += 1;
        }
        assert!(seen > 90, "{seen}");
    }

    #[test]
    fn what_may_hold_secrets_is_told_so() {
        let (_, classes) = routes().into_parts();
        for (method, path, class) in classes.all() {
            let signs_in =
                ["/api/session", "/api/account", "/api/invitations", "/invite", "/oauth/", "/sign-in"];
            let is_signing_in = signs_in.iter().any(|base| path.starts_with(base));
            let shows_new_ones =
                ["/tokens", "/members", "/invitations"].iter().any(|end| path.ends_with(end));
            let shows = match class.surface {
                Surface::Console => true,
                Surface::Page => method == Some(&http::Method::POST),
                Surface::Rest | Surface::Mcp | Surface::Open => false,
            };
            let may_show = is_signing_in || (shows_new_ones && shows);
            assert!(class.has_secrets || !may_show, "{method:?} {path}");
        }
    }
}
