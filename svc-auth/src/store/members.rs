//! Table `members`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::Role;
use cairn_chassis::on_db;
use cairn_chassis::sql::{Error, Text, Tx};
use cairn_proto::ids::{UserId, WorkspaceId};

use super::{users, word};
use crate::members::Member;

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

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[LIST, FIND, COUNT_OWNERS, LIST_OF_USER, FIND_OTHER_OWNER, COUNT_OWNED, INSERT, SET_ROLE, DELETE];

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

/// Changes of who belongs to a workspace follow each other: two owners who leave at once must not both find the other.
pub(crate) async fn lock(tx: &mut Tx, workspace: WorkspaceId) -> Result<(), Error> {
    tx.lock_name(&format!("auth:members:{workspace}")).await
}

/// The members of a workspace, the longest-standing first.
pub(crate) async fn list(tx: &mut Tx, workspace: WorkspaceId) -> Result<Vec<Member>, Error> {
    let rows: Vec<Row> = on_db!(tx, |c| sqlx::query_as(LIST).bind(Text(workspace)).fetch_all(c).await)?;
    rows.into_iter().map(TryInto::try_into).collect()
}

pub(crate) async fn find(tx: &mut Tx, workspace: WorkspaceId, user: UserId) -> Result<Option<Member>, Error> {
    let row: Option<Row> =
        on_db!(tx, |c| sqlx::query_as(FIND).bind(Text(workspace)).bind(Text(user)).fetch_optional(c).await)?;
    row.map(TryInto::try_into).transpose()
}

pub(crate) async fn count_owners(tx: &mut Tx, workspace: WorkspaceId) -> Result<i64, Error> {
    on_db!(tx, |c| sqlx::query_scalar(COUNT_OWNERS).bind(Text(workspace)).fetch_one(c).await)
}

/// Where a person belongs, in deleted workspaces too, always in the same order.
pub(crate) async fn list_of_user(tx: &mut Tx, user: UserId) -> Result<Vec<(WorkspaceId, Role)>, Error> {
    let rows: Vec<(Text<WorkspaceId>, String)> =
        on_db!(tx, |c| sqlx::query_as(LIST_OF_USER).bind(Text(user)).fetch_all(c).await)?;
    rows.into_iter().map(|(Text(workspace), role)| Ok((workspace, word("members.role", &role)?))).collect()
}

/// The longest-standing owner besides that person.
pub(crate) async fn find_other_owner(
    tx: &mut Tx,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<Option<UserId>, Error> {
    let row: Option<(Text<UserId>,)> = on_db!(tx, |c| sqlx::query_as(FIND_OTHER_OWNER)
        .bind(Text(workspace))
        .bind(Text(user))
        .fetch_optional(c)
        .await)?;
    Ok(row.map(|(Text(owner),)| owner))
}

/// How many workspaces a person owns that are not deleted.
pub(crate) async fn count_owned(tx: &mut Tx, user: UserId) -> Result<i64, Error> {
    on_db!(tx, |c| sqlx::query_scalar(COUNT_OWNED).bind(Text(user)).fetch_one(c).await)
}

/// Whether the person was none of the members before; a member stays as they are.
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
    on_db!(tx, |c| sqlx::query(SET_ROLE)
        .bind(Text(workspace))
        .bind(Text(user))
        .bind(role.as_str())
        .execute(c)
        .await
        .map(|_| ()))
}

pub(crate) async fn delete(tx: &mut Tx, workspace: WorkspaceId, user: UserId) -> Result<(), Error> {
    on_db!(tx, |c| sqlx::query(DELETE).bind(Text(workspace)).bind(Text(user)).execute(c).await.map(|_| ()))
}
