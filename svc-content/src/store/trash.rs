//! The trash: one row for each deletion. Deleted rows have the id of their deletion; each table with such rows is one
//! of [`PARTS`].

pub(super) mod along;
pub(super) mod freed;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_chassis::sql::{Db, Dialect, Engine, Error, PostgresOnly, Statement, Statements, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::{DatabaseId, DeletionId, DocumentId, FolderId, WorkspaceId};
use sqlx::{Executor, Postgres, Sqlite};

pub(crate) use self::along::along;
use super::kinds::trash_kind;
use super::page::{files_taken, to_column, to_count};
use crate::model::{Author, Deletion, Growth};

macro_rules! columns {
    () => {
        "workspace_id, deletion_id, kind, item_id, parent_id, name, path, items, deleted_at, author_kind, author_id, \
         author_name"
    };
}

macro_rules! get {
    () => {
        concat!("SELECT ", columns!(), " FROM trash WHERE workspace_id = $1 AND kind = $2 AND item_id = $3")
    };
}

/// Deletions before a given one, the newest first, at most `$4`.
macro_rules! list {
    ($filter:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM trash WHERE workspace_id = $1",
            $filter,
            " AND (deleted_at, deletion_id) < ($2, $3) ORDER BY deleted_at DESC, deletion_id DESC LIMIT $4"
        )
    };
}

macro_rules! place {
    ($table:literal, $folder:literal) => {
        Some(concat!(
            "UPDATE ",
            $table,
            " SET ",
            $folder,
            " = $3 WHERE workspace_id = $1 AND id = $2 AND deletion_id IS NOT NULL"
        ))
    };
}

/// A [`Part`]: the table, the condition of its rows, how they are moved into a folder, and what has to release them.
/// `$1` is the workspace, `$2` the deletion.
macro_rules! part {
    ($kind:ident, $table:literal, $place:expr, $release:expr) => {
        part!($kind, $table, "deletion_id = $2", $place, $release)
    };
    ($kind:ident, $table:literal, $taken:expr, $place:expr, $release:expr) => {
        Part {
            kind: Kind::$kind,
            take: concat!(
                "UPDATE ",
                $table,
                " SET deleted_at = $3, deletion_id = $4 WHERE workspace_id = $1 AND id = $2"
            ),
            place: $place,
            restore: concat!(
                "UPDATE ",
                $table,
                " SET deleted_at = NULL, deletion_id = NULL WHERE workspace_id = $1 AND ",
                $taken,
                " RETURNING id"
            ),
            release: &$release,
            remove: concat!("DELETE FROM ", $table, " WHERE workspace_id = $1 AND ", $taken, " RETURNING id"),
        }
    };
}

/// Items that were deleted by themselves from one of these folders stay in trash and are restored into the root.
macro_rules! release_items {
    ($table:literal, $column:literal) => {
        concat!(
            "UPDATE ",
            $table,
            " SET ",
            $column,
            " = NULL WHERE workspace_id = $1 AND ",
            $column,
            " IN (SELECT id FROM folders WHERE workspace_id = $1 AND deletion_id = $2) \
             AND deletion_id IS NOT NULL AND deletion_id <> $2"
        )
    };
}

/// The rows that belong to the databases of the deletion.
macro_rules! delete_of_databases {
    ($table:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE workspace_id = $1 \
             AND database_id IN (SELECT id FROM databases WHERE workspace_id = $1 AND deletion_id = $2)"
        )
    };
}

/// The rows that belong to the records of these databases.
macro_rules! delete_of_database_records {
    ($table:literal, $record:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE workspace_id = $1 AND ",
            $record,
            " IN (SELECT r.id FROM records r JOIN databases d ON d.workspace_id = $1 AND d.id = r.database_id \
             WHERE r.workspace_id = $1 AND d.deletion_id = $2)"
        )
    };
}

statements! {
    pub(super) fn statements;

    const INSERT: &str =
        concat!("INSERT INTO trash (", columns!(), ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)");

    const GET: &str = get!();

    /// Of a concurrent restore and removal, the second finds no row. One statement: with a separate lock, a row
    /// inserted after it would be read without being locked.
    const LOCK: Dialect = Dialect { sqlite: GET, postgres: concat!(get!(), " FOR UPDATE") };

    const LIST: &str = list!("");

    const LIST_OF: &str = list!(" AND author_id = $5");

    const COUNT: &str = "SELECT COUNT(*) FROM trash WHERE workspace_id = $1";

    const COUNT_OF: &str = "SELECT COUNT(*) FROM trash WHERE workspace_id = $1 AND author_id = $2";

    /// A loose index scan from one principal to the next, at most `$2`. '' is unknown: deletions from before the
    /// author was stored.
    const DELETERS: &str = "WITH RECURSIVE deleters (id, number) AS (\
         SELECT MIN(author_id), 1 FROM trash WHERE workspace_id = $1 AND author_id > '' UNION ALL \
         SELECT (SELECT MIN(t.author_id) FROM trash t WHERE t.workspace_id = $1 AND t.author_id > deleters.id), \
         deleters.number + 1 FROM deleters WHERE deleters.id IS NOT NULL AND deleters.number < $2) \
         SELECT (SELECT l.author_kind FROM trash l WHERE l.workspace_id = $1 AND l.author_id = deleters.id \
         ORDER BY l.deleted_at DESC, l.deletion_id DESC LIMIT 1), deleters.id, \
         (SELECT l.author_name FROM trash l WHERE l.workspace_id = $1 AND l.author_id = deleters.id \
         ORDER BY l.deleted_at DESC, l.deletion_id DESC LIMIT 1) \
         FROM deleters WHERE deleters.id IS NOT NULL";

    const OLDER: &str =
        concat!("SELECT ", columns!(), " FROM trash WHERE deleted_at < $1 ORDER BY deleted_at LIMIT $2");

    const DELETE: &str = "DELETE FROM trash WHERE workspace_id = $1 AND deletion_id = $2";

    /// The height of the subtree of folders of a deletion.
    const HEIGHT: &str = "WITH RECURSIVE down (id, height) AS (\
         SELECT id, 1 FROM folders WHERE workspace_id = $1 AND id = $2 AND deletion_id = $3 UNION ALL \
         SELECT c.id, down.height + 1 FROM down JOIN folders c ON c.workspace_id = $1 AND c.parent_id = down.id \
         WHERE c.deletion_id = $3 AND down.height < 128) SELECT CAST(COALESCE(MAX(height), 0) AS BIGINT) FROM down";

    /// Restored in this order, so that nothing live is in something deleted; removed in reverse order.
    const PARTS: &[Part] = &[
        part!(
            Folder,
            "folders",
            place!("folders", "parent_id"),
            [release_items!("folders", "parent_id"), release_items!("files", "folder_id"), release_items!("databases", "folder_id")]
        ),
        part!(
            File,
            "files",
            concat!("id IN ", files_taken!()),
            place!("files", "folder_id"),
            [concat!("DELETE FROM file_versions WHERE workspace_id = $1 AND file_id IN ", files_taken!())]
        ),
        part!(
            Database,
            "databases",
            place!("databases", "folder_id"),
            [
                // Items that were deleted by themselves from a database could not be restored.
                concat!(
            "DELETE FROM trash WHERE workspace_id = $1 AND kind = ",
            trash_kind!(record),
            " AND item_id IN (SELECT r.id FROM records r \
                 JOIN databases d ON d.workspace_id = $1 AND d.id = r.database_id \
                 WHERE r.workspace_id = $1 AND d.deletion_id = $2 AND r.deletion_id IS NOT NULL)"
        ),
                delete_of_database_records!("record_cells", "record_id"),
                delete_of_database_records!("record_versions", "record_id"),
                delete_of_database_records!("records", "id"),
                delete_of_databases!("record_counts"),
                delete_of_databases!("former_options"),
                delete_of_databases!("former_properties")
            ]
        ),
        part!(
            Record,
            "records",
            None,
            ["DELETE FROM record_versions WHERE workspace_id = $1 \
              AND record_id IN (SELECT id FROM records WHERE workspace_id = $1 AND deletion_id = $2)"]
        ),
        part!(
            Memory,
            "memories",
            None,
            [
                "DELETE FROM memory_members WHERE workspace_id = $1 \
                 AND memory_id IN (SELECT id FROM memories WHERE workspace_id = $1 AND deletion_id = $2)",
                "DELETE FROM memory_versions WHERE workspace_id = $1 \
                 AND memory_id IN (SELECT id FROM memories WHERE workspace_id = $1 AND deletion_id = $2)"
            ]
        ),
    ];

    /// PostgreSQL locks them exclusively. Lock order: a writer of a record locks its database first, then the
    /// deletion of the record.
    const TAKEN_DATABASES: Dialect = Dialect {
        sqlite: "SELECT id FROM databases WHERE workspace_id = $1 AND deletion_id = $2 ORDER BY id",
        postgres: "SELECT id FROM databases WHERE workspace_id = $1 AND deletion_id = $2 ORDER BY id FOR UPDATE",
    };

    /// Folders before the items in them; see [`super::folders::lock_shared`].
    const LOCK_FOLDERS: PostgresOnly =
        PostgresOnly("SELECT 1 FROM folders WHERE workspace_id = $1 AND deletion_id = $2 ORDER BY id FOR UPDATE");

    /// Records that were live in the databases of a deletion.
    const RECORDS_ALONG: &str = "SELECT r.id FROM databases d \
         JOIN records r ON r.workspace_id = $1 AND r.database_id = d.id AND r.deleted_at IS NULL \
         WHERE d.workspace_id = $1 AND d.deletion_id = $2 ORDER BY r.id";

    /// The current and former bodies of the files of this deletion.
    const CANDIDATES: &str = concat!(
        "SELECT DISTINCT content_hash FROM file_versions WHERE workspace_id = $1 AND file_id IN ",
        files_taken!()
    );
}

/// A table whose rows a deletion can contain.
#[derive(Debug)]
struct Part {
    kind: Kind,
    /// Moves the live row `$2` to trash, at the time `$3`, with the deletion `$4`.
    take: &'static str,
    /// Moves the trashed row `$2` into the folder `$3`; absent for items that are in no folder.
    place: Option<&'static str>,
    restore: &'static str,
    /// Removes the references of other rows before the rows are deleted.
    release: &'static [&'static str],
    remove: &'static str,
}

impl Statements for Part {
    fn list(&self, into: &mut Vec<Statement>) {
        [self.take, self.restore, self.remove].list(into);
        self.release.list(into);
        if let Some(place) = self.place {
            place.list(into);
        }
    }
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    workspace_id: Text<WorkspaceId>,
    deletion_id: Text<DeletionId>,
    kind: i64,
    item_id: String,
    parent_id: Option<Text<DocumentId>>,
    name: String,
    path: String,
    items: i64,
    deleted_at: Timestamp,
    author_kind: String,
    author_id: String,
    author_name: String,
}

impl Row {
    fn into_deletion(self) -> Result<Deletion, Error> {
        let kind = i32::try_from(self.kind).ok().and_then(|number| Kind::try_from(number).ok());
        let kind = kind.ok_or_else(|| Error::corrupt("a deletion of an unknown kind"))?;
        let holder = self.parent_id.map(|id| id.0.0);
        let (folder, database) = if kind == Kind::Record { (None, holder) } else { (holder, None) };
        let by = Author { kind: self.author_kind, id: self.author_id, name: self.author_name };
        Ok(Deletion {
            workspace: self.workspace_id.0,
            id: self.deletion_id.0,
            kind,
            item_id: self.item_id,
            parent_id: folder.map(FolderId),
            database_id: database.map(DatabaseId),
            name: self.name,
            path: self.path,
            items: to_count(self.items),
            at: self.deleted_at,
            by: Some(by).filter(|by| !by.kind.is_empty()),
        })
    }
}

fn kind_column(kind: Kind) -> i64 {
    i64::from(i32::from(kind))
}

/// Inserts a deletion, in the transaction that deletes.
pub(crate) async fn insert(tx: &mut Tx, deletion: &Deletion) -> Result<(), Error> {
    let nobody = Author::default();
    let by = deletion.by.as_ref().unwrap_or(&nobody);
    execute!(
        tx,
        INSERT,
        Text(deletion.workspace),
        Text(deletion.id),
        kind_column(deletion.kind),
        &deletion.item_id,
        deletion.holder(),
        &deletion.name,
        &deletion.path,
        to_column(deletion.items),
        deletion.at,
        &by.kind,
        &by.id,
        &by.name
    )
    .map(drop)
}

/// Moves one item to trash and inserts its deletion.
pub(crate) async fn take(tx: &mut Tx, deletion: &Deletion) -> Result<(), Error> {
    if let Some(part) = PARTS.iter().find(|part| part.kind == deletion.kind) {
        execute!(tx, part.take, Text(deletion.workspace), &deletion.item_id, deletion.at, Text(deletion.id))?;
    }
    insert(tx, deletion).await
}

/// The current deletion of an item.
pub(crate) async fn get<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    kind: Kind,
    item_id: &str,
) -> Result<Option<Deletion>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let row: Option<Row> = fetch!(optional, on, GET, Text(workspace), kind_column(kind), item_id)?;
    row.map(Row::into_deletion).transpose()
}

/// Locks the deletion of an item until the transaction ends, and reads it.
pub(crate) async fn lock(
    tx: &mut Tx,
    workspace: WorkspaceId,
    kind: Kind,
    item_id: &str,
) -> Result<Option<Deletion>, Error> {
    let row: Option<Row> = fetch!(optional, tx, LOCK, Text(workspace), kind_column(kind), item_id)?;
    row.map(Row::into_deletion).transpose()
}

/// Deletions before a given one, the newest first; by one principal or by all.
pub(crate) async fn list(
    db: &Db,
    workspace: WorkspaceId,
    principal: Option<&str>,
    before: (Timestamp, &str),
    limit: i64,
) -> Result<Vec<Deletion>, Error> {
    let rows: Vec<Row> = match principal {
        None => fetch!(all, db, LIST, Text(workspace), before.0, before.1, limit)?,
        Some(id) => fetch!(all, db, LIST_OF, Text(workspace), before.0, before.1, limit, id)?,
    };
    rows.into_iter().map(Row::into_deletion).collect()
}

/// The number of deletions; by one principal or by all.
pub(crate) async fn count(db: &Db, workspace: WorkspaceId, principal: Option<&str>) -> Result<u64, Error> {
    let count: i64 = match principal {
        None => fetch!(scalar, db, COUNT, Text(workspace))?,
        Some(id) => fetch!(scalar, db, COUNT_OF, Text(workspace), id)?,
    };
    Ok(to_count(count))
}

/// The principals of the deletions in trash, by id; each with the name of its newest deletion.
pub(crate) async fn deleters(db: &Db, workspace: WorkspaceId, limit: i64) -> Result<Vec<Author>, Error> {
    let rows: Vec<(String, String, String)> = fetch!(all, db, DELETERS, Text(workspace), limit)?;
    Ok(rows.into_iter().map(|(kind, id, name)| Author { kind, id, name }).collect())
}

/// Deletions of all workspaces older than a time, the oldest first.
pub(crate) async fn older(db: &Db, than: Timestamp, limit: i64) -> Result<Vec<Deletion>, Error> {
    let rows: Vec<Row> = fetch!(all, db, OLDER, than, limit)?;
    rows.into_iter().map(Row::into_deletion).collect()
}

/// The height of the subtree of folders of a deletion.
pub(crate) async fn height(tx: &mut Tx, deletion: &Deletion) -> Result<u64, Error> {
    let height: i64 =
        fetch!(scalar, tx, HEIGHT, Text(deletion.workspace), &deletion.item_id, Text(deletion.id))?;
    Ok(to_count(height))
}

/// Moves a trashed item into a folder or the root.
pub(crate) async fn place(tx: &mut Tx, deletion: &Deletion, parent: Option<FolderId>) -> Result<(), Error> {
    let part = PARTS.iter().find(|part| part.kind == deletion.kind);
    let Some(sql) = part.and_then(|part| part.place) else { return Ok(()) };
    execute!(tx, sql, Text(deletion.workspace), &deletion.item_id, parent.map(Text)).map(drop)
}

/// Locks the databases of a deletion, with their records, until the transaction ends.
pub(crate) async fn databases(tx: &mut Tx, deletion: &Deletion) -> Result<Vec<DatabaseId>, Error> {
    super::page::lock(tx, LOCK_FOLDERS, deletion.workspace, deletion.id).await?;
    let rows: Vec<Text<DatabaseId>> =
        fetch!(scalars, tx, TAKEN_DATABASES, Text(deletion.workspace), Text(deletion.id))?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// The records in the databases of a deletion.
pub(crate) async fn records_along(tx: &mut Tx, deletion: &Deletion) -> Result<Vec<String>, Error> {
    run(tx, RECORDS_ALONG, deletion).await
}

/// Restores the items of a deletion and deletes its row; returns the restored items.
pub(crate) async fn restore(tx: &mut Tx, deletion: &Deletion) -> Result<Vec<(Kind, String)>, Error> {
    let mut all = Vec::new();
    for part in PARTS {
        all.extend(run(tx, part.restore, deletion).await?.into_iter().map(|id| (part.kind, id)));
    }
    delete(tx, deletion).await?;
    Ok(all)
}

/// The result of a permanent removal.
#[derive(Debug)]
pub(crate) struct Removed {
    pub(crate) items: Vec<(Kind, String)>,
    /// By how much the usage of the workspace shrinks.
    pub(crate) growth: Growth,
}

/// Deletes the items of a deletion permanently, with the bodies that nothing else refers to.
pub(crate) async fn remove(tx: &mut Tx, deletion: &Deletion) -> Result<Removed, Error> {
    let bodies = run(tx, CANDIDATES, deletion).await?;
    let of_records = freed::of_records(tx, deletion).await?;
    let mut all = Vec::new();
    for part in PARTS.iter().rev() {
        for sql in part.release {
            execute!(tx, *sql, Text(deletion.workspace), Text(deletion.id))?;
        }
        all.extend(run(tx, part.remove, deletion).await?.into_iter().map(|id| (part.kind, id)));
    }
    delete(tx, deletion).await?;
    let files = all.iter().filter(|(kind, _)| *kind == Kind::File).count();
    let bytes = freed::sweep_bodies(tx, deletion.workspace, &bodies).await?;
    let growth = Growth { files: -to_column(files as u64), bytes: -bytes - of_records };
    Ok(Removed { items: all, growth })
}

async fn run(tx: &mut Tx, sql: &'static str, deletion: &Deletion) -> Result<Vec<String>, Error> {
    fetch!(scalars, tx, sql, Text(deletion.workspace), Text(deletion.id))
}

/// Deletes the row of a deletion whose item was restored or removed.
pub(crate) async fn delete(tx: &mut Tx, deletion: &Deletion) -> Result<(), Error> {
    execute!(tx, DELETE, Text(deletion.workspace), Text(deletion.id)).map(drop)
}
