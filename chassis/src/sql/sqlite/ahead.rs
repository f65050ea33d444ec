//! Statements that go to a connection's thread together with the one behind them: to hand something over to that thread and back
//! costs more than to begin a transaction.

use sqlx::sqlite::SqliteArguments;
use sqlx::{AssertSqlSafe, Error, Execute, Sqlite};

/// Statements without parameters and rows that go ahead of another one, in one message with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ahead {
    pub(super) text: &'static str,
    /// How many they are.
    pub(super) statements: usize,
}

/// A statement as sqlx takes it, with what is bound to it.
type Joined = (AssertSqlSafe<String>, Option<SqliteArguments>);

impl Ahead {
    /// These statements and that one.
    pub(super) fn join<'q, E>(self, mut statement: E) -> Result<Joined, Error>
    where
        E: Execute<'q, Sqlite>,
    {
        let arguments = statement.take_arguments().map_err(Error::Encode)?;
        // Both are texts of ours: what a statement is about is bound to it.
        let text = AssertSqlSafe(format!("{}; {}", self.text, statement.sql().as_str()));
        Ok((text, arguments))
    }
}
