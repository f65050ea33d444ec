//! The usage of each workspace, in one row.

use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{fetch, statements};
use cairn_proto::ids::WorkspaceId;

use super::page::to_count;
use crate::model::{Growth, Usage};

/// Adds the growth in files and bytes of the rows of a workspace.
macro_rules! add_usage {
    ($rows:expr) => {
        concat!(
            "INSERT INTO workspace_usage (workspace_id, files, bytes) ",
            $rows,
            " ON CONFLICT (workspace_id) DO UPDATE SET files = workspace_usage.files + excluded.files, \
             bytes = workspace_usage.bytes + excluded.bytes"
        )
    };
}
pub(super) use add_usage;

statements! {
    pub(super) fn statements;

    const GET: &str = "SELECT files, bytes FROM workspace_usage WHERE workspace_id = $1";

    const FILES_BYTES: &str =
        "SELECT CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) FROM bodies WHERE workspace_id = $1";

    const ASSETS_BYTES: &str =
        "SELECT CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) FROM asset_objects WHERE workspace_id = $1";

    const ADD: &str = concat!(add_usage!("VALUES ($1, $2, $3)"), " RETURNING files, bytes");
}

pub(super) fn read((files, bytes): (i64, i64)) -> Usage {
    Usage { files: to_count(files), bytes: to_count(bytes) }
}

/// The usage of a workspace.
pub(crate) async fn get(db: &Db, workspace: WorkspaceId) -> Result<Usage, Error> {
    let row: Option<(i64, i64)> = fetch!(optional, db, GET, Text(workspace))?;
    Ok(row.map(read).unwrap_or_default())
}

/// The bytes of files, with versions and trash, and those of assets; equal contents count once.
pub(crate) async fn bytes_of_files_and_assets(db: &Db, workspace: WorkspaceId) -> Result<(u64, u64), Error> {
    let files: i64 = fetch!(scalar, db, FILES_BYTES, Text(workspace))?;
    let assets: i64 = fetch!(scalar, db, ASSETS_BYTES, Text(workspace))?;
    Ok((to_count(files), to_count(assets)))
}

/// Adds a growth, which may be negative, and returns the usage. The row stays locked until the transaction ends.
pub(crate) async fn add(tx: &mut Tx, workspace: WorkspaceId, growth: Growth) -> Result<Usage, Error> {
    let row: (i64, i64) = fetch!(one, tx, ADD, Text(workspace), growth.files, growth.bytes)?;
    Ok(read(row))
}
