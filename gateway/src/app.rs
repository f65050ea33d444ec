//! What every handler can reach.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use cairn_chassis::ambient::Ambient;

use crate::answers::Links;
use crate::auth::TokenCache;
use crate::intake::Intake;
use crate::mcp::Connections;
use crate::origin::Origins;
use crate::own_writes::OwnWrites;
use crate::rate_limit::Limits;
use crate::{Config, Upstreams};

/// The state of the router; cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) upstreams: Upstreams,
    pub(crate) ambient: Ambient,
    pub(crate) origins: Origins,
    pub(crate) links: Links,
    pub(crate) token_cache: TokenCache,
    pub(crate) limits: Limits,
    pub(crate) connections: Connections,
    pub(crate) own_writes: OwnWrites,
    pub(crate) intake: Intake,
    pub(crate) max_body_bytes: usize,
}

impl App {
    pub(crate) fn new(config: Config, upstreams: Upstreams, ambient: Ambient) -> Self {
        let read = Origins::new(config.base_url.as_deref(), &config.allowed_origins);
        let origins = read.unwrap_or_else(|error| {
            tracing::error!(%error, "only loopback counts as our own origin");
            Origins::default()
        });
        let limits = Limits::new(&config, Arc::clone(&ambient.clock)).unwrap_or_else(|error| {
            tracing::error!(%error, "the default limits hold, in this process alone");
            Limits::fallback(Arc::clone(&ambient.clock))
        });
        Self(Arc::new(Inner {
            origins,
            limits,
            connections: Connections::default(),
            intake: Intake::default(),
            own_writes: OwnWrites::new(Arc::clone(&ambient.clock)),
            links: Links::new(config.base_url.as_deref()),
            token_cache: TokenCache::new(upstreams.clone(), ambient.clone()),
            max_body_bytes: config.max_body_bytes,
            upstreams,
            ambient,
        }))
    }
}

impl Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl fmt::Debug for App {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("App").finish_non_exhaustive()
    }
}
