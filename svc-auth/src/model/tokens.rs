//! API tokens, as they are stored.

use std::collections::BTreeMap;

use cairn_chassis::call::Channel;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{PermissionSet, Role, Scope};
use cairn_proto::domain::Publishers;
use cairn_proto::ids::{TokenId, UserId, WorkspaceId};

/// What may be known about an API token after its creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// The token, which is not the secret.
    pub(crate) id: TokenId,
    /// The one workspace that it opens.
    pub(crate) workspace: WorkspaceId,
    /// Who made it and whose role caps it.
    pub(crate) owner: UserId,
    /// For people to read.
    pub(crate) name: String,
    /// What was granted.
    pub(crate) permissions: PermissionSet,
    /// Which part of the workspace it opens.
    pub(crate) scope: Scope,
    /// The end of the secret, for telling tokens apart.
    pub(crate) last_four: String,
    /// A token that is not active is refused.
    pub(crate) active: bool,
    /// When it was made.
    pub(crate) created_at: Timestamp,
    /// When it ends, if it does.
    pub(crate) expires_at: Option<Timestamp>,
    /// When it was last exchanged, to the minute after a restart.
    pub(crate) last_used_at: Option<Timestamp>,
    /// What the program that used it then calls itself; empty when it did not say.
    pub(crate) last_client: String,
    /// By which door it came; none where that was not written down.
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

/// Sorted, so that replicas that write at the same time take the rows in the same order.
pub(crate) type Uses = BTreeMap<(WorkspaceId, TokenId), Use>;

/// A use of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) at: Timestamp,
    /// What the program calls itself.
    pub(crate) client: String,
    pub(crate) channel: Channel,
}
