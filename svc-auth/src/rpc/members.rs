//! MemberService.

use std::sync::Arc;

use cairn_chassis::identity::{Role, Verifier};
use cairn_proto::auth::v1::member_service_server::MemberService;
use cairn_proto::auth::v1::{
    self as proto, AddMemberRequest, AddMemberResponse, ListMembersRequest, ListMembersResponse,
    RemoveMemberRequest, RemoveMemberResponse, UpdateMemberRequest, UpdateMemberResponse,
};
use cairn_proto::ids::UserId;
use tonic::{Request, Response, Status};

use super::invitations::encode as encode_invitation;
use super::sessions::encode_user;
use super::{user, workspace_id};
use crate::error::Error;
use crate::members::{self as rules, Invited};
use crate::model::members::Member;

#[derive(Debug)]
pub(super) struct Members {
    pub(super) rules: Arc<rules::Members>,
    pub(super) verifier: Verifier,
}

#[tonic::async_trait]
impl MemberService for Members {
    async fn list_members(
        &self,
        request: Request<ListMembersRequest>,
    ) -> Result<Response<ListMembersResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let workspace = workspace_id(&request.get_ref().workspace_id)?;
        let members = self.rules.list(user, workspace).await?;
        Ok(Response::new(ListMembersResponse { members: members.into_iter().map(encode).collect() }))
    }

    async fn add_member(
        &self,
        request: Request<AddMemberRequest>,
    ) -> Result<Response<AddMemberResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let message = request.get_ref();
        let (workspace, role) = (workspace_id(&message.workspace_id)?, Role::from_number(message.role));
        let invited = self.rules.invite(user, workspace, &message.email, role).await?;
        Ok(Response::new(AddMemberResponse { invited: Some(encode_invited(invited)) }))
    }

    async fn update_member(
        &self,
        request: Request<UpdateMemberRequest>,
    ) -> Result<Response<UpdateMemberResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let message = request.get_ref();
        let (workspace, member) = (workspace_id(&message.workspace_id)?, member_id(&message.user_id)?);
        let updated = self.rules.set_role(user, workspace, member, Role::from_number(message.role)).await?;
        Ok(Response::new(UpdateMemberResponse { member: Some(encode(updated)) }))
    }

    async fn remove_member(
        &self,
        request: Request<RemoveMemberRequest>,
    ) -> Result<Response<RemoveMemberResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let message = request.get_ref();
        let (workspace, member) = (workspace_id(&message.workspace_id)?, member_id(&message.user_id)?);
        self.rules.remove(user, workspace, member).await?;
        Ok(Response::new(RemoveMemberResponse {}))
    }
}

fn member_id(text: &str) -> Result<UserId, Error> {
    text.parse().map_err(|_| Error::NotFound("member"))
}

fn encode(member: Member) -> proto::Member {
    proto::Member {
        user: Some(encode_user(member.user)),
        role: member.role.into(),
        created_at: Some(member.created_at.to_proto()),
    }
}

fn encode_invited(invited: Invited) -> proto::Invited {
    proto::Invited {
        invitation: Some(encode_invitation(invited.invitation)),
        secret: invited.secret,
        mailed: invited.mailed,
    }
}
