//! Invitations, as stored.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::Role;
use cairn_proto::ids::{InvitationId, UserId, WorkspaceId};

use crate::secrets::Digest;
use crate::users::User;

/// The lifetime of an invitation.
pub(crate) const LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// An open invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invitation {
    /// The invitation, which is not the secret.
    pub(crate) id: InvitationId,
    /// The workspace that it is for.
    pub(crate) workspace: WorkspaceId,
    /// The invited email, normalized.
    pub(crate) email: String,
    /// The role of the new member.
    pub(crate) role: Role,
    /// Who made it.
    pub(crate) inviter: User,
    /// When it was made.
    pub(crate) created_at: Timestamp,
    /// When it ends.
    pub(crate) expires_at: Timestamp,
}

/// An invitation to insert.
pub(crate) struct NewInvitation<'a> {
    pub(crate) id: InvitationId,
    pub(crate) workspace: WorkspaceId,
    pub(crate) email: &'a str,
    pub(crate) role: Role,
    pub(crate) inviter: UserId,
    /// The digest of the secret that is shown.
    pub(crate) digest: Digest,
    /// The digest of the mailed secret, if it is mailed.
    pub(crate) mail_digest: Option<Digest>,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Timestamp,
}

/// An invitation as its recipient may see it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) invitation: Invitation,
    pub(crate) workspace_name: String,
    /// Whether the presented secret is the mailed one.
    pub(crate) by_mail: bool,
}

/// A consumed invitation.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) workspace: WorkspaceId,
    pub(crate) email: String,
    pub(crate) role: Role,
    /// Whether the presented secret was the mailed one.
    pub(crate) by_mail: bool,
}
