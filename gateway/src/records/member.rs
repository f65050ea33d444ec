//! Members of a workspace, and the invitations of people without an account.

use cairn_proto::auth::v1 as proto;
use serde::Serialize;
use utoipa::ToSchema;

use super::workspace::Role;
use super::{Links, time};

/// A person who belongs to a workspace.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkspaceMember {
    user_id: String,
    email: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    created_at: String,
}

impl From<proto::Member> for WorkspaceMember {
    fn from(member: proto::Member) -> Self {
        let role = Role::read(member.role());
        let user = member.user.unwrap_or_default();
        Self {
            role,
            user_id: user.id,
            email: user.email,
            name: user.name,
            created_at: time(member.created_at.as_ref()),
        }
    }
}

/// An open invitation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Invitation {
    id: String,
    workspace_id: String,
    email: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    /// Who made it.
    invited_by: Inviter,
    created_at: String,
    expires_at: String,
    /// The link to hand over: shown once, in the answer that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Inviter {
    id: String,
    email: String,
    name: String,
}

impl Invitation {
    /// The secret stands behind the `#`, which browsers keep to themselves: it is in no request line, so in no log of
    /// a server or a proxy, and in no `Referer`.
    pub(crate) fn with_link(self, secret: &str, links: &Links) -> Self {
        Self { link: Some(links.to(&format!("/invite#{secret}"))), ..self }
    }
}

impl From<proto::Invitation> for Invitation {
    fn from(invitation: proto::Invitation) -> Self {
        let role = Role::read(invitation.role());
        let inviter = invitation.inviter.unwrap_or_default();
        Self {
            role,
            invited_by: Inviter { id: inviter.id, email: inviter.email, name: inviter.name },
            created_at: time(invitation.created_at.as_ref()),
            expires_at: time(invitation.expires_at.as_ref()),
            id: invitation.id,
            workspace_id: invitation.workspace_id,
            email: invitation.email,
            link: None,
        }
    }
}

/// What came of adding somebody: one of the two.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum AddedMember {
    /// The person had an account and belongs to the workspace now.
    Member(WorkspaceMember),
    /// Nobody has an account with that email: the link makes one.
    Invitation(Invitation),
}

/// What the holder of an invitation's link may know of it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InvitationOffer {
    workspace_id: String,
    workspace_name: String,
    email: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    invited_by: Inviter,
    expires_at: String,
    /// Whether the email has an account: then its owner signs in and accepts without a name and a password.
    has_account: bool,
}

impl From<proto::LookUpInvitationResponse> for InvitationOffer {
    fn from(found: proto::LookUpInvitationResponse) -> Self {
        let invitation = Invitation::from(found.invitation.unwrap_or_default());
        Self {
            workspace_id: invitation.workspace_id,
            workspace_name: found.workspace_name,
            email: invitation.email,
            role: invitation.role,
            invited_by: invitation.invited_by,
            expires_at: invitation.expires_at,
            has_account: found.has_account,
        }
    }
}
