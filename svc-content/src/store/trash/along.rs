//! The deletion of a container that an item went to trash with.

use cairn_chassis::feed::Kind;
use cairn_chassis::sql::{Engine, Error, Text};
use cairn_chassis::{fetch, statements};
use cairn_proto::ids::WorkspaceId;
use sqlx::{Executor, Postgres, Sqlite};

use super::Row;
use crate::model::Deletion;

/// The deletion on the row of the item or, for a record, on that of its database.
macro_rules! along {
    ($table:literal) => {
        along!($table, "", "i")
    };
    ($table:literal, $join:literal, $taken:literal) => {
        concat!(
            "SELECT t.workspace_id, t.deletion_id, t.kind, t.item_id, t.parent_id, t.name, t.path, t.items, t.deleted_at, \
             t.author_kind, t.author_id, t.author_name \
             FROM ",
            $table,
            " i ",
            $join,
            " JOIN trash t ON t.workspace_id = $1 AND t.deletion_id = ",
            $taken,
            ".deletion_id WHERE i.workspace_id = $1 AND i.id = $2"
        )
    };
}

statements! {
    pub(crate) fn statements;

    const FILE_ALONG: &str = along!("files");

    const FOLDER_ALONG: &str = along!("folders");

    const DATABASE_ALONG: &str = along!("databases");

    const RECORD_ALONG: &str =
        along!("records", "JOIN databases d ON d.workspace_id = $1 AND d.id = i.database_id", "d");
}

/// The deletion that an item belongs to: a file that of its folder, a record that of its database.
pub(crate) async fn along<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    kind: Kind,
    item_id: &str,
) -> Result<Option<Deletion>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let sql = match kind {
        Kind::File => FILE_ALONG,
        Kind::Folder => FOLDER_ALONG,
        Kind::Database => DATABASE_ALONG,
        Kind::Record => RECORD_ALONG,
        Kind::Unspecified | Kind::Memory | Kind::SourceDocument | Kind::Ingested => return Ok(None),
    };
    let row: Option<Row> = fetch!(optional, on, sql, Text(workspace), item_id)?;
    row.map(Row::into_deletion).transpose()
}
