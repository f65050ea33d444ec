//! Retrieval analytics of a workspace (spec 4.11): for its owners and admins.

use axum::response::IntoResponse as _;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::Answer;
use crate::answers::{Freshness, RetrievalAnalytics};
use crate::auth::no_workspace;
use crate::extract::Query;
use crate::json_body::JsonBody;
use crate::operations::analytics;
use crate::operations::person::Person;
use crate::schema::inputs;

inputs!(ReadAnalytics);

/// Of which workspace, and how far back.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ReadAnalytics {
    /// One of the person's workspaces.
    #[schema(format = "uuid")]
    #[param(format = "uuid")]
    workspace_id: String,
    /// UTC days up to and with today: 1 to 90, 30 when left out.
    #[schema(minimum = 1, maximum = 90)]
    #[param(minimum = 1, maximum = 90)]
    days: Option<u32>,
}

/// Read how the knowledge of a workspace is retrieved; for owners and admins.
#[utoipa::path(
    get, path = "/api/analytics/retrieval", operation_id = "getRetrievalAnalytics", tag = "Analytics",
    params(ReadAnalytics),
    responses((status = 200, description = "The figures.", body = RetrievalAnalytics)),
)]
pub(super) async fn retrieval(Query(query): Query<ReadAnalytics>, person: Person) -> Answer {
    let workspace = query.workspace_id.parse().map_err(|_| no_workspace())?;
    Ok(JsonBody(analytics::retrieval(&person, workspace, query.days).await?).into_response())
}

/// Read how old what was found is, by folder and document; for owners and admins.
#[utoipa::path(
    get, path = "/api/analytics/freshness", operation_id = "getFreshness", tag = "Analytics",
    params(ReadAnalytics),
    responses((status = 200, description = "What was found, and when it was changed last.", body = Freshness)),
)]
pub(super) async fn freshness(Query(query): Query<ReadAnalytics>, person: Person) -> Answer {
    Ok(JsonBody(analytics::freshness(&person, query.days).await?).into_response())
}
