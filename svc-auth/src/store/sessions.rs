//! Table `sessions`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::UserId;

use super::users;
use crate::model::sessions::{FoundSession, NewSession};
use crate::secrets::Digest;

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    const FIND: &str = "SELECT u.id, u.email, u.name, u.email_verified, s.expires_at \
         FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.digest = $1";

    const INSERT: &str =
        "INSERT INTO sessions (id, user_id, digest, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)";

    const DELETE: &str = "DELETE FROM sessions WHERE digest = $1";

    const DELETE_OF_USER: &str = "DELETE FROM sessions WHERE user_id = $1";

    const DELETE_OTHERS: &str = "DELETE FROM sessions WHERE user_id = $1 AND digest <> $2";

    const DELETE_ENDED: &str = "DELETE FROM sessions WHERE expires_at <= $1";
}

#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(flatten)]
    user: users::Row,
    expires_at: Timestamp,
}

pub(crate) async fn find(db: &Db, digest: &Digest) -> Result<Option<FoundSession>, Error> {
    let row: Option<Row> = fetch!(optional, db, FIND, digest.as_slice())?;
    Ok(row.map(|row| FoundSession { user: row.user.into(), expires_at: row.expires_at }))
}

pub(crate) async fn insert(tx: &mut Tx, session: &NewSession) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(session.id),
        Text(session.user),
        session.digest.as_slice(),
        session.created_at,
        session.expires_at
    )
    .map(drop)
}

pub(crate) async fn delete(db: &Db, digest: &Digest) -> Result<(), Error> {
    execute!(db.writer(), DELETE, digest.as_slice()).map(drop)
}

pub(crate) async fn delete_of_user(tx: &mut Tx, user: UserId) -> Result<(), Error> {
    execute!(tx, DELETE_OF_USER, Text(user)).map(drop)
}

/// Deletes the sessions of a person, but for one.
pub(crate) async fn delete_others(tx: &mut Tx, user: UserId, kept: &Digest) -> Result<(), Error> {
    execute!(tx, DELETE_OTHERS, Text(user), kept.as_slice()).map(drop)
}

/// Deletes what ended by `now`; answers how many there were.
pub(crate) async fn delete_ended(db: &Db, now: Timestamp) -> Result<u64, Error> {
    execute!(db.writer(), DELETE_ENDED, now)
}
