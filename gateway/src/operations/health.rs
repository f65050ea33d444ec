//! The health of the services with regard to a workspace.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::content::v1::GetStorageRequest;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::ingest::v1::{CountDocumentsRequest, GetUsageRequest};
use cairn_proto::retrieval::v1::GetIndexStatusRequest;

use super::answered;
use super::person::Person;
use super::workspace::{self, is_away};
use crate::answers::{ServiceHealth, StorageHealth, WorkspaceHealth};
use crate::health::service_statuses;

/// The report of each service; an unavailable one is omitted.
pub(crate) async fn of_workspace(person: &Person, id: WorkspaceId) -> Result<WorkspaceHealth, Problem> {
    let Person { upstreams, call, .. } = person;
    let (mut index, mut sources) = (upstreams.index(), upstreams.sources());
    let (mut content, mut ingest) = (upstreams.usage(), upstreams.ingest_documents());
    let (services, index, documents, stored, outside, usage) = tokio::join!(
        service_statuses(upstreams),
        index.get_index_status(call.request(GetIndexStatusRequest {})),
        sources.count_documents(call.request(CountDocumentsRequest {})),
        content.get_storage(call.request(GetStorageRequest {})),
        ingest.get_usage(call.request(GetUsageRequest {})),
        workspace::of_member(person, id),
    );
    let services = services.into_iter();
    let outside = optional(answered(outside))?.map(|outside| outside.storage_bytes);
    let bytes = optional(usage)?.and_then(|usage| usage.storage_bytes);
    Ok(WorkspaceHealth {
        services: services.map(|(name, answers)| ServiceHealth { name: name.to_owned(), answers }).collect(),
        index: optional(answered(index))?.map(Into::into),
        documents: optional(answered(documents))?.map(Into::into),
        storage: StorageHealth::read(bytes, optional(answered(stored))?, outside),
    })
}

/// `None` if the service is unavailable, or the caller's folder scope excludes it.
fn optional<T>(answer: Result<T, Problem>) -> Result<Option<T>, Problem> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(problem) if is_away(problem.reason) || problem.reason == Reason::OutOfScope => Ok(None),
        Err(problem) => Err(problem),
    }
}
