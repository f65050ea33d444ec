//! What each workspace keeps, in one row.

use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{fetch, statements};
use cairn_proto::ids::WorkspaceId;

use super::numbers::to_count;
use crate::model::{Growth, Usage};

statements! {
    pub(super) fn statements;

    const GET: &str = "SELECT documents, bytes FROM workspace_usage WHERE workspace_id = $1";

    const ADD: &str = "INSERT INTO workspace_usage (workspace_id, documents, bytes) VALUES ($1, $2, $3) \
         ON CONFLICT (workspace_id) DO UPDATE SET documents = workspace_usage.documents + excluded.documents, \
         bytes = workspace_usage.bytes + excluded.bytes RETURNING documents, bytes";
}

fn read((documents, bytes): (i64, i64)) -> Usage {
    Usage { documents: to_count(documents), bytes: to_count(bytes) }
}

/// What a workspace keeps.
pub(crate) async fn get(db: &Db, workspace: WorkspaceId) -> Result<Usage, Error> {
    let row: Option<(i64, i64)> = fetch!(optional, db, GET, Text(workspace))?;
    Ok(row.map(read).unwrap_or_default())
}

/// Counts more, or less; answers what the workspace keeps then. Other writers of the row wait until the transaction ends.
pub(crate) async fn add(tx: &mut Tx, workspace: WorkspaceId, growth: Growth) -> Result<Usage, Error> {
    let row: (i64, i64) = fetch!(one, tx, ADD, Text(workspace), growth.documents, growth.bytes)?;
    Ok(read(row))
}
