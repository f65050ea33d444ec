//! How a workspace's knowledge is retrieved (spec 4.11): for its owners and admins, which svc-retrieval checks.

use axum::extract::State;
use axum::response::IntoResponse as _;
use cairn_proto::retrieval::v1 as proto;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Answer, answered};
use crate::answers::RetrievalAnalytics;
use crate::app::App;
use crate::auth::Member;
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
    #[expect(dead_code, reason = "the guard reads it before the role is judged")]
    workspace_id: String,
    /// UTC days up to and with today: 1 to 90, 30 when left out.
    #[schema(minimum = 1, maximum = 90)]
    days: Option<u32>,
}

pub(super) async fn retrieval(
    State(app): State<App>,
    Query(query): Query<ReadAnalytics>,
    member: Member,
) -> Answer {
    let request = proto::GetRetrievalAnalyticsRequest { days: query.days.unwrap_or_default() };
    let told =
        answered(app.upstreams.analytics().get_retrieval_analytics(member.call.request(request)).await)?;
    let workspace = member.identity.claims.workspace_id()?;
    Ok(JsonBody(RetrievalAnalytics::read(workspace, told, &app.links)).into_response())
}
