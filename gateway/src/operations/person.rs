//! The calling person of a console request.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use cairn_chassis::call::Call;
use http::request::Parts;

use crate::answers::Links;
use crate::app::App;
use crate::auth::{Member, SignedIn};
use crate::error::Error;
use crate::upstreams::Upstreams;

/// A signed-in person; if the route's class requires it, with their role in the request's workspace.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) links: Arc<Links>,
    pub(crate) call: Call,
}

impl FromRequestParts<App> for Person {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let call = match parts.extensions.get::<Member>() {
            Some(member) => member.call.clone(),
            None => SignedIn::from_request_parts(parts, app).await?.call,
        };
        Ok(Self { upstreams: FromRef::from_ref(app), links: FromRef::from_ref(app), call })
    }
}
