//! Clients, codes, grants and tokens of OAuth, as they are stored.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{PermissionSet, Role};
use cairn_proto::domain::Publishers;
use cairn_proto::ids::{GrantId, UserId, WorkspaceId};

use crate::secrets::Digest;

/// A program that acts for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) redirect_uris: Vec<String>,
    /// Absent for a public client.
    pub(crate) secret: Option<Digest>,
    /// Until when fetched metadata holds; absent for a registered client.
    pub(crate) fresh_until: Option<Timestamp>,
}

/// What a person allowed a client.
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

/// A consent, waiting for its client to come with the code.
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

/// A grant to store.
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

/// Whether a refresh token was rotated: when, and with which salt.
pub(crate) type RefreshState = Option<(Timestamp, Salt)>;

/// An access token to store.
#[derive(Debug)]
pub(crate) struct NewAccessToken {
    pub(crate) digest: Digest,
    pub(crate) workspace: WorkspaceId,
    pub(crate) grant: GrantId,
    pub(crate) permissions: PermissionSet,
    pub(crate) expires_at: Timestamp,
}

/// What an exchange needs of an access token, its grant, and its person's membership.
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
