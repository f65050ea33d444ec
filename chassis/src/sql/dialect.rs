//! Statements whose text the engines do not share, and the check that every statement is one.

use std::fmt;

use sqlx::{AssertSqlSafe, Executor as _, SqlSafeStr as _};

use super::{Db, Engine, Error};

/// One statement in both dialects, side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// For SQLite.
    pub sqlite: &'static str,
    /// For PostgreSQL.
    pub postgres: &'static str,
}

impl Dialect {
    /// The text for the engine of that database or transaction: `SQL.of(db.engine())`.
    #[expect(clippy::needless_pass_by_value, reason = "the connection inside is not looked at")]
    pub fn of<S, P>(&self, engine: Engine<S, P>) -> &'static str {
        match engine {
            Engine::Sqlite(_) => self.sqlite,
            Engine::Postgres(_) => self.postgres,
        }
    }
}

/// A statement with a list among its parameters: `list_statement!(before, "$2", after)` puts a subquery between the two
/// that yields the texts of the JSON array `$2` (bind [`json_list`](crate::sql::json_list)).
///
/// ```ignore
/// const GET_MANY: Dialect = list_statement!("SELECT … WHERE workspace_id = $1 AND id IN ", "$2", " ORDER BY id");
/// ```
#[macro_export]
macro_rules! list_statement {
    ($before:expr, $parameter:literal, $after:expr) => {
        $crate::sql::Dialect {
            sqlite: concat!($before, "(SELECT value FROM json_each(", $parameter, "))", $after),
            postgres: concat!(
                $before,
                "(SELECT jsonb_array_elements_text(CAST(CAST(",
                $parameter,
                " AS TEXT) AS JSONB)))",
                $after
            ),
        }
    };
}

/// A list as the JSON array of texts that [`list_statement!`](crate::list_statement) reads.
pub fn json_list<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    serde_json::Value::from(texts).to_string()
}

/// A statement in one text or two.
#[derive(Debug, Clone, Copy)]
pub enum Statement {
    /// The same on both engines.
    Common(&'static str),
    /// One for each.
    Pair(Dialect),
}

impl From<&'static str> for Statement {
    fn from(text: &'static str) -> Self {
        Self::Common(text)
    }
}

impl From<Dialect> for Statement {
    fn from(pair: Dialect) -> Self {
        Self::Pair(pair)
    }
}

/// Prepares every statement, so that a test finds a misspelled column before a user does.
///
/// # Errors
/// The first statement that the engine refuses, with its text.
pub async fn prepare_all(db: &Db, statements: &[Statement]) -> Result<(), Error> {
    for statement in statements {
        let text = match statement {
            Statement::Common(text) => text,
            Statement::Pair(pair) => pair.of(db.engine()),
        };
        let sql = AssertSqlSafe(text).into_sql_str();
        match db.engine() {
            Engine::Sqlite(pool) => pool.prepare(sql).await.map(|_| ()),
            Engine::Postgres(pool) => pool.prepare(sql).await.map(|_| ()),
        }
        .map_err(|error| Error::from(error).within(format!("cannot prepare {text}")))?;
    }
    Ok(())
}
