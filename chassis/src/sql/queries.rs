//! Macros that execute one statement: its text on either engine, its parameters, and the type of its rows.

use super::Dialect;

/// The text of a statement on each engine.
pub trait Sql {
    /// For SQLite.
    fn sqlite(&self) -> &'static str;
    /// For PostgreSQL.
    fn postgres(&self) -> &'static str;
}

impl Sql for &'static str {
    fn sqlite(&self) -> &'static str {
        self
    }

    fn postgres(&self) -> &'static str {
        self
    }
}

impl Sql for Dialect {
    fn sqlite(&self) -> &'static str {
        self.sqlite
    }

    fn postgres(&self) -> &'static str {
        self.postgres
    }
}

/// Runs a statement with these parameters on any target of [`on_db!`](crate::on_db); returns the number of affected rows.
///
/// ```ignore
/// execute!(tx, DELETE, Text(workspace), Text(id))?;
/// ```
#[macro_export]
macro_rules! execute {
    ($target:expr, $sql:expr $(, $bind:expr)* $(,)?) => {
        match $target.engine() {
            $crate::sql::Engine::Sqlite(connection) => sqlx::query($crate::sql::Sql::sqlite(&$sql))
                $(.bind($bind))*
                .execute(connection)
                .await
                .map(|done| done.rows_affected())
                .map_err($crate::sql::Error::from),
            $crate::sql::Engine::Postgres(connection) => sqlx::query($crate::sql::Sql::postgres(&$sql))
                $(.bind($bind))*
                .execute(connection)
                .await
                .map(|done| done.rows_affected())
                .map_err($crate::sql::Error::from),
        }
    };
}

/// Reads with a statement and its parameters from any target of [`on_db!`](crate::on_db). The first word says what is
/// read: `all`, `one` or `optional` for rows, into a type that derives `FromRow` or a tuple; `scalars`, `scalar` or
/// `optional_scalar` for the first column.
///
/// ```ignore
/// let row: Option<Row> = fetch!(optional, db, GET, Text(workspace), Text(id))?;
/// let count: i64 = fetch!(scalar, db, COUNT, Text(workspace))?;
/// ```
#[macro_export]
macro_rules! fetch {
    (all, $($rest:tt)*) => { $crate::fetch!(@ query_as, fetch_all, $($rest)*) };
    (one, $($rest:tt)*) => { $crate::fetch!(@ query_as, fetch_one, $($rest)*) };
    (optional, $($rest:tt)*) => { $crate::fetch!(@ query_as, fetch_optional, $($rest)*) };
    (scalars, $($rest:tt)*) => { $crate::fetch!(@ query_scalar, fetch_all, $($rest)*) };
    (scalar, $($rest:tt)*) => { $crate::fetch!(@ query_scalar, fetch_one, $($rest)*) };
    (optional_scalar, $($rest:tt)*) => { $crate::fetch!(@ query_scalar, fetch_optional, $($rest)*) };
    (@ $query:ident, $fetch:ident, $target:expr, $sql:expr $(, $bind:expr)* $(,)?) => {
        match $target.engine() {
            $crate::sql::Engine::Sqlite(connection) => sqlx::$query($crate::sql::Sql::sqlite(&$sql))
                $(.bind($bind))*
                .$fetch(connection)
                .await
                .map_err($crate::sql::Error::from),
            $crate::sql::Engine::Postgres(connection) => sqlx::$query($crate::sql::Sql::postgres(&$sql))
                $(.bind($bind))*
                .$fetch(connection)
                .await
                .map_err($crate::sql::Error::from),
        }
    };
}
