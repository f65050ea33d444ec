//! Synthetic planner statistics for SQLite, so that it chooses the same plan for a statement on every database.
//!
//! SQLite chooses between indexes by `sqlite_stat1`. Without it, it assumes that the first column of any index selects ten
//! rows, and would scan a whole workspace in the order of its ids instead of using an index on a second column. The
//! estimates here are not measured but derived from the shape of each index: many workspaces, each with many rows (SQLite,
//! "ANALYZE": an application may write them itself).

use sqlx::FromRow;

use super::{Db, Engine, Error, PooledConnection};

/// Creates `sqlite_stat1` without reading any table, since the schema itself has no indexes.
const CREATE: &str = "ANALYZE sqlite_schema";
const DELETE_ALL: &str = "DELETE FROM sqlite_stat1";
const INDEXES: &str = "SELECT t.name AS of_table, i.name, i.\"unique\" AS is_unique, i.partial AS is_partial, \
     i.origin = 'pk' AS is_primary, (SELECT json_group_array(c.name) FROM pragma_index_info(i.name) c) AS columns \
     FROM sqlite_schema t, pragma_index_list(t.name) i WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
const INSERT: &str = "INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ($1, $2, $3)";
/// Makes the connection load the new statistics; other connections load them with the schema when they open.
const RELOAD: &str = "ANALYZE sqlite_schema";
const COUNT_TABLES: &str = "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'";

/// Rows of a table, and rows that a partial index covers.
const TABLE_ROWS: u64 = 10_000_000;
const PARTIAL_ROWS: u64 = 1_000_000;
/// Rows of a workspace: so many more than a second column selects that a list of values, which SQLite assumes to be some
/// dozens, is looked up value by value.
const WORKSPACE_ROWS: u64 = 1_000_000;
/// Rows that are equal in each further column of an index; the last number is repeated.
const EQUAL_ROWS: [u64; 3] = [10, 4, 2];
const TENANT: &str = "workspace_id";

#[derive(Debug, FromRow)]
struct Index {
    of_table: String,
    name: String,
    is_unique: bool,
    is_partial: bool,
    is_primary: bool,
    /// A JSON array.
    columns: String,
}

impl Index {
    /// The `stat` column: all rows, then how many are equal in the first column, in the first two, and so on.
    fn estimates(&self) -> String {
        let columns: Vec<Option<String>> = serde_json::from_str(&self.columns).unwrap_or_default();
        let is_per_workspace = columns.first().and_then(Option::as_deref) == Some(TENANT);
        let mut estimates = vec![if self.is_partial { PARTIAL_ROWS } else { TABLE_ROWS }];
        estimates.extend(is_per_workspace.then_some(WORKSPACE_ROWS));
        let last = EQUAL_ROWS.last().copied().unwrap_or(1);
        let mut equal_rows = EQUAL_ROWS.into_iter().chain(std::iter::repeat(last));
        while estimates.len() <= columns.len() {
            estimates.extend(equal_rows.next());
        }
        if self.is_unique
            && let Some(all_columns) = estimates.last_mut()
        {
            *all_columns = 1;
        }
        estimates.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
    }
}

/// Writes statistics into a database that has none, because it was last migrated by a version that wrote none.
pub(super) async fn write_if_missing(db: &Db) -> Result<(), Error> {
    let Engine::Sqlite(pool) = db.writer().engine() else { return Ok(()) };
    let tables: i64 = sqlx::query_scalar(COUNT_TABLES).fetch_one(pool).await?;
    if tables > 0 {
        return Ok(());
    }
    let mut tx = db.begin_write().await?;
    if let Engine::Sqlite(connection) = tx.engine() {
        write(connection).await?;
    }
    tx.commit().await
}

/// Replaces the statistics with those of every index that exists now.
pub(super) async fn write(connection: &mut PooledConnection) -> Result<(), Error> {
    sqlx::query(CREATE).execute(&mut *connection).await?;
    sqlx::query(DELETE_ALL).execute(&mut *connection).await?;
    let indexes: Vec<Index> = sqlx::query_as(INDEXES).fetch_all(&mut *connection).await?;
    for index in indexes {
        // The primary key of a WITHOUT ROWID table is listed under the table's name.
        let name = if index.is_primary { &index.of_table } else { &index.name };
        let estimates = index.estimates();
        sqlx::query(INSERT)
            .bind(&index.of_table)
            .bind(name)
            .bind(estimates)
            .execute(&mut *connection)
            .await?;
    }
    sqlx::query(RELOAD).execute(connection).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimates(columns: &str, is_unique: bool, is_partial: bool) -> String {
        let (of_table, name) = (String::new(), String::new());
        Index { of_table, name, is_unique, is_partial, is_primary: false, columns: columns.to_owned() }
            .estimates()
    }

    #[test]
    fn the_more_columns_agree_the_fewer_rows_do() {
        assert_eq!(estimates(r#"["workspace_id","id"]"#, true, false), "10000000 1000000 1");
        assert_eq!(estimates(r#"["workspace_id","body"]"#, false, true), "1000000 1000000 10");
        assert_eq!(estimates(r#"["workspace_id"]"#, false, false), "10000000 1000000");
        assert_eq!(estimates(r#"["email"]"#, true, false), "10000000 1");
        assert_eq!(estimates(r#"["state","due_at",null,"id"]"#, false, false), "10000000 10 4 2 2");
    }
}
