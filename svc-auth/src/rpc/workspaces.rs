//! WorkspaceService.

use std::sync::Arc;

use cairn_chassis::identity::{PrincipalKind, Verifier};
use cairn_chassis::status::Violation;
use cairn_proto::auth::v1::workspace_service_server::WorkspaceService;
use cairn_proto::auth::v1::{
    self as proto, CreateWorkspaceRequest, CreateWorkspaceResponse, DeleteWorkspaceRequest,
    DeleteWorkspaceResponse, GetWorkspaceRequest, GetWorkspaceResponse, ListWorkspacesRequest,
    ListWorkspacesResponse, RestoreWorkspaceRequest, RestoreWorkspaceResponse, UpdateWorkspaceRequest,
    UpdateWorkspaceResponse,
};
use cairn_proto::domain::Publishers;
use tonic::{Request, Response, Status};

use super::{user, workspace_id};
use crate::model::workspaces::{Changes, Membership, Workspace};
use crate::tokens::Tokens;
use crate::workspaces as rules;

#[derive(Debug)]
pub(super) struct Workspaces {
    pub(super) rules: Arc<rules::Workspaces>,
    pub(super) tokens: Arc<Tokens>,
    pub(super) verifier: Verifier,
}

#[tonic::async_trait]
impl WorkspaceService for Workspaces {
    async fn list_workspaces(
        &self,
        request: Request<ListWorkspacesRequest>,
    ) -> Result<Response<ListWorkspacesResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let listed = if request.get_ref().deleted {
            self.rules.list_deleted(user).await?
        } else {
            self.rules.list(user).await?
        };
        let memberships = encode_memberships(listed);
        Ok(Response::new(ListWorkspacesResponse { memberships }))
    }

    async fn create_workspace(
        &self,
        request: Request<CreateWorkspaceRequest>,
    ) -> Result<Response<CreateWorkspaceResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let membership = self.rules.create(user, &request.get_ref().name).await?;
        Ok(Response::new(CreateWorkspaceResponse { membership: Some(encode_membership(membership)) }))
    }

    async fn get_workspace(
        &self,
        request: Request<GetWorkspaceRequest>,
    ) -> Result<Response<GetWorkspaceResponse>, Status> {
        let identity = self.verifier.authenticate(request.metadata()).await?;
        let id = workspace_id(&request.get_ref().workspace_id)?;
        let (membership, person) = match identity.principal.kind {
            PrincipalKind::Token | PrincipalKind::Grant => {
                let bound = self.rules.get_bound(identity.workspace_id()?, id).await?;
                (encode_bound(bound), self.tokens.person_behind(&identity.principal, id).await?)
            }
            PrincipalKind::User | PrincipalKind::Service => {
                let user = identity.user_id()?;
                (encode_membership(self.rules.get(user, id).await?), Some(user))
            }
        };
        let mut tokens = None;
        if let Some(person) = person {
            let (used, limit) = self.tokens.usage(person, id).await?;
            tokens = Some(proto::TokenUsage { used, limit });
        }
        Ok(Response::new(GetWorkspaceResponse { membership: Some(membership), tokens }))
    }

    async fn update_workspace(
        &self,
        request: Request<UpdateWorkspaceRequest>,
    ) -> Result<Response<UpdateWorkspaceResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let message = request.into_inner();
        let id = workspace_id(&message.workspace_id)?;
        let membership = self.rules.update(user, id, decode(message)).await?;
        Ok(Response::new(UpdateWorkspaceResponse { membership: Some(encode_membership(membership)) }))
    }

    async fn delete_workspace(
        &self,
        request: Request<DeleteWorkspaceRequest>,
    ) -> Result<Response<DeleteWorkspaceResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        self.rules.delete(user, workspace_id(&request.get_ref().workspace_id)?).await?;
        Ok(Response::new(DeleteWorkspaceResponse {}))
    }

    async fn restore_workspace(
        &self,
        request: Request<RestoreWorkspaceRequest>,
    ) -> Result<Response<RestoreWorkspaceResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let id = workspace_id(&request.get_ref().workspace_id)?;
        let membership = encode_membership(self.rules.restore(user, id).await?);
        Ok(Response::new(RestoreWorkspaceResponse { membership: Some(membership) }))
    }
}

fn decode(message: UpdateWorkspaceRequest) -> Changes {
    let mut changes = Changes::default();
    for field in message.update_mask.unwrap_or_default().paths {
        match field.as_str() {
            "name" => changes.name = Some(message.name.clone()),
            "plan" => changes.plan = Some(message.plan.clone()),
            "publishers" => match Publishers::from_number(message.publishers) {
                Some(publishers) => changes.publishers = Some(publishers),
                None => changes.invalid.push(unknown_publishers()),
            },
            "question_log_days" => changes.question_log_days = Some(message.question_log_days),
            _ => changes.unknown.push(field),
        }
    }
    changes
}

pub(super) fn encode_memberships(memberships: Vec<Membership>) -> Vec<proto::Membership> {
    memberships.into_iter().map(encode_membership).collect()
}

pub(super) fn encode_membership(membership: Membership) -> proto::Membership {
    proto::Membership { workspace: Some(encode(membership.workspace)), role: membership.role.into() }
}

/// For a token, which has no role itself.
fn encode_bound(workspace: Workspace) -> proto::Membership {
    proto::Membership { workspace: Some(encode(workspace)), role: proto::Role::Unspecified.into() }
}

fn encode(workspace: Workspace) -> proto::Workspace {
    proto::Workspace {
        id: workspace.id.to_string(),
        name: workspace.name,
        plan: workspace.plan,
        publishers: workspace.publishers.into(),
        question_log_days: workspace.question_log_days,
        created_at: Some(workspace.created_at.to_proto()),
        updated_at: Some(workspace.updated_at.to_proto()),
        deleted_at: workspace.deleted_at.map(|at| at.to_proto()),
        purge_at: workspace.purge_at.map(|at| at.to_proto()),
    }
}

fn unknown_publishers() -> Violation {
    let known = Publishers::NAMES.join(", ");
    Violation::new("publishers", "invalid", format!("must be one of: {known}"))
}
