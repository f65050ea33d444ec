//! Table `tokens`.

use std::cmp::Reverse;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{Permission, PermissionSet, Role, Scope};
use cairn_chassis::sql::{self, Db, Dialect, Engine, Error, Text, Tx, json_rows};
use cairn_chassis::{execute, fetch, rows_as_json, statements};
use cairn_proto::ids::{FolderId, TokenId, UserId, WorkspaceId};
use sqlx::{Executor, Postgres, Sqlite};

use super::{days, word};
use crate::model::tokens::{Presented, Token, Uses};
use crate::secrets::Digest;

macro_rules! list {
    ($engine:ident) => {
        concat!(
            "SELECT m.role, (SELECT ",
            rows_as_json!(
                $engine,
                "t.id, t.owner_id, t.name, t.permissions, t.folders, t.last_four, CASE WHEN t.active THEN 1 ELSE 0 END, \
                 t.created_at, t.expires_at, t.last_used_at, t.last_client, t.last_channel"
            ),
            " FROM tokens t WHERE t.workspace_id = m.workspace_id) FROM members m JOIN workspaces w ON w.id = m.workspace_id \
             WHERE m.workspace_id = $1 AND m.user_id = $2 AND w.deleted_at IS NULL"
        )
    };
}

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    /// Everything that an exchange needs, in one statement: it runs on every request that the gateway has not cached.
    const FIND_BY_DIGEST: &str = "SELECT t.workspace_id, t.id, t.name, t.permissions, t.folders, t.active, t.expires_at, w.plan, \
         w.publishers, w.question_log_days, t.owner_id, m.role FROM tokens t \
         JOIN workspaces w ON w.id = t.workspace_id \
         JOIN members m ON m.workspace_id = t.workspace_id AND m.user_id = t.owner_id \
         WHERE t.digest = $1 AND w.deleted_at IS NULL";

    /// With the role of the caller, in one statement: pages of the console that offer a view as a token need them.
    const LIST: Dialect = Dialect { sqlite: list!(sqlite), postgres: list!(postgres) };

    const FIND: &str = "SELECT workspace_id, id, owner_id, name, permissions, folders, last_four, active, created_at, \
         expires_at, last_used_at, last_client, last_channel FROM tokens WHERE workspace_id = $1 AND id = $2";

    const INSERT: &str = "INSERT INTO tokens (workspace_id, id, owner_id, name, permissions, folders, digest, last_four, \
         active, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

    const SET_ACTIVE: &str = "UPDATE tokens SET active = $3 WHERE workspace_id = $1 AND id = $2";

    const SET_NAME: &str = "UPDATE tokens SET name = $3 WHERE workspace_id = $1 AND id = $2";

    const DELETE: &str = "DELETE FROM tokens WHERE workspace_id = $1 AND id = $2";

    const DELETE_OF_OWNER: &str = "DELETE FROM tokens WHERE workspace_id = $1 AND owner_id = $2";

    const DELETE_ALL_OF_OWNER: &str = "DELETE FROM tokens WHERE owner_id = $1";

    const COUNT_LIVE: &str = "SELECT COUNT(*) FROM tokens \
         WHERE workspace_id = $1 AND owner_id = $2 AND (expires_at IS NULL OR expires_at > $3)";

    const RECORD_USE: &str = "UPDATE tokens SET last_used_at = $3, last_client = $4, last_channel = $5 \
         WHERE workspace_id = $1 AND id = $2 AND (last_used_at IS NULL OR last_used_at < $3)";
}

#[derive(sqlx::FromRow)]
struct PresentedRow {
    workspace_id: Text<WorkspaceId>,
    id: Text<TokenId>,
    name: String,
    permissions: String,
    folders: Option<String>,
    active: bool,
    expires_at: Option<Timestamp>,
    plan: String,
    publishers: String,
    question_log_days: Option<i64>,
    owner_id: Text<UserId>,
    role: String,
}

#[derive(sqlx::FromRow)]
struct Row {
    workspace_id: Text<WorkspaceId>,
    id: Text<TokenId>,
    owner_id: Text<UserId>,
    name: String,
    permissions: String,
    folders: Option<String>,
    last_four: String,
    active: bool,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    last_used_at: Option<Timestamp>,
    last_client: String,
    last_channel: String,
}

/// A token of a list, as an element of a JSON array: the columns of [`Row`] after the workspace.
#[derive(serde::Deserialize)]
struct ListedRow(
    TokenId,
    UserId,
    String,
    String,
    Option<String>,
    String,
    i64,
    Timestamp,
    Option<Timestamp>,
    Option<Timestamp>,
    String,
    String,
);

impl ListedRow {
    fn of(self, workspace: WorkspaceId) -> Row {
        let Self(
            id,
            owner,
            name,
            permissions,
            folders,
            last_four,
            active,
            created_at,
            expires_at,
            last_used_at,
            last_client,
            last_channel,
        ) = self;
        Row {
            workspace_id: Text(workspace),
            id: Text(id),
            owner_id: Text(owner),
            name,
            permissions,
            folders,
            last_four,
            active: active != 0,
            created_at,
            expires_at,
            last_used_at,
            last_client,
            last_channel,
        }
    }
}

impl TryFrom<PresentedRow> for Presented {
    type Error = Error;

    fn try_from(row: PresentedRow) -> Result<Self, Error> {
        Ok(Self {
            id: row.id.0,
            workspace: row.workspace_id.0,
            name: row.name,
            granted: read_permissions(&row.permissions)?,
            scope: read_scope(row.folders.as_deref())?,
            active: row.active,
            expires_at: row.expires_at,
            plan: row.plan,
            publishers: word("workspaces.publishers", &row.publishers)?,
            question_log_days: days(row.question_log_days)?,
            owner: row.owner_id.0,
            owner_role: word("members.role", &row.role)?,
        })
    }
}

impl TryFrom<Row> for Token {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.id.0,
            workspace: row.workspace_id.0,
            owner: row.owner_id.0,
            name: row.name,
            permissions: read_permissions(&row.permissions)?,
            scope: read_scope(row.folders.as_deref())?,
            last_four: row.last_four,
            active: row.active,
            created_at: row.created_at,
            expires_at: row.expires_at,
            last_used_at: row.last_used_at,
            last_client: row.last_client,
            last_channel: row.last_channel.parse().ok(),
        })
    }
}

/// A token with the plan of its workspace and the role of its owner; `None` if either is gone.
pub(crate) async fn find_by_digest(db: &Db, digest: &Digest) -> Result<Option<Presented>, Error> {
    let row: Option<PresentedRow> = fetch!(optional, db, FIND_BY_DIGEST, digest.as_slice())?;
    row.map(TryInto::try_into).transpose()
}

/// The role of a member of a live workspace, and its tokens, newest first; `None` for a non-member.
pub(crate) async fn list(
    db: &Db,
    workspace: WorkspaceId,
    member: UserId,
) -> Result<Option<(Role, Vec<Token>)>, Error> {
    let row: Option<(String, String)> = fetch!(optional, db, LIST, Text(workspace), Text(member))?;
    let Some((role, tokens)) = row else { return Ok(None) };
    let tokens = json_rows::<ListedRow>(&tokens)?.into_iter().map(|row| Token::try_from(row.of(workspace)));
    let mut tokens: Vec<Token> = tokens.collect::<Result<_, _>>()?;
    tokens.sort_by_key(|token| Reverse((token.created_at, token.id)));
    Ok(Some((word("members.role", &role)?, tokens)))
}

/// A token, inside a transaction or outside.
pub(crate) async fn find<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    id: TokenId,
) -> Result<Option<Token>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let row: Option<Row> = fetch!(optional, on, FIND, Text(workspace), Text(id))?;
    row.map(TryInto::try_into).transpose()
}

pub(crate) async fn insert(tx: &mut Tx, token: &Token, digest: &Digest) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(token.workspace),
        Text(token.id),
        Text(token.owner),
        &token.name,
        write_permissions(token.permissions),
        write_scope(&token.scope),
        digest.as_slice(),
        &token.last_four,
        token.active,
        token.created_at,
        token.expires_at
    )
    .map(drop)
}

pub(crate) async fn set_active(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: TokenId,
    active: bool,
) -> Result<(), Error> {
    execute!(tx, SET_ACTIVE, Text(workspace), Text(id), active).map(drop)
}

pub(crate) async fn set_name(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: TokenId,
    name: &str,
) -> Result<(), Error> {
    execute!(tx, SET_NAME, Text(workspace), Text(id), name).map(drop)
}

pub(crate) async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: TokenId) -> Result<(), Error> {
    execute!(tx, DELETE, Text(workspace), Text(id)).map(drop)
}

/// Deletes every token of a user in a workspace.
pub(crate) async fn delete_of_owner(tx: &mut Tx, workspace: WorkspaceId, owner: UserId) -> Result<(), Error> {
    execute!(tx, DELETE_OF_OWNER, Text(workspace), Text(owner)).map(drop)
}

/// Deletes every token of a user in all workspaces.
pub(crate) async fn delete_all_of_owner(tx: &mut Tx, owner: UserId) -> Result<(), Error> {
    execute!(tx, DELETE_ALL_OF_OWNER, Text(owner)).map(drop)
}

/// The number of live tokens of a user in a workspace, inside a transaction or outside.
pub(crate) async fn count_live<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    owner: UserId,
    now: Timestamp,
) -> Result<i64, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    fetch!(scalar, on, COUNT_LIVE, Text(workspace), Text(owner), now)
}

/// Records uses in one transaction. An earlier use never replaces a later one, and deleted tokens are skipped.
pub(crate) async fn record_uses(db: &Db, uses: &Uses) -> Result<(), Error> {
    let mut tx = db.begin_write().await?;
    for ((workspace, id), used) in uses {
        let channel = used.channel.as_str();
        execute!(tx, RECORD_USE, Text(workspace), Text(id), used.at, &used.client, channel)?;
    }
    tx.commit().await
}

pub(super) fn write_permissions(permissions: PermissionSet) -> String {
    permissions.iter().map(Permission::as_str).collect::<Vec<_>>().join(",")
}

pub(super) fn read_permissions(text: &str) -> Result<PermissionSet, Error> {
    let words = text.split(',').filter(|word| !word.is_empty());
    words.map(|name| word::<Permission>("tokens.permissions", name)).collect()
}

fn write_scope(scope: &Scope) -> Option<String> {
    match scope {
        Scope::All => None,
        Scope::Folders(folders) => Some(sql::json_list(folders.iter())),
    }
}

/// A malformed scope is an error, never the whole workspace.
fn read_scope(folders: Option<&str>) -> Result<Scope, Error> {
    let Some(text) = folders else {
        return Ok(Scope::All);
    };
    let folders: Vec<FolderId> = serde_json::from_str(text)
        .map_err(|error| Error::corrupt(format!("tokens.folders is not a list of ids: {error}")))?;
    Ok(Scope::Folders(folders.into()))
}
