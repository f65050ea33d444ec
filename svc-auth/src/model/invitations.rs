//! Invitations, as they are stored.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::Role;
use cairn_proto::ids::{InvitationId, UserId, WorkspaceId};

use crate::secrets::Digest;
use crate::users::User;

/// An invitation that nobody accepts ends after this time.
pub(crate) const LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// An open invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invitation {
    /// The invitation, which is not the secret.
    pub(crate) id: InvitationId,
    /// What it opens.
    pub(crate) workspace: WorkspaceId,
    /// Who is invited, folded.
    pub(crate) email: String,
    /// The role of whoever accepts.
    pub(crate) role: Role,
    /// Who made it.
    pub(crate) inviter: User,
    /// When it was made.
    pub(crate) created_at: Timestamp,
    /// When it ends.
    pub(crate) expires_at: Timestamp,
}

/// An invitation to store.
pub(crate) struct NewInvitation<'a> {
    pub(crate) id: InvitationId,
    pub(crate) workspace: WorkspaceId,
    pub(crate) email: &'a str,
    pub(crate) role: Role,
    pub(crate) inviter: UserId,
    /// Of the secret that is shown.
    pub(crate) digest: Digest,
    /// Of the secret that is mailed, when one is.
    pub(crate) mail_digest: Option<Digest>,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Timestamp,
}

/// An invitation as whoever it is for may see it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) invitation: Invitation,
    pub(crate) workspace_name: String,
    /// Whether the secret at hand is the one that was mailed.
    pub(crate) by_mail: bool,
}

/// What is left of an invitation that was used up.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) workspace: WorkspaceId,
    pub(crate) email: String,
    pub(crate) role: Role,
    /// Whether the secret was the one that was mailed.
    pub(crate) by_mail: bool,
}
