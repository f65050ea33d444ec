//! The states of workspaces, the outbox `lifecycle_notices`, and the purge of remaining rows.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Statement, Statements, Text, Tx};
use cairn_chassis::{execute, fetch, some_rows_of, statements};
use cairn_proto::ids::WorkspaceId;

use super::word;
use crate::model::lifecycle::Notice;

/// How rows of a workspace are deleted from a table.
#[derive(Debug)]
pub(crate) struct Removal {
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares it with the schema"))]
    pub(crate) table: &'static str,
    remove: &'static str,
}

impl Statements for Removal {
    fn list(&self, into: &mut Vec<Statement>) {
        self.remove.list(into);
    }
}

macro_rules! removal {
    ($table:literal, $key:literal) => {
        Removal { table: $table, remove: some_rows_of!($table, $key) }
    };
}

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    const MARK_DELETED: &str = "UPDATE workspaces SET deleted_at = $2, purge_at = $3, state_revision = state_revision + 1 \
         WHERE id = $1 AND deleted_at IS NULL RETURNING state_revision";

    const MARK_RESTORED: &str = "UPDATE workspaces SET deleted_at = NULL, purge_at = NULL, \
         state_revision = state_revision + 1 \
         WHERE id = $1 AND deleted_at IS NOT NULL AND purge_began_at IS NULL RETURNING state_revision";

    const DELETED_WITHOUT_END: &str =
        "SELECT id FROM workspaces WHERE deleted_at IS NOT NULL AND purge_at IS NULL LIMIT $1";

    const SET_END: &str = "UPDATE workspaces SET purge_at = $2, state_revision = state_revision + 1 \
         WHERE id = $1 AND deleted_at IS NOT NULL AND purge_at IS NULL RETURNING state_revision";

    const ENDED: &str = "SELECT id FROM workspaces WHERE deleted_at IS NOT NULL AND purge_at <= $1 \
         AND purge_began_at IS NULL ORDER BY purge_at LIMIT $2";

    const BEGIN_PURGE: &str = "UPDATE workspaces SET purge_began_at = $2, state_revision = state_revision + 1 \
         WHERE id = $1 AND deleted_at IS NOT NULL AND purge_at <= $2 AND purge_began_at IS NULL RETURNING state_revision";

    const PURGED_ELSEWHERE: &str = "SELECT w.id FROM workspaces w WHERE w.deleted_at IS NOT NULL \
         AND w.purge_began_at IS NOT NULL \
         AND NOT EXISTS (SELECT 1 FROM lifecycle_notices n WHERE n.workspace_id = w.id) ORDER BY w.id LIMIT $1";

    const NOTE: &str = "INSERT INTO lifecycle_notices (workspace_id, service, place, action, revision, attempts, due_at) \
         VALUES ($1, $2, $3, $4, $5, 0, $6) ON CONFLICT (workspace_id, service) DO UPDATE SET action = excluded.action, \
         revision = excluded.revision, attempts = 0, due_at = excluded.due_at \
         WHERE lifecycle_notices.revision < excluded.revision";

    const STATES_OF: &str = "SELECT workspace_id, service, action, revision, attempts FROM lifecycle_notices \
         WHERE workspace_id = $1 AND action <> 'purge' ORDER BY place";

    const STATES_DUE: &str = "SELECT workspace_id, service, action, revision, attempts FROM lifecycle_notices \
         WHERE due_at <= $1 AND action <> 'purge' ORDER BY due_at, place LIMIT $2";

    /// Of one workspace only the first service that has not purged it.
    const PURGES_DUE: &str = "SELECT workspace_id, service, action, revision, attempts FROM lifecycle_notices n \
         WHERE due_at <= $1 AND action = 'purge' AND NOT EXISTS (SELECT 1 FROM lifecycle_notices b \
         WHERE b.workspace_id = n.workspace_id AND b.place < n.place) ORDER BY due_at, place LIMIT $2";

    const FORGET: &str =
        "DELETE FROM lifecycle_notices WHERE workspace_id = $1 AND service = $2 AND revision = $3";

    const PUT_OFF: &str = "UPDATE lifecycle_notices SET attempts = attempts + 1, due_at = $4 \
         WHERE workspace_id = $1 AND service = $2 AND revision = $3";

    /// The tables with rows of a workspace, in the order of their foreign keys. The tokens of a grant are deleted by
    /// cascade.
    pub(crate) const REMOVALS: &[Removal] = &[
        removal!("oauth_codes", "digest"),
        removal!("oauth_access_tokens", "digest"),
        removal!("oauth_refresh_tokens", "digest"),
        removal!("oauth_grants", "workspace_id, id"),
        removal!("tokens", "workspace_id, id"),
        removal!("invitations", "workspace_id, id"),
        removal!("feedback", "workspace_id, id"),
        removal!("members", "workspace_id, user_id"),
        removal!("lifecycle_notices", "workspace_id, service"),
        Removal {
            table: "workspaces",
            remove: "DELETE FROM workspaces WHERE id = $1 AND deleted_at IS NOT NULL AND $2 > 0",
        },
    ];
}

#[derive(sqlx::FromRow)]
struct Row {
    workspace_id: Text<WorkspaceId>,
    service: String,
    action: String,
    revision: i64,
    attempts: i64,
}

impl TryFrom<Row> for Notice {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self {
            workspace: row.workspace_id.0,
            service: row.service,
            action: word("lifecycle_notices.action", &row.action)?,
            revision: count(row.revision),
            attempts: u32::try_from(row.attempts).unwrap_or(u32::MAX),
        })
    }
}

fn count(column: i64) -> u64 {
    u64::try_from(column).unwrap_or_default()
}

fn column(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Marks a live workspace deleted; returns the revision of its new state.
pub(crate) async fn mark_deleted(
    tx: &mut Tx,
    workspace: WorkspaceId,
    now: Timestamp,
    purge_at: Timestamp,
) -> Result<Option<u64>, Error> {
    let revision: Option<i64> = fetch!(optional_scalar, tx, MARK_DELETED, Text(workspace), now, purge_at)?;
    Ok(revision.map(count))
}

/// Marks a deleted workspace live, unless its purge has begun.
pub(crate) async fn mark_restored(tx: &mut Tx, workspace: WorkspaceId) -> Result<Option<u64>, Error> {
    let revision: Option<i64> = fetch!(optional_scalar, tx, MARK_RESTORED, Text(workspace))?;
    Ok(revision.map(count))
}

/// Deleted workspaces without an end of their grace period.
pub(crate) async fn deleted_without_end(db: &Db, limit: i64) -> Result<Vec<WorkspaceId>, Error> {
    let rows: Vec<Text<WorkspaceId>> = fetch!(scalars, db, DELETED_WITHOUT_END, limit)?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

pub(crate) async fn set_end(
    tx: &mut Tx,
    workspace: WorkspaceId,
    purge_at: Timestamp,
) -> Result<Option<u64>, Error> {
    let revision: Option<i64> = fetch!(optional_scalar, tx, SET_END, Text(workspace), purge_at)?;
    Ok(revision.map(count))
}

/// Deleted workspaces whose grace period is over, and whose purge has not begun.
pub(crate) async fn ended(db: &Db, now: Timestamp, limit: i64) -> Result<Vec<WorkspaceId>, Error> {
    let rows: Vec<Text<WorkspaceId>> = fetch!(scalars, db, ENDED, now, limit)?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

pub(crate) async fn begin_purge(
    tx: &mut Tx,
    workspace: WorkspaceId,
    now: Timestamp,
) -> Result<Option<u64>, Error> {
    let revision: Option<i64> = fetch!(optional_scalar, tx, BEGIN_PURGE, Text(workspace), now)?;
    Ok(revision.map(count))
}

/// Workspaces that every other service has purged.
pub(crate) async fn purged_elsewhere(db: &Db, limit: i64) -> Result<Vec<WorkspaceId>, Error> {
    let rows: Vec<Text<WorkspaceId>> = fetch!(scalars, db, PURGED_ELSEWHERE, limit)?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// Writes a notice, replacing an earlier one for the same service. `place` orders services.
pub(crate) async fn note(tx: &mut Tx, notice: &Notice, place: i64, due_at: Timestamp) -> Result<(), Error> {
    execute!(
        tx,
        NOTE,
        Text(notice.workspace),
        &notice.service,
        place,
        notice.action.as_str(),
        column(notice.revision),
        due_at
    )
    .map(drop)
}

/// The undelivered states of a workspace.
pub(crate) async fn states_of(db: &Db, workspace: WorkspaceId) -> Result<Vec<Notice>, Error> {
    let rows: Vec<Row> = fetch!(all, db, STATES_OF, Text(workspace))?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// State notices that are due, oldest first.
pub(crate) async fn states_due(db: &Db, now: Timestamp, limit: i64) -> Result<Vec<Notice>, Error> {
    let rows: Vec<Row> = fetch!(all, db, STATES_DUE, now, limit)?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// Purge notices that are due, oldest first; one per workspace.
pub(crate) async fn purges_due(db: &Db, now: Timestamp, limit: i64) -> Result<Vec<Notice>, Error> {
    let rows: Vec<Row> = fetch!(all, db, PURGES_DUE, now, limit)?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// Deletes an acknowledged notice; a newer one stays.
pub(crate) async fn forget(db: &Db, notice: &Notice) -> Result<(), Error> {
    execute!(db.writer(), FORGET, Text(notice.workspace), &notice.service, column(notice.revision)).map(drop)
}

/// Records a failed delivery; a newer notice is left unchanged.
pub(crate) async fn put_off(db: &Db, notice: &Notice, due_at: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), PUT_OFF, Text(notice.workspace), &notice.service, column(notice.revision), due_at)
        .map(drop)
}

/// Serializes the state changes of one workspace.
pub(crate) async fn lock(tx: &mut Tx, workspace: WorkspaceId) -> Result<(), Error> {
    tx.lock_name(&format!("auth:removal:{workspace}")).await
}

/// Deletes rows of the first table that has any; returns the number.
pub(crate) async fn remove_some(tx: &mut Tx, workspace: WorkspaceId, limit: i64) -> Result<u64, Error> {
    for removal in REMOVALS {
        let removed = execute!(tx, removal.remove, Text(workspace), limit)?;
        if removed > 0 {
            return Ok(removed);
        }
    }
    Ok(0)
}
