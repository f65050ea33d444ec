//! The file of a SQLite database that the disk, or somebody, has damaged: what is wrong with it, indexes built again, and
//! what can still be read copied into a new file (docs/adr/0102).

mod salvage;

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};

pub use self::salvage::{Lost, Salvaged, salvage};
use super::{Config, Error};

/// SQLite's result codes for a file that is not as it should be (SQLite, "Result and Error Codes").
const CORRUPT: i32 = 11;
const NOT_A_DATABASE: i32 = 26;
/// The low byte of extended codes.
const PRIMARY: i32 = 0xff;
/// More than these tell nothing new.
const SHOWN: usize = 20;

/// What is wrong with the file of a database; nothing when it is sound, is not there, or is none.
///
/// # Errors
/// When the file cannot be opened.
pub async fn examine(config: &Config) -> Result<Vec<String>, Error> {
    let Some(path) = config.file().filter(|path| path.exists()) else { return Ok(Vec::new()) };
    match look(path).await {
        Ok(faults) => Ok(faults),
        Err(error) if is_damage(&error) => Ok(vec![error.to_string()]),
        Err(error) => Err(error.into()),
    }
}

async fn look(path: &Path) -> Result<Vec<String>, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(path).pragma("query_only", "ON");
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let looked = look_with(&mut connection).await;
    // It only read: nothing is lost when it does not close well.
    let _ = connection.close().await;
    looked
}

async fn look_with(connection: &mut SqliteConnection) -> Result<Vec<String>, sqlx::Error> {
    let tables: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM sqlite_schema").fetch_one(&mut *connection).await?;
    if tables == 0 {
        return Ok(vec!["there is no table in it".to_owned()]);
    }
    let said: Vec<String> =
        sqlx::query_scalar("PRAGMA integrity_check(20)").fetch_all(&mut *connection).await?;
    let lines = said.iter().flat_map(|text| text.lines()).map(str::trim);
    let faults = lines.filter(|line| !line.is_empty() && *line != "ok" && !line.starts_with("***"));
    Ok(faults.take(SHOWN).map(str::to_owned).collect())
}

/// Whether these faults are of indexes alone, which can be built again from their tables.
pub fn is_of_indexes(faults: &[String]) -> bool {
    !faults.is_empty()
        && faults.iter().all(|fault| {
            fault.contains("missing from index")
                || fault.contains("entries in index")
                || fault.contains("non-unique entry in index")
        })
}

/// Builds every index again; answers whether the file is sound then. All of it happens, or nothing.
///
/// # Errors
/// When the file cannot be opened.
pub async fn reindex(config: &Config) -> Result<bool, Error> {
    let Some(path) = config.file() else { return Ok(false) };
    let mut connection = SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path)).await?;
    let built = sqlx::raw_sql("REINDEX").execute(&mut connection).await;
    let _ = connection.close().await;
    Ok(built.is_ok() && examine(config).await?.is_empty())
}

/// Whether an error says that the file is damaged.
fn is_damage(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refusal) = error else { return false };
    let code = refusal.code().and_then(|code| code.parse::<i32>().ok());
    code.is_some_and(|code| matches!(code & PRIMARY, CORRUPT | NOT_A_DATABASE))
}

#[cfg(test)]
mod tests;
