//! Table `feedback`, and the recipients of feedback.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::{FeedbackId, WorkspaceId};

use super::word;
use crate::model::feedback::{Entry, Reporter};

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    const LIST_MANAGERS: &str = "SELECT u.email FROM members m JOIN users u ON u.id = m.user_id \
         WHERE m.workspace_id = $1 AND m.role IN ('owner', 'admin') ORDER BY m.created_at, u.id";

    /// Of a workspace, and of one caller in it.
    const COUNT: &str = "SELECT COUNT(*), SUM(CASE WHEN caller_kind = $3 AND caller_id = $4 THEN 1 ELSE 0 END) \
         FROM feedback WHERE workspace_id = $1 AND created_at > $2";

    const INSERT: &str = "INSERT INTO feedback \
         (workspace_id, id, created_at, caller_kind, caller_id, caller_name, category, channel, message, context) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

    const LIST: &str = "SELECT id, created_at, caller_kind, caller_id, caller_name, category, channel, message, context \
         FROM feedback WHERE workspace_id = $1 AND message IS NOT NULL ORDER BY id DESC LIMIT $2";

    /// Everything but the newest reports.
    const DELETE_OLDEST: &str = "DELETE FROM feedback WHERE workspace_id = $1 AND message IS NOT NULL AND id <= \
         (SELECT id FROM feedback WHERE workspace_id = $1 AND message IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET $2)";

    const DELETE_COUNTED: &str = "DELETE FROM feedback WHERE message IS NULL AND created_at <= $1";
}

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
    fetch!(scalars, db, LIST_MANAGERS, Text(workspace))
}

/// The number of reports of a workspace, and of that caller in it, since then.
pub(crate) async fn count(
    tx: &mut Tx,
    workspace: WorkspaceId,
    since: Timestamp,
    reporter: &Reporter,
) -> Result<(i64, i64), Error> {
    let (all, own): (i64, Option<i64>) =
        fetch!(one, tx, COUNT, Text(workspace), since, &reporter.kind, &reporter.id)?;
    Ok((all, own.unwrap_or_default()))
}

pub(crate) async fn insert(tx: &mut Tx, workspace: WorkspaceId, entry: &Entry) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(workspace),
        Text(entry.id),
        entry.created_at,
        &entry.reporter.kind,
        &entry.reporter.id,
        &entry.reporter.name,
        entry.category.as_str(),
        entry.channel.as_str(),
        &entry.message,
        &entry.context
    )
    .map(drop)
}

/// The stored reports of a workspace, newest first.
pub(crate) async fn list(tx: &mut Tx, workspace: WorkspaceId, most: i64) -> Result<Vec<Entry>, Error> {
    let rows: Vec<Row> = fetch!(all, tx, LIST, Text(workspace), most)?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// Deletes the stored reports of a workspace except for the newest.
pub(crate) async fn keep_newest(tx: &mut Tx, workspace: WorkspaceId, kept: i64) -> Result<(), Error> {
    execute!(tx, DELETE_OLDEST, Text(workspace), kept).map(drop)
}

/// Deletes the records of mailed reports, which only serve the rate limit.
pub(crate) async fn delete_mailed(db: &Db, by: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), DELETE_COUNTED, by).map(drop)
}
