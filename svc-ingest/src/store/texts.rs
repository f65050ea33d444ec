//! Garbage collection of texts.

use cairn_chassis::sql::{Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{bodies, fetch, list_statement, statements};
use cairn_proto::ids::WorkspaceId;

statements! {
    pub(super) fn statements;

    const SWEEP: Dialect = list_statement!(
        "DELETE FROM bodies WHERE workspace_id = $1 AND hash IN ",
        "$2",
        " AND NOT EXISTS (SELECT 1 FROM ingested_documents d WHERE d.workspace_id = $1 AND d.content_hash = bodies.hash) \
          AND NOT EXISTS (SELECT 1 FROM source_documents s WHERE s.workspace_id = $1 AND s.content_hash = bodies.hash) \
          RETURNING size_bytes"
    );
}

/// Removes those of these texts that nothing refers to; returns their size in bytes.
pub(crate) async fn sweep(tx: &mut Tx, workspace: WorkspaceId, hashes: &[String]) -> Result<i64, Error> {
    if hashes.is_empty() {
        return Ok(0);
    }
    bodies::lock(tx, workspace, hashes).await?;
    let sizes: Vec<i64> = fetch!(scalars, tx, SWEEP, Text(workspace), json_list(hashes))?;
    Ok(sizes.iter().sum())
}
