//! Removes what is kept of a workspace that nobody can take back any more.
//!
//! In many small transactions, so that other workspaces' writes come in between, and so that it goes on where it was cut.

use cairn_proto::ids::WorkspaceId;

use crate::context::Context;
use crate::{Error, store};

/// Steps of one call: a few seconds on a slow disk.
const STEPS: usize = 20;

/// The rules of removal.
#[derive(Debug, Clone)]
pub(crate) struct Removal {
    context: Context,
}

impl Removal {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// Removes a part; whether nothing is left.
    pub(crate) async fn remove(&self, workspace: WorkspaceId) -> Result<bool, Error> {
        for _ in 0..STEPS {
            let mut tx = self.context.db.begin_write().await?;
            let removed = store::removal::remove_some(&mut tx, workspace).await?;
            tx.commit().await?;
            if removed == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
