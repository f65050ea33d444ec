//! Storage on two engines, written once.
//!
//! A service opens a [`Db`] and writes each statement once, as a named const in the dialect that SQLite and PostgreSQL
//! share (`$1`, `RETURNING`, `ON CONFLICT`, common table expressions). [`execute!`](crate::execute) and [`fetch!`](crate::fetch)
//! send it to either engine; [`on_db!`](crate::on_db) expands any other expression for each. Where the engines really
//! differ, a [`Dialect`] holds both texts side by side.
//!
//! Rules that make one text sufficient:
//! - ids are TEXT ([`Text`]), times BIGINT microseconds ([`crate::clock::Timestamp`]), JSON is TEXT decoded in Rust;
//! - text that is ordered or compared is `COLLATE "C"` on PostgreSQL, so that both engines sort alike;
//! - text never holds NUL, which PostgreSQL cannot store;
//! - a list is bound as one JSON array ([`list_statement!`](crate::list_statement), [`json_list`]), and many rows are returned
//!   as one ([`rows_as_json!`](crate::rows_as_json), [`json_rows`]), as are many columns of one row.

mod config;
mod db;
mod dialect;
mod error;
mod interrupter;
mod migrate;
mod migration_status;
#[cfg(any(test, feature = "testing"))]
pub mod plans;
mod queries;
pub mod removal;
pub mod repair;
mod sqlite;
mod statements;
mod statistics;
mod types;
mod usage;

pub use self::config::Config;
pub use self::db::{Db, Engine, PostgresPool, SqlitePools, Tx, Writer};
pub use self::dialect::{Dialect, json_list, json_row, json_rows};
pub use self::error::{Error, Kind};
pub use self::migrate::{Migration, Step};
pub use self::migration_status::{Applied, MigrationStatus, Tables};
pub use self::queries::Sql;
pub use self::sqlite::{Pool as SqlitePool, PooledConnection, Transaction as SqliteTransaction};
pub use self::statements::{PostgresOnly, SqliteOnly, Statement, Statements, prepare_all};
pub use self::types::Text;

#[cfg(test)]
mod tests;
