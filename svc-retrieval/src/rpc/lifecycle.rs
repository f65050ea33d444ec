//! LifecycleService: what retrieval removes.

use cairn_chassis::lifecycle::Purge;
use cairn_chassis::status::Problem;
use cairn_proto::ids::WorkspaceId;

use crate::Service;
use crate::error::Error;

#[tonic::async_trait]
impl Purge for Service {
    async fn purge(&self, workspace: WorkspaceId) -> Result<bool, Problem> {
        self.generations().forget(workspace).await?;
        Ok(self.analytics().forget(workspace).await.map_err(Error::from)?)
    }
}
