//! What each workspace keeps, in one row.

use cairn_chassis::on_db;
use cairn_chassis::sql::{Db, Error, Statement, Text, Tx};
use cairn_proto::ids::WorkspaceId;

use super::page::to_count;
use crate::model::{Growth, Usage};

const GET: &str = "SELECT files, bytes FROM workspace_usage WHERE workspace_id = $1";

const ADD: &str = "INSERT INTO workspace_usage (workspace_id, files, bytes) VALUES ($1, $2, $3) \
     ON CONFLICT (workspace_id) DO UPDATE SET files = workspace_usage.files + excluded.files, \
     bytes = workspace_usage.bytes + excluded.bytes RETURNING files, bytes";

pub(super) fn statements() -> Vec<Statement> {
    [GET, ADD].map(Statement::from).to_vec()
}

fn read((files, bytes): (i64, i64)) -> Usage {
    Usage { files: to_count(files), bytes: to_count(bytes) }
}

/// What a workspace keeps.
pub(crate) async fn get(db: &Db, workspace: WorkspaceId) -> Result<Usage, Error> {
    let row: Option<(i64, i64)> =
        on_db!(db, |c| sqlx::query_as(GET).bind(Text(workspace)).fetch_optional(c).await)?;
    Ok(row.map(read).unwrap_or_default())
}

/// Counts what a transaction takes away, or adds without asking the plan.
pub(crate) async fn count(tx: &mut Tx, workspace: WorkspaceId, growth: Growth) -> Result<(), Error> {
    if growth == Growth::default() {
        return Ok(());
    }
    add(tx, workspace, growth).await.map(|_| ())
}

/// Counts more, or less; answers what the workspace keeps then. Other writers of the row wait until the transaction ends.
pub(crate) async fn add(tx: &mut Tx, workspace: WorkspaceId, growth: Growth) -> Result<Usage, Error> {
    let row: (i64, i64) = on_db!(tx, |c| sqlx::query_as(ADD)
        .bind(Text(workspace))
        .bind(growth.files)
        .bind(growth.bytes)
        .fetch_one(c)
        .await)?;
    Ok(read(row))
}
