//! Repairs a corrupt SQLite file: checks it, rebuilds its indexes, or copies its readable rows into a new file
//! (docs/adr/0102).

mod salvage;

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};

pub use self::salvage::{Lost, Salvaged, salvage};
use super::{Config, Error};

/// SQLite's result codes for a corrupt file (SQLite, "Result and Error Codes").
const CORRUPT: i32 = 11;
const NOT_A_DATABASE: i32 = 26;
/// The low byte of extended codes.
const PRIMARY: i32 = 0xff;
/// How many faults or keys are listed.
const MAX_LISTED: usize = 20;

/// The faults of a database file; none when it is sound or missing, or when the database is not a file.
///
/// # Errors
/// When the file cannot be opened.
pub async fn examine(config: &Config) -> Result<Vec<String>, Error> {
    let Some(path) = config.file().filter(|path| path.exists()) else { return Ok(Vec::new()) };
    match check(path).await {
        Ok(faults) => Ok(faults),
        Err(error) if is_corruption(&error) => Ok(vec![error.to_string()]),
        Err(error) => Err(error.into()),
    }
}

async fn check(path: &Path) -> Result<Vec<String>, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(path).pragma("query_only", "ON");
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let faults = check_on(&mut connection).await;
    // The connection only read: an error on close loses nothing.
    let _ = connection.close().await;
    faults
}

async fn check_on(connection: &mut SqliteConnection) -> Result<Vec<String>, sqlx::Error> {
    let tables: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM sqlite_schema").fetch_one(&mut *connection).await?;
    if tables == 0 {
        return Ok(vec!["there is no table in it".to_owned()]);
    }
    let report: Vec<String> =
        sqlx::query_scalar("PRAGMA integrity_check(20)").fetch_all(&mut *connection).await?;
    let lines = report.iter().flat_map(|text| text.lines()).map(str::trim);
    let faults = lines.filter(|line| !line.is_empty() && *line != "ok" && !line.starts_with("***"));
    Ok(faults.take(MAX_LISTED).map(str::to_owned).collect())
}

/// Whether all faults are in indexes, which can be rebuilt from their tables.
pub fn only_in_indexes(faults: &[String]) -> bool {
    !faults.is_empty()
        && faults.iter().all(|fault| {
            fault.contains("missing from index")
                || fault.contains("entries in index")
                || fault.contains("non-unique entry in index")
        })
}

/// Rebuilds every index, atomically; returns whether the file is sound then.
///
/// # Errors
/// When the file cannot be opened.
pub async fn reindex(config: &Config) -> Result<bool, Error> {
    let Some(path) = config.file() else { return Ok(false) };
    let mut connection = SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path)).await?;
    let rebuilt = sqlx::raw_sql("REINDEX").execute(&mut connection).await;
    let _ = connection.close().await;
    Ok(rebuilt.is_ok() && examine(config).await?.is_empty())
}

/// Whether an error means that the file is corrupt.
fn is_corruption(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refusal) = error else { return false };
    let code = refusal.code().and_then(|code| code.parse::<i32>().ok());
    code.is_some_and(|code| matches!(code & PRIMARY, CORRUPT | NOT_A_DATABASE))
}

#[cfg(test)]
mod tests;
