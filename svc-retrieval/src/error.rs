//! The errors of svc-retrieval and their one mapping to what a caller sees.

use std::time::Duration;

use cairn_chassis::sql;
use cairn_chassis::status::{Problem, Violation};
use cairn_embed as embed;
use cairn_index as index;
use thiserror::Error;
use tonic::Status;

/// When a caller may try again after a dependency failed.
const RETRY_AFTER: Duration = Duration::from_secs(2);

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
    /// The embedder failed.
    #[error("the embedder failed: {0}")]
    Embed(#[from] embed::Error),
    /// An owner of documents, or svc-auth, answered with an error.
    #[error("another service answered: {0}")]
    Upstream(Problem),
    /// An owner answered something that breaks the contract.
    #[error("the owner's answer cannot be used: {0}")]
    Answer(&'static str),
    /// Another process has taken over what this one was indexing.
    #[error("another process indexes this workspace now")]
    Overtaken,
    /// Work off the async threads did not come back.
    #[error("a task of the index ended early: {0}")]
    Task(#[from] tokio::task::JoinError),
}

impl Error {
    /// Whether the caller asked for what cannot be had: nothing failed then.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Invalid(_) => true,
            Self::Upstream(problem) => problem.is_refusal(),
            Self::Storage(_)
            | Self::Index(_)
            | Self::Embed(_)
            | Self::Answer(_)
            | Self::Overtaken
            | Self::Task(_) => false,
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
            Error::Storage(error) => error.into(),
            Error::Index(ref failure) if failure.is_disk_failure() => {
                tracing::error!(%error, "the index folder cannot be used");
                Self::unavailable(
                    "the search index cannot use its folder; the other routes work",
                    RETRY_AFTER,
                )
            }
            Error::Overtaken => Self::unavailable("another process indexes this workspace now", RETRY_AFTER),
            Error::Index(index::Error::Unavailable(_) | index::Error::CursorsBehind) => {
                tracing::error!(%error, "the engine of the search index cannot be used");
                Self::unavailable("the search engine does not answer; the other routes work", RETRY_AFTER)
            }
            Error::Index(
                index::Error::Config(_)
                | index::Error::InUse
                | index::Error::Io(_)
                | index::Error::NoDimensions
                | index::Error::Dimensions { .. }
                | index::Error::Encode(_)
                | index::Error::Engine(_)
                | index::Error::Task(_)
                | index::Error::Remote(_),
            )
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
