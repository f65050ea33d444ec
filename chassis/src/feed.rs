//! The change feed of a service that owns documents (content, ingest).
//!
//! Every write appends to the feed of its workspace in the same transaction. Positions have no gaps and are in commit order,
//! on PostgreSQL too, where transactions commit the values of a sequence out of order: the head of a workspace is a row
//! whose update locks it until the transaction ends, so position n+1 is not assigned before n is committed or rolled back.
//! An append therefore comes last before the commit, since it blocks other writers of the workspace: a [`UnitOfWork`] takes
//! care of that.
//!
//! Consumers keep their own position. Delivery is at least once.

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
pub use self::unit_of_work::{PendingEntries, Positions, UnitOfWork};
use crate::clock::{Clock, Timestamp};
use crate::doctor::{Check, Mend};
use crate::sql::{self, Db, Dialect, Migration, Statement, Text, Tx};
use crate::{execute, fetch, rows_as_json, statements};

/// The tables, first in a service's list of migrations; [`compaction::MIGRATION`] follows later in it.
pub const MIGRATION: Migration = Migration {
    name: "0001_feed",
    sqlite: include_str!("feed/migrations/sqlite/0001_feed.sql"),
    postgres: include_str!("feed/migrations/postgres/0001_feed.sql"),
};

/// The maximum number of changes that one read returns.
pub const MAX_READ: u32 = 1_000;

/// Capacity of the broadcast channel; a watcher that lags further behind reads every head again.
const NOTICE_CAPACITY: usize = 1_024;

macro_rules! next_head {
    () => {
        "INSERT INTO feed_heads (workspace_id, position, updated_at) VALUES ($1, 1, $2) \
         ON CONFLICT (workspace_id) DO UPDATE SET position = feed_heads.position + 1, updated_at = excluded.updated_at"
    };
}

/// The head and a page of changes, in one snapshot.
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

    /// The next position and its change, in one message to SQLite: most writes append a single change.
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

    /// $2 is the position before the first change, $3 a JSON array of `[kind, id, op]`.
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

/// Invariants of a feed, for the doctor: after the [compacted](compaction) part it has no gap.
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

/// Positions never change, since consumers hold them: a gap is filled with the deletion of an item that never existed. In the
/// compacted part gaps are expected, except at the head. A head far beyond the last change is taken for corrupt.
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

/// Statements that append the current state of items to the feed again: `$items` selects the workspace, the id and the op
/// (1 upsert, 2 delete) of items whose last change in the feed differs. They are the statements of a `doctor::Mend`.
#[macro_export]
macro_rules! append_current_state {
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

/// SQL that appends entries for the workspace `$1`, to be part of a service's own statement that writes other rows too. The
/// service then passes the new position in `feed_heads` to the unit of work
/// ([`UnitOfWork::mark_appended`](crate::feed::UnitOfWork::mark_appended)).
///
/// For SQLite it is a sequence of statements; the arguments are the parameters of the time and of the count and the list of
/// [`PendingEntries`](crate::feed::PendingEntries). For PostgreSQL it is a list of common table expressions, of which `head` has the
/// position, with the parameters `$2` to `$4`; it locks the head after the rows of the named expression are written.
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

/// All statements of the feed, for [`sql::prepare_all`].
pub fn statements() -> Vec<Statement> {
    let mut all = own_statements();
    all.extend(watch::statements());
    all.extend(compaction::statements());
    all.extend(crate::doctor::index::statements());
    all
}

/// A change of one item, without a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The type of the item.
    pub kind: Kind,
    /// The item's id.
    pub item_id: String,
    /// Whether it was written or deleted.
    pub op: Op,
}

impl Entry {
    /// The item is new or has changed.
    pub fn upsert(kind: Kind, item_id: impl ToString) -> Self {
        Self { kind, item_id: item_id.to_string(), op: Op::Upsert }
    }

    /// The item is deleted.
    pub fn delete(kind: Kind, item_id: impl ToString) -> Self {
        Self { kind, item_id: item_id.to_string(), op: Op::Delete }
    }
}

/// An entry with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Counts from 1 in each workspace.
    pub position: u64,
    /// The change itself.
    pub entry: Entry,
}

/// Changes after a position, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// At most [`MAX_READ`].
    pub changes: Vec<Change>,
    /// The newest position of the workspace.
    pub head: u64,
}

/// The newest position in the feed of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The position.
    pub position: u64,
}

/// An item of the stream of [`Feed::watch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEvent {
    /// The head of a feed, in the initial snapshot or after a move.
    Head(Head),
    /// The end of the initial snapshot: every head that existed when the watch began has been sent.
    EveryHead,
}

/// Positions that a transaction has reserved for entries that it inserts itself (`INSERT … SELECT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved {
    /// The position before the first reserved one.
    pub before: u64,
    /// The last reserved position.
    pub last: u64,
}

/// Reserves `count` positions: the caller inserts exactly that many rows into `feed_changes` before it commits.
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

/// Appends entries in order and returns the position of the last.
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
    execute!(tx, INSERT_MANY, Text(workspace), to_column(reserved.before), encode_entries(entries), at)?;
    Ok(reserved.last)
}

/// Entries as a JSON array of `[kind, id, op]`.
fn encode_entries(entries: &[Entry]) -> String {
    let list: Vec<_> =
        entries.iter().map(|entry| (i32::from(entry.kind), &entry.item_id, i32::from(entry.op))).collect();
    serde_json::json!(list).to_string()
}

/// The newest position that the transaction sees; 0 when the feed is empty.
///
/// # Errors
/// When the database fails.
pub async fn head(tx: &mut Tx, workspace: WorkspaceId) -> Result<u64, sql::Error> {
    let position: Option<i64> = fetch!(optional_scalar, tx, HEAD, Text(workspace))?;
    Ok(position.map_or(0, from_column))
}

/// The feeds of one service's workspaces: reads, and notifications of watchers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Feed {
    db: Db,
    clock: Arc<dyn Clock>,
    notices: broadcast::Sender<Head>,
    closed: CancellationToken,
}

impl Feed {
    /// The feeds of that storage, whose migrations begin with [`MIGRATION`].
    pub fn new(db: Db, clock: Arc<dyn Clock>) -> Self {
        Self { db, clock, notices: broadcast::channel(NOTICE_CAPACITY).0, closed: CancellationToken::new() }
    }

    /// The changes of a workspace after a position: at most `limit` and at most [`MAX_READ`].
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
    ) -> Result<Vec<changes::TimedChange>, sql::Error> {
        let limit = i64::from(limit.min(MAX_READ));
        let rows: Vec<(i64, i64, String, i64, Timestamp)> =
            fetch!(all, self.db, READ_DATED, Text(workspace), to_column(after), limit)?;
        let dated = |(position, kind, item_id, op, at)| {
            decode((position, kind, item_id, op)).map(|change| changes::TimedChange { change, at })
        };
        rows.into_iter().map(dated).collect()
    }

    /// When a change was made; `None` for a position after the head. For a change that was [compacted](compaction) away it is
    /// the Unix epoch: all that is known is that it is older than the retention period.
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

    /// The newest position of a workspace; 0 when its feed is empty.
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

/// Positions are BIGINT: at a million changes a second, a feed would overflow it after 292 000 years.
fn to_column(position: u64) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

fn from_column(position: i64) -> u64 {
    u64::try_from(position).unwrap_or(0)
}

#[cfg(test)]
mod tests;
