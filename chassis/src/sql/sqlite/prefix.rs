//! Statements that go to a connection's thread in one message with the statement that follows them: a round trip to that
//! thread costs more than `BEGIN` itself.

use sqlx::sqlite::SqliteArguments;
use sqlx::{AssertSqlSafe, Error, Execute, Sqlite};

/// Statements without parameters and rows that are sent before another one, in the same message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) text: &'static str,
    /// How many statements `text` holds.
    pub(super) statements: usize,
}

/// SQL text with its bound arguments, as sqlx executes it.
type Joined = (AssertSqlSafe<String>, Option<SqliteArguments>);

impl Prefix {
    /// The prefix and that statement as one text.
    pub(super) fn join<'q, E>(self, mut statement: E) -> Result<Joined, Error>
    where
        E: Execute<'q, Sqlite>,
    {
        let arguments = statement.take_arguments().map_err(Error::Encode)?;
        // Both are texts of ours: input is only ever bound.
        let text = AssertSqlSafe(format!("{}; {}", self.text, statement.sql().as_str()));
        Ok((text, arguments))
    }
}
