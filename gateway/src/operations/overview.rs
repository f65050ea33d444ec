//! The overview of a workspace.

use cairn_chassis::identity::Scope;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::content::v1::GetOverviewRequest;
use cairn_proto::ingest::v1::{ListIngestedDocumentsRequest, ListSourcesRequest};
use cairn_proto::retrieval::v1::GetIndexStatusRequest;

use super::{Context, answered};
use crate::answers::{Outside, WorkspaceOverview};

/// The contents of the workspace and the state of its index. Tolerates svc-retrieval or svc-ingest being
/// unavailable.
pub(crate) async fn get(context: &Context) -> Result<WorkspaceOverview, Problem> {
    read(context, GetOverviewRequest::default()).await
}

/// Counts and index state only: the lists stay empty.
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

/// Ingested documents belong to the whole workspace: a caller restricted to folders sees none.
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

/// The default if an optional service is unavailable.
fn without<T: Default>(problem: Problem) -> Result<T, Problem> {
    let is_silent = matches!(problem.reason, Reason::Unavailable | Reason::DeadlineExceeded);
    if is_silent { Ok(T::default()) } else { Err(problem) }
}
