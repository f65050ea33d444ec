//! Shared parts of statements on items of the tree: scopes, cursors, and row locks.

use std::fmt;

use cairn_chassis::on_db;
use cairn_chassis::sql::{
    Db, Dialect, Engine, Error, PostgresOnly, Statement, Statements, Text, Tx, json_list,
};
use cairn_proto::ids::{FolderId, WorkspaceId};
use sqlx::FromRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

use crate::model::Cursor;

/// A selection of items of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListScope {
    /// All items.
    All,
    /// Items in no folder.
    Root,
    /// Items directly in this folder.
    In(FolderId),
    /// Items in these folders or below them; for folders, including these.
    Below(Vec<FolderId>),
}

/// A statement for each [`ListScope`].
#[derive(Debug, Clone, Copy)]
pub(super) struct ByScope {
    pub(super) all: Dialect,
    pub(super) root: Dialect,
    pub(super) held: Dialect,
    pub(super) below: Dialect,
}

impl Statements for ByScope {
    fn list(&self, into: &mut Vec<Statement>) {
        [self.all, self.root, self.held, self.below].list(into);
    }
}

impl ByScope {
    /// The statement and the parameter of a scope.
    fn of(&self, db: &Db, scope: &ListScope) -> (&'static str, Option<String>) {
        let (statement, parameter) = match scope {
            ListScope::All => (self.all, None),
            ListScope::Root => (self.root, None),
            ListScope::In(folder) => (self.held, Some(folder.to_string())),
            ListScope::Below(folders) => (self.below, Some(json_list(folders))),
        };
        (statement.of(db.engine()), parameter)
    }

    /// A page of rows; `tags` only for statements that filter by tags.
    pub(super) async fn page<R>(
        &self,
        db: &Db,
        workspace: WorkspaceId,
        scope: &ListScope,
        tags: Option<String>,
        (after, limit): (Option<&Cursor>, i64),
    ) -> Result<Vec<R>, Error>
    where
        R: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let (sql, parameter) = self.of(db, scope);
        let (name, id) = after.map_or(("", ""), |cursor| (cursor.name.as_str(), cursor.id.as_str()));
        let last = [parameter, tags];
        on_db!(db, |c| {
            let mut query = sqlx::query_as(sql).bind(Text(workspace)).bind(name).bind(id).bind(limit);
            for parameter in last.iter().flatten() {
                query = query.bind(parameter);
            }
            query.fetch_all(c).await
        })
    }

    /// [`Self::page`] for statements that select [`rows_as_json!`](cairn_chassis::rows_as_json): one text, in no
    /// particular order.
    pub(super) async fn page_as_json(
        &self,
        db: &Db,
        workspace: WorkspaceId,
        scope: &ListScope,
        tags: Option<String>,
        which: (Option<&Cursor>, i64),
    ) -> Result<String, Error> {
        let rows: Vec<(String,)> = self.page(db, workspace, scope, tags, which).await?;
        let text = rows.into_iter().next().map(|(text,)| text);
        text.ok_or_else(|| Error::corrupt("a page of a list is no row"))
    }

    /// The number of items.
    pub(super) async fn count(
        &self,
        db: &Db,
        workspace: WorkspaceId,
        scope: &ListScope,
        tags: Option<String>,
    ) -> Result<u64, Error> {
        let (sql, parameter) = self.of(db, scope);
        let last = [parameter, tags];
        let count: i64 = on_db!(db, |c| {
            let mut query = sqlx::query_scalar(sql).bind(Text(workspace));
            for parameter in last.iter().flatten() {
                query = query.bind(parameter);
            }
            query.fetch_one(c).await
        })?;
        Ok(to_count(count))
    }
}

/// Locks a row until the transaction ends, exclusive or shared, as the statement says. A no-op on SQLite.
pub(super) async fn lock(
    tx: &mut Tx,
    statement: PostgresOnly,
    workspace: WorkspaceId,
    id: impl fmt::Display,
) -> Result<(), Error> {
    if let Engine::Postgres(connection) = tx.engine() {
        sqlx::query(statement.0).bind(Text(workspace)).bind(id.to_string()).execute(connection).await?;
    }
    Ok(())
}

/// The folders above an item, from the root, from the joined column of an `up` expression.
pub(super) fn folders_of(ids: &str) -> Result<Vec<FolderId>, Error> {
    ids.split('/').map(|id| id.parse().map_err(|_| Error::corrupt("a folder's id is not a UUID"))).collect()
}

/// The ids and the names of a column that [`way!`] made.
pub(super) fn parts_of_way(column: Option<&str>) -> Option<(&str, &str)> {
    column.and_then(|way| way.split_once("//"))
}

pub(super) fn to_count(column: i64) -> u64 {
    u64::try_from(column).unwrap_or(0)
}

pub(super) fn to_column(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// `below`: the live folders of a seed and all live folders below them. The seed is a subquery of ids.
macro_rules! below {
    () => {
        " UNION SELECT c.id FROM below JOIN folders c ON c.workspace_id = $1 AND c.parent_id = below.id \
          WHERE c.deleted_at IS NULL)"
    };
}

/// `up`: for each live folder of a seed (a subquery of ids), the folders above it. The row without a parent has the
/// whole chain from the root, as ids and as names, joined by '/', which neither contains. The depth is bounded, so
/// that a cycle, which the rules prevent, would end.
macro_rules! up {
    ($seed:literal) => {
        concat!(
            "up (start_id, parent_id, ids, path, depth) AS (\
             SELECT s.id, s.parent_id, s.id, s.name, 1 FROM folders s \
             WHERE s.workspace_id = $1 AND s.deleted_at IS NULL AND s.id IN (",
            $seed,
            ") UNION ALL \
             SELECT up.start_id, p.parent_id, p.id || '/' || up.ids, p.name || '/' || up.path, up.depth + 1 \
             FROM up JOIN folders p ON p.workspace_id = $1 AND p.id = up.parent_id WHERE up.depth < 128)"
        )
    };
}

/// The folders above an item as a column: their ids, two slashes, and their names, neither of which contains two
/// slashes in a row. A correlated subquery for each row: for few rows, `page` and `up` as tables cost more than the
/// rest of the statement.
macro_rules! way {
    ($item:literal) => {
        concat!(
            "CASE WHEN ",
            $item,
            ".folder_id IS NOT NULL THEN (WITH RECURSIVE up (parent_id, ids, path, depth) AS (\
             SELECT s.parent_id, s.id, s.name, 1 FROM folders s \
             WHERE s.workspace_id = $1 AND s.deleted_at IS NULL AND s.id = ",
            $item,
            ".folder_id UNION ALL \
             SELECT p.parent_id, p.id || '/' || up.ids, p.name || '/' || up.path, up.depth + 1 \
             FROM up JOIN folders p ON p.workspace_id = $1 AND p.id = up.parent_id WHERE up.depth < 128) \
             SELECT ids || '//' || path FROM up WHERE parent_id IS NULL) END"
        )
    };
}

/// The ids of the files of the deletion `$2`, as a subquery. There is no index on the deletion of a file, so that a
/// deletion updates none: the files are found through the folders of the deletion. CROSS JOIN fixes the join order on
/// SQLite, which would otherwise scan the files of the workspace; on PostgreSQL it is a plain join.
macro_rules! files_taken {
    () => {
        "(WITH RECURSIVE down (id) AS (SELECT item_id FROM trash WHERE workspace_id = $1 AND deletion_id = $2 UNION \
         SELECT c.id FROM down JOIN folders c ON c.workspace_id = $1 AND c.parent_id = down.id) \
         SELECT x.id FROM down CROSS JOIN files x WHERE x.workspace_id = $1 AND x.folder_id = down.id AND x.deletion_id = $2 \
         UNION ALL SELECT x.id FROM down CROSS JOIN files x WHERE x.workspace_id = $1 AND x.id = down.id AND x.deletion_id = $2)"
    };
}

/// A page of live items in the order of name, then id, after the cursor `$2`, `$3`, at most `$4`. `$located` joins
/// each row with its location.
macro_rules! page_of {
    ($table:literal, $filter:expr, $located:expr) => {
        concat!(
            "page AS (SELECT * FROM ",
            $table,
            " WHERE workspace_id = $1 AND deleted_at IS NULL",
            $filter,
            " AND (name, id) > ($2, $3) ORDER BY name, id LIMIT $4)",
            $located
        )
    };
}

/// The number of live items.
macro_rules! count_of {
    ($table:literal, $filter:expr) => {
        concat!("SELECT COUNT(*) FROM ", $table, " WHERE workspace_id = $1 AND deleted_at IS NULL", $filter)
    };
}

/// A statement for each [`ListScope`], from a macro that makes a text from an engine and a filter: the text before
/// it, the text that joins it to `below`, the column of the folder of an item, the column that is compared with
/// `below`, and the parameter of the scope. With `tags:`, only items that have all tags of a list; its parameters are
/// the number of the list without a scope and behind one.
macro_rules! by_scope {
    ($text:ident, $begin:literal, $join:literal, $holder:literal, $inside:literal, $scope:literal) => {
        by_scope!(@ $text, $begin, $join, $holder, $inside, $scope, "", "", "", "")
    };
    (
        $text:ident, $begin:literal, $join:literal, $holder:literal, $inside:literal, $scope:literal,
        tags: $tags:literal, $behind:literal
    ) => {
        by_scope!(
            @ $text, $begin, $join, $holder, $inside, $scope, tagged!(sqlite, "files", $tags),
            tagged!(postgres, "files", $tags), tagged!(sqlite, "files", $behind), tagged!(postgres, "files", $behind)
        )
    };
    (
        @ $text:ident, $begin:literal, $join:literal, $holder:literal, $inside:literal, $scope:literal, $sqlite:expr,
        $postgres:expr, $sqlite_behind:expr, $postgres_behind:expr
    ) => {
        ByScope {
            all: Dialect {
                sqlite: concat!($begin, $text!(sqlite, $sqlite)),
                postgres: concat!($begin, $text!(postgres, $postgres)),
            },
            root: Dialect {
                sqlite: concat!($begin, $text!(sqlite, concat!(" AND ", $holder, " IS NULL", $sqlite))),
                postgres: concat!($begin, $text!(postgres, concat!(" AND ", $holder, " IS NULL", $postgres))),
            },
            held: Dialect {
                sqlite: concat!($begin, $text!(sqlite, concat!(" AND ", $holder, " = ", $scope, $sqlite_behind))),
                postgres: concat!($begin, $text!(postgres, concat!(" AND ", $holder, " = ", $scope, $postgres_behind))),
            },
            below: Dialect {
                sqlite: below_folders!(
                    $scope,
                    concat!(
                        $join,
                        $text!(sqlite, concat!(" AND ", $inside, " IN (SELECT id FROM below)", $sqlite_behind))
                    )
                )
                .sqlite,
                postgres: below_folders!(
                    $scope,
                    concat!(
                        $join,
                        $text!(postgres, concat!(" AND ", $inside, " IN (SELECT id FROM below)", $postgres_behind))
                    )
                )
                .postgres,
            },
        }
    };
}

/// A statement on `below`, the live folders of a list and all live folders below them.
macro_rules! below_folders {
    ($list:literal, $then:expr) => {
        cairn_chassis::list_statement!(
            "WITH RECURSIVE below (id) AS (SELECT id FROM folders WHERE workspace_id = $1 AND deleted_at IS NULL AND id IN ",
            $list,
            concat!(below!(), $then)
        )
    };
}

/// Whether a file has all tags of the list `$tags`, as the end of a condition.
macro_rules! tagged {
    (sqlite, $files:literal, $tags:literal) => {
        concat!(
            " AND NOT EXISTS (SELECT 1 FROM json_each(",
            $tags,
            ") wanted WHERE NOT EXISTS (SELECT 1 FROM json_each(",
            $files,
            ".tags) has WHERE has.value = wanted.value))"
        )
    };
    (postgres, $files:literal, $tags:literal) => {
        concat!(" AND CAST(", $files, ".tags AS JSONB) @> CAST(CAST(", $tags, " AS TEXT) AS JSONB)")
    };
}

pub(super) use {below, below_folders, by_scope, count_of, files_taken, page_of, tagged, up, way};
