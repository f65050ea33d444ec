//! The members of a workspace.

use cairn_chassis::status::Problem;
use cairn_proto::auth::v1 as proto;
use cairn_proto::domain::Role;
use cairn_proto::ids::{UserId, WorkspaceId};
use serde::Deserialize;
use utoipa::ToSchema;

use super::person::Person;
use super::{answered, present};
use crate::answers::{AddedMember, Invitation, WorkspaceMember};
use crate::schema::inputs;

inputs!(AddMember, UpdateMember);

/// Somebody who is to belong to the workspace.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddMember {
    #[schema(min_length = 3, max_length = 254)]
    email: String,
    role: Role,
}

/// A member's new role.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateMember {
    role: Role,
}

pub(crate) async fn list(person: &Person, workspace: WorkspaceId) -> Result<Vec<WorkspaceMember>, Problem> {
    let message = person.call.request(proto::ListMembersRequest { workspace_id: workspace.to_string() });
    let listed = answered(person.upstreams.members().list_members(message).await)?;
    Ok(listed.members.into_iter().map(Into::into).collect())
}

/// Invites an email. The response does not reveal whether there is an account for it.
pub(crate) async fn add(
    person: &Person,
    workspace: WorkspaceId,
    input: AddMember,
) -> Result<AddedMember, Problem> {
    let message = person.call.request(proto::AddMemberRequest {
        workspace_id: workspace.to_string(),
        email: input.email,
        role: input.role.into(),
    });
    let added = answered(person.upstreams.members().add_member(message).await)?;
    let invited = present(added.invited)?;
    let invitation = Invitation::from(present(invited.invitation)?);
    let invitation = invitation.with_link(&invited.secret, invited.mailed, &person.links);
    Ok(AddedMember { invitation })
}

pub(crate) async fn update(
    person: &Person,
    workspace: WorkspaceId,
    member: UserId,
    input: UpdateMember,
) -> Result<WorkspaceMember, Problem> {
    let message = person.call.request(proto::UpdateMemberRequest {
        workspace_id: workspace.to_string(),
        user_id: member.to_string(),
        role: input.role.into(),
    });
    let updated = answered(person.upstreams.members().update_member(message).await)?;
    Ok(present(updated.member)?.into())
}

pub(crate) async fn remove(person: &Person, workspace: WorkspaceId, member: UserId) -> Result<(), Problem> {
    let message = person.call.request(proto::RemoveMemberRequest {
        workspace_id: workspace.to_string(),
        user_id: member.to_string(),
    });
    answered(person.upstreams.members().remove_member(message).await).map(drop)
}
