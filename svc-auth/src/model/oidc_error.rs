//! Errors of the sign-in by a provider.

use std::time::Duration;

use cairn_chassis::status::Problem;

/// A failed sign-in. The texts are for the user in the browser; the provider's exact response goes to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OidcError {
    /// No provider is configured.
    #[error("sign-in by an identity provider is not set up here: sign in with your password")]
    NotSetUp,
    /// The ticket is missing, expired or used, or the state does not match.
    #[error(
        "this sign-in was not begun in this browser, took too long, or was finished before: begin it again"
    )]
    NotBegun,
    /// The provider is unreachable.
    #[error("the identity provider does not answer: try again soon, or sign in with your password")]
    Unreachable,
    /// The provider rejects our client credentials.
    #[error(
        "the identity provider refuses this server: its operator has to check CAIRN_OIDC_CLIENT_ID and \
         CAIRN_OIDC_CLIENT_SECRET"
    )]
    ClientRefused,
    /// The provider rejects the code.
    #[error("the identity provider does not accept this sign-in: begin it again")]
    CodeRefused,
    /// The ID token is invalid.
    #[error("what the identity provider answered proves nothing: begin again, or tell the server's operator")]
    Untrusted,
    /// A new user without a verified email.
    #[error(
        "the identity provider has not verified your email: verify it there and begin again, or sign in with your \
         password"
    )]
    EmailUnproved,
    /// A new user without an invitation.
    #[error(
        "nobody with your email has an account or an invitation here: ask an owner or admin of a workspace to invite \
         the email that the identity provider knows you by"
    )]
    Unknown,
    /// The email's account is linked to another subject of the provider.
    #[error(
        "the account with your email belongs to another identity of this provider: ask the server's operator, or sign \
         in with your password"
    )]
    OtherSubject,
}

impl OidcError {
    /// Whether the browser's parameters were invalid, as forged ones would be.
    pub(crate) const fn is_guess(self) -> bool {
        matches!(self, Self::NotBegun | Self::CodeRefused | Self::Untrusted)
    }
}

impl From<OidcError> for Problem {
    fn from(refusal: OidcError) -> Self {
        let message = refusal.to_string();
        match refusal {
            OidcError::NotSetUp => Self::not_found(message),
            OidcError::NotBegun | OidcError::CodeRefused | OidcError::Untrusted => {
                Self::unauthorized(message)
            }
            OidcError::Unreachable => Self::unavailable(message, Duration::from_secs(5)),
            OidcError::ClientRefused => Self::unavailable(message, Duration::from_secs(60)),
            OidcError::EmailUnproved | OidcError::Unknown | OidcError::OtherSubject => {
                Self::forbidden(message)
            }
        }
    }
}
