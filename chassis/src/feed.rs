//! The change feed of a service that owns documents (content, ingest).
//!
//! Every write appends to the feed of its workspace in the same transaction. Positions have no gaps and stand in
//! commit order, on PostgreSQL too, where a sequence alone commits out of order: the head of a workspace is a row, its
//! update locks it until the transaction ends, so nobody can get position n+1 before n is there for all to read or
//! has been rolled back. So an append is the last thing before the commit, since from then on other writers of the workspace
//! wait: a [`UnitOfWork`] sees to that.
//!
//! Consumers keep their own position and are told at least once.

pub mod changes;
pub mod compaction;
mod rpc;
mod token;
mod unit_of_work;
mod watch;

use std::sync::Arc;

use cairn_proto::ids::WorkspaceId;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

pub use cairn_proto::feed::v1::{Kind, Op};

pub use self::rpc::Rpc;
pub use self::token::{ChangeToken, InvalidToken, Source};
pub use self::unit_of_work::{Positions, Unappended, UnitOfWork};
use crate::clock::{Clock, Timestamp};
use crate::doctor::{Check, Mend};
use crate::sql::{self, Db, Dialect, Migration, Statement, Text, Tx};
use crate::{execute, fetch, rows_as_json, statements};

/// The tables, to stand first in a service's list of migrations; [`compaction::MIGRATION`] belongs to them.
pub const MIGRATION: Migration = Migration {
    name: "0001_feed",
    sqlite: include_str!("feed/migrations/sqlite/0001_feed.sql"),
    postgres: include_str!("feed/migrations/postgres/0001_feed.sql"),
};

/// The most changes that one read answers.
pub const MAX_READ: u32 = 1_000;

/// A watcher that falls further behind than this is told every head anew.
const NOTICES_KEPT: usize = 1_024;

macro_rules! next_head {
    () => {
        "INSERT INTO feed_heads (workspace_id, position, updated_at) VALUES ($1, 1, $2) \
         ON CONFLICT (workspace_id) DO UPDATE SET position = feed_heads.position + 1, updated_at = excluded.updated_at"
    };
}

/// The head and some changes, as of one moment.
macro_rules! read {
    ($engine:ident) => {
        concat!(
            "SELECT COALESCE((SELECT position FROM feed_heads WHERE workspace_id = $1), 0), (SELECT ",
            rows_as_json!($engine, "position, kind, item_id, op"),
            " FROM (SELECT position, kind, item_id, op FROM feed_changes \
             WHERE workspace_id = $1 AND position > $2 ORDER BY position LIMIT $3) page)"
        )
    };
}

statements! {
    fn own_statements;

    const RESERVE: &str = "INSERT INTO feed_heads (workspace_id, position, updated_at) VALUES ($1, $2, $3) \
         ON CONFLICT (workspace_id) DO UPDATE \
         SET position = feed_heads.position + excluded.position, updated_at = excluded.updated_at \
         RETURNING position";

    /// The next position, and the change there: most writes are one, and SQLite takes both in one message.
    const APPEND_ONE: Dialect = Dialect {
        sqlite: concat!(
            next_head!(),
            "; INSERT INTO feed_changes (workspace_id, position, kind, item_id, op, at) \
             SELECT workspace_id, position, $3, $4, $5, $2 FROM feed_heads WHERE workspace_id = $1 RETURNING position"
        ),
        postgres: concat!(
            "WITH head AS (",
            next_head!(),
            " RETURNING workspace_id, position) \
             INSERT INTO feed_changes (workspace_id, position, kind, item_id, op, at) SELECT workspace_id, position, \
             CAST($3 AS BIGINT), CAST($4 AS TEXT), CAST($5 AS BIGINT), CAST($2 AS BIGINT) FROM head RETURNING position"
        ),
    };

    /// $2 is the position before the first, $3 a JSON array of `[kind, id, op]`.
    const INSERT_MANY: Dialect = Dialect {
        sqlite: "INSERT INTO feed_changes (workspace_id, position, kind, item_id, op, at) \
             SELECT $1, $2 + 1 + key, value ->> 0, value ->> 1, value ->> 2, $4 FROM json_each($3)",
        postgres: "INSERT INTO feed_changes (workspace_id, position, kind, item_id, op, at) \
             SELECT $1, $2 + place, CAST(entry ->> 0 AS BIGINT), entry ->> 1, CAST(entry ->> 2 AS BIGINT), $4 \
             FROM jsonb_array_elements(CAST(CAST($3 AS TEXT) AS JSONB)) WITH ORDINALITY AS list (entry, place)",
    };

    const READ: Dialect = Dialect { sqlite: read!(sqlite), postgres: read!(postgres) };

    const READ_DATED: &str = "SELECT position, kind, item_id, op, at FROM feed_changes \
         WHERE workspace_id = $1 AND position > $2 ORDER BY position LIMIT $3";

    const TIME_OF: &str = "SELECT at FROM feed_changes WHERE workspace_id = $1 AND position = $2";

    const FORGOTTEN: &str = "SELECT forgotten FROM feed_heads WHERE workspace_id = $1";

    const HEAD: &str = "SELECT position FROM feed_heads WHERE workspace_id = $1";
}

/// What always holds of a feed, for the doctor: behind what was [forgotten](compaction), it has no gap.
pub const CHECKS: &[Check] = &[Check {
    rule: "the feed has no gap and ends at its head",
    sql: "SELECT 'workspace ' || h.workspace_id || ' head ' || CAST(h.position AS TEXT) FROM feed_heads h \
          LEFT JOIN (SELECT e.workspace_id, COUNT(*) AS told, MIN(e.position) AS first, MAX(e.position) AS last \
          FROM feed_changes e JOIN feed_heads f ON f.workspace_id = e.workspace_id WHERE e.position > f.forgotten \
          GROUP BY e.workspace_id) c ON c.workspace_id = h.workspace_id \
          WHERE COALESCE(c.told, 0) <> h.position - h.forgotten \
          OR (c.told > 0 AND (c.first <> h.forgotten + 1 OR c.last <> h.position)) \
          OR (h.position > 0 AND NOT EXISTS (SELECT 1 FROM feed_changes l \
          WHERE l.workspace_id = h.workspace_id AND l.position = h.position)) \
          UNION ALL SELECT DISTINCT 'workspace ' || c.workspace_id || ' without a head' FROM feed_changes c \
          LEFT JOIN feed_heads h ON h.workspace_id = c.workspace_id WHERE h.workspace_id IS NULL",
    mend: Mend::GiveUp {
        does: "a change that is not told any more is told as the deletion of nothing; what items are now is told again \
               where the feed says otherwise",
        sql: FILL,
    },
}];

/// Positions do not move, since consumers hold them: a place that is empty is filled with the deletion of an item that never
/// was, which nobody has; where entries were forgotten, none is missing but that at the head. A head that is far beyond what was
/// told is none.
const FILL: &[&str] = &[
    "DELETE FROM feed_changes WHERE position < 1",
    "INSERT INTO feed_heads (workspace_id, position, updated_at) \
     SELECT workspace_id, MAX(position), MAX(at) FROM feed_changes WHERE position > 0 GROUP BY workspace_id \
     ON CONFLICT (workspace_id) DO UPDATE SET position = excluded.position \
     WHERE feed_heads.position < excluded.position OR feed_heads.position > excluded.position + 1000000",
    "UPDATE feed_heads SET position = 0 WHERE (position < 0 OR position > 1000000) \
     AND NOT EXISTS (SELECT 1 FROM feed_changes c WHERE c.workspace_id = feed_heads.workspace_id)",
    "UPDATE feed_heads SET forgotten = CASE WHEN position > 0 THEN position - 1 ELSE 0 END WHERE forgotten > position \
     OR (forgotten = position AND position > 0 AND NOT EXISTS (SELECT 1 FROM feed_changes c \
     WHERE c.workspace_id = feed_heads.workspace_id AND c.position = feed_heads.position))",
    "WITH RECURSIVE places (workspace_id, position, head, at) AS (\
     SELECT workspace_id, forgotten + 1, position, updated_at FROM feed_heads WHERE position > forgotten UNION ALL \
     SELECT workspace_id, position + 1, head, at FROM places WHERE position < head) \
     INSERT INTO feed_changes (workspace_id, position, kind, item_id, op, at) \
     SELECT p.workspace_id, p.position, \
     COALESCE((SELECT MIN(k.kind) FROM feed_changes k WHERE k.workspace_id = p.workspace_id), 1), \
     '00000000-0000-0000-0000-000000000000', 2, p.at FROM places p \
     LEFT JOIN feed_changes c ON c.workspace_id = p.workspace_id AND c.position = p.position WHERE c.position IS NULL",
];

/// Statements that tell the feed once more what became of items: `$items` selects the workspace, the id and the op (1 upsert,
/// 2 delete) of those of which its last word is another. They are the statements of a `doctor::Mend`.
#[macro_export]
macro_rules! tell_again {
    ($kind:literal, $($items:tt)+) => {
        &[
            concat!(
                "INSERT INTO feed_heads (workspace_id, position, updated_at) SELECT DISTINCT workspace_id, 0, 0 FROM (",
                $($items)+,
                ") AS untold WHERE workspace_id IS NOT NULL ON CONFLICT (workspace_id) DO NOTHING"
            ),
            concat!(
                "INSERT INTO feed_changes (workspace_id, position, kind, item_id, op, at) \
                 SELECT u.workspace_id, h.position + ROW_NUMBER() OVER (PARTITION BY u.workspace_id ORDER BY u.item_id), ",
                $kind,
                ", u.item_id, u.op, h.updated_at FROM (",
                $($items)+,
                ") AS u JOIN feed_heads h ON h.workspace_id = u.workspace_id"
            ),
            "UPDATE feed_heads SET position = (SELECT MAX(c.position) FROM feed_changes c \
             WHERE c.workspace_id = feed_heads.workspace_id) \
             WHERE position < (SELECT MAX(c.position) FROM feed_changes c WHERE c.workspace_id = feed_heads.workspace_id)",
        ]
    };
}

/// Statements that append entries, as a part of one of a service's own that writes other rows along, for the workspace `$1`. The
/// service tells the unit of work the position that `feed_heads` has then
/// ([`UnitOfWork::note_appended`](crate::feed::UnitOfWork::note_appended)).
///
/// For SQLite they are statements that stand behind each other, with the parameters of the time and of the count and the list of
/// [`Unappended`](crate::feed::Unappended). For PostgreSQL they are common table expressions, of which `head` has the position, and
/// the parameters are `$2` to `$4`; they lock the head when the rows of the expression that is named were written.
#[macro_export]
macro_rules! append_entries {
    (sqlite, $at:literal, $count:literal, $list:literal) => {
        concat!(
            "INSERT INTO feed_heads (workspace_id, position, updated_at) VALUES ($1, ",
            $count,
            ", ",
            $at,
            ") ON CONFLICT (workspace_id) DO UPDATE \
             SET position = feed_heads.position + excluded.position, updated_at = excluded.updated_at; \
             INSERT INTO feed_changes (workspace_id, position, kind, item_id, op, at) \
             SELECT $1, (SELECT position FROM feed_heads WHERE workspace_id = $1) - ",
            $count,
            " + 1 + key, value ->> 0, value ->> 1, value ->> 2, ",
            $at,
            " FROM json_each(",
            $list,
            ")"
        )
    };
    (postgres, $behind:literal) => {
        concat!(
            "head AS (INSERT INTO feed_heads (workspace_id, position, updated_at) \
             SELECT CAST($1 AS TEXT), CAST($3 AS BIGINT), CAST($2 AS BIGINT) FROM (SELECT COUNT(*) AS written FROM ",
            $behind,
            ") AS earlier WHERE earlier.written >= 0 ON CONFLICT (workspace_id) DO UPDATE \
             SET position = feed_heads.position + excluded.position, updated_at = excluded.updated_at RETURNING position), \
             changes AS (INSERT INTO feed_changes (workspace_id, position, kind, item_id, op, at) \
             SELECT CAST($1 AS TEXT), head.position - CAST($3 AS BIGINT) + place, CAST(entry ->> 0 AS BIGINT), entry ->> 1, \
             CAST(entry ->> 2 AS BIGINT), CAST($2 AS BIGINT) FROM head, \
             jsonb_array_elements(CAST(CAST($4 AS TEXT) AS JSONB)) WITH ORDINALITY AS list (entry, place))"
        )
    };
}

/// Every statement of the feed, for [`sql::prepare_all`].
pub fn statements() -> Vec<Statement> {
    let mut all = own_statements();
    all.extend(watch::statements());
    all.extend(compaction::statements());
    all.extend(crate::doctor::index::statements());
    all
}

/// What happened to one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Its id.
    pub item_id: String,
    /// What happened.
    pub op: Op,
}

impl Entry {
    /// The item is new or has changed.
    pub fn upsert(kind: Kind, item_id: impl ToString) -> Self {
        Self { kind, item_id: item_id.to_string(), op: Op::Upsert }
    }

    /// The item is gone.
    pub fn delete(kind: Kind, item_id: impl ToString) -> Self {
        Self { kind, item_id: item_id.to_string(), op: Op::Delete }
    }
}

/// An entry with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Counts from 1 in each workspace.
    pub position: u64,
    /// What happened.
    pub entry: Entry,
}

/// Changes after a position, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// At most [`MAX_READ`].
    pub changes: Vec<Change>,
    /// The newest position there is.
    pub head: u64,
}

/// How far the feed of a workspace has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Whose feed.
    pub workspace: WorkspaceId,
    /// Its newest position.
    pub position: u64,
}

/// What a watcher sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEvent {
    /// How far a feed has come.
    Head(Head),
    /// Every head that there was when the watch began has been told by now.
    EveryHead,
}

/// Positions that a transaction has taken for entries that it will insert itself (`INSERT … SELECT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved {
    /// The position before the first one taken.
    pub before: u64,
    /// The last one taken.
    pub last: u64,
}

/// Takes `count` positions: the caller inserts exactly that many rows into `feed_changes` before it commits.
async fn reserve(
    tx: &mut Tx,
    workspace: WorkspaceId,
    count: u64,
    at: Timestamp,
) -> Result<Reserved, sql::Error> {
    let last: i64 = fetch!(scalar, tx, RESERVE, Text(workspace), to_column(count), at)?;
    let last = from_column(last);
    Ok(Reserved { before: last.saturating_sub(count), last })
}

/// Appends entries in their order and answers the position of the last.
async fn append(
    tx: &mut Tx,
    workspace: WorkspaceId,
    entries: &[Entry],
    at: Timestamp,
) -> Result<u64, sql::Error> {
    if let [only] = entries {
        let (kind, op) = (i64::from(i32::from(only.kind)), i64::from(i32::from(only.op)));
        let last: i64 = fetch!(scalar, tx, APPEND_ONE, Text(workspace), at, kind, &only.item_id, op)?;
        return Ok(from_column(last));
    }
    let reserved = reserve(tx, workspace, entries.len() as u64, at).await?;
    execute!(tx, INSERT_MANY, Text(workspace), to_column(reserved.before), listed(entries), at)?;
    Ok(reserved.last)
}

/// Entries as a JSON array of `[kind, id, op]`.
fn listed(entries: &[Entry]) -> String {
    let list: Vec<_> =
        entries.iter().map(|entry| (i32::from(entry.kind), &entry.item_id, i32::from(entry.op))).collect();
    serde_json::json!(list).to_string()
}

/// The newest position that the transaction sees; 0 when nothing was ever written.
///
/// # Errors
/// When the database fails.
pub async fn head(tx: &mut Tx, workspace: WorkspaceId) -> Result<u64, sql::Error> {
    let position: Option<i64> = fetch!(optional_scalar, tx, HEAD, Text(workspace))?;
    Ok(position.map_or(0, from_column))
}

/// The feeds of one service's workspaces: reading, and waking who watches. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Feed {
    db: Db,
    clock: Arc<dyn Clock>,
    notices: broadcast::Sender<Head>,
    closed: CancellationToken,
}

impl Feed {
    /// The feeds in that storage, whose migrations begin with [`MIGRATION`].
    pub fn new(db: Db, clock: Arc<dyn Clock>) -> Self {
        Self { db, clock, notices: broadcast::channel(NOTICES_KEPT).0, closed: CancellationToken::new() }
    }

    /// The changes of a workspace after a position: at most `limit`, and never more than [`MAX_READ`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn read(&self, workspace: WorkspaceId, after: u64, limit: u32) -> Result<Page, sql::Error> {
        let limit = match limit {
            0 => MAX_READ,
            some => some.min(MAX_READ),
        };
        let (head, rows): (i64, String) =
            fetch!(one, self.db, READ, Text(workspace), to_column(after), i64::from(limit))?;
        let changes = sql::json_rows(&rows)?.into_iter().map(decode);
        let mut changes: Vec<Change> = changes.collect::<Result<_, _>>()?;
        changes.sort_by_key(|change| change.position);
        Ok(Page { changes, head: from_column(head) })
    }

    /// The same with their times, and without the head.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn read_dated(
        &self,
        workspace: WorkspaceId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<changes::Dated>, sql::Error> {
        let limit = i64::from(limit.min(MAX_READ));
        let rows: Vec<(i64, i64, String, i64, Timestamp)> =
            fetch!(all, self.db, READ_DATED, Text(workspace), to_column(after), limit)?;
        let dated = |(position, kind, item_id, op, at)| {
            decode((position, kind, item_id, op)).map(|change| changes::Dated { change, at })
        };
        rows.into_iter().map(dated).collect()
    }

    /// When a change was made; `None` when the feed has not come so far. Of one that was [forgotten](compaction) the beginning of
    /// time: nobody knows more than that it was longer ago than entries are kept.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn time_of(
        &self,
        workspace: WorkspaceId,
        position: u64,
    ) -> Result<Option<Timestamp>, sql::Error> {
        let at = fetch!(optional_scalar, self.db, TIME_OF, Text(workspace), to_column(position))?;
        if at.is_some() || position == 0 {
            return Ok(at);
        }
        let forgotten: Option<i64> = fetch!(optional_scalar, self.db, FORGOTTEN, Text(workspace))?;
        let is_forgotten = forgotten.is_some_and(|forgotten| position <= from_column(forgotten));
        Ok(is_forgotten.then(|| Timestamp::from_micros(0)))
    }

    /// The newest position of a workspace; 0 when nothing was ever written.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn head(&self, workspace: WorkspaceId) -> Result<u64, sql::Error> {
        let position: Option<i64> = fetch!(optional_scalar, self.db, HEAD, Text(workspace))?;
        Ok(position.map_or(0, from_column))
    }

    /// Ends every watch, so that a server with open streams can drain.
    pub fn close(&self) {
        self.closed.cancel();
    }
}

fn decode((position, kind, item_id, op): (i64, i64, String, i64)) -> Result<Change, sql::Error> {
    let number = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
    let kind =
        Kind::try_from(number(kind)).map_err(|_| sql::Error::corrupt("a change of an unknown kind"))?;
    let op = Op::try_from(number(op)).map_err(|_| sql::Error::corrupt("a change with an unknown op"))?;
    Ok(Change { position: from_column(position), entry: Entry { kind, item_id, op } })
}

/// Positions are BIGINT: a feed would need 292 000 years at a million changes a second to outgrow it.
fn to_column(position: u64) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

fn from_column(position: i64) -> u64 {
    u64::try_from(position).unwrap_or(0)
}

#[cfg(test)]
mod tests;
