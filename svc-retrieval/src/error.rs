//! The errors of svc-retrieval and their one mapping to what a caller sees.

use std::time::Duration;

use cairn_chassis::sql;
use cairn_chassis::status::{Problem, Violation};
use cairn_embed as embed;
use thiserror::Error;
use tonic::{Code, Status};

use crate::{index, qdrant, vectors};

/// When a caller may try again after a dependency failed.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// When a turn may be free for a script.
const BUSY_FOR: Duration = Duration::from_secs(1);

/// Why svc-retrieval failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The request breaks rules.
    #[error("the request is not valid")]
    Invalid(Vec<Violation>),
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] sql::Error),
    /// The index failed.
    #[error("the index failed: {0}")]
    Index(#[from] index::Error),
    /// The vectors failed.
    #[error("the vectors failed: {0}")]
    Vectors(#[from] vectors::Error),
    /// The embedder failed.
    #[error("the embedder failed: {0}")]
    Embed(#[from] embed::Error),
    /// An owner of documents, or svc-auth, answered with an error.
    #[error("another service answered: {0}")]
    Upstream(Problem),
    /// An owner answered something that breaks the contract.
    #[error("the owner's answer cannot be used: {0}")]
    Answer(&'static str),
    /// Too many scripts of the workspace run and wait.
    #[error("too many scripts run at once")]
    Busy,
    /// Work off the async threads did not come back.
    #[error("a task of the index ended early: {0}")]
    Task(#[from] tokio::task::JoinError),
}

impl Error {
    /// Whether the caller asked for what cannot be had: nothing failed then.
    pub(crate) fn is_refusal(&self) -> bool {
        let refusals = [Code::InvalidArgument, Code::Unauthenticated, Code::PermissionDenied, Code::NotFound];
        match self {
            Self::Invalid(_) => true,
            Self::Upstream(problem) => refusals.contains(&problem.reason.code()),
            Self::Storage(_)
            | Self::Index(_)
            | Self::Vectors(_)
            | Self::Embed(_)
            | Self::Answer(_)
            | Self::Busy
            | Self::Task(_) => false,
        }
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::Upstream(Problem::from_status(&status))
    }
}

impl From<qdrant::Error> for Error {
    fn from(error: qdrant::Error) -> Self {
        Self::Index(error.into())
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
            Error::Storage(error) => error.into(),
            Error::Busy => Self::unavailable(
                "too many scripts of this workspace run at once; try again when some have ended",
                BUSY_FOR,
            ),
            Error::Index(index::Error::Io(_)) => {
                tracing::error!(%error, "the index folder cannot be used");
                Self::unavailable(
                    "the search index cannot use its folder; the other routes work",
                    RETRY_AFTER,
                )
            }
            Error::Index(index::Error::Remote(ref cause))
            | Error::Vectors(vectors::Error::Remote(ref cause))
                if cause.is_passing() =>
            {
                tracing::error!(%error, "Qdrant cannot be used");
                Self::unavailable("the search engine does not answer; the other routes work", RETRY_AFTER)
            }
            Error::Index(
                index::Error::InUse
                | index::Error::NoDimensions
                | index::Error::Dimensions { .. }
                | index::Error::Cursors(_)
                | index::Error::Engine(_)
                | index::Error::Remote(_),
            )
            | Error::Vectors(_)
            | Error::Embed(_)
            | Error::Answer(_)
            | Error::Task(_) => Self::internal(error),
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
