//! Locates items: URLs of pages contain only an item's id, so the person's workspaces are searched.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::content::v1 as proto;
use cairn_proto::domain::{DocumentKind, TrashKind};
use cairn_proto::ids::{DocumentId, WorkspaceId};
use cairn_proto::ingest::v1 as ingest;

use super::answered;
use super::assets::workspaces_of;
use super::person::Person;

/// The maximum per request to svc-content; a person may be a member of more.
const MAX_WORKSPACES_PER_REQUEST: usize = 200;

/// The person's workspace that has the item, live or in trash.
pub(crate) async fn locate(person: &Person, kind: TrashKind, id: DocumentId) -> Result<WorkspaceId, Problem> {
    let workspaces = workspaces_of(person).await?;
    locate_among(person, workspaces.iter().map(WorkspaceId::to_string).collect(), kind, id).await
}

/// The same among known workspaces.
pub(crate) async fn locate_among(
    person: &Person,
    workspace_ids: Vec<String>,
    kind: TrashKind,
    id: DocumentId,
) -> Result<WorkspaceId, Problem> {
    let mut parts = workspace_ids.chunks(MAX_WORKSPACES_PER_REQUEST);
    let mut part = parts.next().unwrap_or_default();
    loop {
        match (locate_in(person, part, kind, id).await, parts.next()) {
            (Err(problem), Some(next)) if problem.reason == Reason::NotFound => part = next,
            (answer, _) => return answer,
        }
    }
}

async fn locate_in(
    person: &Person,
    workspace_ids: &[String],
    kind: TrashKind,
    id: DocumentId,
) -> Result<WorkspaceId, Problem> {
    let request = person.call.request(proto::LocateItemRequest {
        kind: kind.into(),
        item_id: id.to_string(),
        workspace_ids: workspace_ids.to_vec(),
    });
    let found = answered(person.upstreams.locations().locate_item(request).await)?;
    let id = found.workspace_id.parse();
    id.map_err(|_| Problem::internal("an item stands in a workspace whose id cannot be read"))
}

/// The person's workspace that has the ingested document, and the document's kind.
pub(crate) async fn locate_document(
    person: &Person,
    id: DocumentId,
) -> Result<(WorkspaceId, DocumentKind), Problem> {
    let workspaces = workspaces_of(person).await?;
    locate_document_among(person, workspaces.iter().map(WorkspaceId::to_string).collect(), id).await
}

/// The same among known workspaces.
pub(crate) async fn locate_document_among(
    person: &Person,
    workspace_ids: Vec<String>,
    id: DocumentId,
) -> Result<(WorkspaceId, DocumentKind), Problem> {
    let mut parts = workspace_ids.chunks(MAX_WORKSPACES_PER_REQUEST);
    let mut part = parts.next().unwrap_or_default();
    loop {
        match (locate_document_in(person, part, id).await, parts.next()) {
            (Err(problem), Some(next)) if problem.reason == Reason::NotFound => part = next,
            (answer, _) => return answer,
        }
    }
}

async fn locate_document_in(
    person: &Person,
    workspace_ids: &[String],
    id: DocumentId,
) -> Result<(WorkspaceId, DocumentKind), Problem> {
    let request = person.call.request(ingest::LocateDocumentRequest {
        document_id: id.to_string(),
        workspace_ids: workspace_ids.to_vec(),
    });
    let found = answered(person.upstreams.document_locations().locate_document(request).await)?;
    let unread = || Problem::internal("a document is in a workspace, or of a kind, that cannot be read");
    let kind = DocumentKind::from_number(found.kind).filter(|kind| kind.is_from_outside());
    Ok((found.workspace_id.parse().map_err(|_| unread())?, kind.ok_or_else(unread)?))
}
