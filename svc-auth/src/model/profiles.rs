//! People with where they belong, as they are stored.

use crate::model::invitations::Found;
use crate::model::workspaces::Membership;
use crate::users::User;

/// A person with roles.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) user: User,
    /// By the name of the workspace.
    pub(crate) memberships: Vec<Membership>,
    /// What the person may accept or decline, the newest first; none for an email that is not verified.
    pub(crate) pending: Vec<Found>,
}
