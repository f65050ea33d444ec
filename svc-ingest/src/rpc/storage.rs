//! `cairn.usage.v1.StorageService`: the storage that this service uses.

use cairn_chassis::shared_storage::Stored;
use cairn_chassis::status::Problem;
use cairn_proto::ids::WorkspaceId;

use crate::usage::Accounts;

#[tonic::async_trait]
impl Stored for Accounts {
    async fn stored_bytes(&self, workspace: WorkspaceId) -> Result<u64, Problem> {
        Ok(Self::stored_bytes(self, workspace).await?)
    }
}
