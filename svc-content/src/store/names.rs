//! Reads for the in-memory index of file names: its initial contents, and the changes to apply to it; and the names
//! of folders, databases and memories.

use cairn_chassis::feed::Kind;
use cairn_chassis::sql::{Db, Dialect, Engine, Error, Text, Tx, json_list, json_rows};
use cairn_chassis::{fetch, rows_as_json, statements};
use cairn_proto::ids::{DocumentId, FileId, FolderId, WorkspaceId};
use serde::de::DeserializeOwned;
use sqlx::{Executor, Postgres, Sqlite};

use super::page::{below, below_folders, to_column, to_count};
use crate::columns::{NameChange, Named};

/// Columns of at most `$2` live rows of a table, the oldest ones, read in the order of the primary key: ordered by
/// name, SQLite would look up each row.
macro_rules! all_names {
    ($engine:ident, $table:literal, $columns:literal, $filter:expr) => {
        concat!(
            "SELECT ",
            rows_as_json!($engine, $columns),
            " FROM (SELECT ",
            $columns,
            " FROM ",
            $table,
            " WHERE workspace_id = $1 AND deleted_at IS NULL",
            $filter,
            " ORDER BY id LIMIT $2) AS all_names"
        )
    };
    ($table:literal, $columns:literal) => {
        Dialect {
            sqlite: all_names!(sqlite, $table, $columns, ""),
            postgres: all_names!(postgres, $table, $columns, ""),
        }
    };
}

/// [`all_names!`] of the rows whose column `$inside` is one of the folders `$3` or below them.
macro_rules! names_below {
    ($engine:ident, $table:literal, $inside:literal) => {
        below_folders!(
            "$3",
            concat!(
                " ",
                all_names!(
                    $engine,
                    $table,
                    "id, name",
                    concat!(" AND ", $inside, " IN (SELECT id FROM below)")
                )
            )
        )
        .$engine
    };
    ($table:literal, $inside:literal) => {
        Dialect {
            sqlite: names_below!(sqlite, $table, $inside),
            postgres: names_below!(postgres, $table, $inside),
        }
    };
}

statements! {
    pub(super) fn statements;

    const POSITION_AND_COUNT: &str = "SELECT \
         COALESCE((SELECT position FROM feed_heads WHERE workspace_id = $1), 0), \
         COALESCE((SELECT files FROM workspace_usage WHERE workspace_id = $1), 0)";

    /// In the order of the primary key.
    const BATCH: &str = "SELECT id, folder_id, name, folded_name FROM files \
         WHERE workspace_id = $1 AND id > $2 AND deleted_at IS NULL ORDER BY id LIMIT $3";

    /// `$2` is the position to start after, `$3` the last one, `$4` the kind of files.
    const CHANGED: &str = "SELECT told.item_id, f.folder_id, f.name, f.folded_name FROM (\
         SELECT DISTINCT item_id FROM feed_changes \
         WHERE workspace_id = $1 AND position > $2 AND position <= $3 AND kind = $4) AS told \
         LEFT JOIN files f ON f.workspace_id = $1 AND f.id = told.item_id AND f.deleted_at IS NULL";

    const FOLDERS: Dialect = all_names!("folders", "id, name");

    const FOLDERS_BELOW: Dialect = names_below!("folders", "id");

    const DATABASES: Dialect = all_names!("databases", "id, name");

    const DATABASES_BELOW: Dialect = names_below!("databases", "folder_id");

    const MEMORIES: Dialect = all_names!("memories", "id, name, slug");
}

/// The feed position of the workspace, and roughly its number of files: those in trash are included.
pub(crate) async fn position_and_count<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
) -> Result<(u64, u64), Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let (position, files): (i64, i64) = fetch!(one, on, POSITION_AND_COUNT, Text(workspace))?;
    Ok((to_count(position), to_count(files)))
}

/// A batch of live files of a workspace in the order of their ids, after a given one.
pub(crate) async fn batch<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    after: Option<FileId>,
    limit: u32,
) -> Result<Vec<Named>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    let rows: Vec<Row<String>> = fetch!(all, on, BATCH, Text(workspace), &after, i64::from(limit))?;
    Ok(rows.into_iter().map(|(id, folder, name, folded)| named(id.0, folder, name, folded)).collect())
}

/// [`batch`] outside of a transaction.
pub(crate) async fn batch_of(
    db: &Db,
    workspace: WorkspaceId,
    after: Option<FileId>,
    limit: u32,
) -> Result<Vec<Named>, Error> {
    batch(db.engine(), workspace, after, limit).await
}

/// The current state of the files that changed in a range of feed positions.
pub(crate) async fn changed(
    tx: &mut Tx,
    workspace: WorkspaceId,
    after: u64,
    until: u64,
) -> Result<Vec<NameChange>, Error> {
    let kind = i64::from(i32::from(Kind::File));
    let rows: Vec<Row<Option<String>>> =
        fetch!(all, tx, CHANGED, Text(workspace), to_column(after), to_column(until), kind)?;
    let changed = rows.into_iter().map(|(id, folder, name, folded)| match name.zip(folded) {
        Some((name, folded)) => NameChange::Upsert(named(id.0, folder, name, folded)),
        None => NameChange::Delete(id.0),
    });
    Ok(changed.collect())
}

/// The file, its folder, its name, and its folded name.
type Row<N> = (Text<FileId>, Option<Text<FolderId>>, N, N);

fn named(id: FileId, folder: Option<Text<FolderId>>, name: String, folded: String) -> Named {
    Named { id, folder_id: folder.map(|folder| folder.0), name, folded }
}

/// An item and its name.
pub(crate) type ItemName = (DocumentId, String);

/// Live folders: all, or these and those below them. At most `limit`, the oldest ones, in no particular order.
pub(crate) async fn folders(
    db: &Db,
    workspace: WorkspaceId,
    below: Option<&[FolderId]>,
    limit: i64,
) -> Result<Vec<ItemName>, Error> {
    match below {
        None => all(db, FOLDERS, workspace, limit).await,
        Some(folders) => all_below(db, FOLDERS_BELOW, workspace, folders, limit).await,
    }
}

/// Live databases: all, or those in these folders and below them. At most `limit`, the oldest ones, in no particular
/// order.
pub(crate) async fn databases(
    db: &Db,
    workspace: WorkspaceId,
    below: Option<&[FolderId]>,
    limit: i64,
) -> Result<Vec<ItemName>, Error> {
    match below {
        None => all(db, DATABASES, workspace, limit).await,
        Some(folders) => all_below(db, DATABASES_BELOW, workspace, folders, limit).await,
    }
}

/// Live memories with their slugs. At most `limit`, the oldest ones, in no particular order.
pub(crate) async fn memories(
    db: &Db,
    workspace: WorkspaceId,
    limit: i64,
) -> Result<Vec<(DocumentId, String, String)>, Error> {
    all(db, MEMORIES, workspace, limit).await
}

async fn all<T: DeserializeOwned>(
    db: &Db,
    statement: Dialect,
    workspace: WorkspaceId,
    limit: i64,
) -> Result<Vec<T>, Error> {
    let rows: String = fetch!(scalar, db, statement, Text(workspace), limit)?;
    json_rows(&rows)
}

async fn all_below<T: DeserializeOwned>(
    db: &Db,
    statement: Dialect,
    workspace: WorkspaceId,
    folders: &[FolderId],
    limit: i64,
) -> Result<Vec<T>, Error> {
    let rows: String = fetch!(scalar, db, statement, Text(workspace), limit, json_list(folders))?;
    json_rows(&rows)
}
