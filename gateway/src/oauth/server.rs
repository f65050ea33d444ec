//! The state of the authorization server's endpoints.

use std::sync::Arc;

use axum::extract::FromRef;
use cairn_chassis::ambient::Ambient;
use cairn_chassis::clock::Clock;

use crate::app::App;
use crate::auth::Authenticator;
use crate::intake::Intake;
use crate::operations::sessions::Sessions;
use crate::origin::Origins;
use crate::rate_limit::Limits;
use crate::upstreams::Upstreams;

/// The parts of the gateway that sign people in and forward client requests.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) upstreams: Arc<Upstreams>,
    pub(super) authenticator: Arc<Authenticator>,
    pub(super) sessions: Sessions,
    pub(super) limits: Arc<Limits>,
    pub(super) origins: Arc<Origins>,
    pub(super) intake: Arc<Intake>,
    pub(super) clock: Arc<dyn Clock>,
}

impl FromRef<App> for Server {
    fn from_ref(app: &App) -> Self {
        Self {
            upstreams: FromRef::from_ref(app),
            authenticator: FromRef::from_ref(app),
            sessions: FromRef::from_ref(app),
            limits: FromRef::from_ref(app),
            origins: FromRef::from_ref(app),
            intake: FromRef::from_ref(app),
            clock: Ambient::from_ref(app).clock,
        }
    }
}
