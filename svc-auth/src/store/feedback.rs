//! Table `feedback`, and who gets feedback.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::on_db;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_proto::ids::{FeedbackId, WorkspaceId};

use super::word;
use crate::feedback::{Entry, Reporter};

const LIST_MANAGERS: &str = "SELECT u.email FROM members m JOIN users u ON u.id = m.user_id \
     WHERE m.workspace_id = $1 AND m.role IN ('owner', 'admin') ORDER BY m.created_at, u.id";
/// Of a workspace, and of one caller of it.
const COUNT: &str = "SELECT COUNT(*), SUM(CASE WHEN caller_kind = $3 AND caller_id = $4 THEN 1 ELSE 0 END) \
     FROM feedback WHERE workspace_id = $1 AND created_at > $2";
const INSERT: &str = "INSERT INTO feedback \
     (workspace_id, id, created_at, caller_kind, caller_id, caller_name, category, channel, message, context) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const LIST: &str = "SELECT id, created_at, caller_kind, caller_id, caller_name, category, channel, message, context \
     FROM feedback WHERE workspace_id = $1 AND message IS NOT NULL ORDER BY id DESC LIMIT $2";
/// What is older than the newest that are kept.
const DELETE_OLDEST: &str = "DELETE FROM feedback WHERE workspace_id = $1 AND message IS NOT NULL AND id <= \
     (SELECT id FROM feedback WHERE workspace_id = $1 AND message IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET $2)";
const DELETE_COUNTED: &str = "DELETE FROM feedback WHERE message IS NULL AND created_at <= $1";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[LIST_MANAGERS, COUNT, INSERT, LIST, DELETE_OLDEST, DELETE_COUNTED];

#[derive(sqlx::FromRow)]
struct Row {
    id: Text<FeedbackId>,
    created_at: Timestamp,
    caller_kind: String,
    caller_id: String,
    caller_name: String,
    category: String,
    channel: String,
    message: Option<String>,
    context: Option<String>,
}

impl TryFrom<Row> for Entry {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.id.0,
            created_at: row.created_at,
            reporter: Reporter { kind: row.caller_kind, id: row.caller_id, name: row.caller_name },
            category: word("feedback.category", &row.category)?,
            channel: word("feedback.channel", &row.channel)?,
            message: row.message,
            context: row.context,
        })
    }
}

/// The addresses of a workspace's owners and admins.
pub(crate) async fn list_managers(db: &Db, workspace: WorkspaceId) -> Result<Vec<String>, Error> {
    on_db!(db, |c| sqlx::query_scalar(LIST_MANAGERS).bind(Text(workspace)).fetch_all(c).await)
}

/// How many reports a workspace, and that caller of it, made since.
pub(crate) async fn count(
    tx: &mut Tx,
    workspace: WorkspaceId,
    since: Timestamp,
    reporter: &Reporter,
) -> Result<(i64, i64), Error> {
    let (all, own): (i64, Option<i64>) = on_db!(tx, |c| sqlx::query_as(COUNT)
        .bind(Text(workspace))
        .bind(since)
        .bind(&reporter.kind)
        .bind(&reporter.id)
        .fetch_one(c)
        .await)?;
    Ok((all, own.unwrap_or_default()))
}

pub(crate) async fn insert(tx: &mut Tx, workspace: WorkspaceId, entry: &Entry) -> Result<(), Error> {
    on_db!(tx, |c| sqlx::query(INSERT)
        .bind(Text(workspace))
        .bind(Text(entry.id))
        .bind(entry.created_at)
        .bind(&entry.reporter.kind)
        .bind(&entry.reporter.id)
        .bind(&entry.reporter.name)
        .bind(entry.category.as_str())
        .bind(entry.channel.as_str())
        .bind(&entry.message)
        .bind(&entry.context)
        .execute(c)
        .await
        .map(|_| ()))
}

/// The stored reports of a workspace, newest first.
pub(crate) async fn list(tx: &mut Tx, workspace: WorkspaceId, most: i64) -> Result<Vec<Entry>, Error> {
    let rows: Vec<Row> =
        on_db!(tx, |c| sqlx::query_as(LIST).bind(Text(workspace)).bind(most).fetch_all(c).await)?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// Deletes the stored reports of a workspace but for the newest.
pub(crate) async fn keep_newest(tx: &mut Tx, workspace: WorkspaceId, kept: i64) -> Result<(), Error> {
    on_db!(tx, |c| sqlx::query(DELETE_OLDEST).bind(Text(workspace)).bind(kept).execute(c).await.map(|_| ()))
}

/// Forgets what was mailed by then: it was kept to be counted.
pub(crate) async fn delete_mailed(db: &Db, by: Timestamp) -> Result<(), Error> {
    on_db!(db.writer(), |c| sqlx::query(DELETE_COUNTED).bind(by).execute(c).await.map(|_| ()))
}
