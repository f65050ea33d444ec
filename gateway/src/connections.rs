//! Reports to svc-retrieval that agents have reached a workspace over MCP, for its record of the first connection.

use std::sync::Arc;

use cairn_chassis::call::Call;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1::RecordConnectionRequest;
use quick_cache::sync::Cache;

use crate::upstreams::Upstreams;

/// Workspaces already reported; an evicted one is reported again, which is idempotent.
const MAX_WORKSPACES: usize = 16_384;

/// The workspaces that this process has reported.
pub(crate) struct Connections {
    upstreams: Arc<Upstreams>,
    reported: Cache<WorkspaceId, ()>,
}

cairn_chassis::debug_fields!(Connections);

impl Connections {
    pub(crate) fn new(upstreams: Arc<Upstreams>) -> Self {
        Self { upstreams, reported: Cache::new(MAX_WORKSPACES) }
    }

    /// Reports a workspace once per process, in the background. A failed report is retried with the next request.
    pub(crate) fn report(self: &Arc<Self>, workspace: Option<WorkspaceId>, call: &Call) {
        let Some(workspace) = workspace else { return };
        if self.reported.get(&workspace).is_some() {
            return;
        }
        self.reported.insert(workspace, ());
        let (connections, request) = (Arc::clone(self), call.request(RecordConnectionRequest {}));
        tokio::spawn(async move {
            if let Err(status) = connections.upstreams.analytics().record_connection(request).await {
                tracing::debug!(%workspace, %status, "that agents have connected is not noted yet");
                connections.reported.remove(&workspace);
            }
        });
    }
}
