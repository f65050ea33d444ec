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

/// Uploads of a sync run are the largest thing that is sent: 24 MB of content, and JSON around it.
const DEFAULT_BODY_BYTES: usize = 32 * 1024 * 1024;
/// More than a process answers in a second, and few enough that their bodies fit beside each other.
const DEFAULT_REQUESTS: usize = 512;
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
    /// The largest request body of any kind; most routes have a smaller limit of their own (`class`).
    pub max_body_bytes: usize,
    /// How many requests may be under way at once; more are refused.
    pub max_requests: usize,
    /// How much work may be under way at once, in units of a file that is read; what finds no room waits a little, fairly
    /// between workspaces, and is then refused. By the cores of this machine when not set; with 0 everything is let in.
    pub capacity: Option<u32>,
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
            max_requests: DEFAULT_REQUESTS,
            capacity: None,
            plans: None,
            trusted_proxies: Vec::new(),
            redis: None,
            redis_timeout: DEFAULT_REDIS_TIMEOUT,
        }
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
    /// Redis is configured where the engine is not.
    #[error(
        "Redis is configured (CAIRN_REDIS_URL), and this binary was built without the feature `redis`: each gateway can \
         only count for itself"
    )]
    RedisLeftOut,
}

/// A configuration that was read: what is wrong with it was told, and nothing of it is read again.
#[derive(Debug)]
pub(crate) struct Settings {
    origins: Origins,
    links: Links,
    limits: rate_limit::Settings,
    max_body_bytes: usize,
    max_requests: usize,
    capacity: u32,
}

/// A gateway that only lacks its services.
#[derive(Debug)]
pub struct Unconnected(Settings);

impl Unconnected {
    /// The gateway in front of those services. Nothing is contacted before the first request.
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
    /// A gateway as configured, which is then connected to its services.
    ///
    /// # Errors
    /// When an address or a limit cannot be read.
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

    /// All that is served over public gRPC; it needs HTTP/2.
    pub fn grpc_router(&self) -> Router {
        grpc::router(&self.app)
    }

    /// Ends the streams of events, so that a server can drain; everything else goes on.
    pub fn close(&self) {
        Arc::<Events>::from_ref(&self.app).close();
        Arc::<FollowLimit>::from_ref(&self.app).close();
    }

    /// All that is served over public HTTP.
    pub fn router(&self) -> Router {
        edge::around(routes(), self.app.clone())
    }
}

/// Every route over public HTTP.
fn routes() -> Routes {
    let (mut rest, mut console) = (rest::routes(), console::routes());
    for described in [&mut rest, &mut console] {
        // Made again when somebody reads it.
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

/// Every route over public HTTP: its method (none: all of them), and its path with parameters in braces. What calls all of them, such as
/// a fuzz target, finds those here that no OpenAPI document has.
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
            // What is deprecated is described where it is today.
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
