//! Web sessions, as stored.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::Role;
use cairn_proto::domain::Publishers;
use cairn_proto::ids::{SessionId, UserId};

use crate::secrets::Digest;
use crate::users::User;

/// A session to insert.
pub(crate) struct NewSession {
    pub(crate) id: SessionId,
    pub(crate) user: UserId,
    pub(crate) digest: Digest,
    pub(crate) agent: String,
    pub(crate) place: String,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Timestamp,
}

/// A session that was found by its secret.
pub(crate) struct FoundSession {
    pub(crate) id: SessionId,
    pub(crate) user: User,
    pub(crate) expires_at: Timestamp,
}

/// The part of a membership that an identity contains.
pub(crate) struct Seat {
    pub(crate) role: Role,
    /// The plan of the workspace, like the following fields.
    pub(crate) plan: String,
    pub(crate) publishers: Publishers,
    pub(crate) question_log_days: Option<u32>,
}

/// A session as its user sees it.
#[derive(Debug)]
pub(crate) struct ListedSession {
    pub(crate) id: SessionId,
    /// The user agent; empty if unknown.
    pub(crate) agent: String,
    /// The approximate location; empty if unknown.
    pub(crate) place: String,
    pub(crate) created_at: Timestamp,
    pub(crate) last_used_at: Option<Timestamp>,
    pub(crate) expires_at: Timestamp,
}
