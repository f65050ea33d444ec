//! A failed commit, in a form that can be cloned for every member of the group.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

use sqlx::Error;
use sqlx::error::{DatabaseError, ErrorKind};

/// What [`sqlx::Error`] says of a failure; that type cannot be cloned.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    /// The engine refused.
    Refused {
        /// The result code of SQLite.
        code: Option<String>,
        message: String,
    },
    /// The connection was lost.
    Disconnected,
}

/// SQLITE_ABORT_ROLLBACK.
const ROLLED_BACK: &str = "516";

impl Failure {
    /// A statement failed in a way that made SQLite roll back the whole transaction.
    pub(super) fn rolled_back() -> Self {
        let message = "a write in the same transaction failed, which took it back whole";
        Self::Refused { code: Some(ROLLED_BACK.to_owned()), message: message.to_owned() }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "sqlx::Error is non-exhaustive")]
    pub(super) fn of(error: &Error) -> Self {
        match error {
            Error::Database(refusal) => Self::Refused {
                code: refusal.code().map(Cow::into_owned),
                message: refusal.message().to_owned(),
            },
            _ => Self::Disconnected,
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Disconnected => Self::WorkerCrashed,
            Failure::Refused { code, message } => Self::Database(Box::new(Refusal { code, message })),
        }
    }
}

#[derive(Debug)]
struct Refusal {
    code: Option<String>,
    message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl StdError for Refusal {}

impl DatabaseError for Refusal {
    fn message(&self) -> &str {
        &self.message
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        self.code.as_deref().map(Cow::Borrowed)
    }

    fn as_error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn StdError + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn StdError + Send + Sync + 'static> {
        self
    }

    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}
