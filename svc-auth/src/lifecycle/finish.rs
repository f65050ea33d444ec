//! The end: what svc-auth itself keeps of a workspace goes when no other service has anything left.

use cairn_proto::ids::WorkspaceId;

use super::{AT_ONCE, Lifecycle};
use crate::error::Error;
use crate::store;

/// Rows that one transaction removes.
const ROWS_AT_ONCE: i64 = 500;

impl Lifecycle {
    pub(super) async fn finish_purges(&self) -> Result<(), Error> {
        for workspace in store::lifecycle::purged_elsewhere(&self.db, AT_ONCE).await? {
            while self.remove_some(workspace).await? {}
            tracing::info!(%workspace, "nothing is left of a deleted workspace");
        }
        Ok(())
    }

    /// Removes some rows, in a transaction of their own; whether there were any.
    async fn remove_some(&self, workspace: WorkspaceId) -> Result<bool, Error> {
        let mut tx = self.db.begin_write().await?;
        store::lifecycle::lock(&mut tx, workspace).await?;
        let removed = store::lifecycle::remove_some(&mut tx, workspace, ROWS_AT_ONCE).await?;
        tx.commit().await?;
        Ok(removed > 0)
    }
}
