//! How a workspace's knowledge is retrieved (spec 4.11).

use cairn_chassis::status::Problem;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1 as proto;

use super::answered;
use super::person::Person;
use crate::answers::{Freshness, RetrievalAnalytics};

/// Retrieval analytics of the person's workspace; without `days`, svc-retrieval's default.
pub(crate) async fn retrieval(
    person: &Person,
    workspace: WorkspaceId,
    days: Option<u32>,
) -> Result<RetrievalAnalytics, Problem> {
    let request = proto::GetRetrievalAnalyticsRequest { days: days.unwrap_or_default() };
    let request = person.call.request(request);
    let answer = answered(person.upstreams.analytics().get_retrieval_analytics(request).await)?;
    Ok(RetrievalAnalytics::read(workspace, answer, &person.links))
}

/// How old the retrieved documents are, in the person's workspace.
pub(crate) async fn freshness(person: &Person, days: Option<u32>) -> Result<Freshness, Problem> {
    let request = person.call.request(proto::GetFreshnessRequest { days: days.unwrap_or_default() });
    let answer = answered(person.upstreams.analytics().get_freshness(request).await)?;
    Ok(Freshness::read(answer, &person.links))
}
