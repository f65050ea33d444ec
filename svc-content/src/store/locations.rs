//! The workspace that an item is in, live or in trash.

use cairn_chassis::feed::Kind;
use cairn_chassis::sql::{Db, Dialect, Error, Text, json_list};
use cairn_chassis::{fetch, list_statement, statements};
use cairn_proto::ids::{DocumentId, WorkspaceId};

/// A lookup by the primary key for each workspace of the list.
macro_rules! locate {
    ($table:literal) => {
        list_statement!(
            concat!("SELECT workspace_id FROM ", $table, " WHERE workspace_id IN "),
            "$1",
            " AND id = $2 ORDER BY workspace_id LIMIT 1"
        )
    };
}

statements! {
    pub(super) fn statements;

    const FILE: Dialect = locate!("files");

    const FOLDER: Dialect = locate!("folders");

    const MEMORY: Dialect = locate!("memories");

    const DATABASE: Dialect = locate!("databases");

    const RECORD: Dialect = locate!("records");
}

/// The one of these workspaces that has the item.
pub(crate) async fn locate(
    db: &Db,
    kind: Kind,
    id: DocumentId,
    workspaces: &[WorkspaceId],
) -> Result<Option<WorkspaceId>, Error> {
    let sql = match kind {
        Kind::File => FILE,
        Kind::Folder => FOLDER,
        Kind::Memory => MEMORY,
        Kind::Database => DATABASE,
        Kind::Record => RECORD,
        Kind::Unspecified | Kind::SourceDocument | Kind::Ingested => return Ok(None),
    };
    let found: Option<Text<WorkspaceId>> = fetch!(optional_scalar, db, sql, json_list(workspaces), Text(id))?;
    Ok(found.map(|found| found.0))
}
