//! The workspace at a glance.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::content::v1::GetOverviewRequest;
use cairn_proto::retrieval::v1::GetIndexStatusRequest;

use super::{Context, answered};
use crate::answers::WorkspaceOverview;

/// What the workspace holds, and how its index stands. Without the search service the rest is told all the same.
pub(crate) async fn get(context: &Context) -> Result<WorkspaceOverview, Problem> {
    let (mut overviews, mut index) = (context.upstreams.overviews(), context.upstreams.index());
    let (held, status) = tokio::join!(
        overviews.get_overview(context.call.request(GetOverviewRequest {})),
        index.get_index_status(context.call.request(GetIndexStatusRequest {})),
    );
    let status = match answered(status) {
        Ok(status) => Some(status),
        Err(problem) if matches!(problem.reason, Reason::Unavailable | Reason::DeadlineExceeded) => None,
        Err(problem) => return Err(problem),
    };
    Ok(WorkspaceOverview::read(answered(held)?, status, &context.links))
}
