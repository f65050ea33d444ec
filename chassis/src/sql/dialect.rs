//! Statements whose text the engines do not share, and texts that several services share.

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
/// PostgreSQL takes a JSON array for a hundred texts, and would rather read a workspace than look a hundred rows up; an array
/// of its own it takes for ten.
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

/// A statement that removes some rows, `$2` at most, of the workspace `$1` from a table with that key: as literals, so
/// that it can be a part of other texts.
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

/// What a statement selects to answer all of its rows as one text, each the JSON array of these columns, in no order; decode it
/// with [`json_rows`](crate::sql::json_rows). A boolean column differs between the engines, and bytes are none of JSON: leave
/// them out.
///
/// SQLite's driver copies each value of each row, and wakes who waits for each row: of many rows, that costs more than to
/// find them.
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

/// What a statement selects to answer columns of a row as one text, as [`rows_as_json!`](crate::rows_as_json) does of many; decode
/// it with [`json_row`](crate::sql::json_row). Bytes may stand beside it.
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
/// When a row is no such thing.
pub fn json_rows<'a, T: Deserialize<'a>>(text: &'a str) -> Result<Vec<T>, Error> {
    json_row(text)
}

/// The row of a statement that selects [`row_as_json!`](crate::row_as_json).
///
/// # Errors
/// When it is no such thing.
pub fn json_row<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::corrupt(format!("rows that an engine wrote cannot be read: {error}")))
}

/// A list as the JSON array of texts that [`list_statement!`](crate::list_statement) reads.
pub fn json_list<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    serde_json::Value::from(texts).to_string()
}
