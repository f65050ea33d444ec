//! Checks the plans of PostgreSQL.

use serde_json::Value;
use sqlx::{AssertSqlSafe, PgPool, Row as _, SqlSafeStr as _};

use super::Size;
use super::catalog::{TENANT, Table};
use crate::sql::Error;

/// Nodes that stream the rows of their input, so that a limit above them stops the input.
const STREAMING: [&str; 4] = ["Limit", "LockRows", "Result", "Subquery Scan"];

/// The nodes of a statement's plan that scan everything.
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
    // The plan for unknown parameters.
    sqlx::raw_sql("SET LOCAL plan_cache_mode = force_generic_plan").execute(&mut *tx).await?;
    // A merge join stops at the end of the shorter of two indexes, and the estimate of how much of the longer one it reads
    // depends on the sample of ANALYZE: its index scans have no condition, and prove nothing.
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
    let (checker, mut found) = (Checker { tables, size }, Vec::new());
    for row in &rows {
        let plans: Value = row.try_get(0)?;
        for plan in plans.as_array().into_iter().flatten().filter_map(|plan| plan.get("Plan")) {
            checker.visit(plan, &Parent::default(), &mut found);
        }
    }
    Ok(found)
}

/// Checks the nodes of a plan.
struct Checker<'a> {
    tables: &'a [Table],
    size: Size,
}

/// What a node inherits from those above it.
#[derive(Debug, Clone, Default)]
struct Parent {
    /// The table that is read.
    table: Option<String>,
    is_limited: bool,
}

impl Checker<'_> {
    fn visit(&self, node: &Value, above: &Parent, found: &mut Vec<String>) {
        let kind = text(node, "Node Type");
        let table = node.get("Relation Name").and_then(Value::as_str).map(ToOwned::to_owned);
        let here = Parent {
            table: table.or_else(|| above.table.clone()),
            is_limited: STREAMING.contains(&kind) && (above.is_limited || kind == "Limit"),
        };
        let below: Vec<&Value> = node.get("Plans").and_then(Value::as_array).into_iter().flatten().collect();
        if kind == "BitmapAnd" {
            // Only rows in the intersection are read: one selective input is enough.
            let each = below.iter().map(|one| {
                let mut lines = Vec::new();
                self.visit(one, &here, &mut lines);
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
        below.into_iter().for_each(|one| self.visit(one, &here, found));
    }

    /// Whether a node scans all rows of a table, or all of a workspace. An index is scanned in full when the condition omits its
    /// first column. A node without a filter below a limit stops at the limit.
    ///
    /// On an empty table every index has the same cost, so the choice proves nothing. Without statistics, PostgreSQL assumes that
    /// a workspace is a two-hundredth of the table, which soon seems as cheap as ten look-ups. So full index scans count as soon
    /// as there are rows, and scans of a workspace only on large tables.
    fn is_whole(&self, node: &Value, kind: &str, above: &Parent, table: &Table) -> bool {
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

/// The columns on the left-hand sides of a condition.
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
