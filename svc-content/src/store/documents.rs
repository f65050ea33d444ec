//! The documents that a search is restricted to.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Error, Text, json_list};
use cairn_chassis::{on_db, statements};
use cairn_proto::ids::{DocumentId, FolderId, WorkspaceId};

use super::page::{below, below_folders, tagged};

/// `$2` and `$3` bound the time of the last change, `$4` lists the tags, `$5` the folders.
macro_rules! files {
    ($engine:ident, $filter:literal) => {
        concat!(
            "SELECT id FROM files WHERE workspace_id = $1 AND deleted_at IS NULL AND updated_at > $2 AND updated_at < $3",
            tagged!($engine, "files", "$4"),
            $filter
        )
    };
}

macro_rules! records {
    ($filter:literal) => {
        concat!(
            "SELECT r.id FROM databases d JOIN records r ON r.workspace_id = $1 AND r.database_id = d.id \
             AND r.deleted_at IS NULL AND r.updated_at > $2 AND r.updated_at < $3 \
             WHERE d.workspace_id = $1 AND d.deleted_at IS NULL",
            $filter
        )
    };
}

statements! {
    pub(super) fn statements;

    const FILES: Dialect = Dialect { sqlite: files!(sqlite, ""), postgres: files!(postgres, "") };

    const FILES_BELOW: Dialect = Dialect {
        sqlite: below_folders!("$5", files!(sqlite, " AND folder_id IN (SELECT id FROM below)")).sqlite,
        postgres: below_folders!("$5", files!(postgres, " AND folder_id IN (SELECT id FROM below)")).postgres,
    };

    const RECORDS: &str = records!("");

    const RECORDS_BELOW: Dialect = below_folders!("$4", records!(" AND d.folder_id IN (SELECT id FROM below)"));

    const MEMORIES: &str = "SELECT id FROM memories WHERE workspace_id = $1 AND deleted_at IS NULL \
         AND updated_at > $2 AND updated_at < $3";
}

/// The folders and the time range of a restriction.
#[derive(Debug)]
pub(crate) struct Restriction<'a> {
    pub(crate) workspace: WorkspaceId,
    /// In these folders and below them; absent: everywhere.
    pub(crate) below: Option<&'a [FolderId]>,
    pub(crate) after: Timestamp,
    pub(crate) before: Timestamp,
}

/// Live files that have all of these tags.
pub(crate) async fn files(
    db: &Db,
    within: &Restriction<'_>,
    tags: &[String],
) -> Result<Vec<DocumentId>, Error> {
    let sql = if within.below.is_some() { FILES_BELOW } else { FILES };
    ids(db, sql.of(db.engine()), within, Some(json_list(tags))).await
}

/// Live records of live databases.
pub(crate) async fn records(db: &Db, within: &Restriction<'_>) -> Result<Vec<DocumentId>, Error> {
    let sql = if within.below.is_some() { RECORDS_BELOW.of(db.engine()) } else { RECORDS };
    ids(db, sql, within, None).await
}

/// Live memories, which are in no folder.
pub(crate) async fn memories(db: &Db, within: &Restriction<'_>) -> Result<Vec<DocumentId>, Error> {
    ids(db, MEMORIES, &Restriction { below: None, ..*within }, None).await
}

async fn ids(
    db: &Db,
    sql: &'static str,
    within: &Restriction<'_>,
    tags: Option<String>,
) -> Result<Vec<DocumentId>, Error> {
    let last = [tags, within.below.map(json_list)];
    let rows: Vec<Text<DocumentId>> = on_db!(db, |c| {
        let mut query =
            sqlx::query_scalar(sql).bind(Text(within.workspace)).bind(within.after).bind(within.before);
        for argument in last.iter().flatten() {
            query = query.bind(argument);
        }
        query.fetch_all(c).await
    })?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}
