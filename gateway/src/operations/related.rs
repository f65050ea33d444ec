//! Files similar to a given one.

use cairn_chassis::status::Problem;
use cairn_proto::retrieval::v1 as proto;

use super::search::Freshness;
use super::{Context, answered};
use crate::answers::RelatedFiles;

pub(crate) async fn files(
    context: &Context,
    file_id: String,
    limit: Option<u32>,
    freshness: Freshness,
) -> Result<RelatedFiles, Problem> {
    let request = context.call.request(proto::GetRelatedFilesRequest {
        file_id,
        limit: limit.unwrap_or_default(),
        after: freshness.after.into_iter().chain(context.own_writes()).collect(),
        max_wait: freshness.wait.and_then(|wait| prost_types::Duration::try_from(wait).ok()),
    });
    let answer = answered(context.upstreams.related().get_related_files(request).await)?;
    Ok(RelatedFiles::read(answer, &context.links))
}
