//! Deletes the data of a workspace whose removal is final.
//!
//! In many small transactions, so that writes of other workspaces interleave and an interrupted removal continues
//! where it stopped. The remaining rows are the only state of the removal.

use cairn_chassis::lifecycle::Rows;
use cairn_proto::ids::WorkspaceId;

use crate::assets::AssetStore;
use crate::context::Context;
use crate::{Error, store};

/// The steps of one call: a few seconds on a slow disk.
const STEPS: usize = 20;
const OBJECT_BATCH: i64 = 50;

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

    /// Deletes a batch; returns whether nothing is left.
    pub(crate) async fn remove(&self, workspace: WorkspaceId) -> Result<bool, Error> {
        for _ in 0..STEPS {
            if !self.rows.remove_some(workspace).await? && !self.remove_objects(workspace).await? {
                self.objects.remove_folder(workspace).await;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Objects are deleted before their rows: after an interruption the rows lead to the rest.
    async fn remove_objects(&self, workspace: WorkspaceId) -> Result<bool, Error> {
        let some = store::removal::objects(&self.rows.db, workspace, OBJECT_BATCH).await?;
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
