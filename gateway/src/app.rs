//! The state of the routers. Handlers extract the parts they need (`State<Arc<Upstreams>>`), never the whole.

use std::sync::Arc;

use axum::extract::FromRef;
use cairn_chassis::ambient::Ambient;

use crate::Settings;
use crate::admission::Admission;
use crate::answers::Links;
use crate::auth::{Authenticator, TokenCache};
use crate::connections::Connections;
use crate::events::Events;
use crate::follow::FollowLimit;
use crate::in_flight::InFlight;
use crate::intake::Intake;
use crate::origin::Origins;
use crate::own_writes::OwnWrites;
use crate::rate_limit::Limits;
use crate::seen_contents::SeenContents;
use crate::upstreams::Upstreams;

/// All shared state; cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Parts>);

struct Parts {
    ambient: Ambient,
    upstreams: Arc<Upstreams>,
    origins: Arc<Origins>,
    links: Arc<Links>,
    authenticator: Arc<Authenticator>,
    limits: Arc<Limits>,
    connections: Arc<Connections>,
    events: Arc<Events>,
    follows: Arc<FollowLimit>,
    own_writes: Arc<OwnWrites>,
    seen_contents: Arc<SeenContents>,
    intake: Arc<Intake>,
    in_flight: Arc<InFlight>,
    admission: Arc<Admission>,
}

impl App {
    pub(crate) fn new(settings: Settings, upstreams: Upstreams, ambient: Ambient) -> Self {
        let (upstreams, origins) = (Arc::new(upstreams), Arc::new(settings.origins));
        let limits = Arc::new(Limits::new(settings.limits, Arc::clone(&ambient.clock)));
        let tokens = TokenCache::new(Arc::clone(&upstreams), ambient.clone());
        let authenticator = Authenticator::new(tokens, Arc::clone(&limits), Arc::clone(&origins));
        Self(Arc::new(Parts {
            authenticator: Arc::new(authenticator),
            connections: Arc::new(Connections::new(Arc::clone(&upstreams))),
            events: Arc::new(Events::new(Arc::clone(&upstreams), Arc::clone(&ambient.clock))),
            follows: Arc::default(),
            own_writes: Arc::new(OwnWrites::new(Arc::clone(&ambient.clock))),
            seen_contents: Arc::new(SeenContents::new(Arc::clone(&ambient.clock))),
            intake: Arc::new(Intake::new(settings.max_body_bytes)),
            in_flight: Arc::new(InFlight::new(settings.max_requests)),
            admission: Arc::new(Admission::new(settings.capacity, Arc::clone(&ambient.clock))),
            links: Arc::new(settings.links),
            ambient,
            upstreams,
            origins,
            limits,
        }))
    }
}

cairn_chassis::debug_fields!(App);

impl FromRef<App> for Ambient {
    fn from_ref(App(parts): &App) -> Self {
        parts.ambient.clone()
    }
}

macro_rules! parts {
    ($($name:ident: $part:ident),+ $(,)?) => {
        $(
            impl FromRef<App> for Arc<$part> {
                fn from_ref(App(parts): &App) -> Self {
                    Arc::clone(&parts.$name)
                }
            }
        )+
    };
}

parts!(
    upstreams: Upstreams,
    origins: Origins,
    links: Links,
    authenticator: Authenticator,
    limits: Limits,
    connections: Connections,
    events: Events,
    follows: FollowLimit,
    own_writes: OwnWrites,
    seen_contents: SeenContents,
    intake: Intake,
    in_flight: InFlight,
    admission: Admission,
);
