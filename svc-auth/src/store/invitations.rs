//! Tables `invitations` and `invitation_mails`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, on_db, statements};
use cairn_proto::ids::{InvitationId, UserId, WorkspaceId};

use super::word;
use crate::model::invitations::{Found, Invitation, NewInvitation, Taken};
use crate::secrets::Digest;
use crate::users::User;

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    const LIST: &str = "SELECT i.workspace_id, i.id, i.email, i.role, i.created_at, i.expires_at, \
         u.id AS inviter_id, u.email AS inviter_email, u.name AS inviter_name, u.email_verified AS inviter_verified \
         FROM invitations i JOIN users u ON u.id = i.inviter_id \
         WHERE i.workspace_id = $1 AND i.expires_at > $2 ORDER BY i.created_at DESC, i.id DESC";

    const FIND: &str = "SELECT i.workspace_id, i.id, i.email, i.role, i.created_at, i.expires_at, \
         u.id AS inviter_id, u.email AS inviter_email, u.name AS inviter_name, u.email_verified AS inviter_verified, \
         w.name AS workspace_name, i.mail_digest \
         FROM invitations i JOIN users u ON u.id = i.inviter_id JOIN workspaces w ON w.id = i.workspace_id \
         WHERE (i.digest = $1 OR i.mail_digest = $1) AND i.expires_at > $2 AND w.deleted_at IS NULL";

    const COUNT: &str = "SELECT COUNT(*) FROM invitations WHERE workspace_id = $1 AND expires_at > $2";

    const ANY_OF_EMAIL: &str = "SELECT COUNT(*) FROM invitations WHERE email = $1 AND expires_at > $2 \
         AND workspace_id IN (SELECT id FROM workspaces WHERE deleted_at IS NULL)";

    const INSERT: &str = "INSERT INTO invitations \
         (workspace_id, id, email, role, inviter_id, digest, mail_digest, created_at, expires_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

    /// Of two concurrent accepts, only one finds the row.
    const TAKE: &str = "DELETE FROM invitations WHERE (digest = $1 OR mail_digest = $1) AND expires_at > $2 \
         AND workspace_id IN (SELECT id FROM workspaces WHERE deleted_at IS NULL) \
         RETURNING workspace_id, email, role, mail_digest";

    const TAKE_PENDING: &str = "DELETE FROM invitations WHERE email = $1 AND id = $2 AND expires_at > $3 \
         AND workspace_id IN (SELECT id FROM workspaces WHERE deleted_at IS NULL) \
         RETURNING workspace_id, email, role, mail_digest";

    const DELETE: &str = "DELETE FROM invitations WHERE workspace_id = $1 AND id = $2";

    const DELETE_OF_EMAIL: &str = "DELETE FROM invitations WHERE workspace_id = $1 AND email = $2";

    const DELETE_OF_INVITER: &str = "DELETE FROM invitations WHERE workspace_id = $1 AND inviter_id = $2";

    const DELETE_ALL_OF_INVITER: &str = "DELETE FROM invitations WHERE inviter_id = $1";

    const DELETE_ENDED: &str = "DELETE FROM invitations WHERE expires_at <= $1";

    const COUNT_MAILS_OF_INVITER: &str =
        "SELECT COUNT(*) FROM invitation_mails WHERE inviter_id = $1 AND sent_at > $2";

    const COUNT_MAILS_TO: &str = "SELECT COUNT(*) FROM invitation_mails WHERE email = $1 AND sent_at > $2";

    const INSERT_MAIL: &str =
        "INSERT INTO invitation_mails (id, inviter_id, email, sent_at) VALUES ($1, $2, $3, $4)";

    const DELETE_MAILS: &str = "DELETE FROM invitation_mails WHERE sent_at <= $1";
}

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
    inviter_verified: bool,
}

#[derive(sqlx::FromRow)]
struct FoundRow {
    #[sqlx(flatten)]
    invitation: Row,
    workspace_name: String,
    mail_digest: Option<Vec<u8>>,
}

#[derive(sqlx::FromRow)]
struct TakenRow {
    workspace_id: Text<WorkspaceId>,
    email: String,
    role: String,
    mail_digest: Option<Vec<u8>>,
}

impl TryFrom<Row> for Invitation {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.id.0,
            workspace: row.workspace_id.0,
            email: row.email,
            role: word("invitations.role", &row.role)?,
            inviter: User {
                id: row.inviter_id.0,
                email: row.inviter_email,
                name: row.inviter_name,
                email_verified: row.inviter_verified,
            },
            created_at: row.created_at,
            expires_at: row.expires_at,
        })
    }
}

impl FoundRow {
    fn read(self, by: &Digest) -> Result<Found, Error> {
        Ok(Found {
            by_mail: is_same(self.mail_digest.as_deref(), Some(by)),
            invitation: self.invitation.try_into()?,
            workspace_name: self.workspace_name,
        })
    }
}

impl TakenRow {
    fn read(self, by: Option<&Digest>) -> Result<Taken, Error> {
        Ok(Taken {
            by_mail: is_same(self.mail_digest.as_deref(), by),
            workspace: self.workspace_id.0,
            email: self.email,
            role: word("invitations.role", &self.role)?,
        })
    }
}

/// Whether the matching digest is that of the mailed secret.
fn is_same(mailed: Option<&[u8]>, by: Option<&Digest>) -> bool {
    mailed.zip(by).is_some_and(|(mailed, by)| mailed == by.as_slice())
}

/// The open invitations of a workspace, newest first.
pub(crate) async fn list(
    tx: &mut Tx,
    workspace: WorkspaceId,
    now: Timestamp,
) -> Result<Vec<Invitation>, Error> {
    let rows: Vec<Row> = fetch!(all, tx, LIST, Text(workspace), now)?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// An open invitation of a live workspace, by either of its secrets.
pub(crate) async fn find(db: &Db, digest: &Digest, now: Timestamp) -> Result<Option<Found>, Error> {
    let row: Option<FoundRow> = fetch!(optional, db, FIND, digest.as_slice(), now)?;
    row.map(|row| row.read(digest)).transpose()
}

/// How many open invitations a workspace has.
pub(crate) async fn count(tx: &mut Tx, workspace: WorkspaceId, now: Timestamp) -> Result<i64, Error> {
    fetch!(scalar, tx, COUNT, Text(workspace), now)
}

/// Whether a normalized email is invited to a live workspace.
pub(crate) async fn any_of_email(tx: &mut Tx, email: &str, now: Timestamp) -> Result<bool, Error> {
    let open: i64 = fetch!(scalar, tx, ANY_OF_EMAIL, email, now)?;
    Ok(open > 0)
}

pub(crate) async fn insert(tx: &mut Tx, new: &NewInvitation<'_>) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(new.workspace),
        Text(new.id),
        new.email,
        new.role.as_str(),
        Text(new.inviter),
        new.digest.as_slice(),
        new.mail_digest.as_ref().map(Digest::as_slice),
        new.created_at,
        new.expires_at
    )
    .map(drop)
}

/// Consumes an open invitation, by either of its secrets.
pub(crate) async fn take(tx: &mut Tx, digest: &Digest, now: Timestamp) -> Result<Option<Taken>, Error> {
    let row: Option<TakenRow> = fetch!(optional, tx, TAKE, digest.as_slice(), now)?;
    row.map(|row| row.read(Some(digest))).transpose()
}

/// Consumes an open invitation of a normalized email.
pub(crate) async fn take_pending(
    tx: &mut Tx,
    email: &str,
    id: InvitationId,
    now: Timestamp,
) -> Result<Option<Taken>, Error> {
    let row: Option<TakenRow> = fetch!(optional, tx, TAKE_PENDING, email, Text(id), now)?;
    row.map(|row| row.read(None)).transpose()
}

/// Returns whether there was one.
pub(crate) async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: InvitationId) -> Result<bool, Error> {
    on_db!(tx, |c| sqlx::query(DELETE)
        .bind(Text(workspace))
        .bind(Text(id))
        .execute(c)
        .await
        .map(|done| done.rows_affected() > 0))
}

pub(crate) async fn delete_of_email(tx: &mut Tx, workspace: WorkspaceId, email: &str) -> Result<(), Error> {
    execute!(tx, DELETE_OF_EMAIL, Text(workspace), email).map(drop)
}

pub(crate) async fn delete_of_inviter(
    tx: &mut Tx,
    workspace: WorkspaceId,
    inviter: UserId,
) -> Result<(), Error> {
    execute!(tx, DELETE_OF_INVITER, Text(workspace), Text(inviter)).map(drop)
}

/// Deletes the invitations of a user in all workspaces.
pub(crate) async fn delete_all_of_inviter(tx: &mut Tx, inviter: UserId) -> Result<(), Error> {
    execute!(tx, DELETE_ALL_OF_INVITER, Text(inviter)).map(drop)
}

/// Deletes what expired by `now`; returns the number.
pub(crate) async fn delete_ended(db: &Db, now: Timestamp) -> Result<u64, Error> {
    execute!(db.writer(), DELETE_ENDED, now)
}

/// The number of mails that a user's invitations caused since then.
pub(crate) async fn count_mails_of_inviter(
    tx: &mut Tx,
    inviter: UserId,
    since: Timestamp,
) -> Result<i64, Error> {
    fetch!(scalar, tx, COUNT_MAILS_OF_INVITER, Text(inviter), since)
}

/// The number of mails to a normalized email since then, over all inviters.
pub(crate) async fn count_mails_to(tx: &mut Tx, email: &str, since: Timestamp) -> Result<i64, Error> {
    fetch!(scalar, tx, COUNT_MAILS_TO, email, since)
}

/// Records a mail that is about to be sent.
pub(crate) async fn insert_mail(
    tx: &mut Tx,
    invitation: InvitationId,
    inviter: UserId,
    email: &str,
    now: Timestamp,
) -> Result<(), Error> {
    execute!(tx, INSERT_MAIL, Text(invitation), Text(inviter), email, now).map(drop)
}

/// Deletes the records of mails that were sent by then.
pub(crate) async fn delete_mails(db: &Db, until: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), DELETE_MAILS, until).map(drop)
}
