//! Requests of each connection per day.

use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::{SourceId, WorkspaceId};

use super::numbers::to_small;
use crate::model::Spending;

statements! {
    pub(super) fn statements;

    /// Increments the count unless it has reached $5.
    const TAKE: &str = "INSERT INTO provider_operations (workspace_id, source_id, day, ledger, used) \
         VALUES ($1, $2, $3, $4, 1) ON CONFLICT (workspace_id, source_id, day, ledger) DO UPDATE \
         SET used = provider_operations.used + 1 WHERE provider_operations.used + 1 <= $5";

    const USED: &str = "SELECT used FROM provider_operations \
         WHERE workspace_id = $1 AND source_id = $2 AND day = $3 AND ledger = $4";

    const USED_OF_ALL: &str = "SELECT source_id, used FROM provider_operations \
         WHERE workspace_id = $1 AND day = $2 AND ledger = $3";

    const REMOVE_OF: &str = "DELETE FROM provider_operations WHERE workspace_id = $1 AND source_id = $2";

    const FORGET: &str = "DELETE FROM provider_operations WHERE day < $1";
}

fn number(spending: Spending) -> i64 {
    match spending {
        Spending::Live => 0,
        Spending::Runs => 1,
    }
}

/// Counts one request of a day; `false` if `limit` is reached.
pub(crate) async fn take(
    tx: &mut Tx,
    workspace: WorkspaceId,
    source: SourceId,
    day: i64,
    spending: Spending,
    limit: Option<u32>,
) -> Result<bool, Error> {
    if limit == Some(0) {
        return Ok(false);
    }
    let limit = limit.map_or(i64::MAX, i64::from);
    Ok(execute!(tx, TAKE, Text(workspace), Text(source), day, number(spending), limit)? == 1)
}

/// The requests of a day.
pub(crate) async fn used(
    db: &Db,
    workspace: WorkspaceId,
    source: SourceId,
    day: i64,
    spending: Spending,
) -> Result<u32, Error> {
    let used: Option<i64> =
        fetch!(optional_scalar, db, USED, Text(workspace), Text(source), day, number(spending))?;
    Ok(used.map_or(0, to_small))
}

/// The requests of a day, of each source of a workspace.
pub(crate) async fn used_of_all(
    db: &Db,
    workspace: WorkspaceId,
    day: i64,
    spending: Spending,
) -> Result<Vec<(SourceId, u32)>, Error> {
    let rows: Vec<(Text<SourceId>, i64)> =
        fetch!(all, db, USED_OF_ALL, Text(workspace), day, number(spending))?;
    Ok(rows.into_iter().map(|(source, used)| (source.0, to_small(used))).collect())
}

/// Removes the counts of a source.
pub(crate) async fn remove_of(tx: &mut Tx, workspace: WorkspaceId, source: SourceId) -> Result<(), Error> {
    execute!(tx, REMOVE_OF, Text(workspace), Text(source)).map(drop)
}

/// Removes the counts of the days before this one.
pub(crate) async fn prune(db: &Db, before: i64) -> Result<(), Error> {
    execute!(db.writer(), FORGET, before).map(drop)
}
