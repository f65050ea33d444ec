//! Table `sessions`.

use std::collections::HashMap;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::{SessionId, UserId, WorkspaceId};

use super::{days, users, word};
use crate::model::sessions::{FoundSession, ListedSession, NewSession, Seat};
use crate::secrets::Digest;

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    const FIND: &str = "SELECT u.id, u.email, u.name, u.email_verified, s.id AS session_id, s.expires_at \
         FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.digest = $1";

    /// With the user's membership in the workspace `$2`, for an exchange.
    const FIND_IN: &str = "SELECT u.id, u.email, u.name, u.email_verified, s.id AS session_id, s.expires_at, \
         m.role, w.plan, w.publishers, w.question_log_days FROM sessions s JOIN users u ON u.id = s.user_id \
         LEFT JOIN members m ON m.workspace_id = $2 AND m.user_id = s.user_id \
         LEFT JOIN workspaces w ON w.id = m.workspace_id AND w.deleted_at IS NULL WHERE s.digest = $1";

    const INSERT: &str = "INSERT INTO sessions (id, user_id, digest, agent, place, created_at, expires_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)";

    const LIST: &str = "SELECT id, agent, place, created_at, last_used_at, expires_at FROM sessions \
         WHERE user_id = $1 AND expires_at > $2 ORDER BY created_at DESC, id DESC LIMIT $3";

    const DELETE_ONE: &str = "DELETE FROM sessions WHERE id = $1 AND user_id = $2";

    const RECORD_USE: &str = "UPDATE sessions SET last_used_at = $2 \
         WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)";

    const DELETE: &str = "DELETE FROM sessions WHERE digest = $1";

    const DELETE_OF_USER: &str = "DELETE FROM sessions WHERE user_id = $1";

    const DELETE_OTHERS: &str = "DELETE FROM sessions WHERE user_id = $1 AND digest <> $2";

    const DELETE_ENDED: &str = "DELETE FROM sessions WHERE expires_at <= $1";
}

#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(flatten)]
    user: users::Row,
    session_id: Text<SessionId>,
    expires_at: Timestamp,
}

/// The columns of the membership are null if there is none, or no such live workspace.
#[derive(sqlx::FromRow)]
struct SeatedRow {
    #[sqlx(flatten)]
    session: Row,
    role: Option<String>,
    plan: Option<String>,
    publishers: Option<String>,
    question_log_days: Option<i64>,
}

impl From<Row> for FoundSession {
    fn from(row: Row) -> Self {
        Self { id: row.session_id.0, user: row.user.into(), expires_at: row.expires_at }
    }
}

impl SeatedRow {
    fn read(self) -> Result<(FoundSession, Option<Seat>), Error> {
        let session = self.session.into();
        let (Some(role), Some(plan), Some(publishers)) = (self.role, self.plan, self.publishers) else {
            return Ok((session, None));
        };
        let seat = Seat {
            role: word("members.role", &role)?,
            plan,
            publishers: word("workspaces.publishers", &publishers)?,
            question_log_days: days(self.question_log_days)?,
        };
        Ok((session, Some(seat)))
    }
}

#[derive(sqlx::FromRow)]
struct ListedRow {
    id: Text<SessionId>,
    agent: String,
    place: String,
    created_at: Timestamp,
    last_used_at: Option<Timestamp>,
    expires_at: Timestamp,
}

pub(crate) async fn find(db: &Db, digest: &Digest) -> Result<Option<FoundSession>, Error> {
    let row: Option<Row> = fetch!(optional, db, FIND, digest.as_slice())?;
    Ok(row.map(Into::into))
}

/// Like [`find`], with the user's membership in a live workspace, in one statement.
pub(crate) async fn find_in(
    db: &Db,
    digest: &Digest,
    workspace: WorkspaceId,
) -> Result<Option<(FoundSession, Option<Seat>)>, Error> {
    let row: Option<SeatedRow> = fetch!(optional, db, FIND_IN, digest.as_slice(), Text(workspace))?;
    row.map(SeatedRow::read).transpose()
}

pub(crate) async fn insert(tx: &mut Tx, session: &NewSession) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(session.id),
        Text(session.user),
        session.digest.as_slice(),
        &session.agent,
        &session.place,
        session.created_at,
        session.expires_at
    )
    .map(drop)
}

pub(crate) async fn delete(db: &Db, digest: &Digest) -> Result<(), Error> {
    execute!(db.writer(), DELETE, digest.as_slice()).map(drop)
}

/// The live sessions of a user, newest first.
pub(crate) async fn list(
    db: &Db,
    user: UserId,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<ListedSession>, Error> {
    let rows: Vec<ListedRow> = fetch!(all, db, LIST, Text(user), now, limit)?;
    let listed = rows.into_iter().map(|row| ListedSession {
        id: row.id.0,
        agent: row.agent,
        place: row.place,
        created_at: row.created_at,
        last_used_at: row.last_used_at,
        expires_at: row.expires_at,
    });
    Ok(listed.collect())
}

/// Deletes a session of a user; returns whether there was one.
pub(crate) async fn delete_one(db: &Db, user: UserId, id: SessionId) -> Result<bool, Error> {
    Ok(execute!(db.writer(), DELETE_ONE, Text(id), Text(user))? > 0)
}

/// Records uses in one transaction. An earlier use never replaces a later one, and deleted sessions are skipped.
pub(crate) async fn record_uses(db: &Db, uses: &HashMap<SessionId, Timestamp>) -> Result<(), Error> {
    let mut tx = db.begin_write().await?;
    for (id, at) in uses {
        execute!(tx, RECORD_USE, Text(*id), *at)?;
    }
    tx.commit().await
}

pub(crate) async fn delete_of_user(tx: &mut Tx, user: UserId) -> Result<(), Error> {
    execute!(tx, DELETE_OF_USER, Text(user)).map(drop)
}

/// Deletes the sessions of a user, except for one.
pub(crate) async fn delete_others(tx: &mut Tx, user: UserId, kept: &Digest) -> Result<(), Error> {
    execute!(tx, DELETE_OTHERS, Text(user), kept.as_slice()).map(drop)
}

/// Deletes what expired by `now`; returns the number.
pub(crate) async fn delete_ended(db: &Db, now: Timestamp) -> Result<u64, Error> {
    execute!(db.writer(), DELETE_ENDED, now)
}
