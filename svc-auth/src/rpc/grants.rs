//! GrantService.

use std::sync::Arc;

use cairn_chassis::identity::Verifier;
use cairn_proto::auth::v1::grant_service_server::GrantService;
use cairn_proto::auth::v1::{
    self as proto, ListGrantsRequest, ListGrantsResponse, RevokeGrantRequest, RevokeGrantResponse,
};
use tonic::{Request, Response, Status};

use super::{user, workspace_id};
use crate::error::Error;
use crate::model::oauth::Grant;
use crate::oauth as rules;

#[derive(Debug)]
pub(super) struct Grants {
    pub(super) rules: Arc<rules::Grants>,
    pub(super) verifier: Verifier,
}

#[tonic::async_trait]
impl GrantService for Grants {
    async fn list_grants(
        &self,
        request: Request<ListGrantsRequest>,
    ) -> Result<Response<ListGrantsResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let workspace = workspace_id(&request.get_ref().workspace_id)?;
        let grants = self.rules.list(user, workspace).await?;
        Ok(Response::new(ListGrantsResponse { grants: grants.into_iter().map(encode).collect() }))
    }

    async fn revoke_grant(
        &self,
        request: Request<RevokeGrantRequest>,
    ) -> Result<Response<RevokeGrantResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let message = request.get_ref();
        let workspace = workspace_id(&message.workspace_id)?;
        let id = message.grant_id.parse().map_err(|_| Error::NotFound("grant"))?;
        self.rules.revoke(user, workspace, id).await?;
        Ok(Response::new(RevokeGrantResponse {}))
    }
}

fn encode(grant: Grant) -> proto::Grant {
    proto::Grant {
        id: grant.id.to_string(),
        workspace_id: grant.workspace.to_string(),
        user_id: grant.user.to_string(),
        user_email: grant.user_email,
        client_id: grant.client_id,
        client_name: grant.client_name,
        redirect_host: grant.redirect_host,
        permissions: grant.permissions.numbers(),
        created_at: Some(grant.created_at.to_proto()),
        last_used_at: Some(grant.last_used_at.to_proto()),
        expires_at: Some(grant.expires_at.to_proto()),
    }
}
