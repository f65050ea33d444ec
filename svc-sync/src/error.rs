//! The errors of this service, and what callers see of them.

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
    #[error("no run {0}")]
    NoRun(String),
    /// The run, or another of its sync, is under way.
    #[error("{0}")]
    RunBusy(String),
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
    #[error("the plan of this workspace has no room for this: {}", limits::summary(.0))]
    LimitExceeded(Vec<Violation>),
    /// An archive is larger than the plan allows.
    #[error("{0}")]
    TooLarge(String),
    /// The archive of a run is not kept any more.
    #[error("the archive is no longer kept: upload it again")]
    ArchiveGone,
    /// This machine could not hold or read an archive now.
    #[error("the archive could not be read just now: try again")]
    Scratch(#[source] std::io::Error),
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
            Error::RunNotStartable(_) => Self::new(Reason::RunNotStartable, error.to_string()),
            Error::RunNotCancellable(_) => Self::new(Reason::RunNotCancellable, error.to_string()),
            Error::RunNotRevertible(message) => Self::new(Reason::RunNotRevertible, message),
            Error::BoundToFolders => Self::out_of_scope(error.to_string()),
            Error::LimitExceeded(ref refused) => {
                let message = format!("{error}; write less, or choose another plan");
                Self { violations: refused.clone(), ..Self::new(Reason::LimitExceeded, message) }
            }
            Error::TooLarge(message) => Self::new(Reason::PayloadTooLarge, message),
            Error::ArchiveGone => Self::new(Reason::RunNotStartable, error.to_string()),
            Error::Scratch(ref cause) => {
                tracing::error!(%cause, "an archive cannot be kept or read");
                Self::new(Reason::Unavailable, error.to_string())
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
