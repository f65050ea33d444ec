//! The errors of this service, and the only place that defines what a caller sees of them.

use std::time::Duration;

use cairn_chassis::identity::{Role, SignerError};
use cairn_chassis::sql;
use cairn_chassis::status::{Problem, Reason, Violation};
use cairn_chassis::wording::{self, Unit};
use tonic::Status;

use crate::model::oauth_error::OauthError;
use crate::model::oidc_error::OidcError;

/// An error of svc-auth.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An invalid API token. The text is the same for every cause, so that it does not reveal which secrets exist.
    #[error("the token is missing, invalid, expired or deactivated: send `authorization: Bearer <token>`")]
    TokenRefused,
    /// An invalid OAuth access token. The text is the same for every cause.
    #[error(
        "the access token is invalid, expired, revoked, or for another server: refresh it or sign in again"
    )]
    AccessTokenRefused,
    /// An error of the OAuth protocol.
    #[error("{}", .0.description)]
    Oauth(OauthError),
    /// Sign-in by the OpenID Connect provider failed.
    #[error(transparent)]
    Oidc(#[from] OidcError),
    /// An unknown or expired session.
    #[error("the session is missing, invalid or expired: sign in again")]
    SessionRefused,
    /// Wrong email or password; which of them is not revealed.
    #[error("the email or the password is wrong")]
    SignInRefused,
    /// Too many failed sign-ins. The same for an address and an account, so that it does not reveal whose attempts
    /// filled the window.
    #[error("too many failed sign-ins; retry after {} s", .0.as_secs().max(1))]
    TooManySignIns(Duration),
    /// A service identity was requested with a wrong mesh secret.
    #[error("the mesh secret is wrong: every service of a deployment needs the same one")]
    MeshSecretRefused,
    /// The principal of a delegation has no rights in the workspace any more.
    #[error(
        "who asked for this can no longer ask for it: the token or grant has ended, or its owner has left the workspace"
    )]
    DelegationRefused,
    /// The resource does not exist or is not visible to the caller.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The caller's role in the workspace is insufficient.
    #[error("{action} needs the role {needed}; yours is '{}'", held.as_str())]
    RoleTooLow {
        /// The requested action.
        action: &'static str,
        /// The roles that allow it.
        needed: &'static str,
        /// The caller's role.
        held: Role,
    },
    /// The workspace would lose its last owner.
    #[error("the last owner of a workspace stays its owner: make somebody else an owner first")]
    LastOwner,
    /// An invalid invitation secret. The reason is not revealed.
    #[error("this invitation is not valid: it was used, taken back or has expired; ask for a new one")]
    InvitationRefused,
    /// The invitation is for somebody else.
    #[error("the invitation is for another email than yours: sign in with the account that was invited")]
    InvitedAnother,
    /// A limit is reached.
    #[error("there are {used} of at most {limit} {what}: {remedy}")]
    LimitExceeded {
        /// The name of the counted resource, for programs.
        path: &'static str,
        /// The counted resource, for people.
        what: &'static str,
        /// The current number.
        used: i64,
        /// The limit.
        limit: i64,
        /// How to resolve it.
        remedy: &'static str,
    },
    /// Only the operator may change plans.
    #[error("plans are changed by the operator of this server: ask them for another one")]
    PlanIsOperators,
    /// Invalid fields: all of them at once.
    #[error("{}", describe(.0))]
    Invalid(Vec<Violation>),
    /// The configuration is invalid.
    #[error("{0}")]
    Config(String),
    /// The secrets of the first account could not be saved, so it was not created.
    #[error("the first account's secrets cannot be kept: {0}")]
    Unkept(#[source] std::io::Error),
    /// Another service could not be reached or failed.
    #[error(transparent)]
    Upstream(Problem),
    /// Mail is configured, but no recipient could be mailed.
    #[error("the feedback could not be mailed: try again later, or tell an owner of the workspace directly")]
    DeliveryFailed,
    /// Feedback is rate limited, since each report is mailed to people.
    #[error(
        "{whose} may send {} in an hour; wait, and put what belongs together into one report",
        wording::count(.most.unsigned_abs(), Unit::Reports)
    )]
    TooMuchFeedback {
        /// Whose limit, for people.
        whose: &'static str,
        /// The limit.
        most: i64,
    },
    /// Anybody may register clients, so the number of unused ones is limited.
    #[error(
        "this server keeps at most {} that nobody has used yet, and as many there are: use one that is registered or \
         known by the address of its metadata, or try again in an hour",
        wording::count(.0.unsigned_abs(), Unit::RegisteredClients)
    )]
    TooManyClients(i64),
    /// A sealed secret cannot be opened.
    #[error("{0}")]
    Sealed(String),
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] sql::Error),
    /// Signing an identity failed.
    #[error(transparent)]
    Signer(#[from] SignerError),
    /// Hashing a password, or parsing a stored hash, failed.
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
