//! The last step of a purge: svc-auth removes its own rows once no other service has data left.

use cairn_proto::ids::WorkspaceId;

use super::{BATCH_SIZE, Lifecycle};
use crate::error::Error;
use crate::store;

/// Rows that one transaction deletes.
const ROWS_PER_TRANSACTION: i64 = 500;

impl Lifecycle {
    pub(super) async fn finish_purges(&self) -> Result<(), Error> {
        for workspace in store::lifecycle::purged_elsewhere(&self.db, BATCH_SIZE).await? {
            while self.remove_some(workspace).await? {}
            tracing::info!(%workspace, "nothing is left of a deleted workspace");
        }
        Ok(())
    }

    /// Deletes a batch of rows, in its own transaction; returns whether there were any.
    async fn remove_some(&self, workspace: WorkspaceId) -> Result<bool, Error> {
        let mut tx = self.db.begin_write().await?;
        store::lifecycle::lock(&mut tx, workspace).await?;
        let removed = store::lifecycle::remove_some(&mut tx, workspace, ROWS_PER_TRANSACTION).await?;
        tx.commit().await?;
        Ok(removed > 0)
    }
}
