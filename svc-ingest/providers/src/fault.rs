//! The errors of providers.

use std::borrow::Cow;

use cairn_chassis::clock::Timestamp;
use thiserror::Error;

/// The error of a provider. The messages are for people, and contain neither text of the provider nor secrets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// Rate limited until then; already recorded in the ledger.
    #[error("the provider asks to wait")]
    Waiting {
        /// When to retry; at most an hour away.
        until: Timestamp,
    },
    /// The daily budget of requests is used up.
    #[error("the budget of requests to the provider is used up for today")]
    Budget,
    /// The credentials are wrong, missing or expired.
    #[error("the provider does not accept the credentials")]
    Credentials,
    /// The credentials are valid, but give no access to it.
    #[error("the credentials do not give access to it")]
    Forbidden,
    /// It does not exist (any more).
    #[error("the provider does not have it")]
    Gone,
    /// The provider no longer knows the position: a full listing is needed.
    #[error("the provider no longer knows where the last run stopped")]
    PositionLost,
    /// The provider rejects the request.
    #[error("the provider refuses the request")]
    Refused,
    /// The guard blocks the address.
    #[error("the address does not lead to a public host over https")]
    Address,
    /// The response is larger than this limit in bytes.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(u64),
    /// The provider, or our own storage, failed or timed out. A retry may succeed.
    #[error("the provider does not answer")]
    Unavailable,
    /// The response violates the provider's API.
    #[error("{0}")]
    Broken(Cow<'static, str>),
}

impl Fault {
    /// A response that violates the provider's API, with a message of ours.
    pub const fn broken(words: &'static str) -> Self {
        Self::Broken(Cow::Borrowed(words))
    }

    /// Whether a later retry may succeed without any change.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Waiting { .. } | Self::Budget | Self::Unavailable)
    }
}
