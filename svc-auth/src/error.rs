//! What can go wrong, and the one place that says what a caller reads of it.

use std::time::Duration;

use cairn_chassis::identity::{Role, SignerError};
use cairn_chassis::sql;
use cairn_chassis::status::{Problem, Reason, Violation};
use cairn_chassis::wording::{self, Unit};
use tonic::Status;

use crate::model::oauth_error::OauthError;
use crate::model::oidc_error::OidcError;

/// A failure of svc-auth.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An API token that opens nothing. The text is the same for every cause, so that nobody learns which secrets
    /// exist.
    #[error("the token is missing, invalid, expired or deactivated: send `authorization: Bearer <token>`")]
    TokenRefused,
    /// An OAuth access token that opens nothing here. The text is the same for every cause.
    #[error(
        "the access token is invalid, expired, revoked, or for another server: refresh it or sign in again"
    )]
    AccessTokenRefused,
    /// What the OAuth protocol says no with.
    #[error("{}", .0.description)]
    Oauth(OauthError),
    /// Nobody is signed in by the OpenID Connect provider.
    #[error(transparent)]
    Oidc(#[from] OidcError),
    /// A session that does not exist or has ended.
    #[error("the session is missing, invalid or expired: sign in again")]
    SessionRefused,
    /// A wrong email or password; which of them is not told.
    #[error("the email or the password is wrong")]
    SignInRefused,
    /// Too many sign-ins failed of late; the same for an address and an account, so that it does not tell whose guesses
    /// filled the window.
    #[error("too many failed sign-ins; retry after {} s", .0.as_secs().max(1))]
    TooManySignIns(Duration),
    /// A stranger asked for the identity of a service.
    #[error("the mesh secret is wrong: every service of a deployment needs the same one")]
    MeshSecretRefused,
    /// Whoever asked for something that goes on has no right in the workspace any more.
    #[error(
        "who asked for this can no longer ask for it: the token or grant has ended, or its owner has left the workspace"
    )]
    DelegationRefused,
    /// No such resource among those that the caller may know of.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The caller's role in the workspace does not allow it.
    #[error("{action} needs the role {needed}; yours is '{}'", held.as_str())]
    RoleTooLow {
        /// What was asked for.
        action: &'static str,
        /// Which roles may.
        needed: &'static str,
        /// Which role the caller has.
        held: Role,
    },
    /// A workspace would be left without an owner.
    #[error("the last owner of a workspace stays its owner: make somebody else an owner first")]
    LastOwner,
    /// A secret that opens no invitation. Why is not told.
    #[error("this invitation is not valid: it was used, taken back or has expired; ask for a new one")]
    InvitationRefused,
    /// Somebody else was invited.
    #[error("the invitation is for another email than yours: sign in with the account that was invited")]
    InvitedAnother,
    /// As much as there may be is there.
    #[error("there are {used} of at most {limit} {what}: {remedy}")]
    LimitExceeded {
        /// The name of what is counted, for programs.
        path: &'static str,
        /// What is counted.
        what: &'static str,
        /// How many there are.
        used: i64,
        /// How many there may be.
        limit: i64,
        /// What helps.
        remedy: &'static str,
    },
    /// The operator keeps plans to themselves.
    #[error("plans are changed by the operator of this server: ask them for another one")]
    PlanIsOperators,
    /// Fields break rules: all of them at once.
    #[error("{}", describe(.0))]
    Invalid(Vec<Violation>),
    /// The deployment's settings are not usable.
    #[error("{0}")]
    Config(String),
    /// The secrets of the first account could not be kept, so it was not made.
    #[error("the first account's secrets cannot be kept: {0}")]
    Unkept(#[source] std::io::Error),
    /// Another service was asked and did not answer.
    #[error(transparent)]
    Upstream(Problem),
    /// Mail is set up, and nobody could be mailed.
    #[error("the feedback could not be mailed: try again later, or tell an owner of the workspace directly")]
    DeliveryFailed,
    /// Reports are mails to people.
    #[error(
        "{whose} may send {} in an hour; wait, and put what belongs together into one report",
        wording::count(.most.unsigned_abs(), Unit::Reports)
    )]
    TooMuchFeedback {
        /// For people to read.
        whose: &'static str,
        /// How many.
        most: i64,
    },
    /// Anybody may register clients, so those that nobody uses are few.
    #[error(
        "this server keeps at most {} that nobody has used yet, and as many there are: use one that is registered or \
         known by the address of its metadata, or try again in an hour",
        wording::count(.0.unsigned_abs(), Unit::RegisteredClients)
    )]
    TooManyClients(i64),
    /// A sealed secret does not open.
    #[error("{0}")]
    Sealed(String),
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] sql::Error),
    /// An identity could not be signed.
    #[error(transparent)]
    Signer(#[from] SignerError),
    /// A password could not be hashed or its stored hash not be read.
    #[error("password hashing failed: {0}")]
    PasswordHash(String),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::TokenRefused
            | Error::AccessTokenRefused
            | Error::SessionRefused
            | Error::SignInRefused
            | Error::MeshSecretRefused => Self::unauthorized(error.to_string()),
            Error::DelegationRefused => Self::forbidden(error.to_string()),
            Error::TooMuchFeedback { .. } | Error::TooManyClients(_) => Self {
                retry_after: Some(Duration::from_secs(60 * 60)),
                ..Self::new(Reason::RateLimited, error.to_string())
            },
            Error::TooManySignIns(wait) => {
                Self { retry_after: Some(wait), ..Self::new(Reason::RateLimited, error.to_string()) }
            }
            Error::NotFound(_) | Error::InvitationRefused => Self::not_found(error.to_string()),
            Error::RoleTooLow { .. } | Error::LastOwner | Error::InvitedAnother | Error::PlanIsOperators => {
                Self::forbidden(error.to_string())
            }
            Error::LimitExceeded { path, used, limit, .. } => {
                let counted = Violation::new(path, "limit_exceeded", format!("{used} of {limit} are used"));
                Self { violations: vec![counted], ..Self::new(Reason::LimitExceeded, error.to_string()) }
            }
            Error::Invalid(violations) => Self::validation(violations),
            Error::Oauth(OauthError { code, parameter, description }) => {
                Self::validation(vec![Violation::new(parameter, code.as_str(), description)])
            }
            Error::Oidc(refusal) => refusal.into(),
            Error::Upstream(problem) => problem,
            Error::DeliveryFailed => Self::new(Reason::DeliveryFailed, error.to_string()),
            Error::Storage(storage) => storage.into(),
            Error::Config(_)
            | Error::Unkept(_)
            | Error::Sealed(_)
            | Error::Signer(_)
            | Error::PasswordHash(_) => Self::internal(error),
        }
    }
}

impl From<OauthError> for Error {
    fn from(refusal: OauthError) -> Self {
        Self::Oauth(refusal)
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Problem::from(error).into()
    }
}

fn describe(violations: &[Violation]) -> String {
    let each: Vec<_> =
        violations.iter().map(|broken| format!("{} {}", broken.path, broken.message)).collect();
    each.join("; ")
}
