//! Storage errors, classified by what the caller can do about them.

use std::borrow::Cow;
use std::time::Duration;

use crate::status::{Problem, Reason};

const RETRY_WHEN_FULL: Duration = Duration::from_secs(30);
const RETRY_WHEN_DOWN: Duration = Duration::from_secs(2);
const RETRY_WHEN_BUSY: Duration = Duration::from_secs(2);
const RETRY_AFTER_CONFLICT: Duration = Duration::from_secs(1);

/// Primary result codes of SQLite (the low byte of the extended ones).
mod sqlite {
    pub(super) const ABORT: i32 = 4;
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const READ_ONLY: i32 = 8;
    pub(super) const INTERRUPT: i32 = 9;
    pub(super) const IO: i32 = 10;
    pub(super) const FULL: i32 = 13;
    pub(super) const CANNOT_OPEN: i32 = 14;
    pub(super) const PRIMARY: i32 = 0xff;
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A unique key is taken.
    UniqueViolation,
    /// The disk is full or the storage is read-only: reads continue, writes fail until an operator acts.
    Full,
    /// The database cannot be reached, is shutting down, or has no free connection.
    Unavailable,
    /// A conflict with another transaction (deadlock, serialization failure, lock timeout): a retry may succeed.
    Conflict,
    /// The deadline of the call passed while the statement ran.
    TimedOut,
    /// The workspace has too many long reads in flight.
    Busy,
    /// A bug, or corrupt data.
    Other,
}

/// A failure of the storage.
#[derive(Debug, thiserror::Error)]
#[error("{context}{}{}", if source.is_some() { ": " } else { "" }, source.as_ref().map(ToString::to_string).unwrap_or_default())]
pub struct Error {
    kind: Kind,
    context: Cow<'static, str>,
    source: Option<sqlx::Error>,
}

impl Error {
    /// What kind of failure it is.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether a unique key is taken.
    pub fn is_unique_violation(&self) -> bool {
        self.kind == Kind::UniqueViolation
    }

    pub(super) fn config(message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: Kind::Other, context: message.into(), source: None }
    }

    /// Stored data that cannot be decoded.
    pub fn corrupt(message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: Kind::Other, context: message.into(), source: None }
    }

    /// All retries failed because of conflicts with other transactions.
    pub(crate) fn contended(context: &'static str) -> Self {
        Self { kind: Kind::Conflict, context: context.into(), source: None }
    }

    pub(super) fn busy() -> Self {
        Self { kind: Kind::Busy, context: "the workspace has many reads under way".into(), source: None }
    }

    pub(super) fn within(mut self, context: impl Into<Cow<'static, str>>) -> Self {
        self.context = context.into();
        self
    }
}

impl From<sqlx::Error> for Error {
    fn from(source: sqlx::Error) -> Self {
        Self { kind: classify(&source), context: "storage failed".into(), source: Some(source) }
    }
}

/// The error for the client; the details of [`Kind::Other`] are only logged.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error.kind {
            Kind::Full => {
                tracing::error!(%error, "storage is full or read-only");
                Self::unavailable("storage is full or read-only", RETRY_WHEN_FULL)
            }
            Kind::Unavailable => {
                tracing::warn!(%error, "the database is unreachable");
                Self::unavailable("the database is unreachable", RETRY_WHEN_DOWN)
            }
            Kind::Conflict => Self::unavailable("another change stood in the way", RETRY_AFTER_CONFLICT),
            Kind::TimedOut => Self::new(
                Reason::DeadlineExceeded,
                "the time for this call ran out; ask for less at once, or try again",
            ),
            Kind::Busy => Self::unavailable(
                "too many lists and searches of this workspace are under way; send fewer at once, or try again",
                RETRY_WHEN_BUSY,
            ),
            Kind::UniqueViolation | Kind::Other => Self::internal(error),
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "sqlx::Error is non-exhaustive")]
fn classify(error: &sqlx::Error) -> Kind {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => Kind::Unavailable,
        sqlx::Error::Database(database) if database.is_unique_violation() => Kind::UniqueViolation,
        sqlx::Error::Database(database) => {
            let code = database.code().unwrap_or_default();
            // SQLSTATE has five characters; SQLite's result codes have at most four digits.
            match code.parse::<i32>() {
                Ok(number) if code.len() < 5 => classify_sqlite(number),
                _ => classify_postgres(&code),
            }
        }
        _ => Kind::Other,
    }
}

fn classify_sqlite(code: i32) -> Kind {
    match code & sqlite::PRIMARY {
        // Some file systems report a full disk as an input/output error.
        sqlite::FULL | sqlite::READ_ONLY | sqlite::IO => Kind::Full,
        sqlite::CANNOT_OPEN => Kind::Unavailable,
        // Another statement, maybe of another caller in the same group commit, made SQLite roll back the transaction.
        sqlite::ABORT | sqlite::BUSY | sqlite::LOCKED => Kind::Conflict,
        sqlite::INTERRUPT => Kind::TimedOut,
        _ => Kind::Other,
    }
}

/// By SQLSTATE, PostgreSQL manual, appendix A.
fn classify_postgres(code: &str) -> Kind {
    match code {
        // disk_full, io_error, read_only_sql_transaction (a replica, or default_transaction_read_only)
        "53100" | "58030" | "25006" => Kind::Full,
        // serialization_failure, deadlock_detected, lock_not_available
        "40001" | "40P01" | "55P03" => Kind::Conflict,
        // query_canceled, by statement_timeout
        "57014" => Kind::TimedOut,
        // too_many_connections, admin_shutdown, crash_shutdown, cannot_connect_now
        "53300" | "57P01" | "57P02" | "57P03" => Kind::Unavailable,
        // connection exceptions
        _ if code.starts_with("08") => Kind::Unavailable,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_say_what_to_do() {
        assert_eq!(classify_sqlite(13), Kind::Full);
        assert_eq!(classify_sqlite(8 | (4 << 8)), Kind::Full);
        assert_eq!(classify_sqlite(5 | (2 << 8)), Kind::Conflict);
        assert_eq!(classify_sqlite(4 | (2 << 8)), Kind::Conflict);
        assert_eq!(classify_sqlite(9), Kind::TimedOut);
        assert_eq!(classify_sqlite(1), Kind::Other);
        assert_eq!(classify_postgres("53100"), Kind::Full);
        assert_eq!(classify_postgres("58030"), Kind::Full);
        assert_eq!(classify_postgres("40P01"), Kind::Conflict);
        assert_eq!(classify_postgres("08006"), Kind::Unavailable);
        assert_eq!(classify_postgres("57014"), Kind::TimedOut);
        assert_eq!(classify_postgres("42703"), Kind::Other);
    }

    #[test]
    fn a_down_database_is_unavailable_not_internal() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let problem = Problem::from(Error::from(sqlx::Error::Io(refused)));
        assert_eq!(problem.reason, crate::status::Reason::Unavailable);
        assert!(problem.retry_after.is_some());
    }
}
