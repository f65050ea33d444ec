//! Tells svc-retrieval that agents have reached a workspace over MCP, from which it knows when they first did.

use cairn_chassis::call::Call;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1::RecordConnectionRequest;
use quick_cache::sync::Cache;

use crate::app::App;

/// Workspaces that were told of; when one falls out, it is told of again, which changes nothing.
const REMEMBERED: usize = 16_384;

/// The workspaces that this process has told of.
#[derive(Debug)]
pub(crate) struct Connections(Cache<WorkspaceId, ()>);

impl Default for Connections {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

/// Tells of a workspace, once a process; no request waits for it. What fails is tried again with the next request.
pub(super) fn note(app: &App, workspace: Option<WorkspaceId>, call: &Call) {
    let Some(workspace) = workspace else { return };
    if app.connections.0.get(&workspace).is_some() {
        return;
    }
    app.connections.0.insert(workspace, ());
    let (app, request) = (app.clone(), call.request(RecordConnectionRequest {}));
    tokio::spawn(async move {
        if let Err(status) = app.upstreams.analytics().record_connection(request).await {
            tracing::debug!(%workspace, %status, "that agents have connected is not noted yet");
            app.connections.0.remove(&workspace);
        }
    });
}
