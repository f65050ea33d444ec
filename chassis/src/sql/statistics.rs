//! What SQLite is told of the sizes of tables, so that it chooses the same plan for a statement on every database.
//!
//! SQLite chooses between indexes by `sqlite_stat1`. Without it, it takes ten rows for what the first column of any index
//! leaves, and would rather read a whole workspace in the order of its ids than look into the index of a second column. The
//! figures here are not counted but made up from the shape of each index: many workspaces, each with many rows (SQLite,
//! "ANALYZE": an application may write them itself).

use sqlx::FromRow;

use super::{Db, Engine, Error, PooledConnection};

/// Makes `sqlite_stat1` and reads nothing, since the schema itself has no indexes.
const MAKE: &str = "ANALYZE sqlite_schema";
const FORGET: &str = "DELETE FROM sqlite_stat1";
const INDEXES: &str = "SELECT t.name AS of_table, i.name, i.\"unique\" AS is_unique, i.partial AS is_partial, \
     i.origin = 'pk' AS is_primary, (SELECT json_group_array(c.name) FROM pragma_index_info(i.name) c) AS columns \
     FROM sqlite_schema t, pragma_index_list(t.name) i WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
const TELL: &str = "INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ($1, $2, $3)";
/// Has the connection take over what was written; others take it with the schema when they open.
const TAKE: &str = "ANALYZE sqlite_schema";
const IS_TOLD: &str = "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'";

/// Rows of a table, and of what a partial index holds of it.
const ROWS: u64 = 10_000_000;
const SOME_ROWS: u64 = 1_000_000;
/// Rows of a workspace: so many more than what a second column leaves, that a list of values, which SQLite takes for some
/// dozens, is looked up one by one.
const OF_WORKSPACE: u64 = 1_000_000;
/// Rows that agree in one column more each; the last figure goes for all further ones.
const ALIKE: [u64; 3] = [10, 4, 2];
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
    /// Rows, then how many of them agree in the first column, in the first two, and so on.
    fn figures(&self) -> String {
        let columns: Vec<Option<String>> = serde_json::from_str(&self.columns).unwrap_or_default();
        let is_of_workspaces = columns.first().and_then(Option::as_deref) == Some(TENANT);
        let mut figures = vec![if self.is_partial { SOME_ROWS } else { ROWS }];
        figures.extend(is_of_workspaces.then_some(OF_WORKSPACE));
        let last = ALIKE.last().copied().unwrap_or(1);
        let mut alike = ALIKE.into_iter().chain(std::iter::repeat(last));
        while figures.len() <= columns.len() {
            figures.extend(alike.next());
        }
        if self.is_unique
            && let Some(all) = figures.last_mut()
        {
            *all = 1;
        }
        figures.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
    }
}

/// Writes figures where there are none: into databases that were last migrated before figures were written.
pub(super) async fn tell_once(db: &Db) -> Result<(), Error> {
    let Engine::Sqlite(pool) = db.writer().engine() else { return Ok(()) };
    let tables: i64 = sqlx::query_scalar(IS_TOLD).fetch_one(pool).await?;
    if tables > 0 {
        return Ok(());
    }
    let mut tx = db.begin_write().await?;
    if let Engine::Sqlite(connection) = tx.engine() {
        tell(connection).await?;
    }
    tx.commit().await
}

/// Writes figures for every index that is there now, in place of earlier ones.
pub(super) async fn tell(connection: &mut PooledConnection) -> Result<(), Error> {
    sqlx::query(MAKE).execute(&mut *connection).await?;
    sqlx::query(FORGET).execute(&mut *connection).await?;
    let indexes: Vec<Index> = sqlx::query_as(INDEXES).fetch_all(&mut *connection).await?;
    for index in indexes {
        // The key of a table that is kept in the order of its key goes by the table's name.
        let name = if index.is_primary { &index.of_table } else { &index.name };
        let figures = index.figures();
        sqlx::query(TELL).bind(&index.of_table).bind(name).bind(figures).execute(&mut *connection).await?;
    }
    sqlx::query(TAKE).execute(connection).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(columns: &str, is_unique: bool, is_partial: bool) -> String {
        let (of_table, name) = (String::new(), String::new());
        Index { of_table, name, is_unique, is_partial, is_primary: false, columns: columns.to_owned() }
            .figures()
    }

    #[test]
    fn the_more_columns_agree_the_fewer_rows_do() {
        assert_eq!(figures(r#"["workspace_id","id"]"#, true, false), "10000000 1000000 1");
        assert_eq!(figures(r#"["workspace_id","body"]"#, false, true), "1000000 1000000 10");
        assert_eq!(figures(r#"["workspace_id"]"#, false, false), "10000000 1000000");
        assert_eq!(figures(r#"["email"]"#, true, false), "10000000 1");
        assert_eq!(figures(r#"["state","due_at",null,"id"]"#, false, false), "10000000 10 4 2 2");
    }
}
