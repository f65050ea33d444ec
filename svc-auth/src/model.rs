//! What is stored, in the words that the rules and the store share.

pub(crate) mod feedback;
pub(crate) mod invitations;
pub(crate) mod keys;
pub(crate) mod lifecycle;
pub(crate) mod members;
pub(crate) mod oauth;
pub(crate) mod oauth_error;
pub(crate) mod oidc_error;
pub(crate) mod profiles;
pub(crate) mod sessions;
pub(crate) mod sign_ins;
pub(crate) mod tokens;
pub(crate) mod workspaces;

use cairn_chassis::clock::Timestamp;

/// An identity ends with a whole second, so what ends within the running second has none left to give.
pub(crate) const fn has_ended(end: Timestamp, now: Timestamp) -> bool {
    end.as_seconds() <= now.as_seconds()
}
