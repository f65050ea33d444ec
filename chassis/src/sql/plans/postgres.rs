//! What PostgreSQL's plans say.

use serde_json::Value;
use sqlx::{AssertSqlSafe, PgPool, Row as _, SqlSafeStr as _};

use super::Size;
use super::catalog::{TENANT, Table};
use crate::sql::Error;

/// The nodes that hand on the rows of one below them as they come, so that a limit above ends that one.
const PASSING: [&str; 4] = ["Limit", "LockRows", "Result", "Subquery Scan"];

/// The nodes of a statement's plan that read all.
pub(super) async fn whole_reads(
    pool: &PgPool,
    tables: &[Table],
    size: Size,
    statement: &'static str,
) -> Result<Vec<String>, Error> {
    let mut tx = pool.begin().await?;
    let within = |error: sqlx::Error| Error::from(error).within(format!("cannot explain {statement}"));
    let prepare = AssertSqlSafe(format!("PREPARE explained AS {statement}")).into_sql_str();
    sqlx::raw_sql(prepare).execute(&mut *tx).await.map_err(within)?;
    // The plan for parameters that are not known yet.
    sqlx::raw_sql("SET LOCAL plan_cache_mode = force_generic_plan").execute(&mut *tx).await?;
    // A merge join ends with the shorter of two indexes, and which part of the longer one it is expected to read by then is a
    // matter of the sample that was counted: its index scans have no condition, and say nothing.
    sqlx::raw_sql("SET LOCAL enable_mergejoin = off").execute(&mut *tx).await?;
    let parameters: i32 = sqlx::query_scalar(
        "SELECT COALESCE(array_length(parameter_types, 1), 0) FROM pg_prepared_statements WHERE name = 'explained'",
    )
    .fetch_one(&mut *tx)
    .await?;
    let nulls = vec!["NULL"; usize::try_from(parameters).unwrap_or_default()].join(", ");
    let given = if nulls.is_empty() { String::new() } else { format!("({nulls})") };
    let explain = AssertSqlSafe(format!("EXPLAIN (FORMAT JSON) EXECUTE explained{given}")).into_sql_str();
    let rows = sqlx::raw_sql(explain).fetch_all(&mut *tx).await.map_err(within)?;
    sqlx::raw_sql("DEALLOCATE explained").execute(&mut *tx).await?;
    tx.rollback().await?;
    let (seen, mut found) = (Seen { tables, size }, Vec::new());
    for row in &rows {
        let plans: Value = row.try_get(0)?;
        for plan in plans.as_array().into_iter().flatten().filter_map(|plan| plan.get("Plan")) {
            seen.look(plan, &Above::default(), &mut found);
        }
    }
    Ok(found)
}

/// What plans are of.
struct Seen<'a> {
    tables: &'a [Table],
    size: Size,
}

/// What stands above a node.
#[derive(Debug, Clone, Default)]
struct Above {
    /// The table that it reads for.
    table: Option<String>,
    is_limited: bool,
}

impl Seen<'_> {
    fn look(&self, node: &Value, above: &Above, found: &mut Vec<String>) {
        let kind = text(node, "Node Type");
        let table = node.get("Relation Name").and_then(Value::as_str).map(ToOwned::to_owned);
        let here = Above {
            table: table.or_else(|| above.table.clone()),
            is_limited: PASSING.contains(&kind) && (above.is_limited || kind == "Limit"),
        };
        let below: Vec<&Value> = node.get("Plans").and_then(Value::as_array).into_iter().flatten().collect();
        if kind == "BitmapAnd" {
            // The rows that all of them find are read: one that finds few is enough.
            let each = below.iter().map(|one| {
                let mut lines = Vec::new();
                self.look(one, &here, &mut lines);
                lines
            });
            found.extend(each.min_by_key(Vec::len).unwrap_or_default());
            return;
        }
        let of_table = self.tables.iter().find(|table| here.table.as_deref() == Some(table.name.as_str()));
        if let Some(table) = of_table
            && self.is_whole(node, kind, above, table)
        {
            let (index, condition) = (text(node, "Index Name"), text(node, "Index Cond"));
            found.push(format!("{kind} of {} {index} {condition}", table.name).trim_end().to_owned());
        }
        below.into_iter().for_each(|one| self.look(one, &here, found));
    }

    /// Whether a node reads all rows of a table, or all of a workspace: an index is read in full where a condition leaves its
    /// first column out. A node below a limit, which takes every row that it finds, ends with the limit.
    ///
    /// Of an empty table every index costs the same, and which one is read says nothing. Of one that nobody has counted,
    /// PostgreSQL takes a workspace for the two-hundredth part, which is soon as cheap as to look ten rows up. So indexes that
    /// are read in full are judged where there are rows, and those of which a workspace is read on large tables.
    fn is_whole(&self, node: &Value, kind: &str, above: &Above, table: &Table) -> bool {
        match kind {
            "Seq Scan" => return true,
            "Index Scan" | "Index Only Scan" | "Bitmap Index Scan" if self.size != Size::Empty => {}
            _ => return false,
        }
        let asked = columns(text(node, "Index Cond"));
        let leading = table.leading_column(text(node, "Index Name"));
        let is_of_all = leading.is_some_and(|leading| !asked.contains(&leading));
        if is_of_all && !asked.is_empty() {
            return true;
        }
        let is_of_workspace = asked.iter().all(|column| *column == TENANT) && !table.is_single();
        let finds_all = is_of_all || (is_of_workspace && self.size == Size::Large);
        finds_all && !(above.is_limited && node.get("Filter").is_none())
    }
}

/// The columns that the parts of a condition begin with.
fn columns(condition: &str) -> Vec<&str> {
    let parts = condition.split(" AND ").map(|part| part.trim_start_matches('('));
    let columns = parts.flat_map(|part| match part.strip_prefix("ROW(") {
        Some(row) => row.split(')').next().unwrap_or_default().split(", ").collect(),
        None => vec![part],
    });
    let names = columns.map(|column| {
        let name = column.split([' ', ')', ':']).next().unwrap_or_default();
        name.rsplit_once('.').map_or(name, |(_, name)| name)
    });
    names.filter(|name| !name.is_empty()).collect()
}

fn text<'a>(node: &'a Value, name: &str) -> &'a str {
    node.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_told_by_their_columns() {
        for (condition, expected) in [
            ("", vec![]),
            ("(workspace_id = $1)", vec!["workspace_id"]),
            ("((f.workspace_id)::text = $1)", vec!["workspace_id"]),
            ("((workspace_id = d.workspace_id) AND (id = $2))", vec!["workspace_id", "id"]),
            (
                "((workspace_id = $1) AND (ROW(f.name, f.id) > ROW($2, $3)))",
                vec!["workspace_id", "name", "id"],
            ),
            ("(ROW(workspace_id, id) > ROW($1, $2))", vec!["workspace_id", "id"]),
            ("((due_at < $1) AND (id = ANY ($2)))", vec!["due_at", "id"]),
        ] {
            assert_eq!(columns(condition), expected, "{condition}");
        }
    }
}
