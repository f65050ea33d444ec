//! Why somebody is not signed in by the provider.

use std::time::Duration;

use cairn_chassis::status::Problem;

/// A sign-in that does not succeed. The texts are for the person in the browser; what exactly the provider said goes to
/// the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OidcError {
    /// There is no provider.
    #[error("sign-in by an identity provider is not set up here: sign in with your password")]
    NotSetUp,
    /// No ticket, a wrong state, too late, or a second time.
    #[error(
        "this sign-in was not begun in this browser, took too long, or was finished before: begin it again"
    )]
    NotBegun,
    /// The provider does not answer.
    #[error("the identity provider does not answer: try again soon, or sign in with your password")]
    Unreachable,
    /// The provider does not take us for who we are.
    #[error(
        "the identity provider refuses this server: its operator has to check CAIRN_OIDC_CLIENT_ID and \
         CAIRN_OIDC_CLIENT_SECRET"
    )]
    ClientRefused,
    /// The provider does not know the code.
    #[error("the identity provider does not accept this sign-in: begin it again")]
    CodeRefused,
    /// The ID token proves nothing.
    #[error("what the identity provider answered proves nothing: begin again, or tell the server's operator")]
    Untrusted,
    /// Somebody new whose email is unknown or not verified.
    #[error(
        "the identity provider has not verified your email: verify it there and begin again, or sign in with your \
         password"
    )]
    EmailUnproved,
    /// Somebody new whom nobody invited.
    #[error(
        "nobody with your email has an account or an invitation here: ask an owner or admin of a workspace to invite \
         the email that the identity provider knows you by"
    )]
    Unknown,
    /// The email's account belongs to another subject of the provider.
    #[error(
        "the account with your email belongs to another identity of this provider: ask the server's operator, or sign \
         in with your password"
    )]
    OtherSubject,
}

impl OidcError {
    /// Whether what the browser brought proved nothing, as what somebody made up would not.
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
