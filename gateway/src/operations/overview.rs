//! The workspace at a glance.

use cairn_chassis::identity::Scope;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::content::v1::GetOverviewRequest;
use cairn_proto::ingest::v1::{ListIngestedDocumentsRequest, ListSourcesRequest};
use cairn_proto::retrieval::v1::GetIndexStatusRequest;

use super::{Context, answered};
use crate::answers::{Outside, WorkspaceOverview};

/// What the workspace holds, and how its index stands. Without the search service, or the one that keeps what comes from
/// outside, the rest is told all the same.
pub(crate) async fn get(context: &Context) -> Result<WorkspaceOverview, Problem> {
    read(context, GetOverviewRequest::default()).await
}

/// How much there is of everything, and how its index stands: the lists are empty.
pub(crate) async fn counts(context: &Context) -> Result<WorkspaceOverview, Problem> {
    read(context, GetOverviewRequest { counts_only: true }).await
}

async fn read(context: &Context, asked: GetOverviewRequest) -> Result<WorkspaceOverview, Problem> {
    let (mut overviews, mut index) = (context.upstreams.overviews(), context.upstreams.index());
    let (held, status, outside) = tokio::join!(
        overviews.get_overview(context.call.request(asked)),
        index.get_index_status(context.call.request(GetIndexStatusRequest {})),
        outside(context),
    );
    let status = answered(status).map(Some).or_else(without)?;
    Ok(WorkspaceOverview::read(answered(held)?, status, outside?, &context.links))
}

/// What comes from outside, which belongs to the whole workspace: a caller of some folders has nothing of it.
async fn outside(context: &Context) -> Result<Outside, Problem> {
    if context.identity.claims.scope != Scope::All {
        return Ok(Outside::default());
    }
    let (mut sources, mut ingested) = (context.upstreams.sources(), context.upstreams.ingest_documents());
    let first = ListIngestedDocumentsRequest { page_size: 1, ..ListIngestedDocumentsRequest::default() };
    let (sources, ingested) = tokio::join!(
        sources.list_sources(context.call.request(ListSourcesRequest {})),
        ingested.list_ingested_documents(context.call.request(first)),
    );
    let sources = answered(sources).map(|listed| listed.sources).or_else(without)?;
    let ingested = answered(ingested).map(|listed| Some(listed.total_size)).or_else(without)?;
    Ok(Outside { sources, ingested })
}

/// Nothing, where a service that an overview can do without does not answer.
fn without<T: Default>(problem: Problem) -> Result<T, Problem> {
    let is_silent = matches!(problem.reason, Reason::Unavailable | Reason::DeadlineExceeded);
    if is_silent { Ok(T::default()) } else { Err(problem) }
}
