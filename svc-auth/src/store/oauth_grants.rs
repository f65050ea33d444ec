//! Table `oauth_grants`. The tokens of a grant are deleted by cascade.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Engine, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::{GrantId, UserId, WorkspaceId};
use sqlx::{Executor, Postgres, Sqlite};

use super::tokens::{read_permissions, write_permissions};
use crate::model::oauth::{Grant, NewGrant, RefreshedGrant};
use crate::secrets::Digest;

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    const INSERT: &str = "INSERT INTO oauth_grants (workspace_id, id, user_id, client_id, client_name, redirect_host, \
         permissions, resource, created_at, last_used_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10)";

    /// The grant of a refresh token of that client, locked by the update.
    const TOUCH: &str = "UPDATE oauth_grants SET last_used_at = $3, expires_at = $4 \
         WHERE (workspace_id, id) = (SELECT workspace_id, grant_id FROM oauth_refresh_tokens WHERE digest = $1) \
         AND client_id = $2 AND expires_at > $3 RETURNING workspace_id, id, user_id, permissions, resource";

    const LIST: &str = "SELECT g.workspace_id, g.id, g.user_id, u.email, g.client_id, g.client_name, g.redirect_host, \
         g.permissions, g.created_at, g.last_used_at, g.expires_at \
         FROM oauth_grants g JOIN users u ON u.id = g.user_id \
         WHERE g.workspace_id = $1 AND g.expires_at > $2 ORDER BY g.created_at DESC, g.id DESC";

    const FIND_USER: &str = "SELECT user_id FROM oauth_grants WHERE workspace_id = $1 AND id = $2";

    const DELETE: &str = "DELETE FROM oauth_grants WHERE workspace_id = $1 AND id = $2";

    const DELETE_BY_REFRESH_TOKEN: &str = "DELETE FROM oauth_grants WHERE client_id = $2 AND (workspace_id, id) = \
         (SELECT workspace_id, grant_id FROM oauth_refresh_tokens WHERE digest = $1)";

    const DELETE_OF_USER: &str = "DELETE FROM oauth_grants WHERE workspace_id = $1 AND user_id = $2";

    const DELETE_ALL_OF_USER: &str = "DELETE FROM oauth_grants WHERE user_id = $1";

    const DELETE_ENDED: &str = "DELETE FROM oauth_grants WHERE expires_at <= $1";
}

#[derive(sqlx::FromRow)]
struct Row {
    workspace_id: Text<WorkspaceId>,
    id: Text<GrantId>,
    user_id: Text<UserId>,
    email: String,
    client_id: String,
    client_name: String,
    redirect_host: String,
    permissions: String,
    created_at: Timestamp,
    last_used_at: Timestamp,
    expires_at: Timestamp,
}

#[derive(sqlx::FromRow)]
struct RefreshedRow {
    workspace_id: Text<WorkspaceId>,
    id: Text<GrantId>,
    user_id: Text<UserId>,
    permissions: String,
    resource: String,
}

impl TryFrom<Row> for Grant {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.id.0,
            workspace: row.workspace_id.0,
            user: row.user_id.0,
            user_email: row.email,
            permissions: read_permissions(&row.permissions)?,
            client_id: row.client_id,
            client_name: row.client_name,
            redirect_host: row.redirect_host,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            expires_at: row.expires_at,
        })
    }
}

pub(crate) async fn insert(tx: &mut Tx, grant: &NewGrant<'_>) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(grant.code.workspace),
        Text(grant.id),
        Text(grant.code.user),
        &grant.code.client_id,
        &grant.code.client_name,
        &grant.code.redirect_host,
        write_permissions(grant.code.permissions),
        &grant.code.resource,
        grant.created_at,
        grant.expires_at
    )
    .map(drop)
}

/// Records the use of a grant by its refresh token, and locks it until the transaction ends; `None` if the token is not
/// one of that client, or the grant has expired.
pub(crate) async fn touch(
    tx: &mut Tx,
    refresh_token: &Digest,
    client_id: &str,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<Option<RefreshedGrant>, Error> {
    let row: Option<RefreshedRow> =
        fetch!(optional, tx, TOUCH, refresh_token.as_slice(), client_id, now, expires_at)?;
    row.map(|row| {
        Ok(RefreshedGrant {
            workspace: row.workspace_id.0,
            id: row.id.0,
            user: row.user_id.0,
            permissions: read_permissions(&row.permissions)?,
            resource: row.resource,
        })
    })
    .transpose()
}

/// The live grants of a workspace, newest first.
pub(crate) async fn list(tx: &mut Tx, workspace: WorkspaceId, now: Timestamp) -> Result<Vec<Grant>, Error> {
    let rows: Vec<Row> = fetch!(all, tx, LIST, Text(workspace), now)?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// The user of a grant, inside a transaction or outside.
pub(crate) async fn find_user<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    id: GrantId,
) -> Result<Option<UserId>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let row: Option<(Text<UserId>,)> = fetch!(optional, on, FIND_USER, Text(workspace), Text(id))?;
    Ok(row.map(|(Text(user),)| user))
}

pub(crate) async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: GrantId) -> Result<(), Error> {
    execute!(tx, DELETE, Text(workspace), Text(id)).map(drop)
}

/// Deletes the grant of a refresh token, if it is that client's.
pub(crate) async fn delete_by_refresh_token(
    tx: &mut Tx,
    refresh_token: &Digest,
    client_id: &str,
) -> Result<(), Error> {
    execute!(tx, DELETE_BY_REFRESH_TOKEN, refresh_token.as_slice(), client_id).map(drop)
}

/// Deletes the grants of a user in a workspace.
pub(crate) async fn delete_of_user(tx: &mut Tx, workspace: WorkspaceId, user: UserId) -> Result<(), Error> {
    execute!(tx, DELETE_OF_USER, Text(workspace), Text(user)).map(drop)
}

/// Deletes the grants of a user in all workspaces.
pub(crate) async fn delete_all_of_user(tx: &mut Tx, user: UserId) -> Result<(), Error> {
    execute!(tx, DELETE_ALL_OF_USER, Text(user)).map(drop)
}

pub(crate) async fn delete_ended(db: &Db, now: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), DELETE_ENDED, now).map(drop)
}
