//! The tree of a workspace by id: pages of all live items, and the current state of some items.

use std::collections::HashMap;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_chassis::sql::{Db, Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{fetch, list_statement, statements};
use cairn_proto::ids::{DatabaseId, DocumentId, FileId, FolderId, MemoryId, WorkspaceId};

use super::files::{read_tags, type_of};
use super::memories::target_of;
use super::page::{to_column, to_count};
use super::records::Row as RecordRow;
use crate::model::{NamedDatabase, Record, TreeFile, TreeFolder, TreeMember, TreeMemory};

/// A page of live rows in the order of their ids, after `$2`, and the live ones among a list of ids.
macro_rules! both {
    ($columns:literal) => {
        (
            concat!(
                $columns,
                " WHERE workspace_id = $1 AND id > $2 AND deleted_at IS NULL ORDER BY id LIMIT $3"
            ),
            list_statement!(
                concat!($columns, " WHERE workspace_id = $1 AND deleted_at IS NULL AND id IN "),
                "$2",
                ""
            ),
        )
    };
}

statements! {
    pub(super) fn statements;

    const FOLDERS: (&str, Dialect) = both!("SELECT id, parent_id, name, updated_at FROM folders");

    const FILES: (&str, Dialect) =
        both!("SELECT id, folder_id, name, file_type, size_bytes, content_hash, updated_at FROM files");

    const TAGS: Dialect = list_statement!(
        "SELECT id, tags FROM files WHERE workspace_id = $1 AND deleted_at IS NULL AND id IN ",
        "$2",
        ""
    );

    const RECORDS: (&str, Dialect) = both!(
        "SELECT id, database_id, field_values, content_file_id, version, created_at, updated_at FROM records"
    );

    const DATABASES_AFTER: &str = "SELECT id FROM databases \
         WHERE workspace_id = $1 AND id > $2 AND deleted_at IS NULL ORDER BY id LIMIT $3";

    const NAMED_DATABASES: &str = "SELECT id, folder_id, name FROM databases \
         WHERE workspace_id = $1 AND id > $2 AND deleted_at IS NULL ORDER BY id LIMIT $3";

    const MEMORIES_AFTER: &str = "SELECT id FROM memories \
         WHERE workspace_id = $1 AND id > $2 AND deleted_at IS NULL ORDER BY id LIMIT $3";

    const MEMORIES: Dialect = list_statement!(
        "SELECT id, slug, name, description, use_when, updated_at FROM memories \
         WHERE workspace_id = $1 AND deleted_at IS NULL AND id IN ",
        "$2",
        " ORDER BY id"
    );

    const MEMBERS: Dialect = list_statement!(
        "SELECT memory_id, kind, target_id, query IS NOT NULL AS is_query FROM memory_members \
         WHERE workspace_id = $1 AND memory_id IN ",
        "$2",
        " ORDER BY memory_id, position"
    );

    const CHANGED: &str = "SELECT position, kind, item_id FROM feed_changes \
         WHERE workspace_id = $1 AND position > $2 ORDER BY position LIMIT $3";

    const CHANGED_OF_KINDS: &str = "SELECT position FROM feed_changes \
         WHERE workspace_id = $1 AND position > $2 AND kind IN ($3, $4) ORDER BY position LIMIT 1";

    const SIZES: Dialect =
        list_statement!("SELECT hash, size_bytes FROM bodies WHERE workspace_id = $1 AND hash IN ", "$2", "");
}

/// A selection of items: a page after an id, or a list.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TreeSelection<'a> {
    /// After this id, at most this many.
    After(DocumentId, i64),
    /// Those of these that are live.
    Some(&'a [DocumentId]),
}

#[derive(Debug, sqlx::FromRow)]
struct FolderRow {
    id: Text<FolderId>,
    parent_id: Option<Text<FolderId>>,
    name: String,
    updated_at: Timestamp,
}

#[derive(Debug, sqlx::FromRow)]
struct FileRow {
    id: Text<FileId>,
    folder_id: Option<Text<FolderId>>,
    name: String,
    file_type: i64,
    size_bytes: i64,
    content_hash: String,
    updated_at: Timestamp,
}

#[derive(Debug, sqlx::FromRow)]
struct MemoryRow {
    id: Text<MemoryId>,
    slug: String,
    name: String,
    description: Option<String>,
    use_when: Option<String>,
    updated_at: Timestamp,
}

#[derive(Debug, sqlx::FromRow)]
struct MemberRow {
    memory_id: Text<MemoryId>,
    kind: i64,
    target_id: Text<DocumentId>,
    is_query: bool,
}

/// Fetches the rows of either statement.
macro_rules! rows {
    ($tx:expr, $workspace:expr, $statements:expr, $which:expr) => {{
        let (page, some) = $statements;
        match $which {
            TreeSelection::After(after, limit) => {
                fetch!(all, $tx, page, Text($workspace), Text(after), limit)?
            }
            TreeSelection::Some(ids) => {
                let (sql, list) = (some.of($tx.engine()), json_list(ids));
                fetch!(all, $tx, sql, Text($workspace), &list)?
            }
        }
    }};
}

/// Live folders.
pub(crate) async fn folders(
    tx: &mut Tx,
    workspace: WorkspaceId,
    which: TreeSelection<'_>,
) -> Result<Vec<TreeFolder>, Error> {
    let rows: Vec<FolderRow> = rows!(tx, workspace, FOLDERS, which);
    let read = |row: FolderRow| TreeFolder {
        id: row.id.0,
        parent_id: row.parent_id.map(|id| id.0),
        name: row.name,
        updated_at: row.updated_at,
    };
    Ok(rows.into_iter().map(read).collect())
}

/// The names of live databases after an id, at most `limit`, in the order of their ids.
pub(crate) async fn named_databases(
    tx: &mut Tx,
    workspace: WorkspaceId,
    after: DocumentId,
    limit: i64,
) -> Result<Vec<NamedDatabase>, Error> {
    let rows: Vec<(Text<DatabaseId>, Option<Text<FolderId>>, String)> =
        fetch!(all, tx, NAMED_DATABASES, Text(workspace), Text(after), limit)?;
    let named = |(id, folder_id, name): (Text<DatabaseId>, Option<Text<FolderId>>, String)| NamedDatabase {
        id: id.0,
        folder_id: folder_id.map(|id| id.0),
        name,
    };
    Ok(rows.into_iter().map(named).collect())
}

/// Whether a folder or database changed after a position.
pub(crate) async fn names_changed(tx: &mut Tx, workspace: WorkspaceId, after: u64) -> Result<bool, Error> {
    let [folder, database] = [Kind::Folder, Kind::Database].map(|kind| i64::from(i32::from(kind)));
    let found: Option<i64> =
        fetch!(optional_scalar, tx, CHANGED_OF_KINDS, Text(workspace), to_column(after), folder, database)?;
    Ok(found.is_some())
}

/// Live files.
pub(crate) async fn files(
    tx: &mut Tx,
    workspace: WorkspaceId,
    which: TreeSelection<'_>,
) -> Result<Vec<TreeFile>, Error> {
    let rows: Vec<FileRow> = rows!(tx, workspace, FILES, which);
    let read = |row: FileRow| {
        Ok(TreeFile {
            id: row.id.0,
            folder_id: row.folder_id.map(|id| id.0),
            name: row.name,
            file_type: type_of(row.file_type)?,
            size_bytes: to_count(row.size_bytes),
            content_hash: row.content_hash,
            updated_at: row.updated_at,
        })
    };
    rows.into_iter().map(read).collect()
}

/// The tags of those of these files that are live.
pub(crate) async fn tags(
    tx: &mut Tx,
    workspace: WorkspaceId,
    ids: &[DocumentId],
) -> Result<HashMap<FileId, Vec<String>>, Error> {
    let sql = TAGS.of(tx.engine());
    let rows: Vec<(Text<FileId>, String)> = fetch!(all, tx, sql, Text(workspace), json_list(ids))?;
    rows.into_iter().map(|(id, column)| Ok((id.0, read_tags(&column)?))).collect()
}

/// Live records, whether their databases are live or not.
pub(crate) async fn records(
    tx: &mut Tx,
    workspace: WorkspaceId,
    which: TreeSelection<'_>,
) -> Result<Vec<Record>, Error> {
    let rows: Vec<RecordRow> = rows!(tx, workspace, RECORDS, which);
    rows.into_iter().map(RecordRow::into_record).collect()
}

/// The ids of live databases after an id.
pub(crate) async fn databases_after(
    tx: &mut Tx,
    workspace: WorkspaceId,
    after: DocumentId,
    limit: i64,
) -> Result<Vec<DatabaseId>, Error> {
    let ids = ids_after(tx, DATABASES_AFTER, workspace, after, limit).await?;
    Ok(ids.into_iter().map(|id| DatabaseId(id.0)).collect())
}

/// The ids of live memories after an id.
pub(crate) async fn memories_after(
    tx: &mut Tx,
    workspace: WorkspaceId,
    after: DocumentId,
    limit: i64,
) -> Result<Vec<DocumentId>, Error> {
    ids_after(tx, MEMORIES_AFTER, workspace, after, limit).await
}

async fn ids_after(
    tx: &mut Tx,
    sql: &'static str,
    workspace: WorkspaceId,
    after: DocumentId,
    limit: i64,
) -> Result<Vec<DocumentId>, Error> {
    let rows: Vec<Text<DocumentId>> = fetch!(scalars, tx, sql, Text(workspace), Text(after), limit)?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// These memories with their members.
pub(crate) async fn memories(
    tx: &mut Tx,
    workspace: WorkspaceId,
    ids: &[DocumentId],
) -> Result<Vec<TreeMemory>, Error> {
    let list = json_list(ids);
    let of_members = MEMBERS.of(tx.engine());
    let rows: Vec<MemoryRow> = fetch!(all, tx, MEMORIES, Text(workspace), &list)?;
    let members: Vec<MemberRow> = fetch!(all, tx, of_members, Text(workspace), &list)?;
    let mut members = members.into_iter().peekable();
    let mut memories = Vec::with_capacity(rows.len());
    for row in rows {
        let mut held = Vec::new();
        while let Some(member) = members.next_if(|member| member.memory_id.0 == row.id.0) {
            let target = target_of(member.kind, member.target_id.0)?;
            held.push(TreeMember { target, is_query: member.is_query });
        }
        memories.push(TreeMemory {
            id: row.id.0,
            slug: row.slug,
            name: row.name,
            description: row.description,
            use_when: row.use_when,
            members: held,
            updated_at: row.updated_at,
        });
    }
    Ok(memories)
}

/// The feed entries after a position, at most `limit`, in order: the position and the item of each.
pub(crate) async fn changed(
    tx: &mut Tx,
    workspace: WorkspaceId,
    after: u64,
    limit: i64,
) -> Result<Vec<(u64, Kind, DocumentId)>, Error> {
    let rows: Vec<(i64, i64, Text<DocumentId>)> =
        fetch!(all, tx, CHANGED, Text(workspace), to_column(after), limit)?;
    let item = |(position, kind, id): (i64, i64, Text<DocumentId>)| {
        let kind = i32::try_from(kind).ok().and_then(|kind| Kind::try_from(kind).ok());
        Ok((to_count(position), kind.ok_or_else(|| Error::corrupt("a change of an unknown kind"))?, id.0))
    };
    rows.into_iter().map(item).collect()
}

/// The hashes and sizes of those of these bodies that exist.
pub(crate) async fn sizes(
    db: &Db,
    workspace: WorkspaceId,
    hashes: &[&str],
) -> Result<Vec<(String, u64)>, Error> {
    let rows: Vec<(String, i64)> = fetch!(all, db, SIZES, Text(workspace), json_list(hashes))?;
    Ok(rows.into_iter().map(|(hash, size)| (hash, to_count(size))).collect())
}
