//! The usage of each workspace, in one row.

use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::WorkspaceId;

use super::numbers::to_count;
use crate::model::{Growth, Usage};

statements! {
    pub(super) fn statements;

    const GET: &str = "SELECT documents, bytes FROM workspace_usage WHERE workspace_id = $1";

    const ADD: &str = "INSERT INTO workspace_usage (workspace_id, documents, bytes) VALUES ($1, $2, $3) \
         ON CONFLICT (workspace_id) DO UPDATE SET documents = workspace_usage.documents + excluded.documents, \
         bytes = workspace_usage.bytes + excluded.bytes RETURNING documents, bytes";

    const PLAN: &str = "SELECT plan FROM workspace_usage WHERE workspace_id = $1 AND plan IS NOT NULL";

    const LEARN_PLAN: &str = "INSERT INTO workspace_usage (workspace_id, documents, bytes, plan) VALUES ($1, 0, 0, $2) \
         ON CONFLICT (workspace_id) DO UPDATE SET plan = excluded.plan";
}

fn read((documents, bytes): (i64, i64)) -> Usage {
    Usage { documents: to_count(documents), bytes: to_count(bytes) }
}

/// The usage of a workspace.
pub(crate) async fn get(db: &Db, workspace: WorkspaceId) -> Result<Usage, Error> {
    let row: Option<(i64, i64)> = fetch!(optional, db, GET, Text(workspace))?;
    Ok(row.map(read).unwrap_or_default())
}

/// Adds to the usage and returns the new one. Locks the row until the transaction ends.
pub(crate) async fn add(tx: &mut Tx, workspace: WorkspaceId, growth: Growth) -> Result<Usage, Error> {
    let row: (i64, i64) = fetch!(one, tx, ADD, Text(workspace), growth.documents, growth.bytes)?;
    Ok(read(row))
}

/// The plan that a caller of the workspace presented last; `None` before the first.
pub(crate) async fn plan(db: &Db, workspace: WorkspaceId) -> Result<Option<String>, Error> {
    fetch!(optional_scalar, db, PLAN, Text(workspace))
}

/// Stores the plan of a workspace for background work.
pub(crate) async fn learn_plan(db: &Db, workspace: WorkspaceId, plan: &str) -> Result<(), Error> {
    execute!(db.writer(), LEARN_PLAN, Text(workspace), plan).map(drop)
}
