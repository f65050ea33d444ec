//! Invitations: of a workspace, and what an invited person or the holder of a link may do with one. Accepting one
//! with a new account opens a session ([`super::sessions`]).

use cairn_chassis::call::Call;
use cairn_chassis::status::Problem;
use cairn_proto::auth::v1 as proto;
use cairn_proto::ids::{InvitationId, WorkspaceId};

use super::answered;
use super::person::Person;
use crate::answers::Invitation;
use crate::upstreams::Upstreams;

pub(crate) async fn list(person: &Person, workspace: WorkspaceId) -> Result<Vec<Invitation>, Problem> {
    let message = person.call.request(proto::ListInvitationsRequest { workspace_id: workspace.to_string() });
    let listed = answered(person.upstreams.invitations().list_invitations(message).await)?;
    Ok(listed.invitations.into_iter().map(Into::into).collect())
}

pub(crate) async fn delete(
    person: &Person,
    workspace: WorkspaceId,
    invitation: InvitationId,
) -> Result<(), Problem> {
    let message = person.call.request(proto::DeleteInvitationRequest {
        workspace_id: workspace.to_string(),
        invitation_id: invitation.to_string(),
    });
    answered(person.upstreams.invitations().delete_invitation(message).await).map(drop)
}

/// Accepts an invitation to the person's verified email.
pub(crate) async fn accept_pending(person: &Person, id: InvitationId) -> Result<(), Problem> {
    let message =
        person.call.request(proto::AcceptPendingInvitationRequest { invitation_id: id.to_string() });
    answered(person.upstreams.invitations().accept_pending_invitation(message).await).map(drop)
}

/// Declines an invitation to the person's verified email.
pub(crate) async fn decline_pending(person: &Person, id: InvitationId) -> Result<(), Problem> {
    let message =
        person.call.request(proto::DeclinePendingInvitationRequest { invitation_id: id.to_string() });
    answered(person.upstreams.invitations().decline_pending_invitation(message).await).map(drop)
}

/// What the link of an invitation leads to.
pub(crate) async fn look_up(
    upstreams: &Upstreams,
    call: &Call,
    secret: String,
) -> Result<proto::LookUpInvitationResponse, Problem> {
    let message = call.request(proto::LookUpInvitationRequest { secret });
    answered(upstreams.invitations().look_up_invitation(message).await)
}

/// Adds the calling person as a member.
pub(crate) async fn join(upstreams: &Upstreams, call: &Call, secret: String) -> Result<(), Problem> {
    let message = call.request(proto::JoinWorkspaceRequest { secret });
    answered(upstreams.invitations().join_workspace(message).await).map(drop)
}
