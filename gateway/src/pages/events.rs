//! `/w/{id}/events`: live events of the workspace, for the module `live` of its pages.

use std::sync::Arc;

use axum::extract::State;
use http::request::Parts;

use super::{Answer, MEMBER};
use crate::auth::{Authenticator, Member};
use crate::events::{self, Events};
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::default().get(MEMBER, "/w/{id}/events", follow)
}

async fn follow(
    State(events): State<Arc<Events>>,
    State(authenticator): State<Arc<Authenticator>>,
    member: Member,
    parts: Parts,
) -> Answer {
    events::stream(&events, &authenticator, &member, &parts).await
}
