//! What can go wrong, and what the caller gets of it.

use cairn_chassis::limits;
use cairn_chassis::sql;
use cairn_chassis::status::{Problem, Reason, Violation};
use cairn_chassis::wording;

/// An error of this service.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Fields of the request break rules: all of them at once.
    #[error("{}", wording::invalid_fields(.0.len()))]
    Invalid(Vec<Violation>),
    /// No such run in the caller's workspace.
    #[error("no sync run {0}")]
    NoRun(String),
    /// The run, or another of its sync, is under way.
    #[error("{0}")]
    RunBusy(&'static str),
    /// The state of the run allows no start.
    #[error("a run that is {0} cannot be started: one that is ready, failed or cancelled can")]
    RunNotStartable(&'static str),
    /// The run cannot be rolled back.
    #[error("{0}")]
    RunNotRevertible(&'static str),
    /// The run is over.
    #[error("a run that is {0} cannot be cancelled: it is over")]
    RunNotCancellable(&'static str),
    /// A sync is about a whole workspace.
    #[error(
        "directory sync is for workspace-wide tokens, and this token is bound to folders: use one without a folder scope"
    )]
    BoundToFolders,
    /// More than the plan allows: each limit with what is used of it.
    #[error("the plan of this workspace has no room for this: {}", limits::said(.0))]
    LimitExceeded(Vec<Violation>),
    /// Another service refused, or did not answer.
    #[error("{0}")]
    Upstream(Problem),
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] sql::Error),
}

impl Error {
    pub(crate) fn invalid(path: &str, code: &str, message: impl Into<String>) -> Self {
        Self::Invalid(vec![Violation::new(path, code, message)])
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(violations) => Self::validation(violations),
            Error::NoRun(_) => Self::not_found(error.to_string()),
            Error::RunBusy(message) => Self::new(Reason::RunBusy, message),
            Error::RunNotStartable(_) | Error::RunNotCancellable(_) => {
                Self::new(Reason::RunNotStartable, error.to_string())
            }
            Error::RunNotRevertible(message) => Self::new(Reason::RunNotRevertible, message),
            Error::BoundToFolders => Self::out_of_scope(error.to_string()),
            Error::LimitExceeded(ref refused) => {
                let message = format!("{error}; sync fewer documents, or choose another plan");
                Self { violations: refused.clone(), ..Self::new(Reason::LimitExceeded, message) }
            }
            Error::Upstream(problem) => problem,
            Error::Storage(storage) => Self::from(storage),
        }
    }
}

impl From<Error> for tonic::Status {
    fn from(error: Error) -> Self {
        Problem::from(error).into()
    }
}
