//! The activity log: one row for each item that a write touched, stored in the transaction of the write.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_chassis::sql::{Db, Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{execute, fetch, list_statement, statements};
use cairn_proto::ids::{DatabaseId, FolderId, WorkspaceId};
use serde_json::json;

use super::page::{to_column, to_count};
use crate::model::{Activity, ActivityEntry, ActivityId, Actor, Author, Former, Operation, WriteId};

macro_rules! columns {
    () => {
        "happened_at, position, place, principal_kind, principal_id, principal_name, channel, operation, kind, item_id, \
         folder_id, database_id, name, path, version_before, version_after, items, former, undoes"
    };
}

/// Inserts the rows of a JSON array of `[place, operation, kind, item, folder, database, name, path, version before,
/// version after, items, former]`. `$author` lists the kind, the id, the name and the channel; on PostgreSQL the time
/// is `$2`.
macro_rules! insert_activity {
    (sqlite, $at:literal, $position:literal, $author:literal, $undoes:literal, $list:literal) => {
        concat!(
            "INSERT INTO activity (workspace_id, happened_at, position, principal_kind, principal_id, principal_name, \
             channel, undoes, place, operation, kind, item_id, folder_id, database_id, name, path, version_before, \
             version_after, items, former) SELECT $1, ",
            $at,
            ", ",
            $position,
            ", ",
            $author,
            ", ",
            $undoes,
            ", value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, \
             value ->> 8, value ->> 9, value ->> 10, value ->> 11 FROM json_each(",
            $list,
            ")"
        )
    };
    // `$beside`, a comma-separated prefix of the FROM list, may be where the position comes from.
    (postgres, $position:literal, $author:literal, $undoes:literal, $beside:literal, $list:literal) => {
        concat!(
            "INSERT INTO activity (workspace_id, happened_at, position, principal_kind, principal_id, principal_name, \
             channel, undoes, place, operation, kind, item_id, folder_id, database_id, name, path, version_before, \
             version_after, items, former) SELECT $1, CAST($2 AS BIGINT), ",
            $position,
            ", ",
            $author,
            ", ",
            $undoes,
            ", CAST(entry ->> 0 AS BIGINT), entry ->> 1, CAST(entry ->> 2 AS BIGINT), entry ->> 3, entry ->> 4, \
             entry ->> 5, entry ->> 6, entry ->> 7, CAST(entry ->> 8 AS BIGINT), CAST(entry ->> 9 AS BIGINT), \
             CAST(entry ->> 10 AS BIGINT), entry ->> 11 FROM ",
            $beside,
            "jsonb_array_elements(CAST(CAST(",
            $list,
            " AS TEXT) AS JSONB)) AS list (entry)"
        )
    };
}
pub(super) use insert_activity;

/// Entries older than a position, the newest first, at most `$5`.
macro_rules! list {
    ($filter:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM activity WHERE workspace_id = $1",
            $filter,
            " AND (happened_at, position, place) < ($2, $3, $4) \
             ORDER BY happened_at DESC, position DESC, place DESC LIMIT $5"
        )
    };
}

statements! {
    pub(super) fn statements;

    const INSERT: Dialect = Dialect {
        sqlite: insert_activity!(sqlite, "$2", "$3", "$4, $5, $6, $7", "$9", "$8"),
        postgres: insert_activity!(postgres, "CAST($3 AS BIGINT)", "$4, $5, $6, $7", "$9", "", "$8"),
    };

    const LIST: &str = list!("");

    const LIST_OF: &str = list!(" AND principal_id = $6");

    const GET: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM activity WHERE workspace_id = $1 AND happened_at = $2 AND position = $3 AND place = $4"
    );

    /// Entries of one write, at most `$4`.
    const OF_WRITE: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM activity WHERE workspace_id = $1 AND happened_at = $2 AND position = $3 ORDER BY place LIMIT $4"
    );

    /// Entries of some items from position `$3` on, the newest first for each item, at most `$4`.
    const HISTORIES: Dialect = list_statement!(
        concat!("SELECT ", columns!(), " FROM activity WHERE workspace_id = $1 AND item_id IN "),
        "$2",
        " AND position >= $3 ORDER BY position DESC, place DESC LIMIT $4"
    );

    /// Entries of writes between two times from position `$4` on, in the order of the writes, at most `$5`.
    const BETWEEN: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM activity WHERE workspace_id = $1 AND happened_at >= $2 AND happened_at <= $3 AND position >= $4 \
         ORDER BY position, place LIMIT $5"
    );

    /// A loose index scan from one principal to the next, at most `$2`.
    const ACTORS: &str = "WITH RECURSIVE actors (id, number) AS (\
         SELECT MIN(principal_id), 1 FROM activity WHERE workspace_id = $1 UNION ALL \
         SELECT (SELECT MIN(a.principal_id) FROM activity a WHERE a.workspace_id = $1 AND a.principal_id > actors.id), \
         actors.number + 1 FROM actors WHERE actors.id IS NOT NULL AND actors.number < $2) \
         SELECT (SELECT l.principal_kind FROM activity l WHERE l.workspace_id = $1 AND l.principal_id = actors.id \
         ORDER BY l.happened_at DESC, l.position DESC, l.place DESC LIMIT 1), actors.id, \
         (SELECT l.principal_name FROM activity l WHERE l.workspace_id = $1 AND l.principal_id = actors.id \
         ORDER BY l.happened_at DESC, l.position DESC, l.place DESC LIMIT 1) \
         FROM actors WHERE actors.id IS NOT NULL";

    /// Workspaces that have a feed head, in the order of their ids.
    const WORKSPACES: &str = "SELECT workspace_id FROM feed_heads WHERE workspace_id > $1 ORDER BY workspace_id LIMIT $2";

    const FORGET: &str = "DELETE FROM activity WHERE (workspace_id, happened_at, position, place) IN \
         (SELECT workspace_id, happened_at, position, place FROM activity \
         WHERE workspace_id = $1 AND happened_at < $2 ORDER BY happened_at, position, place LIMIT $3)";
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    happened_at: Timestamp,
    position: i64,
    place: i64,
    principal_kind: String,
    principal_id: String,
    principal_name: String,
    channel: String,
    operation: String,
    kind: i64,
    item_id: String,
    folder_id: Option<Text<FolderId>>,
    database_id: Option<Text<DatabaseId>>,
    name: String,
    path: String,
    version_before: Option<i64>,
    version_after: Option<i64>,
    items: i64,
    former: String,
    undoes: String,
}

impl Row {
    fn into_entry(self) -> Result<ActivityEntry, Error> {
        let kind = i32::try_from(self.kind).ok().and_then(|number| Kind::try_from(number).ok());
        let kind = kind.ok_or_else(|| Error::corrupt("activity on an unknown kind"))?;
        let operation = Operation::read(&self.operation);
        let operation = operation.ok_or_else(|| Error::corrupt("activity of an unknown operation"))?;
        let former: Result<Vec<Former>, _> = serde_json::from_str(&self.former);
        let former = former.map_err(|_| Error::corrupt("activity with an unknown change"))?;
        let (position, place) = (to_count(self.position), to_count(self.place));
        Ok(ActivityEntry {
            id: ActivityId { at: self.happened_at, position, place },
            author: Author { kind: self.principal_kind, id: self.principal_id, name: self.principal_name },
            channel: self.channel,
            undoes: self.undoes.parse().ok(),
            what: Activity {
                operation,
                kind,
                item_id: self.item_id,
                folder_id: self.folder_id.map(|id| id.0),
                database_id: self.database_id.map(|id| id.0),
                name: self.name,
                path: self.path,
                version_before: self.version_before.map(to_count),
                version_after: self.version_after.map(to_count),
                items: to_count(self.items),
                former,
            },
        })
    }
}

/// Inserts the entries of a write in one statement; `at` and `position` are those of the write.
pub(crate) async fn insert(
    tx: &mut Tx,
    workspace: WorkspaceId,
    (at, position): (Timestamp, u64),
    actor: &Actor,
    done: &[Activity],
) -> Result<(), Error> {
    let author = &actor.author;
    execute!(
        tx,
        INSERT,
        Text(workspace),
        at,
        to_column(position),
        &author.kind,
        &author.id,
        &author.name,
        actor.channel,
        rows(done)?,
        undone(actor)
    )
    .map(drop)
}

/// The id of the entry that a write undoes, as stored: empty when it undoes nothing.
pub(super) fn undone(actor: &Actor) -> String {
    actor.undoes.map(|id| id.to_string()).unwrap_or_default()
}

/// The entries of a write as the JSON list that the statements read.
pub(super) fn rows(done: &[Activity]) -> Result<String, Error> {
    let row = |(place, one): (usize, &Activity)| {
        let former = serde_json::to_string(&one.former).map_err(|_| Error::corrupt("activity is no JSON"))?;
        let version = |version: Option<u64>| version.map(to_column);
        Ok(json!([
            place,
            one.operation.as_str(),
            i32::from(one.kind),
            one.item_id,
            one.folder_id,
            one.database_id,
            one.name,
            one.path,
            version(one.version_before),
            version(one.version_after),
            one.items,
            former
        ]))
    };
    let rows: Vec<serde_json::Value> = done.iter().enumerate().map(row).collect::<Result<_, Error>>()?;
    Ok(serde_json::Value::from(rows).to_string())
}

/// Entries before a position, the newest first; of one principal or of all.
pub(crate) async fn list(
    db: &Db,
    workspace: WorkspaceId,
    principal: Option<&str>,
    before: ActivityId,
    limit: i64,
) -> Result<Vec<ActivityEntry>, Error> {
    let (at, position, place) = (before.at, to_column(before.position), to_column(before.place));
    let rows: Vec<Row> = match principal {
        None => fetch!(all, db, LIST, Text(workspace), at, position, place, limit)?,
        Some(id) => fetch!(all, db, LIST_OF, Text(workspace), at, position, place, limit, id)?,
    };
    rows.into_iter().map(Row::into_entry).collect()
}

pub(crate) async fn get(
    db: &Db,
    workspace: WorkspaceId,
    id: ActivityId,
) -> Result<Option<ActivityEntry>, Error> {
    let (position, place) = (to_column(id.position), to_column(id.place));
    let row: Option<Row> = fetch!(optional, db, GET, Text(workspace), id.at, position, place)?;
    row.map(Row::into_entry).transpose()
}

/// The entries of one write, at most `limit`.
pub(crate) async fn of_write(
    db: &Db,
    workspace: WorkspaceId,
    write: WriteId,
    limit: i64,
) -> Result<Vec<ActivityEntry>, Error> {
    let position = to_column(write.position);
    let rows: Vec<Row> = fetch!(all, db, OF_WRITE, Text(workspace), write.at, position, limit)?;
    rows.into_iter().map(Row::into_entry).collect()
}

/// Entries of writes between two times from a position on, in the order of the writes.
pub(crate) async fn between(
    db: &Db,
    workspace: WorkspaceId,
    (first, last): (Timestamp, Timestamp),
    from: u64,
    limit: i64,
) -> Result<Vec<ActivityEntry>, Error> {
    let rows: Vec<Row> = fetch!(all, db, BETWEEN, Text(workspace), first, last, to_column(from), limit)?;
    rows.into_iter().map(Row::into_entry).collect()
}

/// Entries of some items from a position on, the newest first.
pub(crate) async fn histories(
    db: &Db,
    workspace: WorkspaceId,
    items: &[&str],
    from: u64,
    limit: i64,
) -> Result<Vec<ActivityEntry>, Error> {
    let rows: Vec<Row> =
        fetch!(all, db, HISTORIES, Text(workspace), json_list(items), to_column(from), limit)?;
    rows.into_iter().map(Row::into_entry).collect()
}

/// The principals with entries, by id; each with the name of its newest entry.
pub(crate) async fn actors(db: &Db, workspace: WorkspaceId, limit: i64) -> Result<Vec<Author>, Error> {
    let rows: Vec<(String, String, String)> = fetch!(all, db, ACTORS, Text(workspace), limit)?;
    Ok(rows.into_iter().map(|(kind, id, name)| Author { kind, id, name }).collect())
}

/// A batch of workspaces that were written, by id, after a given one.
pub(crate) async fn workspaces(db: &Db, after: &str, limit: i64) -> Result<Vec<WorkspaceId>, Error> {
    let rows: Vec<Text<WorkspaceId>> = fetch!(scalars, db, WORKSPACES, after, limit)?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// Deletes a batch of entries older than a time; returns how many.
pub(crate) async fn delete_before(
    db: &Db,
    workspace: WorkspaceId,
    before: Timestamp,
    limit: i64,
) -> Result<u64, Error> {
    let writer = db.writer();
    execute!(writer, FORGET, Text(workspace), before, limit)
}
