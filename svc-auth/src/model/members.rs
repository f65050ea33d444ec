//! The members of a workspace.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::Role;

use crate::users::User;

/// A user with a role in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// Who.
    pub(crate) user: User,
    /// In which role.
    pub(crate) role: Role,
    /// Since when.
    pub(crate) created_at: Timestamp,
}
