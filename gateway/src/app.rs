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
use crate::{Settings, Upstreams};

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
}

impl App {
    pub(crate) fn new(settings: Settings, upstreams: Upstreams, ambient: Ambient) -> Self {
        Self(Arc::new(Inner {
            origins: settings.origins,
            limits: Limits::new(settings.limits, Arc::clone(&ambient.clock)),
            connections: Connections::default(),
            intake: Intake::new(settings.max_body_bytes),
            own_writes: OwnWrites::new(Arc::clone(&ambient.clock)),
            links: settings.links,
            token_cache: TokenCache::new(upstreams.clone(), ambient.clone()),
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
