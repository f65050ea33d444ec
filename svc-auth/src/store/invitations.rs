//! Table `invitations`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::on_db;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_proto::ids::{InvitationId, UserId, WorkspaceId};

use super::word;
use crate::invitations::{Found, Invitation, Taken};
use crate::secrets::Digest;
use crate::users::User;

const LIST: &str = "SELECT i.workspace_id, i.id, i.email, i.role, i.created_at, i.expires_at, \
     u.id AS inviter_id, u.email AS inviter_email, u.name AS inviter_name \
     FROM invitations i JOIN users u ON u.id = i.inviter_id \
     WHERE i.workspace_id = $1 AND i.expires_at > $2 ORDER BY i.created_at DESC, i.id DESC";
const FIND: &str = "SELECT i.workspace_id, i.id, i.email, i.role, i.created_at, i.expires_at, \
     u.id AS inviter_id, u.email AS inviter_email, u.name AS inviter_name, w.name AS workspace_name, \
     a.id AS account_id \
     FROM invitations i JOIN users u ON u.id = i.inviter_id JOIN workspaces w ON w.id = i.workspace_id \
     LEFT JOIN users a ON a.email = i.email \
     WHERE i.digest = $1 AND i.expires_at > $2 AND w.deleted_at IS NULL";
const INSERT: &str = "INSERT INTO invitations (workspace_id, id, email, role, inviter_id, digest, created_at, expires_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
/// Of two that accept at once, one finds nothing left.
const TAKE: &str = "DELETE FROM invitations WHERE digest = $1 AND expires_at > $2 \
     AND workspace_id IN (SELECT id FROM workspaces WHERE deleted_at IS NULL) RETURNING workspace_id, email, role";
const DELETE: &str = "DELETE FROM invitations WHERE workspace_id = $1 AND id = $2";
const DELETE_OF_EMAIL: &str = "DELETE FROM invitations WHERE workspace_id = $1 AND email = $2";
const DELETE_OF_INVITER: &str = "DELETE FROM invitations WHERE workspace_id = $1 AND inviter_id = $2";
const DELETE_ENDED: &str = "DELETE FROM invitations WHERE expires_at <= $1";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[LIST, FIND, INSERT, TAKE, DELETE, DELETE_OF_EMAIL, DELETE_OF_INVITER, DELETE_ENDED];

#[derive(sqlx::FromRow)]
struct Row {
    workspace_id: Text<WorkspaceId>,
    id: Text<InvitationId>,
    email: String,
    role: String,
    created_at: Timestamp,
    expires_at: Timestamp,
    inviter_id: Text<UserId>,
    inviter_email: String,
    inviter_name: String,
}

#[derive(sqlx::FromRow)]
struct FoundRow {
    #[sqlx(flatten)]
    invitation: Row,
    workspace_name: String,
    account_id: Option<String>,
}

impl TryFrom<Row> for Invitation {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.id.0,
            workspace: row.workspace_id.0,
            email: row.email,
            role: word("invitations.role", &row.role)?,
            inviter: User { id: row.inviter_id.0, email: row.inviter_email, name: row.inviter_name },
            created_at: row.created_at,
            expires_at: row.expires_at,
        })
    }
}

impl TryFrom<FoundRow> for Found {
    type Error = Error;

    fn try_from(row: FoundRow) -> Result<Self, Error> {
        Ok(Self {
            invitation: row.invitation.try_into()?,
            workspace_name: row.workspace_name,
            has_account: row.account_id.is_some(),
        })
    }
}

/// The open invitations of a workspace, newest first.
pub(crate) async fn list(
    tx: &mut Tx,
    workspace: WorkspaceId,
    now: Timestamp,
) -> Result<Vec<Invitation>, Error> {
    let rows: Vec<Row> =
        on_db!(tx, |c| sqlx::query_as(LIST).bind(Text(workspace)).bind(now).fetch_all(c).await)?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// An open invitation of a live workspace, by its secret.
pub(crate) async fn find(db: &Db, digest: &Digest, now: Timestamp) -> Result<Option<Found>, Error> {
    let row: Option<FoundRow> =
        on_db!(db, |c| sqlx::query_as(FIND).bind(digest.as_slice()).bind(now).fetch_optional(c).await)?;
    row.map(TryInto::try_into).transpose()
}

pub(crate) async fn insert(tx: &mut Tx, invitation: &Invitation, digest: &Digest) -> Result<(), Error> {
    on_db!(tx, |c| sqlx::query(INSERT)
        .bind(Text(invitation.workspace))
        .bind(Text(invitation.id))
        .bind(&invitation.email)
        .bind(invitation.role.as_str())
        .bind(Text(invitation.inviter.id))
        .bind(digest.as_slice())
        .bind(invitation.created_at)
        .bind(invitation.expires_at)
        .execute(c)
        .await
        .map(|_| ()))
}

/// Uses an open invitation up.
pub(crate) async fn take(tx: &mut Tx, digest: &Digest, now: Timestamp) -> Result<Option<Taken>, Error> {
    let row: Option<(Text<WorkspaceId>, String, String)> =
        on_db!(tx, |c| sqlx::query_as(TAKE).bind(digest.as_slice()).bind(now).fetch_optional(c).await)?;
    let read = |(Text(workspace), email, role): (_, _, String)| {
        Ok(Taken { workspace, email, role: word("invitations.role", &role)? })
    };
    row.map(read).transpose()
}

/// Whether there was one.
pub(crate) async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: InvitationId) -> Result<bool, Error> {
    on_db!(tx, |c| sqlx::query(DELETE)
        .bind(Text(workspace))
        .bind(Text(id))
        .execute(c)
        .await
        .map(|done| done.rows_affected() > 0))
}

pub(crate) async fn delete_of_email(tx: &mut Tx, workspace: WorkspaceId, email: &str) -> Result<(), Error> {
    on_db!(tx, |c| sqlx::query(DELETE_OF_EMAIL)
        .bind(Text(workspace))
        .bind(email)
        .execute(c)
        .await
        .map(|_| ()))
}

pub(crate) async fn delete_of_inviter(
    tx: &mut Tx,
    workspace: WorkspaceId,
    inviter: UserId,
) -> Result<(), Error> {
    on_db!(tx, |c| sqlx::query(DELETE_OF_INVITER)
        .bind(Text(workspace))
        .bind(Text(inviter))
        .execute(c)
        .await
        .map(|_| ()))
}

/// Deletes what ended by `now`; answers how many there were.
pub(crate) async fn delete_ended(db: &Db, now: Timestamp) -> Result<u64, Error> {
    on_db!(db.writer(), |c| sqlx::query(DELETE_ENDED)
        .bind(now)
        .execute(c)
        .await
        .map(|done| done.rows_affected()))
}
