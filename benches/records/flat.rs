//! An in-process baseline: SQLite over a flat table.

use std::path::Path;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};

use crate::fill::id;
use crate::pages::{LAST_OFFSET, PAGE};
use crate::report::Table;
use crate::tasks::{Row, TAGS};

/// Measures SQLite over a flat table in this process.
pub(crate) async fn measure(
    table: &mut Table,
    records: u32,
    requests: u32,
    data: &Path,
) -> anyhow::Result<()> {
    let at = SqliteConnectOptions::new().filename(data.join("flat.db")).create_if_missing(true);
    let mut connection = SqliteConnection::connect_with(&at).await?;
    let mut tx = connection.begin().await?;
    for statement in [
        "CREATE TABLE flat (id TEXT PRIMARY KEY, name TEXT, notes TEXT, points REAL, due TEXT, done INT, status INT, tags TEXT)",
        "CREATE INDEX flat_by_status ON flat (status, points, id)",
    ] {
        sqlx::query(statement).execute(&mut *tx).await?;
    }
    for number in 1..=records {
        let row = Row::of(number, records);
        sqlx::query("INSERT INTO flat VALUES ($1, $2, $3, $4, $5, $6, $7, $8)")
            .bind(id(number))
            .bind(&row.name)
            .bind(&row.notes)
            .bind(row.points)
            .bind(row.date())
            .bind(row.is_done)
            .bind(row.status as i64)
            .bind(row.tags.map(|tag| TAGS.get(tag).copied().unwrap_or_default()).join(","))
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    type Flat = (String, String, String, f64, String, bool, i64, String);
    let rounds = (requests / 10).max(8);
    let mut run = async |name: &str, page: &'static str, count: &'static str, pattern: Option<&str>| {
        let (began, wall) = (ProcessTime::now(), Instant::now());
        for round in 0..rounds {
            let offset = i64::from(round * PAGE % (LAST_OFFSET + PAGE));
            let asked = sqlx::query_as(page).bind(pattern.map_or("2".to_owned(), str::to_owned)).bind(offset);
            let rows: Vec<Flat> = asked.fetch_all(&mut connection).await?;
            let counted = sqlx::query_scalar(count).bind(pattern.map_or("2".to_owned(), str::to_owned));
            let total: i64 = counted.fetch_one(&mut connection).await?;
            std::hint::black_box((rows, total));
        }
        let each = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(rounds);
        let (alone, wall) = (each(began.elapsed()), each(wall.elapsed()));
        table.row(vec![name.to_owned(), format!("{alone:.3}"), String::new(), format!("{wall:.3}")]);
        anyhow::Ok(())
    };
    run(
        "SQLite with the right index: filter by a select, sort by a number",
        "SELECT * FROM flat WHERE status = CAST($1 AS INT) ORDER BY points, id LIMIT 50 OFFSET $2",
        "SELECT COUNT(*) FROM flat WHERE status = CAST($1 AS INT)",
        None,
    )
    .await?;
    run(
        "SQLite with LIKE: search of a word",
        "SELECT * FROM flat WHERE name LIKE $1 OR notes LIKE $1 LIMIT 50 OFFSET $2",
        "SELECT COUNT(*) FROM flat WHERE name LIKE $1 OR notes LIKE $1",
        Some("%staging%"),
    )
    .await
}
