//! How a workspace's knowledge is retrieved (spec 4.11): for its owners and admins, which svc-retrieval checks.

use axum::extract::{FromRequestParts, State};
use axum::response::IntoResponse as _;
use cairn_chassis::call::Call;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1 as proto;
use http::request::Parts;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Answer, answered};
use crate::answers::RetrievalAnalytics;
use crate::app::App;
use crate::auth::{self, SignedIn};
use crate::error::Error;
use crate::extract::Query;
use crate::json_body::JsonBody;
use crate::schema::inputs;

inputs!(ReadAnalytics);

/// Of which workspace, and how far back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReadAnalytics {
    /// One of the person's workspaces.
    #[schema(format = "uuid")]
    workspace_id: String,
    /// UTC days up to and with today: 1 to 90, 30 when left out.
    #[schema(minimum = 1, maximum = 90)]
    days: Option<u32>,
}

/// What was asked, by somebody who belongs to the workspace.
#[derive(Debug)]
pub(super) struct Asked {
    call: Call,
    workspace: WorkspaceId,
    days: u32,
}

impl FromRequestParts<App> for Asked {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        SignedIn::from_request_parts(parts, app).await?;
        let Query(query) = Query::<ReadAnalytics>::from_request_parts(parts, app).await?;
        let workspace: WorkspaceId = query.workspace_id.parse().map_err(|_| auth::no_workspace())?;
        let secret = auth::session_secret(app, &parts.headers).unwrap_or_default();
        let call = auth::call_of(parts);
        let identity = app.token_cache.session_in(secret, workspace, &call).await?;
        let days = query.days.unwrap_or_default();
        Ok(Self { call: call.with_identity(&identity), workspace, days })
    }
}

pub(super) async fn retrieval(State(app): State<App>, asked: Asked) -> Answer {
    let message = asked.call.request(proto::GetRetrievalAnalyticsRequest { days: asked.days });
    let told = answered(app.upstreams.analytics().get_retrieval_analytics(message).await)?;
    Ok(JsonBody(RetrievalAnalytics::read(asked.workspace, told, &app.links)).into_response())
}
