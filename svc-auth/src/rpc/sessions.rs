//! SessionService.

use std::sync::Arc;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::Verifier;
use cairn_proto::auth::v1::session_service_server::SessionService;
use cairn_proto::auth::v1::{
    self as proto, ChangePasswordRequest, ChangePasswordResponse, CreateSessionRequest,
    CreateSessionResponse, DeleteSessionRequest, DeleteSessionResponse, DeleteSessionsRequest,
    DeleteSessionsResponse, EndSessionRequest, EndSessionResponse, ExchangeSessionRequest,
    ExchangeSessionResponse, GetSessionRequest, GetSessionResponse, ListSessionsRequest,
    ListSessionsResponse,
};
use tonic::{Request, Response, Status};

use super::workspaces::encode_memberships;
use super::{source, user, workspace_id};
use crate::error::Error;
use crate::model::invitations::Found;
use crate::model::sessions::ListedSession;
use crate::sessions::{self as rules, Device};
use crate::users::User;

#[derive(Debug)]
pub(super) struct Sessions {
    pub(super) rules: Arc<rules::Sessions>,
    pub(super) verifier: Verifier,
}

#[tonic::async_trait]
impl SessionService for Sessions {
    async fn create_session(
        &self,
        request: Request<CreateSessionRequest>,
    ) -> Result<Response<CreateSessionResponse>, Status> {
        let message = request.get_ref();
        let device = Device::new(&message.agent, source(message.source_address.as_deref()));
        let signed_in = self.rules.create(&device, &message.email, &message.password).await?;
        Ok(Response::new(CreateSessionResponse {
            session_secret: signed_in.secret,
            expires_at: Some(signed_in.expires_at.to_proto()),
            user: Some(encode_user(signed_in.profile.user)),
            memberships: encode_memberships(signed_in.profile.memberships),
            pending_invitations: encode_pending(signed_in.profile.pending),
        }))
    }

    async fn exchange_session(
        &self,
        request: Request<ExchangeSessionRequest>,
    ) -> Result<Response<ExchangeSessionResponse>, Status> {
        let message = request.get_ref();
        let workspace = message.workspace_id.as_deref().map(workspace_id).transpose()?;
        let issued = self.rules.exchange(&message.session_secret, workspace).await?;
        let expires_at = Some(issued.expires_at.to_proto());
        Ok(Response::new(ExchangeSessionResponse { identity: issued.identity, expires_at }))
    }

    async fn get_session(
        &self,
        request: Request<GetSessionRequest>,
    ) -> Result<Response<GetSessionResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let profile = self.rules.get(user).await?;
        Ok(Response::new(GetSessionResponse {
            user: Some(encode_user(profile.user)),
            memberships: encode_memberships(profile.memberships),
            pending_invitations: encode_pending(profile.pending),
        }))
    }

    /// The secret is the credential: its holder may end the session.
    async fn delete_session(
        &self,
        request: Request<DeleteSessionRequest>,
    ) -> Result<Response<DeleteSessionResponse>, Status> {
        self.rules.delete(&request.get_ref().session_secret).await?;
        Ok(Response::new(DeleteSessionResponse {}))
    }

    async fn delete_sessions(
        &self,
        request: Request<DeleteSessionsRequest>,
    ) -> Result<Response<DeleteSessionsResponse>, Status> {
        self.rules.delete_all(user(&self.verifier, request.metadata()).await?).await?;
        Ok(Response::new(DeleteSessionsResponse {}))
    }

    async fn list_sessions(
        &self,
        request: Request<ListSessionsRequest>,
    ) -> Result<Response<ListSessionsResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let listed = self.rules.list(user, request.get_ref().session_secret.as_deref()).await?;
        Ok(Response::new(ListSessionsResponse { sessions: listed.into_iter().map(encode_session).collect() }))
    }

    async fn end_session(
        &self,
        request: Request<EndSessionRequest>,
    ) -> Result<Response<EndSessionResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let id = request.get_ref().session_id.parse().map_err(|_| Error::NotFound("session"))?;
        self.rules.end(user, id).await?;
        Ok(Response::new(EndSessionResponse {}))
    }

    async fn change_password(
        &self,
        request: Request<ChangePasswordRequest>,
    ) -> Result<Response<ChangePasswordResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let message = request.into_inner();
        let source = source(message.source_address.as_deref());
        let change = rules::PasswordChange {
            current: message.current_password,
            new: message.new_password,
            kept: message.session_secret,
        };
        self.rules.change_password(source, user, &change).await?;
        Ok(Response::new(ChangePasswordResponse {}))
    }
}

fn encode_session((session, current): (ListedSession, bool)) -> proto::Session {
    proto::Session {
        id: session.id.to_string(),
        agent: session.agent,
        place: session.place,
        created_at: Some(session.created_at.to_proto()),
        last_used_at: session.last_used_at.map(Timestamp::to_proto),
        expires_at: Some(session.expires_at.to_proto()),
        current,
    }
}

pub(super) fn encode_user(user: User) -> proto::User {
    proto::User {
        id: user.id.to_string(),
        email: user.email,
        name: user.name,
        email_verified: user.email_verified,
    }
}

pub(super) fn encode_pending(pending: Vec<Found>) -> Vec<proto::PendingInvitation> {
    let encode = |found: Found| proto::PendingInvitation {
        id: found.invitation.id.to_string(),
        workspace_id: found.invitation.workspace.to_string(),
        workspace_name: found.workspace_name,
        role: found.invitation.role.into(),
        inviter: Some(encode_user(found.invitation.inviter)),
        created_at: Some(found.invitation.created_at.to_proto()),
        expires_at: Some(found.invitation.expires_at.to_proto()),
    };
    pending.into_iter().map(encode).collect()
}
