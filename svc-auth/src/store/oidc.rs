//! Tables `oidc_links` and `oidc_used`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::UserId;

use super::users;
use crate::secrets::Digest;
use crate::users::User;

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    const FIND_LINKED: &str = "SELECT u.id, u.email, u.name, u.email_verified FROM oidc_links l JOIN users u ON u.id = l.user_id \
         WHERE l.issuer = $1 AND l.subject = $2";

    const INSERT_LINK: &str =
        "INSERT INTO oidc_links (issuer, subject, user_id, created_at) VALUES ($1, $2, $3, $4)";

    const INSERT_USED: &str = "INSERT INTO oidc_used (digest, expires_at) VALUES ($1, $2)";

    const DELETE_ENDED: &str = "DELETE FROM oidc_used WHERE expires_at <= $1";
}

/// The user linked to a subject of an issuer.
pub(crate) async fn find_linked(tx: &mut Tx, issuer: &str, subject: &str) -> Result<Option<User>, Error> {
    let row: Option<users::Row> = fetch!(optional, tx, FIND_LINKED, issuer, subject)?;
    Ok(row.map(Into::into))
}

/// A subject has one user, and a user one subject of an issuer.
pub(crate) async fn insert_link(
    tx: &mut Tx,
    issuer: &str,
    subject: &str,
    user: UserId,
    now: Timestamp,
) -> Result<(), Error> {
    execute!(tx, INSERT_LINK, issuer, subject, Text(user), now).map(drop)
}

/// Consumes a ticket; of two concurrent uses, one gets a unique violation.
pub(crate) async fn insert_used(tx: &mut Tx, digest: &Digest, expires_at: Timestamp) -> Result<(), Error> {
    execute!(tx, INSERT_USED, digest.as_slice(), expires_at).map(drop)
}

/// Deletes the tickets that expired by `now`.
pub(crate) async fn delete_ended(db: &Db, now: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), DELETE_ENDED, now).map(drop)
}
