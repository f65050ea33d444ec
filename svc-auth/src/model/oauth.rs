//! OAuth clients, codes, grants and tokens, as stored.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{PermissionSet, Role};
use cairn_proto::domain::Publishers;
use cairn_proto::ids::{GrantId, UserId, WorkspaceId};

use crate::secrets::Digest;

/// A client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) redirect_uris: Vec<String>,
    /// Absent for a public client.
    pub(crate) secret: Option<Digest>,
    /// When fetched metadata becomes stale; absent for a registered client.
    pub(crate) fresh_until: Option<Timestamp>,
}

/// The access that a user has granted to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) id: GrantId,
    pub(crate) workspace: WorkspaceId,
    pub(crate) user: UserId,
    pub(crate) user_email: String,
    pub(crate) client_id: String,
    pub(crate) client_name: String,
    pub(crate) redirect_host: String,
    pub(crate) permissions: PermissionSet,
    pub(crate) created_at: Timestamp,
    pub(crate) last_used_at: Timestamp,
    pub(crate) expires_at: Timestamp,
}

/// An issued code that is not redeemed yet.
#[derive(Debug, Clone)]
pub(crate) struct IssuedCode {
    pub(crate) workspace: WorkspaceId,
    pub(crate) user: UserId,
    pub(crate) client_id: String,
    pub(crate) client_name: String,
    pub(crate) redirect_uri: String,
    pub(crate) redirect_host: String,
    pub(crate) code_challenge: String,
    pub(crate) permissions: PermissionSet,
    pub(crate) resource: String,
    pub(crate) expires_at: Timestamp,
}

/// A grant to insert.
#[derive(Debug)]
pub(crate) struct NewGrant<'a> {
    pub(crate) id: GrantId,
    pub(crate) code: &'a IssuedCode,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Timestamp,
}

/// The part of a grant that a refresh needs.
#[derive(Debug)]
pub(crate) struct RefreshedGrant {
    pub(crate) workspace: WorkspaceId,
    pub(crate) id: GrantId,
    pub(crate) user: UserId,
    pub(crate) permissions: PermissionSet,
    pub(crate) resource: String,
}

/// The time and the salt of a refresh token's rotation, if it was rotated.
pub(crate) type RefreshState = Option<(Timestamp, Salt)>;

/// An access token to insert.
#[derive(Debug)]
pub(crate) struct NewAccessToken {
    pub(crate) digest: Digest,
    pub(crate) workspace: WorkspaceId,
    pub(crate) grant: GrantId,
    pub(crate) permissions: PermissionSet,
    pub(crate) expires_at: Timestamp,
}

/// What an exchange needs of an access token, its grant, and its user's membership.
#[derive(Debug)]
pub(crate) struct PresentedAccess {
    pub(crate) workspace: WorkspaceId,
    pub(crate) grant: GrantId,
    pub(crate) client_name: String,
    pub(crate) permissions: PermissionSet,
    pub(crate) resource: String,
    pub(crate) expires_at: Timestamp,
    pub(crate) plan: String,
    pub(crate) publishers: Publishers,
    pub(crate) question_log_days: Option<u32>,
    pub(crate) user: UserId,
    pub(crate) role: Role,
}

/// The salt of one rotation.
pub(crate) type Salt = [u8; 32];
