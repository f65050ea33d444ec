//! Table `workspaces`, and memberships in them.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::domain::Publishers;
use cairn_proto::ids::{UserId, WorkspaceId};

use super::{days, word};
use crate::model::workspaces::{Changes, Membership, Workspace};

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    const LIST: &str = "SELECT w.id, w.name, w.plan, w.publishers, w.question_log_days, w.created_at, w.updated_at, w.deleted_at, w.purge_at, \
         m.role FROM members m JOIN workspaces w ON w.id = m.workspace_id \
         WHERE m.user_id = $1 AND w.deleted_at IS NULL ORDER BY w.name, w.id";

    /// Those that their owner can still restore.
    const LIST_DELETED: &str = "SELECT w.id, w.name, w.plan, w.publishers, w.question_log_days, w.created_at, w.updated_at, w.deleted_at, \
         w.purge_at, m.role FROM members m JOIN workspaces w ON w.id = m.workspace_id \
         WHERE m.user_id = $1 AND m.role = 'owner' AND w.deleted_at IS NOT NULL AND w.purge_began_at IS NULL \
         ORDER BY w.deleted_at DESC, w.id";

    const FIND_DELETED: &str = "SELECT w.id, w.name, w.plan, w.publishers, w.question_log_days, w.created_at, w.updated_at, w.deleted_at, \
         w.purge_at, m.role FROM members m JOIN workspaces w ON w.id = m.workspace_id \
         WHERE m.user_id = $1 AND m.workspace_id = $2 AND m.role = 'owner' AND w.deleted_at IS NOT NULL \
         AND w.purge_began_at IS NULL";

    const FIND_MEMBERSHIP: &str = "SELECT w.id, w.name, w.plan, w.publishers, w.question_log_days, w.created_at, w.updated_at, w.deleted_at, \
         w.purge_at, m.role FROM members m JOIN workspaces w ON w.id = m.workspace_id \
         WHERE m.user_id = $1 AND m.workspace_id = $2 AND w.deleted_at IS NULL";

    const FIND: &str = "SELECT id, name, plan, publishers, question_log_days, created_at, updated_at, deleted_at, purge_at FROM workspaces \
         WHERE id = $1 AND deleted_at IS NULL";

    const LIST_ALL: &str = "SELECT id, name, plan, publishers, question_log_days, created_at, updated_at, deleted_at, purge_at FROM workspaces \
         WHERE deleted_at IS NULL ORDER BY name, id";

    const INSERT: &str = "INSERT INTO workspaces (id, name, plan, publishers, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6)";

    const UPDATE: &str = "UPDATE workspaces SET name = COALESCE($2, name), plan = COALESCE($3, plan), \
         publishers = COALESCE($4, publishers), updated_at = $5, \
         question_log_days = CASE WHEN $6 THEN $7 ELSE question_log_days END \
         WHERE id = $1 AND deleted_at IS NULL \
         RETURNING id, name, plan, publishers, question_log_days, created_at, updated_at, deleted_at, purge_at";
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Text<WorkspaceId>,
    name: String,
    plan: String,
    publishers: String,
    question_log_days: Option<i64>,
    created_at: Timestamp,
    updated_at: Timestamp,
    deleted_at: Option<Timestamp>,
    purge_at: Option<Timestamp>,
}

#[derive(sqlx::FromRow)]
struct MembershipRow {
    #[sqlx(flatten)]
    workspace: Row,
    role: String,
}

impl TryFrom<Row> for Workspace {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let Row {
            id: Text(id),
            name,
            plan,
            publishers,
            question_log_days,
            created_at,
            updated_at,
            deleted_at,
            purge_at,
        } = row;
        let publishers = word("workspaces.publishers", &publishers)?;
        let question_log_days = days(question_log_days)?;
        Ok(Self {
            id,
            name,
            plan,
            publishers,
            question_log_days,
            created_at,
            updated_at,
            deleted_at,
            purge_at,
        })
    }
}

impl TryFrom<MembershipRow> for Membership {
    type Error = Error;

    fn try_from(row: MembershipRow) -> Result<Self, Error> {
        Ok(Self { workspace: row.workspace.try_into()?, role: word("members.role", &row.role)? })
    }
}

/// A membership in a live workspace as an element of a JSON array: the workspace's id, name, plan, publishers,
/// retention of the question log, times of creation and change, end of the grace period, and the role.
#[derive(serde::Deserialize)]
pub(super) struct ListedMembership(
    WorkspaceId,
    String,
    String,
    String,
    Option<i64>,
    Timestamp,
    Timestamp,
    Option<Timestamp>,
    String,
);

impl TryFrom<ListedMembership> for Membership {
    type Error = Error;

    fn try_from(row: ListedMembership) -> Result<Self, Error> {
        let ListedMembership(
            id,
            name,
            plan,
            publishers,
            question_log_days,
            created_at,
            updated_at,
            purge_at,
            role,
        ) = row;
        let (id, deleted_at) = (Text(id), None);
        let workspace = Row {
            id,
            name,
            plan,
            publishers,
            question_log_days,
            created_at,
            updated_at,
            deleted_at,
            purge_at,
        };
        MembershipRow { workspace, role }.try_into()
    }
}

/// The workspaces of a user, by name.
pub(crate) async fn list(db: &Db, user: UserId) -> Result<Vec<Membership>, Error> {
    let rows: Vec<MembershipRow> = fetch!(all, db, LIST, Text(user))?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// Every live workspace, by name.
pub(crate) async fn list_all(db: &Db) -> Result<Vec<Workspace>, Error> {
    let rows: Vec<Row> = fetch!(all, db, LIST_ALL)?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// The deleted workspaces that the user owns and can restore, latest deletion first.
pub(crate) async fn list_deleted(db: &Db, user: UserId) -> Result<Vec<Membership>, Error> {
    let rows: Vec<MembershipRow> = fetch!(all, db, LIST_DELETED, Text(user))?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// One of these.
pub(crate) async fn find_deleted(
    tx: &mut Tx,
    user: UserId,
    id: WorkspaceId,
) -> Result<Option<Membership>, Error> {
    let row: Option<MembershipRow> = fetch!(optional, tx, FIND_DELETED, Text(user), Text(id))?;
    row.map(TryInto::try_into).transpose()
}

/// A membership, outside of a transaction.
pub(crate) async fn get_membership(
    db: &Db,
    user: UserId,
    id: WorkspaceId,
) -> Result<Option<Membership>, Error> {
    let row: Option<MembershipRow> = fetch!(optional, db, FIND_MEMBERSHIP, Text(user), Text(id))?;
    row.map(TryInto::try_into).transpose()
}

pub(crate) async fn find_membership(
    tx: &mut Tx,
    user: UserId,
    id: WorkspaceId,
) -> Result<Option<Membership>, Error> {
    let row: Option<MembershipRow> = fetch!(optional, tx, FIND_MEMBERSHIP, Text(user), Text(id))?;
    row.map(TryInto::try_into).transpose()
}

pub(crate) async fn find(db: &Db, id: WorkspaceId) -> Result<Option<Workspace>, Error> {
    let row: Option<Row> = fetch!(optional, db, FIND, Text(id))?;
    row.map(TryInto::try_into).transpose()
}

pub(crate) async fn insert(tx: &mut Tx, workspace: &Workspace) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(workspace.id),
        &workspace.name,
        &workspace.plan,
        workspace.publishers.as_str(),
        workspace.created_at,
        workspace.updated_at
    )
    .map(drop)
}

pub(crate) async fn update(
    tx: &mut Tx,
    id: WorkspaceId,
    changes: &Changes,
    now: Timestamp,
) -> Result<Option<Workspace>, Error> {
    let row: Option<Row> = fetch!(
        optional,
        tx,
        UPDATE,
        Text(id),
        changes.name.as_deref(),
        changes.plan.as_deref(),
        changes.publishers.map(Publishers::as_str),
        now,
        changes.question_log_days.is_some(),
        changes.question_log_days.flatten().map(i64::from)
    )?;
    row.map(TryInto::try_into).transpose()
}
