//! The errors of this service, and what callers see of them.

use std::time::Duration;

use cairn_chassis::bodies::CorruptBody;
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
    /// No such source is connected to the caller's workspace.
    #[error("no source {0} is connected to this workspace")]
    NoSource(String),
    /// No such document was ingested into the caller's workspace.
    #[error("no ingested document {0}")]
    NoDocument(String),
    /// None of the workspaces, or not the caller's, has such a document, ingested or of a source.
    #[error("no document {0} from outside")]
    NoDocumentHere(String),
    /// The document is there, and its text is not.
    #[error("the document {id} has no text: {why}")]
    NoText {
        /// As the caller gave it.
        id: String,
        /// What there is instead.
        why: String,
    },
    /// The key is another content's.
    #[error(
        "the idempotency key '{key}' was used for other content (document {id}): send new content under a new key, or \
         remove that document first"
    )]
    KeyTaken {
        /// As the caller gave it.
        key: String,
        /// The document that has it.
        id: String,
    },
    /// The workspace has no such webhook.
    #[error("this workspace has no webhook {0}")]
    NoWebhook(String),
    /// The webhook has no such delivery, or none any more.
    #[error("no delivery {0} of this webhook is kept")]
    NoDelivery(String),
    /// What is to be sent cannot be written.
    #[error("{0}")]
    Webhook(String),
    /// Another service refused, or did not answer.
    #[error("{}", .0.message)]
    Upstream(Problem),
    /// The source has no such document.
    #[error("no document '{0}' of this source")]
    NoSourceDocument(String),
    /// The source has no such run.
    #[error("no run {0} of this source")]
    NoRun(String),
    /// The source has a run that is not over.
    #[error("a run of this source is queued, running or waiting: wait for its end, or cancel it")]
    RunBusy,
    /// The run, or its source, is in no state for that.
    #[error("{0}")]
    RunNotStartable(&'static str),
    /// There is nothing to seal credentials with.
    #[error("credentials cannot be kept: the operator has to set CAIRN_SECRET_KEY")]
    NoSecretKey,
    /// Sealed credentials cannot be used.
    #[error("{0}")]
    Sealed(String),
    /// The day's live calls of a source are used up.
    #[error("all {limit} live calls of this source are used up for today (UTC)")]
    BudgetUsedUp {
        /// Of a day.
        limit: u32,
        /// Until there are some again.
        again: Duration,
    },
    /// The provider of a source cannot be asked now.
    #[error("the source cannot be asked now: {why}")]
    ProviderUnavailable {
        /// In our own words.
        why: String,
        /// After which it may be worth another try.
        again: Duration,
    },
    /// A folder-scoped token may not use resources that are in no folder.
    #[error(
        "{0} are for workspace-wide tokens, and this token is bound to folders: use one without a folder scope"
    )]
    BoundToFolders(&'static str),
    /// More bytes than are taken at once.
    #[error("{0}")]
    TooLarge(String),
    /// More than the plan allows in all: each limit with what is used of it.
    #[error("the plan of this workspace has no room for this: {}", limits::summary(.0))]
    LimitExceeded(Vec<Violation>),
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] sql::Error),
    /// A stored text cannot be read back.
    #[error(transparent)]
    Damaged(#[from] CorruptBody),
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
            Error::NoSource(_)
            | Error::NoDocument(_)
            | Error::NoDocumentHere(_)
            | Error::NoText { .. }
            | Error::NoRun(_)
            | Error::NoWebhook(_)
            | Error::NoDelivery(_)
            | Error::NoSourceDocument(_) => Self::not_found(error.to_string()),
            Error::KeyTaken { .. } => Self::new(Reason::IdempotencyConflict, error.to_string()),
            Error::BoundToFolders(_) => Self::out_of_scope(error.to_string()),
            Error::TooLarge(message) => Self::new(Reason::PayloadTooLarge, message),
            Error::LimitExceeded(ref refused) => {
                let message = format!("{error}; remove documents, or choose another plan");
                Self { violations: refused.clone(), ..Self::new(Reason::LimitExceeded, message) }
            }
            Error::Storage(storage) => Self::from(storage),
            Error::RunBusy => Self::new(Reason::RunBusy, error.to_string()),
            Error::RunNotStartable(_) => Self::new(Reason::RunNotStartable, error.to_string()),
            Error::NoSecretKey => Self::new(Reason::Unavailable, error.to_string()),
            Error::BudgetUsedUp { again, .. } => {
                Self { retry_after: Some(again), ..Self::new(Reason::RateLimited, error.to_string()) }
            }
            Error::ProviderUnavailable { again, .. } => Self::unavailable(error.to_string(), again),
            Error::Upstream(problem) => problem,
            Error::Sealed(_) | Error::Webhook(_) | Error::Damaged(_) => Self::internal(error),
        }
    }
}

impl From<Error> for tonic::Status {
    fn from(error: Error) -> Self {
        Problem::from(error).into()
    }
}
