//! Users with their memberships, as stored.

use crate::model::invitations::Found;
use crate::model::workspaces::Membership;
use crate::users::User;

/// A user with roles.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) user: User,
    /// By the name of the workspace.
    pub(crate) memberships: Vec<Membership>,
    /// Pending invitations, newest first; empty if the email is not verified.
    pub(crate) pending: Vec<Found>,
}
