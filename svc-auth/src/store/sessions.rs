//! Table `sessions`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::on_db;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_proto::ids::UserId;

use super::users;
use crate::secrets::Digest;
use crate::sessions::{FoundSession, NewSession};

const FIND: &str = "SELECT u.id, u.email, u.name, u.email_verified, s.expires_at \
     FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.digest = $1";
const INSERT: &str =
    "INSERT INTO sessions (id, user_id, digest, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)";
const DELETE: &str = "DELETE FROM sessions WHERE digest = $1";
const DELETE_OF_USER: &str = "DELETE FROM sessions WHERE user_id = $1";
const DELETE_OTHERS: &str = "DELETE FROM sessions WHERE user_id = $1 AND digest <> $2";
const DELETE_ENDED: &str = "DELETE FROM sessions WHERE expires_at <= $1";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[FIND, INSERT, DELETE, DELETE_OF_USER, DELETE_OTHERS, DELETE_ENDED];

#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(flatten)]
    user: users::Row,
    expires_at: Timestamp,
}

pub(crate) async fn find(db: &Db, digest: &Digest) -> Result<Option<FoundSession>, Error> {
    let row: Option<Row> =
        on_db!(db, |c| sqlx::query_as(FIND).bind(digest.as_slice()).fetch_optional(c).await)?;
    Ok(row.map(|row| FoundSession { user: row.user.into(), expires_at: row.expires_at }))
}

pub(crate) async fn insert(tx: &mut Tx, session: &NewSession) -> Result<(), Error> {
    on_db!(tx, |c| sqlx::query(INSERT)
        .bind(Text(session.id))
        .bind(Text(session.user))
        .bind(session.digest.as_slice())
        .bind(session.created_at)
        .bind(session.expires_at)
        .execute(c)
        .await
        .map(|_| ()))
}

pub(crate) async fn delete(db: &Db, digest: &Digest) -> Result<(), Error> {
    on_db!(db.writer(), |c| sqlx::query(DELETE).bind(digest.as_slice()).execute(c).await.map(|_| ()))
}

pub(crate) async fn delete_of_user(tx: &mut Tx, user: UserId) -> Result<(), Error> {
    on_db!(tx, |c| sqlx::query(DELETE_OF_USER).bind(Text(user)).execute(c).await.map(|_| ()))
}

/// Deletes the sessions of a person, but for one.
pub(crate) async fn delete_others(tx: &mut Tx, user: UserId, kept: &Digest) -> Result<(), Error> {
    on_db!(tx, |c| sqlx::query(DELETE_OTHERS)
        .bind(Text(user))
        .bind(kept.as_slice())
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
