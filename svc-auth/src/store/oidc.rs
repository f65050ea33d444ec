//! Tables `oidc_links` and `oidc_used`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::on_db;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_proto::ids::{UserId, WorkspaceId};

use super::word;
use crate::invitations::Taken;
use crate::secrets::Digest;
use crate::users::User;

const FIND_LINKED: &str = "SELECT u.id, u.email, u.name FROM oidc_links l JOIN users u ON u.id = l.user_id \
     WHERE l.issuer = $1 AND l.subject = $2";
const INSERT_LINK: &str =
    "INSERT INTO oidc_links (issuer, subject, user_id, created_at) VALUES ($1, $2, $3, $4)";
const INSERT_USED: &str = "INSERT INTO oidc_used (digest, expires_at) VALUES ($1, $2)";
const DELETE_ENDED: &str = "DELETE FROM oidc_used WHERE expires_at <= $1";
const TAKE_INVITATIONS: &str = "DELETE FROM invitations WHERE email = $1 AND expires_at > $2 \
     AND workspace_id IN (SELECT id FROM workspaces WHERE deleted_at IS NULL) RETURNING workspace_id, email, role";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[FIND_LINKED, INSERT_LINK, INSERT_USED, DELETE_ENDED, TAKE_INVITATIONS];

/// The person whom a subject of an issuer signs in as.
pub(crate) async fn find_linked(tx: &mut Tx, issuer: &str, subject: &str) -> Result<Option<User>, Error> {
    let row: Option<(Text<UserId>, String, String)> =
        on_db!(tx, |c| sqlx::query_as(FIND_LINKED).bind(issuer).bind(subject).fetch_optional(c).await)?;
    Ok(row.map(|(Text(id), email, name)| User { id, email, name }))
}

/// A subject has one person, and a person one subject of an issuer.
pub(crate) async fn insert_link(
    tx: &mut Tx,
    issuer: &str,
    subject: &str,
    user: UserId,
    now: Timestamp,
) -> Result<(), Error> {
    on_db!(tx, |c| sqlx::query(INSERT_LINK)
        .bind(issuer)
        .bind(subject)
        .bind(Text(user))
        .bind(now)
        .execute(c)
        .await
        .map(|_| ()))
}

/// Uses a ticket up; of two that come with it, one meets a unique violation.
pub(crate) async fn insert_used(tx: &mut Tx, digest: &Digest, expires_at: Timestamp) -> Result<(), Error> {
    on_db!(tx, |c| sqlx::query(INSERT_USED)
        .bind(digest.as_slice())
        .bind(expires_at)
        .execute(c)
        .await
        .map(|_| ()))
}

/// Uses up every open invitation of a folded email.
pub(crate) async fn take_invitations(tx: &mut Tx, email: &str, now: Timestamp) -> Result<Vec<Taken>, Error> {
    let rows: Vec<(Text<WorkspaceId>, String, String)> =
        on_db!(tx, |c| sqlx::query_as(TAKE_INVITATIONS).bind(email).bind(now).fetch_all(c).await)?;
    let read = |(Text(workspace), email, role): (_, _, String)| {
        Ok(Taken { workspace, email, role: word("invitations.role", &role)? })
    };
    rows.into_iter().map(read).collect()
}

/// Forgets the tickets that have ended by `now`.
pub(crate) async fn delete_ended(db: &Db, now: Timestamp) -> Result<(), Error> {
    on_db!(db.writer(), |c| sqlx::query(DELETE_ENDED).bind(now).execute(c).await.map(|_| ()))
}
