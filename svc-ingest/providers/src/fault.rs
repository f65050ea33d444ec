//! Why a provider did not do what it was asked for.

use std::borrow::Cow;

use cairn_chassis::clock::Timestamp;
use thiserror::Error;

/// Why there is no answer. The texts are ours and for people: they hold nothing that a provider said, and no secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// The provider wants to be left alone until then, which the ledger knows already.
    #[error("the provider asks to wait")]
    Waiting {
        /// When to come back; at most an hour away.
        until: Timestamp,
    },
    /// The day's budget of requests is used up.
    #[error("the budget of requests to the provider is used up for today")]
    Budget,
    /// The credentials are wrong, missing or have ended.
    #[error("the provider does not accept the credentials")]
    Credentials,
    /// The credentials are good, and do not reach this.
    #[error("the credentials do not give access to it")]
    Forbidden,
    /// It is not there (any more).
    #[error("the provider does not have it")]
    Gone,
    /// The provider no longer knows the place where a listing or the changes were to go on: begin a full listing.
    #[error("the provider no longer knows where the last run stopped")]
    PositionLost,
    /// The provider takes the request for wrong.
    #[error("the provider refuses the request")]
    Refused,
    /// The address is not one that is gone to.
    #[error("the address does not lead to a public host over https")]
    Address,
    /// The answer is larger than what is read of one, in bytes.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(u64),
    /// The provider does not answer, or not in time; or our own storage does not. It may work later.
    #[error("the provider does not answer")]
    Unavailable,
    /// The answer makes no sense: it is not what the provider's interface says.
    #[error("{0}")]
    Broken(Cow<'static, str>),
}

impl Fault {
    /// The answer makes no sense, in our own words.
    pub const fn broken(words: &'static str) -> Self {
        Self::Broken(Cow::Borrowed(words))
    }

    /// Whether the same may work later without anybody doing anything.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Waiting { .. } | Self::Budget | Self::Unavailable)
    }
}
