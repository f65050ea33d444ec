//! Fills the tables of a stopped server with records.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{Connection as _, SqliteConnection};

use crate::sample::Sample;
use crate::tasks::{MICROS_A_DAY, Row};

/// A cell: its property, its index among the values, its numeric key, its text key, and its search-only text.
type Cell<'a> = (usize, i64, Option<f64>, Option<&'a str>, Option<&'a str>);

/// The id of the record with that number.
pub(crate) fn id(number: u32) -> String {
    format!("{number:08x}-0000-7000-8000-000000000000")
}

/// Writes the records directly into the server's tables, which is faster than a million inserts over the API.
pub(crate) async fn fill(data: &Path, sample: &Sample, records: u32, with_cells: bool) -> anyhow::Result<()> {
    let options = SqliteConnectOptions::new()
        .filename(data.join("content.db"))
        .journal_mode(SqliteJournalMode::Wal)
        .foreign_keys(true);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let workspace: String = match sample.workspace.as_str() {
        "" => {
            sqlx::query_scalar("SELECT workspace_id FROM databases WHERE id = $1")
                .bind(&sample.database)
                .fetch_one(&mut connection)
                .await?
        }
        known => known.to_owned(),
    };
    let mut tx = connection.begin().await?;
    for number in 1..=records {
        let row = Row::of(number, records);
        let (id, date) = (id(number), row.date());
        let (status, tags, values) = (sample.status(&row), sample.tags(&row), sample.values(&row));
        let (name, notes) = (row.name.to_lowercase(), row.notes.to_lowercase());
        sqlx::query(
            "INSERT INTO records (workspace_id, id, database_id, field_values, title, searched, version, created_at, \
             updated_at) VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $7)",
        )
        .bind(&workspace)
        .bind(&id)
        .bind(&sample.database)
        .bind(values.to_string())
        .bind(&row.name)
        .bind(format!("{name}\n{notes}\n{}\n{date}", row.points))
        .bind(i64::from(number))
        .execute(&mut *tx)
        .await?;
        if !with_cells {
            continue;
        }
        let points = row.points.to_string();
        let micros = (row.day * MICROS_A_DAY) as f64;
        let cells: [Cell<'_>; 8] = [
            (0, 0, None, Some(&name), None),
            (1, 0, None, Some(&notes), None),
            (2, 0, Some(f64::from(row.points)), None, Some(&points)),
            (3, 0, Some(micros), None, Some(&date)),
            (4, 0, Some(f64::from(u8::from(row.is_done))), None, None),
            (5, 0, Some(row.status as f64), Some(&status), None),
            (6, 0, row.tags.first().map(|tag| *tag as f64), tags.first().map(String::as_str), None),
            (6, 1, row.tags.last().map(|tag| *tag as f64), tags.last().map(String::as_str), None),
        ];
        for (field, place, number_key, text_key, rest) in cells {
            sqlx::query(
                "INSERT INTO record_cells (workspace_id, record_id, property_id, place, database_id, number_key, text_key, \
                 rest) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            )
            .bind(&workspace)
            .bind(&id)
            .bind(sample.field(field))
            .bind(place)
            .bind(&sample.database)
            .bind(number_key)
            .bind(text_key)
            .bind(rest)
            .execute(&mut *tx)
            .await?;
        }
    }
    sqlx::query("UPDATE record_counts SET live = live + $1 WHERE database_id = $2")
        .bind(i64::from(records))
        .bind(&sample.database)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    connection.close().await?;
    Ok(())
}
