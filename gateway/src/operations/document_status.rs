//! How the index stands to one document.

use cairn_chassis::status::Problem;
use cairn_proto::domain::DocumentKind;
use cairn_proto::ids::DocumentId;
use cairn_proto::retrieval::v1 as proto;

use super::search::Freshness;
use super::{Context, answered};
use crate::answers::DocumentStatus;

pub(crate) async fn get(
    context: &Context,
    kind: DocumentKind,
    id: DocumentId,
    freshness: Freshness,
) -> Result<DocumentStatus, Problem> {
    let request = context.call.request(proto::GetDocumentStatusRequest {
        kind: kind.into(),
        id: id.to_string(),
        after: freshness.after.into_iter().chain(context.own_writes()).collect(),
        max_wait: freshness.wait.and_then(|wait| prost_types::Duration::try_from(wait).ok()),
    });
    answered(context.upstreams.index().get_document_status(request).await)
}
