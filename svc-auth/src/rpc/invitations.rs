//! InvitationService.

use std::sync::Arc;

use cairn_chassis::identity::Verifier;
use cairn_proto::auth::v1::invitation_service_server::InvitationService;
use cairn_proto::auth::v1::{
    self as proto, AcceptInvitationRequest, AcceptInvitationResponse, AcceptPendingInvitationRequest,
    AcceptPendingInvitationResponse, DeclinePendingInvitationRequest, DeclinePendingInvitationResponse,
    DeleteInvitationRequest, DeleteInvitationResponse, JoinWorkspaceRequest, JoinWorkspaceResponse,
    ListInvitationsRequest, ListInvitationsResponse, LookUpInvitationRequest, LookUpInvitationResponse,
};
use cairn_proto::ids::InvitationId;
use tonic::{Request, Response, Status};

use super::sessions::{encode_pending, encode_user};
use super::workspaces::{encode_membership, encode_memberships};
use super::{source, user, workspace_id};
use crate::error::Error;
use crate::invitations as rules;
use crate::model::invitations::Invitation;
use crate::sessions::Device;

#[derive(Debug)]
pub(super) struct Invitations {
    pub(super) rules: Arc<rules::Invitations>,
    pub(super) verifier: Verifier,
}

#[tonic::async_trait]
impl InvitationService for Invitations {
    async fn list_invitations(
        &self,
        request: Request<ListInvitationsRequest>,
    ) -> Result<Response<ListInvitationsResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let workspace = workspace_id(&request.get_ref().workspace_id)?;
        let invitations = self.rules.list(user, workspace).await?.into_iter().map(encode).collect();
        Ok(Response::new(ListInvitationsResponse { invitations }))
    }

    async fn delete_invitation(
        &self,
        request: Request<DeleteInvitationRequest>,
    ) -> Result<Response<DeleteInvitationResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let message = request.get_ref();
        let workspace = workspace_id(&message.workspace_id)?;
        self.rules.delete(user, workspace, invitation_id(&message.invitation_id)?).await?;
        Ok(Response::new(DeleteInvitationResponse {}))
    }

    async fn look_up_invitation(
        &self,
        request: Request<LookUpInvitationRequest>,
    ) -> Result<Response<LookUpInvitationResponse>, Status> {
        let found = self.rules.look_up(&request.get_ref().secret).await?;
        Ok(Response::new(LookUpInvitationResponse {
            invitation: Some(encode(found.invitation)),
            workspace_name: found.workspace_name,
        }))
    }

    async fn accept_invitation(
        &self,
        request: Request<AcceptInvitationRequest>,
    ) -> Result<Response<AcceptInvitationResponse>, Status> {
        let message = request.get_ref();
        let device = Device::new(&message.agent, source(message.source_address.as_deref()));
        let accepted = self.rules.accept(&device, &message.secret, &message.name, &message.password);
        let signed_in = accepted.await?;
        Ok(Response::new(AcceptInvitationResponse {
            session_secret: signed_in.secret,
            expires_at: Some(signed_in.expires_at.to_proto()),
            user: Some(encode_user(signed_in.profile.user)),
            memberships: encode_memberships(signed_in.profile.memberships),
            pending_invitations: encode_pending(signed_in.profile.pending),
        }))
    }

    async fn join_workspace(
        &self,
        request: Request<JoinWorkspaceRequest>,
    ) -> Result<Response<JoinWorkspaceResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let membership = self.rules.join(user, &request.get_ref().secret).await?;
        Ok(Response::new(JoinWorkspaceResponse { membership: Some(encode_membership(membership)) }))
    }

    async fn accept_pending_invitation(
        &self,
        request: Request<AcceptPendingInvitationRequest>,
    ) -> Result<Response<AcceptPendingInvitationResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let id = invitation_id(&request.get_ref().invitation_id)?;
        let membership = Some(encode_membership(self.rules.accept_pending(user, id).await?));
        Ok(Response::new(AcceptPendingInvitationResponse { membership }))
    }

    async fn decline_pending_invitation(
        &self,
        request: Request<DeclinePendingInvitationRequest>,
    ) -> Result<Response<DeclinePendingInvitationResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        self.rules.decline_pending(user, invitation_id(&request.get_ref().invitation_id)?).await?;
        Ok(Response::new(DeclinePendingInvitationResponse {}))
    }
}

/// A malformed id cannot belong to an invitation.
fn invitation_id(text: &str) -> Result<InvitationId, Error> {
    text.parse().map_err(|_| Error::NotFound("invitation"))
}

pub(super) fn encode(invitation: Invitation) -> proto::Invitation {
    proto::Invitation {
        id: invitation.id.to_string(),
        workspace_id: invitation.workspace.to_string(),
        email: invitation.email,
        role: invitation.role.into(),
        inviter: Some(encode_user(invitation.inviter)),
        created_at: Some(invitation.created_at.to_proto()),
        expires_at: Some(invitation.expires_at.to_proto()),
    }
}
