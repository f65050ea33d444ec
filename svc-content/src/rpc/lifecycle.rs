//! `cairn.lifecycle.v1.LifecycleService`: the removal of content.

use cairn_chassis::lifecycle::Purge;
use cairn_chassis::status::Problem;
use cairn_proto::ids::WorkspaceId;

use crate::removal::Removal;

#[tonic::async_trait]
impl Purge for Removal {
    async fn purge(&self, workspace: WorkspaceId) -> Result<bool, Problem> {
        Ok(self.remove(workspace).await?)
    }
}
