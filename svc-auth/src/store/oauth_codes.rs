//! Table `oauth_codes`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::{GrantId, UserId, WorkspaceId};

use super::tokens::{read_permissions, write_permissions};
use crate::model::oauth::IssuedCode;
use crate::secrets::Digest;

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    const INSERT: &str = "INSERT INTO oauth_codes (digest, workspace_id, user_id, client_id, client_name, redirect_uri, \
         redirect_host, code_challenge, permissions, resource, expires_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

    /// Of concurrent requests with one code, only one updates the row.
    const CLAIM: &str = "UPDATE oauth_codes SET grant_id = $3 WHERE digest = $1 AND client_id = $2 AND grant_id IS NULL \
         RETURNING workspace_id, user_id, client_id, client_name, redirect_uri, redirect_host, code_challenge, permissions, \
         resource, expires_at";

    const FIND_USED: &str = "SELECT workspace_id, grant_id FROM oauth_codes \
         WHERE digest = $1 AND client_id = $2 AND grant_id IS NOT NULL";

    const DELETE_OF_USER: &str = "DELETE FROM oauth_codes WHERE user_id = $1";

    const DELETE_ENDED: &str = "DELETE FROM oauth_codes WHERE expires_at <= $1";
}

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
    execute!(
        tx,
        INSERT,
        digest.as_slice(),
        Text(code.workspace),
        Text(code.user),
        &code.client_id,
        &code.client_name,
        &code.redirect_uri,
        &code.redirect_host,
        &code.code_challenge,
        write_permissions(code.permissions),
        &code.resource,
        code.expires_at
    )
    .map(drop)
}

/// Claims an unused code of that client for that grant.
pub(crate) async fn claim(
    tx: &mut Tx,
    digest: &Digest,
    client_id: &str,
    grant: GrantId,
) -> Result<Option<IssuedCode>, Error> {
    let row: Option<Row> = fetch!(optional, tx, CLAIM, digest.as_slice(), client_id, Text(grant))?;
    row.map(TryInto::try_into).transpose()
}

/// The grant that a code of that client was exchanged for.
pub(crate) async fn find_used(
    tx: &mut Tx,
    digest: &Digest,
    client_id: &str,
) -> Result<Option<(WorkspaceId, GrantId)>, Error> {
    let row: Option<(Text<WorkspaceId>, Text<GrantId>)> =
        fetch!(optional, tx, FIND_USED, digest.as_slice(), client_id)?;
    Ok(row.map(|(Text(workspace), Text(grant))| (workspace, grant)))
}

/// Deletes the pending codes of a user.
pub(crate) async fn delete_of_user(tx: &mut Tx, user: UserId) -> Result<(), Error> {
    execute!(tx, DELETE_OF_USER, Text(user)).map(drop)
}

pub(crate) async fn delete_ended(db: &Db, now: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), DELETE_ENDED, now).map(drop)
}
