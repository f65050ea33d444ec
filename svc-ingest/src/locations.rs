//! In which workspace a document is: addresses for people name a document alone.

use cairn_chassis::feed::Kind;
use cairn_proto::ids::{DocumentId, WorkspaceId};

use crate::context::Context;
use crate::{Error, store};

/// Workspaces that one question may name; who belongs to more asks in parts.
const MAX_WORKSPACES: usize = 200;

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Locations {
    context: Context,
}

impl Locations {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// The one of these workspaces that has the document, and which kind it is.
    pub(crate) async fn locate(
        &self,
        document_id: &str,
        workspace_ids: &[String],
    ) -> Result<(WorkspaceId, Kind), Error> {
        if workspace_ids.len() > MAX_WORKSPACES {
            let message = format!("names more than {MAX_WORKSPACES} workspaces: ask in parts");
            return Err(Error::invalid("workspaceIds", "too_many", message));
        }
        let no_document = || Error::NoDocumentHere(document_id.to_owned());
        let id: DocumentId = document_id.parse().map_err(|_| no_document())?;
        // What is no id of a workspace names none.
        let workspaces: Vec<WorkspaceId> = workspace_ids.iter().filter_map(|id| id.parse().ok()).collect();
        let db = &self.context.db;
        if let Some(found) = store::locations::of_ingested(db, id, &workspaces).await? {
            return Ok((found, Kind::Ingested));
        }
        let found = store::locations::of_source(db, id, &workspaces).await?;
        found.map(|found| (found, Kind::SourceDocument)).ok_or_else(no_document)
    }
}
