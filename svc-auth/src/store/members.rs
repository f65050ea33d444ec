//! Table `members`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::Role;
use cairn_chassis::sql::{Error, Text, Tx};
use cairn_chassis::{execute, fetch, on_db, statements};
use cairn_proto::ids::{UserId, WorkspaceId};

use super::{users, word};
use crate::model::members::Member;

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    const LIST: &str = "SELECT u.id, u.email, u.name, u.email_verified, m.role, m.created_at \
         FROM members m JOIN users u ON u.id = m.user_id WHERE m.workspace_id = $1 ORDER BY m.created_at, u.id";

    const FIND: &str = "SELECT u.id, u.email, u.name, u.email_verified, m.role, m.created_at \
         FROM members m JOIN users u ON u.id = m.user_id WHERE m.workspace_id = $1 AND m.user_id = $2";

    const COUNT_OWNERS: &str = "SELECT COUNT(*) FROM members WHERE workspace_id = $1 AND role = 'owner'";

    const LIST_OF_USER: &str = "SELECT workspace_id, role FROM members WHERE user_id = $1 ORDER BY workspace_id";

    const FIND_OTHER_OWNER: &str = "SELECT user_id FROM members \
         WHERE workspace_id = $1 AND role = 'owner' AND user_id <> $2 ORDER BY created_at, user_id LIMIT 1";

    const COUNT_OWNED: &str = "SELECT COUNT(*) FROM members m JOIN workspaces w ON w.id = m.workspace_id \
         WHERE m.user_id = $1 AND m.role = 'owner' AND w.deleted_at IS NULL";

    const INSERT: &str = "INSERT INTO members (workspace_id, user_id, role, created_at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (workspace_id, user_id) DO NOTHING";

    const SET_ROLE: &str = "UPDATE members SET role = $3 WHERE workspace_id = $1 AND user_id = $2";

    const DELETE: &str = "DELETE FROM members WHERE workspace_id = $1 AND user_id = $2";
}

#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(flatten)]
    user: users::Row,
    role: String,
    created_at: Timestamp,
}

impl TryFrom<Row> for Member {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self { user: row.user.into(), role: word("members.role", &row.role)?, created_at: row.created_at })
    }
}

/// Serializes changes of a workspace's members: two owners who leave concurrently must not each see the other.
pub(crate) async fn lock(tx: &mut Tx, workspace: WorkspaceId) -> Result<(), Error> {
    tx.lock_name(&format!("auth:members:{workspace}")).await
}

/// The members of a workspace, longest membership first.
pub(crate) async fn list(tx: &mut Tx, workspace: WorkspaceId) -> Result<Vec<Member>, Error> {
    let rows: Vec<Row> = fetch!(all, tx, LIST, Text(workspace))?;
    rows.into_iter().map(TryInto::try_into).collect()
}

pub(crate) async fn find(tx: &mut Tx, workspace: WorkspaceId, user: UserId) -> Result<Option<Member>, Error> {
    let row: Option<Row> = fetch!(optional, tx, FIND, Text(workspace), Text(user))?;
    row.map(TryInto::try_into).transpose()
}

pub(crate) async fn count_owners(tx: &mut Tx, workspace: WorkspaceId) -> Result<i64, Error> {
    fetch!(scalar, tx, COUNT_OWNERS, Text(workspace))
}

/// The memberships of a user, including deleted workspaces, in a stable order.
pub(crate) async fn list_of_user(tx: &mut Tx, user: UserId) -> Result<Vec<(WorkspaceId, Role)>, Error> {
    let rows: Vec<(Text<WorkspaceId>, String)> = fetch!(all, tx, LIST_OF_USER, Text(user))?;
    rows.into_iter().map(|(Text(workspace), role)| Ok((workspace, word("members.role", &role)?))).collect()
}

/// The longest-standing other owner.
pub(crate) async fn find_other_owner(
    tx: &mut Tx,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<Option<UserId>, Error> {
    let row: Option<(Text<UserId>,)> = fetch!(optional, tx, FIND_OTHER_OWNER, Text(workspace), Text(user))?;
    Ok(row.map(|(Text(owner),)| owner))
}

/// The number of live workspaces that a user owns.
pub(crate) async fn count_owned(tx: &mut Tx, user: UserId) -> Result<i64, Error> {
    fetch!(scalar, tx, COUNT_OWNED, Text(user))
}

/// Returns whether the user was not a member before; a member is left unchanged.
pub(crate) async fn insert(
    tx: &mut Tx,
    workspace: WorkspaceId,
    user: UserId,
    role: Role,
    now: Timestamp,
) -> Result<bool, Error> {
    on_db!(tx, |c| sqlx::query(INSERT)
        .bind(Text(workspace))
        .bind(Text(user))
        .bind(role.as_str())
        .bind(now)
        .execute(c)
        .await
        .map(|done| done.rows_affected() > 0))
}

pub(crate) async fn set_role(
    tx: &mut Tx,
    workspace: WorkspaceId,
    user: UserId,
    role: Role,
) -> Result<(), Error> {
    execute!(tx, SET_ROLE, Text(workspace), Text(user), role.as_str()).map(drop)
}

pub(crate) async fn delete(tx: &mut Tx, workspace: WorkspaceId, user: UserId) -> Result<(), Error> {
    execute!(tx, DELETE, Text(workspace), Text(user)).map(drop)
}
