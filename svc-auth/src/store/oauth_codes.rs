//! Table `oauth_codes`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::on_db;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_proto::ids::{GrantId, UserId, WorkspaceId};

use super::tokens::{read_permissions, write_permissions};
use crate::oauth::IssuedCode;
use crate::secrets::Digest;

const INSERT: &str = "INSERT INTO oauth_codes (digest, workspace_id, user_id, client_id, client_name, redirect_uri, \
     redirect_host, code_challenge, permissions, resource, expires_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
/// Of several that come with one code at once, the row lets one pass.
const CLAIM: &str = "UPDATE oauth_codes SET grant_id = $3 WHERE digest = $1 AND client_id = $2 AND grant_id IS NULL \
     RETURNING workspace_id, user_id, client_id, client_name, redirect_uri, redirect_host, code_challenge, permissions, \
     resource, expires_at";
const FIND_USED: &str = "SELECT workspace_id, grant_id FROM oauth_codes \
     WHERE digest = $1 AND client_id = $2 AND grant_id IS NOT NULL";
const DELETE_OF_USER: &str = "DELETE FROM oauth_codes WHERE user_id = $1";
const DELETE_ENDED: &str = "DELETE FROM oauth_codes WHERE expires_at <= $1";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, CLAIM, FIND_USED, DELETE_OF_USER, DELETE_ENDED];

#[derive(sqlx::FromRow)]
struct Row {
    workspace_id: Text<WorkspaceId>,
    user_id: Text<UserId>,
    client_id: String,
    client_name: String,
    redirect_uri: String,
    redirect_host: String,
    code_challenge: String,
    permissions: String,
    resource: String,
    expires_at: Timestamp,
}

impl TryFrom<Row> for IssuedCode {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self {
            workspace: row.workspace_id.0,
            user: row.user_id.0,
            permissions: read_permissions(&row.permissions)?,
            client_id: row.client_id,
            client_name: row.client_name,
            redirect_uri: row.redirect_uri,
            redirect_host: row.redirect_host,
            code_challenge: row.code_challenge,
            resource: row.resource,
            expires_at: row.expires_at,
        })
    }
}

pub(crate) async fn insert(tx: &mut Tx, digest: &Digest, code: &IssuedCode) -> Result<(), Error> {
    on_db!(tx, |c| sqlx::query(INSERT)
        .bind(digest.as_slice())
        .bind(Text(code.workspace))
        .bind(Text(code.user))
        .bind(&code.client_id)
        .bind(&code.client_name)
        .bind(&code.redirect_uri)
        .bind(&code.redirect_host)
        .bind(&code.code_challenge)
        .bind(write_permissions(code.permissions))
        .bind(&code.resource)
        .bind(code.expires_at)
        .execute(c)
        .await
        .map(|_| ()))
}

/// Takes a code of that client that nobody took before, for that grant.
pub(crate) async fn claim(
    tx: &mut Tx,
    digest: &Digest,
    client_id: &str,
    grant: GrantId,
) -> Result<Option<IssuedCode>, Error> {
    let row: Option<Row> = on_db!(tx, |c| sqlx::query_as(CLAIM)
        .bind(digest.as_slice())
        .bind(client_id)
        .bind(Text(grant))
        .fetch_optional(c)
        .await)?;
    row.map(TryInto::try_into).transpose()
}

/// The grant that a code of that client became.
pub(crate) async fn find_used(
    tx: &mut Tx,
    digest: &Digest,
    client_id: &str,
) -> Result<Option<(WorkspaceId, GrantId)>, Error> {
    let row: Option<(Text<WorkspaceId>, Text<GrantId>)> = on_db!(tx, |c| sqlx::query_as(FIND_USED)
        .bind(digest.as_slice())
        .bind(client_id)
        .fetch_optional(c)
        .await)?;
    Ok(row.map(|(Text(workspace), Text(grant))| (workspace, grant)))
}

/// Deletes the codes that a person's yes has made.
pub(crate) async fn delete_of_user(tx: &mut Tx, user: UserId) -> Result<(), Error> {
    on_db!(tx, |c| sqlx::query(DELETE_OF_USER).bind(Text(user)).execute(c).await.map(|_| ()))
}

pub(crate) async fn delete_ended(db: &Db, now: Timestamp) -> Result<(), Error> {
    on_db!(db.writer(), |c| sqlx::query(DELETE_ENDED).bind(now).execute(c).await.map(|_| ()))
}
