//! API tokens, as stored.

use std::collections::BTreeMap;

use cairn_chassis::call::Channel;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{PermissionSet, Role, Scope};
use cairn_proto::domain::Publishers;
use cairn_proto::ids::{TokenId, UserId, WorkspaceId};

/// The visible properties of an API token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// The token, which is not the secret.
    pub(crate) id: TokenId,
    /// The workspace that it belongs to.
    pub(crate) workspace: WorkspaceId,
    /// The creator, whose role caps the token.
    pub(crate) owner: UserId,
    /// For people to read.
    pub(crate) name: String,
    /// The granted permissions.
    pub(crate) permissions: PermissionSet,
    /// The accessible part of the workspace.
    pub(crate) scope: Scope,
    /// The end of the secret, for telling tokens apart.
    pub(crate) last_four: String,
    /// An inactive token is rejected.
    pub(crate) active: bool,
    /// When it was made.
    pub(crate) created_at: Timestamp,
    /// When it expires, if ever.
    pub(crate) expires_at: Option<Timestamp>,
    /// When it was last exchanged, to the minute after a restart.
    pub(crate) last_used_at: Option<Timestamp>,
    /// The client program of the last use; empty if it gave no name.
    pub(crate) last_client: String,
    /// The channel of the last use; `None` if not recorded.
    pub(crate) last_channel: Option<Channel>,
}

/// What an exchange needs of a token, its workspace and its owner's membership.
pub(crate) struct Presented {
    pub(crate) id: TokenId,
    pub(crate) workspace: WorkspaceId,
    pub(crate) name: String,
    pub(crate) granted: PermissionSet,
    pub(crate) scope: Scope,
    pub(crate) active: bool,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) plan: String,
    pub(crate) publishers: Publishers,
    pub(crate) question_log_days: Option<u32>,
    pub(crate) owner: UserId,
    pub(crate) owner_role: Role,
}

/// Sorted, so that concurrent writers lock the rows in the same order.
pub(crate) type Uses = BTreeMap<(WorkspaceId, TokenId), Use>;

/// A use of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) at: Timestamp,
    /// The name of the client program.
    pub(crate) client: String,
    pub(crate) channel: Channel,
}
