//! What can go wrong, and what the caller gets of it.

use cairn_chassis::status::{Problem, Violation};
use cairn_chassis::wording;

/// An error of this service.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Fields of the request break rules: all of them at once.
    #[error("{}", wording::invalid_fields(.0.len()))]
    Invalid(Vec<Violation>),
    /// No such source is connected to the caller's workspace.
    #[error("no connected source {0}: no source is connected to this workspace")]
    NoSource(String),
    /// Sources stand in no folder, so a token that is bound to folders has none.
    #[error(
        "connected sources are for workspace-wide tokens, and this token is bound to folders: use one without a \
         folder scope"
    )]
    BoundToFolders,
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(violations) => Self::validation(violations),
            Error::NoSource(_) => Self::not_found(error.to_string()),
            Error::BoundToFolders => Self::out_of_scope(error.to_string()),
        }
    }
}

impl From<Error> for tonic::Status {
    fn from(error: Error) -> Self {
        Problem::from(error).into()
    }
}
