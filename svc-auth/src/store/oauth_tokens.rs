//! Tables `oauth_access_tokens` and `oauth_refresh_tokens`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::{GrantId, UserId, WorkspaceId};

use super::tokens::{read_permissions, write_permissions};
use super::{days, word};
use crate::model::oauth::{NewAccessToken, PresentedAccess, RefreshState, Salt};
use crate::secrets::Digest;

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    /// Everything that an exchange needs, in one statement: it runs on every request that the gateway has not cached.
    const FIND_ACCESS: &str = "SELECT a.workspace_id, a.grant_id, g.client_name, a.permissions, g.resource, a.expires_at, \
         w.plan, w.publishers, w.question_log_days, g.user_id, m.role FROM oauth_access_tokens a \
         JOIN oauth_grants g ON g.workspace_id = a.workspace_id AND g.id = a.grant_id \
         JOIN workspaces w ON w.id = a.workspace_id \
         JOIN members m ON m.workspace_id = a.workspace_id AND m.user_id = g.user_id \
         WHERE a.digest = $1 AND w.deleted_at IS NULL";

    const INSERT_ACCESS: &str = "INSERT INTO oauth_access_tokens (digest, workspace_id, grant_id, permissions, expires_at) \
         VALUES ($1, $2, $3, $4, $5)";

    const DELETE_ACCESS: &str = "DELETE FROM oauth_access_tokens WHERE digest = $1 AND EXISTS (SELECT 1 FROM oauth_grants g \
         WHERE g.workspace_id = oauth_access_tokens.workspace_id AND g.id = oauth_access_tokens.grant_id AND g.client_id = $2)";

    const DELETE_ENDED_ACCESS: &str = "DELETE FROM oauth_access_tokens WHERE expires_at <= $1";

    const INSERT_REFRESH: &str =
        "INSERT INTO oauth_refresh_tokens (digest, workspace_id, grant_id) VALUES ($1, $2, $3)";

    const REFRESH_STATE: &str = "SELECT rotated_at, salt FROM oauth_refresh_tokens WHERE digest = $1";

    const ROTATE: &str = "UPDATE oauth_refresh_tokens SET rotated_at = $2, salt = $3 WHERE digest = $1";

    const DELETE_ROTATED: &str = "DELETE FROM oauth_refresh_tokens WHERE rotated_at <= $1";
}

#[derive(sqlx::FromRow)]
struct PresentedRow {
    workspace_id: Text<WorkspaceId>,
    grant_id: Text<GrantId>,
    client_name: String,
    permissions: String,
    resource: String,
    expires_at: Timestamp,
    plan: String,
    publishers: String,
    question_log_days: Option<i64>,
    user_id: Text<UserId>,
    role: String,
}

impl TryFrom<PresentedRow> for PresentedAccess {
    type Error = Error;

    fn try_from(row: PresentedRow) -> Result<Self, Error> {
        Ok(Self {
            workspace: row.workspace_id.0,
            grant: row.grant_id.0,
            client_name: row.client_name,
            permissions: read_permissions(&row.permissions)?,
            resource: row.resource,
            expires_at: row.expires_at,
            plan: row.plan,
            publishers: word("workspaces.publishers", &row.publishers)?,
            question_log_days: days(row.question_log_days)?,
            user: row.user_id.0,
            role: word("members.role", &row.role)?,
        })
    }
}

/// An access token with the plan of its workspace and the role of its user; `None` if any of them is gone.
pub(crate) async fn find_access(db: &Db, digest: &Digest) -> Result<Option<PresentedAccess>, Error> {
    let row: Option<PresentedRow> = fetch!(optional, db, FIND_ACCESS, digest.as_slice())?;
    row.map(TryInto::try_into).transpose()
}

pub(crate) async fn insert_access(tx: &mut Tx, token: &NewAccessToken) -> Result<(), Error> {
    execute!(
        tx,
        INSERT_ACCESS,
        token.digest.as_slice(),
        Text(token.workspace),
        Text(token.grant),
        write_permissions(token.permissions),
        token.expires_at
    )
    .map(drop)
}

/// Deletes an access token, if it is that client's.
pub(crate) async fn delete_access(tx: &mut Tx, digest: &Digest, client_id: &str) -> Result<(), Error> {
    execute!(tx, DELETE_ACCESS, digest.as_slice(), client_id).map(drop)
}

pub(crate) async fn insert_refresh(
    tx: &mut Tx,
    digest: &Digest,
    workspace: WorkspaceId,
    grant: GrantId,
) -> Result<(), Error> {
    execute!(tx, INSERT_REFRESH, digest.as_slice(), Text(workspace), Text(grant)).map(drop)
}

/// The rotation state of a refresh token; `None` if there is no such token.
pub(crate) async fn refresh_state(tx: &mut Tx, digest: &Digest) -> Result<Option<RefreshState>, Error> {
    let row: Option<(Option<Timestamp>, Option<Vec<u8>>)> =
        fetch!(optional, tx, REFRESH_STATE, digest.as_slice())?;
    let Some((rotated_at, salt)) = row else {
        return Ok(None);
    };
    let corrupt = || Error::corrupt("oauth_refresh_tokens has a rotation without its salt");
    match (rotated_at, salt) {
        (None, None) => Ok(Some(None)),
        (Some(at), Some(salt)) => Ok(Some(Some((at, Salt::try_from(salt).map_err(|_| corrupt())?)))),
        (Some(_), None) | (None, Some(_)) => Err(corrupt()),
    }
}

pub(crate) async fn rotate(tx: &mut Tx, digest: &Digest, now: Timestamp, salt: &Salt) -> Result<(), Error> {
    execute!(tx, ROTATE, digest.as_slice(), now, salt.as_slice()).map(drop)
}

/// Deletes expired access tokens, and refresh tokens that were rotated long ago.
pub(crate) async fn delete_ended(db: &Db, now: Timestamp, long_ago: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), DELETE_ENDED_ACCESS, now)?;
    execute!(db.writer(), DELETE_ROTATED, long_ago).map(drop)
}
