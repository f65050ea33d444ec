//! The stored types, shared by the rules and the store.

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

/// Identities expire on whole seconds, so what ends within the current second counts as ended.
pub(crate) const fn has_ended(end: Timestamp, now: Timestamp) -> bool {
    end.as_seconds() <= now.as_seconds()
}
