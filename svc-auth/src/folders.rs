//! Looks up folders in svc-content, which owns them.
//!
//! svc-content needs svc-auth's keys to start, so svc-auth opens first and is connected to it afterwards.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::status::Problem;
use cairn_proto::content::v1::ResolveScopeRequest;
use cairn_proto::content::v1::folder_service_client::FolderServiceClient;
use cairn_proto::ids::FolderId;

/// When to retry while svc-content is not connected yet.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// A client of svc-content's folders; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Folders(Arc<OnceLock<ServiceChannel>>);

impl Folders {
    /// Connects svc-content; only the first call counts.
    pub(crate) fn connect(&self, content: ServiceChannel) {
        let _ = self.0.set(content);
    }

    /// The live folders in the folder scope of the call's identity, including subfolders.
    pub(crate) async fn in_scope(&self, call: &Call) -> Result<HashSet<FolderId>, Problem> {
        let Some(content) = self.0.get() else {
            return Err(Problem::unavailable("the content service is not known yet", RETRY_AFTER));
        };
        let mut client =
            FolderServiceClient::new(content.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let answer = client.resolve_scope(call.request(ResolveScopeRequest {})).await;
        let scope = answer.map_err(|status| Problem::from_status(&status))?.into_inner();
        Ok(scope.folder_ids.iter().filter_map(|id| id.parse().ok()).collect())
    }
}
