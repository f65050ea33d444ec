//! Why a script could not be run, and what its caller sees.

use std::time::Duration;

use cairn_chassis::status::{Problem, Violation};
use thiserror::Error;
use tonic::Status;

/// When a script may be run again.
const BUSY_FOR: Duration = Duration::from_secs(1);

/// Why a script could not be run. Errors of the script itself are part of its output.
#[derive(Debug, Error)]
pub enum Error {
    /// The request is invalid.
    #[error("the request is not valid")]
    Invalid(Vec<Violation>),
    /// The owner of documents, or svc-auth, answered with an error.
    #[error("another service answered: {0}")]
    Upstream(Problem),
    /// An owner's response breaks the contract.
    #[error("the owner's answer cannot be used: {0}")]
    Answer(&'static str),
    /// The owner of documents from outside does not answer; trees are built without it.
    #[error("the owner of documents from outside does not answer")]
    Silent,
    /// Too many scripts of the workspace, and searches of its past, are running or queued.
    #[error("too many scripts, and searches as of a moment, run at once")]
    Busy,
    /// A blocking task panicked or was cancelled.
    #[error("a script ended early: {0}")]
    Task(#[from] tokio::task::JoinError),
}

impl Error {
    /// Whether the request was rejected, as opposed to a failure.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Invalid(_) => true,
            Self::Upstream(problem) => problem.is_refusal(),
            Self::Answer(_) | Self::Silent | Self::Busy | Self::Task(_) => false,
        }
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::Upstream(Problem::from_status(&status))
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::Upstream(problem)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(violations) => Self::validation(violations),
            Error::Upstream(problem) => problem,
            Error::Busy => Self::unavailable(
                "too many scripts, and searches as of a moment, of this workspace run at once; try again when some have ended",
                BUSY_FOR,
            ),
            Error::Answer(_) | Error::Silent | Error::Task(_) => Self::internal(error),
        }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Problem::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::status::Reason;

    use super::*;

    #[test]
    fn whoever_comes_when_too_many_wait_is_told_when_to_come_back() {
        let problem = Problem::from(Error::Busy);
        assert_eq!((problem.reason, problem.retry_after), (Reason::Unavailable, Some(BUSY_FOR)));
        assert!(!Error::Busy.is_refusal());
    }
}
