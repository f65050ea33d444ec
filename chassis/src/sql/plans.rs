//! What a statement reads to find its rows: the check that none reads a table, or all of a workspace, to find a few.

use sqlx::{AssertSqlSafe, Row as _, SqlSafeStr as _};

use super::{Db, Engine, Error, Statement};

/// Real tables, since virtual ones are parameters that hold lists, and whether a workspace has one row there at most.
const SQLITE_TABLES: &str = "SELECT t.name, EXISTS (SELECT 1 FROM pragma_index_list(t.name) i WHERE i.\"unique\" \
     AND (SELECT group_concat(c.name) FROM pragma_index_info(i.name) c) = 'workspace_id') AS is_single \
     FROM sqlite_schema t WHERE t.type = 'table'";

/// Statements that read a whole table, or all rows of a workspace, with the line of the engine's plan that says so; without
/// those that hold one of the texts in `allowed`.
///
/// # Errors
/// When the engine cannot explain a statement.
pub async fn whole_reads(
    db: &Db,
    statements: &[Statement],
    allowed: &[&str],
) -> Result<Vec<(&'static str, String)>, Error> {
    let mut found = Vec::new();
    for statement in statements {
        let text: &'static str = match (statement, db.engine()) {
            (Statement::Common(text), _) | (Statement::Postgres(text), Engine::Postgres(_)) => text,
            (Statement::Pair(pair), engine) => pair.of(engine),
            (Statement::Postgres(_), Engine::Sqlite(_)) => continue,
        };
        if allowed.iter().any(|part| text.contains(part)) {
            continue;
        }
        let lines = match db.engine() {
            Engine::Sqlite(_) => in_sqlite(db, text).await?,
            Engine::Postgres(_) => in_postgres(db, text).await?,
        };
        found.extend(lines.into_iter().map(|line| (text, line)));
    }
    Ok(found)
}

async fn in_sqlite(db: &Db, text: &'static str) -> Result<Vec<String>, Error> {
    let Engine::Sqlite(pool) = db.engine() else { return Ok(Vec::new()) };
    let tables: Vec<(String, bool)> = sqlx::query_as(SQLITE_TABLES).fetch_all(pool).await?;
    let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {text}")).into_sql_str();
    let Engine::Sqlite(pool) = db.engine() else { return Ok(Vec::new()) };
    let rows = sqlx::raw_sql(explain).fetch_all(pool).await;
    let rows = rows.map_err(|error| Error::from(error).within(format!("cannot explain {text}")))?;
    let lines = rows.iter().map(|row| row.try_get::<String, _>("detail"));
    let lines = lines.collect::<Result<Vec<_>, _>>()?;
    Ok(lines.into_iter().filter(|line| is_whole(line, text, &tables)).collect())
}

/// Whether a line of SQLite's plan is a read of all rows of a table, or of all of a workspace.
fn is_whole(line: &str, text: &str, tables: &[(String, bool)]) -> bool {
    let mut words = line.split_whitespace();
    let (Some(how), Some(name)) = (words.next(), words.next()) else { return false };
    let table = tables.iter().find(|(table, _)| table == name || is_alias(text, table, name));
    let Some((_, is_single)) = table else { return false };
    match how {
        "SCAN" => !line.contains("VIRTUAL TABLE"),
        "SEARCH" => line.ends_with("(workspace_id=?)") && !is_single,
        _ => false,
    }
}

/// Whether the text has `FROM table alias` or `JOIN table alias`.
fn is_alias(text: &str, table: &str, alias: &str) -> bool {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || "(),".contains(c)).collect();
    words.windows(2).any(|pair| pair == [table, alias])
}

async fn in_postgres(db: &Db, text: &'static str) -> Result<Vec<String>, Error> {
    let Engine::Postgres(pool) = db.engine() else { return Ok(Vec::new()) };
    let mut tx = pool.begin().await?;
    let within = |error: sqlx::Error| Error::from(error).within(format!("cannot explain {text}"));
    let prepare = AssertSqlSafe(format!("PREPARE explained AS {text}")).into_sql_str();
    sqlx::raw_sql(prepare).execute(&mut *tx).await.map_err(within)?;
    // The plan for parameters that are not known yet.
    sqlx::raw_sql("SET LOCAL plan_cache_mode = force_generic_plan").execute(&mut *tx).await?;
    let parameters: i32 = sqlx::query_scalar(
        "SELECT COALESCE(array_length(parameter_types, 1), 0) FROM pg_prepared_statements WHERE name = 'explained'",
    )
    .fetch_one(&mut *tx)
    .await?;
    let nulls = vec!["NULL"; usize::try_from(parameters).unwrap_or_default()].join(", ");
    let given = if nulls.is_empty() { String::new() } else { format!("({nulls})") };
    let explain = AssertSqlSafe(format!("EXPLAIN EXECUTE explained{given}")).into_sql_str();
    let rows = sqlx::raw_sql(explain).fetch_all(&mut *tx).await.map_err(within)?;
    sqlx::raw_sql("DEALLOCATE explained").execute(&mut *tx).await?;
    tx.rollback().await?;
    let lines = rows.iter().map(|row| row.try_get::<String, _>(0));
    let lines = lines.collect::<Result<Vec<_>, _>>()?;
    Ok(lines
        .into_iter()
        .filter(|line| line.contains("Seq Scan on "))
        .map(|line| line.trim().to_owned())
        .collect())
}
