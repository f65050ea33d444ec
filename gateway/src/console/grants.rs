//! What people allowed agents in a workspace.

use axum::extract::State;
use axum::response::IntoResponse as _;
use cairn_proto::auth::v1 as proto;
use cairn_proto::ids::{GrantId, WorkspaceId};
use http::StatusCode;

use super::{Answer, answered};
use crate::answers::Grant;
use crate::app::App;
use crate::auth::SignedIn;
use crate::extract::{PathId, PathIds};
use crate::json_body::JsonBody;

pub(super) async fn list(
    State(app): State<App>,
    person: SignedIn,
    PathId(workspace): PathId<WorkspaceId>,
) -> Answer {
    let message = person.call.request(proto::ListGrantsRequest { workspace_id: workspace.to_string() });
    let listed = answered(app.upstreams.grants().list_grants(message).await)?;
    let grants: Vec<Grant> = listed.grants.into_iter().map(Into::into).collect();
    Ok(JsonBody(grants).into_response())
}

pub(super) async fn revoke(
    State(app): State<App>,
    person: SignedIn,
    PathIds(workspace, grant): PathIds<WorkspaceId, GrantId>,
) -> Answer {
    let message = person.call.request(proto::RevokeGrantRequest {
        workspace_id: workspace.to_string(),
        grant_id: grant.to_string(),
    });
    answered(app.upstreams.grants().revoke_grant(message).await)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
