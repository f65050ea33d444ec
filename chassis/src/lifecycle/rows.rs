//! Removes the rows of a workspace that nobody can take back any more.
//!
//! In many small transactions, so that other workspaces' writes come in between, and so that it goes on where it was cut.
//! What is left says what is still to be done: nothing else is noted.

use cairn_proto::ids::WorkspaceId;

use super::Purge;
use crate::sql::removal::{self, Table};
use crate::sql::{Db, Error};
use crate::status::Problem;

/// Steps of one call: a few seconds on a slow disk.
const STEPS: usize = 20;

/// What a service removes that keeps all it has in its tables.
#[derive(Debug, Clone)]
pub struct Rows {
    /// Where the tables are.
    pub db: Db,
    /// Whose they are: removals of a workspace in one service follow each other.
    pub service: &'static str,
    /// In the order in which rows can go.
    pub tables: &'static [Table],
}

impl Rows {
    /// Removes some rows of a workspace, in one transaction; whether there were any.
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
        for _ in 0..STEPS {
            if !self.remove_some(workspace).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
