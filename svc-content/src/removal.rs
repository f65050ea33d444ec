//! Removes what is kept of a workspace that nobody can take back any more.
//!
//! In many small transactions, so that other workspaces' writes come in between, and so that it goes on where it was cut.
//! What is left says what is still to be done: nothing else is noted.

use cairn_chassis::lifecycle::Rows;
use cairn_proto::ids::WorkspaceId;

use crate::assets::AssetStore;
use crate::context::Context;
use crate::{Error, store};

/// Steps of one call: a few seconds on a slow disk.
const STEPS: usize = 20;
const OBJECTS_AT_ONCE: i64 = 50;

/// The rules of removal.
#[derive(Debug, Clone)]
pub(crate) struct Removal {
    rows: Rows,
    objects: AssetStore,
}

impl Removal {
    pub(crate) fn new(context: Context, objects: AssetStore) -> Self {
        Self { rows: store::removal::rows(context.db), objects }
    }

    /// Removes a part; whether nothing is left.
    pub(crate) async fn remove(&self, workspace: WorkspaceId) -> Result<bool, Error> {
        for _ in 0..STEPS {
            if !self.rows.remove_some(workspace).await? && !self.remove_objects(workspace).await? {
                self.objects.remove_place(workspace).await;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// An object goes first and its row last: what is cut between is found again by the row.
    async fn remove_objects(&self, workspace: WorkspaceId) -> Result<bool, Error> {
        let some = store::removal::objects(&self.rows.db, workspace, OBJECTS_AT_ONCE).await?;
        for object in &some {
            self.objects.delete(workspace, *object).await?;
        }
        if some.is_empty() {
            return Ok(false);
        }
        store::removal::remove_objects(&self.rows.db, workspace, &some).await?;
        Ok(true)
    }
}
