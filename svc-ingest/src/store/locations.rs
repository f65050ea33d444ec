//! Finds the workspace of a document.

use cairn_chassis::sql::{Db, Dialect, Error, Text, json_list};
use cairn_chassis::{fetch, list_statement, statements};
use cairn_proto::ids::{DocumentId, WorkspaceId};

// A primary key lookup for each workspace of the list.
statements! {
    pub(super) fn statements;

    const INGESTED: Dialect = list_statement!(
        "SELECT workspace_id FROM ingested_documents WHERE workspace_id IN ",
        "$1",
        " AND id = $2 ORDER BY workspace_id LIMIT 1"
    );

    const OF_SOURCE: Dialect = list_statement!(
        "SELECT workspace_id FROM source_documents d WHERE workspace_id IN ",
        "$1",
        " AND id = $2 AND EXISTS (SELECT 1 FROM sources s WHERE s.workspace_id = d.workspace_id AND s.id = d.source_id \
         AND s.disconnected_at IS NULL AND s.mode < 3) ORDER BY workspace_id LIMIT 1"
    );
}

/// The one of these workspaces that has the ingested document.
pub(crate) async fn of_ingested(
    db: &Db,
    id: DocumentId,
    workspaces: &[WorkspaceId],
) -> Result<Option<WorkspaceId>, Error> {
    let found: Option<Text<WorkspaceId>> =
        fetch!(optional_scalar, db, INGESTED, json_list(workspaces), Text(id))?;
    Ok(found.map(|found| found.0))
}

/// The one of these workspaces that has the document in a connected source.
pub(crate) async fn of_source(
    db: &Db,
    id: DocumentId,
    workspaces: &[WorkspaceId],
) -> Result<Option<WorkspaceId>, Error> {
    let found: Option<Text<WorkspaceId>> =
        fetch!(optional_scalar, db, OF_SOURCE, json_list(workspaces), Text(id))?;
    Ok(found.map(|found| found.0))
}
