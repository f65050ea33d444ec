//! Statements whose text differs between the engines, and SQL fragments that several services share.

use std::fmt;

use serde::Deserialize;

use super::{Engine, Error};

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
    #[expect(clippy::needless_pass_by_value, reason = "the connection inside is not used")]
    pub fn of<S, P>(&self, engine: Engine<S, P>) -> &'static str {
        match engine {
            Engine::Sqlite(_) => self.sqlite,
            Engine::Postgres(_) => self.postgres,
        }
    }
}

/// A statement with a list among its parameters: `list_statement!(before, "$2", after)` inserts a subquery that yields the
/// texts of the JSON array `$2` (bind [`json_list`](crate::sql::json_list)).
///
/// PostgreSQL estimates a JSON array at a hundred elements, and would scan a workspace instead of looking up a hundred rows;
/// it estimates a native array at ten.
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
                "(SELECT unnest(ARRAY(SELECT jsonb_array_elements_text(CAST(CAST(",
                $parameter,
                " AS TEXT) AS JSONB)))))",
                $after
            ),
        }
    };
}

/// A statement that deletes at most `$2` rows of the workspace `$1` from a table with that key: a literal, so that it can be
/// part of other texts.
///
/// ```ignore
/// const FILES: &str = some_rows_of!("files", "workspace_id, id");
/// ```
#[macro_export]
macro_rules! some_rows_of {
    ($table:literal, $key:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE (",
            $key,
            ") IN (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE workspace_id = $1 LIMIT $2)"
        )
    };
}

/// An expression that aggregates all rows of a statement into one text, in no order: a JSON array with an array of these
/// columns for each row. Decode it with [`json_rows`](crate::sql::json_rows). Leave out booleans, which differ between the
/// engines, and bytes, which JSON does not have.
///
/// SQLite's driver copies each value of each row, and wakes the waiting task for each row: for many rows, that costs more
/// than the query itself.
///
/// ```ignore
/// concat!("SELECT ", rows_as_json!(sqlite, "id, name"), " FROM items WHERE workspace_id = $1")
/// ```
#[macro_export]
macro_rules! rows_as_json {
    (sqlite, $columns:expr) => {
        concat!("json_group_array(json_array(", $columns, "))")
    };
    (postgres, $columns:expr) => {
        concat!("CAST(COALESCE(json_agg(json_build_array(", $columns, ")), CAST('[]' AS JSON)) AS TEXT)")
    };
}

/// An expression that returns columns of one row as one text, as [`rows_as_json!`](crate::rows_as_json) does for many; decode
/// it with [`json_row`](crate::sql::json_row). Bytes can be selected next to it.
///
/// ```ignore
/// concat!("SELECT ", row_as_json!(sqlite, "id, name"), ", data FROM items WHERE workspace_id = $1 AND id = $2")
/// ```
#[macro_export]
macro_rules! row_as_json {
    (sqlite, $columns:expr) => {
        concat!("json_array(", $columns, ")")
    };
    (postgres, $columns:expr) => {
        concat!("CAST(json_build_array(", $columns, ") AS TEXT)")
    };
}

/// The rows of a statement that selects [`rows_as_json!`](crate::rows_as_json), in no order.
///
/// # Errors
/// When a row cannot be decoded.
pub fn json_rows<'a, T: Deserialize<'a>>(text: &'a str) -> Result<Vec<T>, Error> {
    json_row(text)
}

/// The row of a statement that selects [`row_as_json!`](crate::row_as_json).
///
/// # Errors
/// When it cannot be decoded.
pub fn json_row<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::corrupt(format!("rows that an engine wrote cannot be read: {error}")))
}

/// A list as the JSON array of texts that [`list_statement!`](crate::list_statement) reads.
pub fn json_list<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    serde_json::Value::from(texts).to_string()
}
