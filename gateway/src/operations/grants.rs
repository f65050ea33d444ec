//! OAuth grants of agents in a workspace.

use cairn_chassis::status::Problem;
use cairn_proto::auth::v1 as proto;
use cairn_proto::ids::{GrantId, WorkspaceId};

use super::answered;
use super::person::Person;
use crate::answers::Grant;

pub(crate) async fn list(person: &Person, workspace: WorkspaceId) -> Result<Vec<Grant>, Problem> {
    let message = person.call.request(proto::ListGrantsRequest { workspace_id: workspace.to_string() });
    let listed = answered(person.upstreams.grants().list_grants(message).await)?;
    Ok(listed.grants)
}

pub(crate) async fn revoke(person: &Person, workspace: WorkspaceId, grant: GrantId) -> Result<(), Problem> {
    let message = person.call.request(proto::RevokeGrantRequest {
        workspace_id: workspace.to_string(),
        grant_id: grant.to_string(),
    });
    answered(person.upstreams.grants().revoke_grant(message).await).map(drop)
}
