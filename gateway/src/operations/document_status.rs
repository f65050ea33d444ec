//! The index status of documents.

use std::collections::HashMap;

use cairn_chassis::status::Problem;
use cairn_proto::domain::{DocumentKind, DocumentState};
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

/// The status of many documents of one kind, by id; documents invisible to the caller are omitted.
pub(crate) async fn of_many(
    context: &Context,
    kind: DocumentKind,
    ids: Vec<String>,
) -> Result<HashMap<String, DocumentState>, Problem> {
    let request = context.call.request(proto::BatchGetDocumentStatesRequest { kind: kind.into(), ids });
    let found = answered(context.upstreams.index().batch_get_document_states(request).await)?;
    let states = found.documents.into_iter();
    Ok(states.map(|one| (one.id, DocumentState::from_number(one.state).unwrap_or_default())).collect())
}
