//! What a person allowed a client by OAuth.

use cairn_proto::auth::v1 as proto;
use cairn_proto::domain::Permission;
use serde::Serialize;
use utoipa::ToSchema;

use super::time;
use super::workspace::permissions;

/// A grant.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Grant {
    id: String,
    workspace_id: String,
    user_id: String,
    user_email: String,
    client_id: String,
    client_name: String,
    redirect_host: String,
    /// What was allowed; the person's present role cuts it on each request.
    permissions: Vec<Permission>,
    created_at: String,
    /// When tokens were last given for it.
    last_used_at: String,
    /// When it ends, unless tokens are given for it before.
    expires_at: String,
}

impl From<proto::Grant> for Grant {
    fn from(grant: proto::Grant) -> Self {
        Self {
            permissions: permissions(&grant.permissions),
            created_at: time(grant.created_at.as_ref()),
            last_used_at: time(grant.last_used_at.as_ref()),
            expires_at: time(grant.expires_at.as_ref()),
            id: grant.id,
            workspace_id: grant.workspace_id,
            user_id: grant.user_id,
            user_email: grant.user_email,
            client_id: grant.client_id,
            client_name: grant.client_name,
            redirect_host: grant.redirect_host,
        }
    }
}
