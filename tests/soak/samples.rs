//! The resource usage of a deployment, measured from outside: memory, files and threads from `/proc`, and the sizes of
//! tables and files.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

const DATABASES: [&str; 5] = ["auth", "content", "ingest", "retrieval", "sync"];
const FOLDERS: [&str; 2] = ["assets", "index"];
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const TABLES: &str =
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";

/// A sample.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    /// Since the start.
    pub(crate) at: Duration,
    /// The number of writes so far.
    pub(crate) writes: usize,
    /// By name: `memory`, `content.db`, `content.files`, …
    pub(crate) values: BTreeMap<String, u64>,
}

/// Samples a process and its data folder. Without `/proc`, memory, files and threads are left out.
pub(crate) async fn take(process: u32, data: &Path, at: Duration, writes: usize) -> Sample {
    let mut values = BTreeMap::new();
    values.extend(of_process(process));
    for folder in FOLDERS {
        values.insert(format!("{folder}/"), size_below(&data.join(folder)));
    }
    for service in DATABASES {
        for ending in ["db", "db-wal"] {
            let file = data.join(format!("{service}.{ending}"));
            values
                .insert(format!("{service}.{ending}"), std::fs::metadata(file).map_or(0, |file| file.len()));
        }
        let path = data.join(format!("{service}.db"));
        for (table, rows) in rows(&path).await.unwrap() {
            values.insert(format!("{service}.{table}"), rows);
        }
    }
    Sample { at, writes, values }
}

fn of_process(process: u32) -> Vec<(String, u64)> {
    let folder = format!("/proc/{process}");
    let Ok(status) = std::fs::read_to_string(format!("{folder}/status")) else { return Vec::new() };
    let number = |field: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let files = std::fs::read_dir(format!("{folder}/fd")).map_or(0, |files| files.count() as u64);
    let memory = number("VmRSS:").unwrap_or_default() * 1024;
    let threads = number("Threads:").unwrap_or_default();
    [("memory", memory), ("open files", files), ("threads", threads)]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
}

/// The total size of all files below a folder; some may be deleted concurrently.
fn size_below(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

/// The row counts of all tables.
async fn rows(database: &Path) -> Result<Vec<(String, u64)>, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(database).busy_timeout(BUSY_TIMEOUT);
    let mut connection = SqliteConnection::connect_with(&options.pragma("query_only", "ON")).await?;
    let tables: Vec<String> = sqlx::query_scalar(TABLES).fetch_all(&mut connection).await?;
    let mut rows = Vec::new();
    for table in tables {
        // Table names come from our own migrations.
        let count = AssertSqlSafe(format!("SELECT COUNT(*) FROM \"{table}\""));
        let count: i64 = sqlx::query_scalar(count).fetch_one(&mut connection).await?;
        rows.push((table, count.unsigned_abs()));
    }
    connection.close().await?;
    Ok(rows)
}
