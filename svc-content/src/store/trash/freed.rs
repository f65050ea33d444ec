//! The space that a permanent removal frees.

use cairn_chassis::sql::{Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{bodies, fetch, list_statement, statements};
use cairn_proto::ids::WorkspaceId;

use crate::model::Deletion;

statements! {
    pub(crate) fn statements;

    /// The size of the values of the removed records, with all versions: of deleted records and of deleted databases.
    const RECORD_BYTES: &str = "WITH gone (id) AS (SELECT id FROM records WHERE workspace_id = $1 AND deletion_id = $2 UNION \
         SELECT r.id FROM databases d JOIN records r ON r.workspace_id = $1 AND r.database_id = d.id \
         WHERE d.workspace_id = $1 AND d.deletion_id = $2) \
         SELECT CAST(COALESCE(SUM(kept.bytes), 0) AS BIGINT) FROM (\
         SELECT OCTET_LENGTH(r.field_values) AS bytes FROM gone JOIN records r ON r.workspace_id = $1 AND r.id = gone.id UNION ALL \
         SELECT OCTET_LENGTH(v.field_values) FROM gone \
         CROSS JOIN record_versions v WHERE v.workspace_id = $1 AND v.record_id = gone.id) AS kept";

    const SWEEP_BODIES: Dialect = list_statement!(
        "DELETE FROM bodies WHERE workspace_id = $1 AND hash IN ",
        "$2",
        " AND NOT EXISTS (SELECT 1 FROM files f WHERE f.workspace_id = $1 AND f.content_hash = bodies.hash) \
          AND NOT EXISTS (SELECT 1 FROM file_versions v WHERE v.workspace_id = $1 AND v.content_hash = bodies.hash) RETURNING size_bytes"
    );
}

/// The size of the values of the records of a deletion, including those of its databases, with all versions, in
/// bytes.
pub(super) async fn of_records(tx: &mut Tx, deletion: &Deletion) -> Result<i64, Error> {
    fetch!(scalar, tx, RECORD_BYTES, Text(deletion.workspace), Text(deletion.id))
}

/// Deletes those of these bodies that nothing refers to; returns their size in bytes.
pub(super) async fn sweep_bodies(
    tx: &mut Tx,
    workspace: WorkspaceId,
    hashes: &[String],
) -> Result<i64, Error> {
    if hashes.is_empty() {
        return Ok(0);
    }
    let list = json_list(hashes);
    bodies::lock(tx, workspace, hashes).await?;
    let sizes: Vec<i64> = fetch!(scalars, tx, SWEEP_BODIES, Text(workspace), &list)?;
    Ok(sizes.iter().sum())
}
