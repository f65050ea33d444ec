//! The titles of items that values refer to.

use std::collections::HashMap;

use cairn_chassis::sql::{Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{fetch, list_statement, statements};
use cairn_proto::ids::WorkspaceId;

use crate::model::PropertyType;

statements! {
    pub(super) fn statements;

    const RECORDS: Dialect = list_statement!(
        "SELECT r.id, r.title FROM records r JOIN databases d ON d.workspace_id = $1 AND d.id = r.database_id \
         AND d.deleted_at IS NULL WHERE r.workspace_id = $1 AND r.deleted_at IS NULL AND r.id IN ",
        "$2",
        ""
    );

    const FILES: Dialect = list_statement!(
        "SELECT id, name FROM files WHERE workspace_id = $1 AND deleted_at IS NULL AND id IN ",
        "$2",
        ""
    );

    const ASSETS: Dialect =
        list_statement!("SELECT id, name FROM assets WHERE workspace_id = $1 AND id IN ", "$2", "");
}

/// The titles of the live ones, by their ids; empty for a type whose values are no references.
pub(crate) async fn of(
    tx: &mut Tx,
    workspace: WorkspaceId,
    kind: PropertyType,
    ids: &[&str],
) -> Result<HashMap<String, String>, Error> {
    let statement = match kind {
        PropertyType::Relation => RECORDS,
        PropertyType::FileReference => FILES,
        PropertyType::AssetReference => ASSETS,
        PropertyType::Text
        | PropertyType::Number
        | PropertyType::Boolean
        | PropertyType::Date
        | PropertyType::Select
        | PropertyType::MultiSelect
        | PropertyType::Url => return Ok(HashMap::new()),
    };
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<(String, String)> = fetch!(all, tx, statement, Text(workspace), json_list(ids))?;
    Ok(rows.into_iter().collect())
}
