//! The members of a workspace.

use axum::extract::State;
use axum::response::IntoResponse as _;
use cairn_proto::auth::v1 as proto;
use cairn_proto::domain::Role;
use cairn_proto::ids::{UserId, WorkspaceId};
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Answer, answered, present};
use crate::answers::{AddedMember, Invitation, WorkspaceMember};
use crate::app::App;
use crate::auth::{Member, SignedIn};
use crate::extract::{Json, PathId, PathIds};
use crate::json_body::JsonBody;
use crate::schema::inputs;

inputs!(AddMember, UpdateMember);

/// Somebody who is to belong to the workspace.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddMember {
    #[schema(min_length = 3, max_length = 320)]
    email: String,
    role: Role,
}

/// A member's new role.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateMember {
    role: Role,
}

pub(super) async fn list(
    State(app): State<App>,
    person: SignedIn,
    PathId(workspace): PathId<WorkspaceId>,
) -> Answer {
    let message = person.call.request(proto::ListMembersRequest { workspace_id: workspace.to_string() });
    let listed = answered(app.upstreams.members().list_members(message).await)?;
    let members: Vec<WorkspaceMember> = listed.members.into_iter().map(Into::into).collect();
    Ok(JsonBody(members).into_response())
}

/// Invites an email, whoever has it: the answer is the same.
pub(super) async fn add(
    State(app): State<App>,
    caller: Member,
    PathId(workspace): PathId<WorkspaceId>,
    Json(input): Json<AddMember>,
) -> Answer {
    let message = caller.call.request(proto::AddMemberRequest {
        workspace_id: workspace.to_string(),
        email: input.email,
        role: input.role.into(),
    });
    let added = answered(app.upstreams.members().add_member(message).await)?;
    let invited = present(added.invited)?;
    let invitation = Invitation::from(present(invited.invitation)?);
    let invitation = invitation.with_link(&invited.secret, invited.mailed, &app.links);
    Ok((StatusCode::CREATED, JsonBody(AddedMember { invitation })).into_response())
}

pub(super) async fn update(
    State(app): State<App>,
    caller: Member,
    PathIds(workspace, member): PathIds<WorkspaceId, UserId>,
    Json(input): Json<UpdateMember>,
) -> Answer {
    let message = caller.call.request(proto::UpdateMemberRequest {
        workspace_id: workspace.to_string(),
        user_id: member.to_string(),
        role: input.role.into(),
    });
    let updated = answered(app.upstreams.members().update_member(message).await)?;
    Ok(JsonBody(WorkspaceMember::from(present(updated.member)?)).into_response())
}

pub(super) async fn remove(
    State(app): State<App>,
    person: SignedIn,
    PathIds(workspace, member): PathIds<WorkspaceId, UserId>,
) -> Answer {
    let message = person.call.request(proto::RemoveMemberRequest {
        workspace_id: workspace.to_string(),
        user_id: member.to_string(),
    });
    answered(app.upstreams.members().remove_member(message).await)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
