//! The errors of svc-retrieval and their one mapping to what a caller sees.

use std::time::Duration;

use cairn_chassis::status::{Problem, Violation};
use thiserror::Error;
use tonic::Status;

use crate::{embed, index, vectors};

/// When a caller may try again after a dependency failed.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Why svc-retrieval failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The request breaks rules.
    #[error("the request is not valid")]
    Invalid(Vec<Violation>),
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
    /// Work off the async threads did not come back.
    #[error("a task of the index ended early: {0}")]
    Task(#[from] tokio::task::JoinError),
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
            Error::Index(index::Error::Io(_)) => {
                tracing::error!(%error, "the index folder cannot be used");
                Self::unavailable(
                    "the search index cannot use its folder; the other routes work",
                    RETRY_AFTER,
                )
            }
            Error::Index(
                index::Error::InUse
                | index::Error::NoDimensions
                | index::Error::Dimensions { .. }
                | index::Error::Cursors(_)
                | index::Error::Engine(_),
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
