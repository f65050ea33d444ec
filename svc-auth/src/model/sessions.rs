//! Web sessions, as they are stored.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::Role;
use cairn_proto::domain::Publishers;
use cairn_proto::ids::{SessionId, UserId};

use crate::secrets::Digest;
use crate::users::User;

/// A session to store.
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

/// A membership, as far as an identity tells of it.
pub(crate) struct Seat {
    pub(crate) role: Role,
    /// Of the workspace, like what follows.
    pub(crate) plan: String,
    pub(crate) publishers: Publishers,
    pub(crate) question_log_days: Option<u32>,
}

/// A session as its person sees it.
#[derive(Debug)]
pub(crate) struct ListedSession {
    pub(crate) id: SessionId,
    /// What it was opened with, as that names itself; empty when nobody knows.
    pub(crate) agent: String,
    /// Roughly where it was opened; empty when nobody knows.
    pub(crate) place: String,
    pub(crate) created_at: Timestamp,
    pub(crate) last_used_at: Option<Timestamp>,
    pub(crate) expires_at: Timestamp,
}
