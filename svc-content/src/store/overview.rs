//! Reads for the overview that no list has: the latest changes, their authors, and the number of items below folders.

use std::collections::HashMap;

use cairn_chassis::feed::Kind;
use cairn_chassis::sql::{Db, Dialect, Error, Text, json_list};
use cairn_chassis::{fetch, list_statement, statements};
use cairn_proto::ids::{DocumentId, FolderId, WorkspaceId};

use super::page::to_count;
use crate::model::Author;

macro_rules! authors {
    ($table:literal, $item:literal) => {
        list_statement!(
            concat!(
                "SELECT v.",
                $item,
                ", v.author_kind, v.author_id, v.author_name FROM ",
                $table,
                " v WHERE v.workspace_id = $1 AND v.version = (SELECT MAX(w.version) FROM ",
                $table,
                " w WHERE w.workspace_id = $1 AND w.",
                $item,
                " = v.",
                $item,
                ") AND v.",
                $item,
                " IN "
            ),
            "$2",
            ""
        )
    };
}

statements! {
    pub(super) fn statements;

    /// A backward scan of the primary key of the feed.
    const LATEST: &str =
        "SELECT kind, item_id FROM feed_changes WHERE workspace_id = $1 ORDER BY position DESC LIMIT $2";

    const FILE_AUTHORS: Dialect = authors!("file_versions", "file_id");

    const RECORD_AUTHORS: Dialect = authors!("record_versions", "record_id");

    /// At most `$3` files are counted below each folder. The condition `name > ''` is always true: without statistics
    /// SQLite chooses the index by parent only if it can use three of its columns, and otherwise scans all folders
    /// for every folder.
    const BELOW: Dialect = list_statement!(
        "WITH RECURSIVE below (top, id) AS (\
         SELECT id, id FROM folders WHERE workspace_id = $1 AND deleted_at IS NULL AND id IN ",
        "$2",
        " UNION SELECT below.top, c.id FROM below JOIN folders c ON c.workspace_id = $1 AND c.parent_id = below.id \
         WHERE c.deleted_at IS NULL AND c.name > '') \
         SELECT tops.top, tops.folders, (SELECT COUNT(*) FROM (SELECT 1 FROM below b \
         JOIN files f ON f.workspace_id = $1 AND f.folder_id = b.id \
         WHERE b.top = tops.top AND f.deleted_at IS NULL LIMIT CAST($3 AS BIGINT)) counted) AS files \
         FROM (SELECT top, COUNT(*) - 1 AS folders FROM below GROUP BY top) tops"
    );
}

/// The kinds and ids of the latest changes, the newest first; an item occurs once for each change.
pub(crate) async fn latest(
    db: &Db,
    workspace: WorkspaceId,
    limit: i64,
) -> Result<Vec<(Kind, DocumentId)>, Error> {
    let rows: Vec<(i64, Text<DocumentId>)> = fetch!(all, db, LATEST, Text(workspace), limit)?;
    let kind = |column: i64| i32::try_from(column).ok().and_then(|kind| Kind::try_from(kind).ok());
    rows.into_iter()
        .map(|(column, id)| {
            kind(column).map(|kind| (kind, id.0)).ok_or_else(|| Error::corrupt("a change of an unknown kind"))
        })
        .collect()
}

/// The author of the current content of these files or records, where known.
pub(crate) async fn authors(
    db: &Db,
    workspace: WorkspaceId,
    kind: Kind,
    ids: &[DocumentId],
) -> Result<HashMap<DocumentId, Author>, Error> {
    let statement = if kind == Kind::Record { RECORD_AUTHORS } else { FILE_AUTHORS };
    let rows: Vec<(Text<DocumentId>, String, String, String)> =
        fetch!(all, db, statement, Text(workspace), json_list(ids))?;
    let known = rows.into_iter().filter(|(_, kind, ..)| !kind.is_empty());
    Ok(known.map(|(item, kind, id, name)| (item.0, Author { kind, id, name })).collect())
}

/// The numbers of folders and files below a folder, at any depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Below {
    pub(crate) folders: u64,
    pub(crate) files: u64,
}

/// The number of items below each of these live folders; counting files stops at `limit` for each.
pub(crate) async fn below(
    db: &Db,
    workspace: WorkspaceId,
    folders: &[FolderId],
    limit: i64,
) -> Result<HashMap<FolderId, Below>, Error> {
    let rows: Vec<(Text<FolderId>, i64, i64)> =
        fetch!(all, db, BELOW, Text(workspace), json_list(folders), limit)?;
    let counted = |(id, folders, files): (Text<FolderId>, i64, i64)| {
        (id.0, Below { folders: to_count(folders), files: to_count(files) })
    };
    Ok(rows.into_iter().map(counted).collect())
}
