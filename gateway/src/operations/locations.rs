//! Where an item stands: addresses for people name an item alone, and it is in one of their workspaces.

use cairn_chassis::status::Problem;
use cairn_proto::content::v1 as proto;
use cairn_proto::domain::TrashKind;
use cairn_proto::ids::{DocumentId, WorkspaceId};

use super::answered;
use super::assets::workspaces_of;
use super::person::Person;

/// The workspace of the person that has the item, live or in trash.
pub(crate) async fn locate(person: &Person, kind: TrashKind, id: DocumentId) -> Result<WorkspaceId, Problem> {
    let workspaces = workspaces_of(person).await?;
    locate_among(person, workspaces.iter().map(WorkspaceId::to_string).collect(), kind, id).await
}

/// The same where the workspaces of the person are known.
pub(crate) async fn locate_among(
    person: &Person,
    workspace_ids: Vec<String>,
    kind: TrashKind,
    id: DocumentId,
) -> Result<WorkspaceId, Problem> {
    let request = person.call.request(proto::LocateItemRequest {
        kind: kind.into(),
        item_id: id.to_string(),
        workspace_ids,
    });
    let found = answered(person.upstreams.locations().locate_item(request).await)?;
    let id = found.workspace_id.parse();
    id.map_err(|_| Problem::internal("an item stands in a workspace whose id cannot be read"))
}
