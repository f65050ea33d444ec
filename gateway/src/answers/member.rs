//! Members of a workspace, and invitations to it.

use cairn_proto::auth::v1 as proto;
use cairn_proto::domain::Role;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Links, time};

/// A person who belongs to a workspace.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkspaceMember {
    pub(crate) user_id: String,
    pub(crate) email: String,
    /// Whether the person has proved that the email is theirs.
    pub(crate) email_verified: bool,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<Role>,
    pub(crate) created_at: String,
}

impl From<proto::Member> for WorkspaceMember {
    fn from(member: proto::Member) -> Self {
        let role = Role::from_number(member.role);
        let user = member.user.unwrap_or_default();
        Self {
            role,
            user_id: user.id,
            email: user.email,
            email_verified: user.email_verified,
            name: user.name,
            created_at: time(member.created_at.as_ref()),
        }
    }
}

/// An open invitation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Invitation {
    pub(crate) id: String,
    pub(crate) workspace_id: String,
    pub(crate) email: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<Role>,
    /// Who made it.
    pub(crate) invited_by: Inviter,
    pub(crate) created_at: String,
    pub(crate) expires_at: String,
    /// The link to hand over: shown once, in the answer that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
    /// In the answer that made it: whether another link was mailed to the email.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mailed: Option<bool>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Inviter {
    pub(crate) id: String,
    pub(crate) email: String,
    pub(crate) email_verified: bool,
    pub(crate) name: String,
}

impl From<proto::User> for Inviter {
    fn from(user: proto::User) -> Self {
        let proto::User { id, email, name, email_verified } = user;
        Self { id, email, email_verified, name }
    }
}

impl Invitation {
    /// The secret is in the URL fragment, which browsers never send: it appears in no request, no log of a server or
    /// proxy, and no `Referer`.
    pub(crate) fn with_link(self, secret: &str, mailed: bool, links: &Links) -> Self {
        Self { link: Some(links.to(&format!("/invite#{secret}"))), mailed: Some(mailed), ..self }
    }
}

impl From<proto::Invitation> for Invitation {
    fn from(invitation: proto::Invitation) -> Self {
        Self {
            role: Role::from_number(invitation.role),
            invited_by: invitation.inviter.unwrap_or_default().into(),
            created_at: time(invitation.created_at.as_ref()),
            expires_at: time(invitation.expires_at.as_ref()),
            id: invitation.id,
            workspace_id: invitation.workspace_id,
            email: invitation.email,
            link: None,
            mailed: None,
        }
    }
}

/// What comes of adding somebody.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AddedMember {
    /// The person belongs to the workspace when they have accepted it.
    pub(crate) invitation: Invitation,
}

/// An invitation that waits for the signed-in person.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingInvitation {
    pub(crate) id: String,
    pub(crate) workspace_id: String,
    pub(crate) workspace_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<Role>,
    pub(crate) invited_by: Inviter,
    pub(crate) created_at: String,
    pub(crate) expires_at: String,
}

impl From<proto::PendingInvitation> for PendingInvitation {
    fn from(pending: proto::PendingInvitation) -> Self {
        Self {
            role: Role::from_number(pending.role),
            invited_by: pending.inviter.unwrap_or_default().into(),
            created_at: time(pending.created_at.as_ref()),
            expires_at: time(pending.expires_at.as_ref()),
            id: pending.id,
            workspace_id: pending.workspace_id,
            workspace_name: pending.workspace_name,
        }
    }
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
        }
    }
}
