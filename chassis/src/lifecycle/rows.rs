//! Purges the rows of a workspace.
//!
//! Many small transactions let the writes of other workspaces in between, and make the purge resumable: the rows that are left
//! are its only state.

use cairn_proto::ids::WorkspaceId;

use super::Purge;
use crate::sql::removal::{self, Table};
use crate::sql::{Db, Error};
use crate::status::Problem;

/// Batches of one call: a few seconds on a slow disk.
const BATCHES: usize = 20;

/// The purge of a service whose data is all in its tables.
#[derive(Debug, Clone)]
pub struct Rows {
    /// The database of the tables.
    pub db: Db,
    /// The service, for the lock that serializes removals of one workspace.
    pub service: &'static str,
    /// In an order that foreign keys allow.
    pub tables: &'static [Table],
}

impl Rows {
    /// Deletes a batch of rows of a workspace in one transaction; returns whether there were any.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn remove_some(&self, workspace: WorkspaceId) -> Result<bool, Error> {
        let mut tx = self.db.begin_write().await?;
        let removed = removal::remove_some(&mut tx, self.service, self.tables, workspace).await?;
        tx.commit().await?;
        Ok(removed > 0)
    }
}

#[tonic::async_trait]
impl Purge for Rows {
    async fn purge(&self, workspace: WorkspaceId) -> Result<bool, Problem> {
        for _ in 0..BATCHES {
            if !self.remove_some(workspace).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
