//! Lists of a service's statements, and the check that the engine accepts every one of them.

use sqlx::{AssertSqlSafe, Executor as _, SqlSafeStr as _};

use super::{Db, Dialect, Engine, Error};

/// A statement, in the dialect of both engines or of one.
#[derive(Debug, Clone, Copy)]
pub enum Statement {
    /// The same on both engines.
    Common(&'static str),
    /// One for each.
    Pair(Dialect),
    /// For PostgreSQL alone.
    Postgres(&'static str),
    /// For SQLite alone.
    Sqlite(&'static str),
}

impl Statement {
    /// The text for an engine; `None` when the statement is never sent to it.
    pub(super) fn of<S, P>(&self, engine: Engine<S, P>) -> Option<&'static str> {
        match (self, engine) {
            (Self::Common(text), _)
            | (Self::Postgres(text), Engine::Postgres(_))
            | (Self::Sqlite(text), Engine::Sqlite(_)) => Some(text),
            (Self::Pair(pair), engine) => Some(pair.of(engine)),
            (Self::Postgres(_), Engine::Sqlite(_)) | (Self::Sqlite(_), Engine::Postgres(_)) => None,
        }
    }
}

/// A statement for PostgreSQL alone, such as a row lock: SQLite has a single writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostgresOnly(pub &'static str);

/// A statement for SQLite alone, such as one message where PostgreSQL needs several statements to keep a lock order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqliteOnly(pub &'static str);

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

impl From<PostgresOnly> for Statement {
    fn from(statement: PostgresOnly) -> Self {
        Self::Postgres(statement.0)
    }
}

impl From<SqliteOnly> for Statement {
    fn from(statement: SqliteOnly) -> Self {
        Self::Sqlite(statement.0)
    }
}

/// A constant that holds statements, for [`statements!`](crate::statements).
pub trait Statements {
    /// Adds them to a list.
    fn list(&self, into: &mut Vec<Statement>);
}

macro_rules! one_statement {
    ($($kind:ty),*) => {
        $(impl Statements for $kind {
            fn list(&self, into: &mut Vec<Statement>) {
                into.push((*self).into());
            }
        })*
    };
}

one_statement!(&'static str, Dialect, PostgresOnly, SqliteOnly);

impl<T: Statements, const N: usize> Statements for [T; N] {
    fn list(&self, into: &mut Vec<Statement>) {
        self.as_slice().list(into);
    }
}

impl<T: Statements> Statements for [T] {
    fn list(&self, into: &mut Vec<Statement>) {
        self.iter().for_each(|one| one.list(into));
    }
}

impl<T: Statements> Statements for &[T] {
    fn list(&self, into: &mut Vec<Statement>) {
        (**self).list(into);
    }
}

impl<A: Statements, B: Statements> Statements for (A, B) {
    fn list(&self, into: &mut Vec<Statement>) {
        self.0.list(into);
        self.1.list(into);
    }
}

/// Defines constants that hold statements, and the function that lists them all for
/// [`prepare_all`](crate::sql::prepare_all), so that none can be missing there. Types that hold several implement
/// [`Statements`](crate::sql::Statements).
///
/// ```ignore
/// statements! {
///     pub(super) fn statements;
///
///     /// The name of an item.
///     const GET: &str = "SELECT name FROM items WHERE workspace_id = $1 AND id = $2";
/// }
/// ```
#[macro_export]
macro_rules! statements {
    (
        $(#[$function_meta:meta])*
        $function_visibility:vis fn $function:ident;
        $($(#[$meta:meta])* $visibility:vis const $name:ident: $kind:ty = $text:expr;)*
    ) => {
        $($(#[$meta])* $visibility const $name: $kind = $text;)*

        $(#[$function_meta])*
        $function_visibility fn $function() -> Vec<$crate::sql::Statement> {
            let mut all = Vec::new();
            $($crate::sql::Statements::list(&$name, &mut all);)*
            all
        }
    };
}

/// Prepares every statement, so that a test finds a misspelled column.
///
/// # Errors
/// The first statement that the engine refuses, with its text.
pub async fn prepare_all(db: &Db, statements: &[Statement]) -> Result<(), Error> {
    for text in statements.iter().filter_map(|statement| statement.of(db.engine())) {
        let sql = AssertSqlSafe(text).into_sql_str();
        match db.engine() {
            Engine::Sqlite(pool) => pool.prepare(sql).await.map(|_| ()),
            Engine::Postgres(pool) => pool.prepare(sql).await.map(|_| ()),
        }
        .map_err(|error| Error::from(error).within(format!("cannot prepare {text}")))?;
    }
    Ok(())
}
