//! The workspace of an item: URLs for people contain only the item.

use cairn_chassis::feed::Kind;
use cairn_proto::ids::{DocumentId, WorkspaceId};

use crate::context::Context;
use crate::{Error, store};

/// The maximum number of workspaces in a call; callers with more split them.
const MAX_WORKSPACES: usize = 200;

/// The rules of locations on a store.
#[derive(Debug, Clone)]
pub(crate) struct Locations {
    context: Context,
}

impl Locations {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// The one of these workspaces that has the item, live or in trash.
    pub(crate) async fn locate(
        &self,
        kind: Kind,
        item_id: &str,
        workspace_ids: &[String],
    ) -> Result<WorkspaceId, Error> {
        if workspace_ids.len() > MAX_WORKSPACES {
            let message = format!("names more than {MAX_WORKSPACES} workspaces: ask in parts");
            return Err(Error::invalid("workspaceIds", "too_many", message));
        }
        let no_item = || Error::NotFound { kind: "item", id: item_id.to_owned() };
        let id: DocumentId = item_id.parse().map_err(|_| no_item())?;
        // Invalid ids are ignored.
        let workspaces: Vec<WorkspaceId> = workspace_ids.iter().filter_map(|id| id.parse().ok()).collect();
        let found = store::locations::locate(&self.context.db, kind, id, &workspaces).await?;
        found.ok_or_else(no_item)
    }
}
