//! Connected sources and their sealed credentials.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::{Kind, Op, Reserved};
use cairn_chassis::sql::{Db, Engine, Error, PostgresOnly, Text, Tx};
use cairn_chassis::{execute, fetch, not_suspended, statements};
use cairn_proto::domain::SourceMode;
use cairn_proto::ids::{SourceId, WorkspaceId};
use cairn_providers::{Position, ProviderKind};

use super::numbers::{to_column, to_count, to_small};
use crate::model::{SealedCredentials, Source};

macro_rules! select {
    ($($rest:expr),+) => {
        concat!(
            "SELECT workspace_id, id, name, folder, provider, mode, settings, credential_hint, account, every_seconds, \
             daily_budget, paused, needs_credentials, error, position, not_before, failures, next_run_at, full_next, \
             listed_at, last_synced_at, documents, created_at, updated_at FROM sources s ",
            $($rest),+
        )
    };
}

statements! {
    pub(super) fn statements;

    const GET: &str = select!("WHERE workspace_id = $1 AND id = $2 AND disconnected_at IS NULL");

    const LIST: &str = select!("WHERE workspace_id = $1 AND disconnected_at IS NULL ORDER BY name, id");

    /// Of all workspaces, for operators.
    const LIST_ALL: &str = select!("WHERE disconnected_at IS NULL ORDER BY workspace_id, name, id");

    /// SQLite needs no row lock: it has one writer at a time.
    const HOLD: PostgresOnly =
        PostgresOnly("SELECT 1 FROM sources WHERE workspace_id = $1 AND id = $2 FOR NO KEY UPDATE");

    const CREDENTIALS: &str = "SELECT credentials, sealing FROM sources \
         WHERE workspace_id = $1 AND id = $2 AND credentials IS NOT NULL AND disconnected_at IS NULL";

    const INSERT: &str = "INSERT INTO sources (workspace_id, id, name, folder, provider, mode, settings, credentials, \
         sealing, credential_hint, every_seconds, daily_budget, paused, needs_credentials, failures, next_run_at, \
         full_next, documents, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, FALSE, 0, $14, TRUE, 0, $15, $15)";

    /// The fields that users change.
    const CHANGE: &str = "UPDATE sources SET name = $3, folder = $4, mode = $5, settings = $6, every_seconds = $7, \
         daily_budget = $8, paused = $9, needs_credentials = $10, error = $11, position = $12, failures = $13, \
         next_run_at = $14, full_next = $15, not_before = $16, account = $17, updated_at = $18 \
         WHERE workspace_id = $1 AND id = $2 AND disconnected_at IS NULL";

    const SET_CREDENTIALS: &str = "UPDATE sources SET credentials = $3, sealing = $4, credential_hint = $5 \
         WHERE workspace_id = $1 AND id = $2";

    /// Unless it was changed after $4.
    const SET_ACCOUNT: &str =
        "UPDATE sources SET account = $3 WHERE workspace_id = $1 AND id = $2 AND account IS NULL AND updated_at = $4";

    const HOLD_UNTIL: &str = "UPDATE sources SET not_before = $3 \
         WHERE workspace_id = $1 AND id = $2 AND (not_before IS NULL OR not_before < $3)";

    const REST: &str = "SELECT not_before FROM sources WHERE workspace_id = $1 AND id = $2 AND disconnected_at IS NULL";

    /// Optimistic lock: $4 is when it was changed last.
    const REFUSE: &str = "UPDATE sources SET needs_credentials = TRUE, error = $3, next_run_at = NULL \
         WHERE workspace_id = $1 AND id = $2 AND updated_at = $4 AND disconnected_at IS NULL";

    /// After a run.
    const FINISH: &str = "UPDATE sources SET needs_credentials = $3, error = $4, position = $5, failures = $6, \
         next_run_at = $7, full_next = $8, listed_at = $9, last_synced_at = $10 \
         WHERE workspace_id = $1 AND id = $2 AND disconnected_at IS NULL";

    const ADD_DOCUMENTS: &str =
        "UPDATE sources SET documents = documents + $3 WHERE workspace_id = $1 AND id = $2";

    const QUEUED: &str = "UPDATE sources SET next_run_at = $3, full_next = $4 WHERE workspace_id = $1 AND id = $2";

    const DISCONNECT: &str = "UPDATE sources SET disconnected_at = $3, credentials = NULL, sealing = 'none', \
         next_run_at = NULL WHERE workspace_id = $1 AND id = $2 AND disconnected_at IS NULL";

    const DISCONNECTED: &str = "SELECT workspace_id, id FROM sources WHERE disconnected_at IS NOT NULL \
         ORDER BY disconnected_at LIMIT $1";

    /// Live sources that had another mode before.
    const EMPTIED: &str = "SELECT workspace_id, id FROM sources s WHERE mode = 3 AND disconnected_at IS NULL AND EXISTS \
         (SELECT 1 FROM source_documents d WHERE d.workspace_id = s.workspace_id AND d.source_id = s.id) LIMIT $1";

    const REMOVE: &str =
        "DELETE FROM sources WHERE workspace_id = $1 AND id = $2 AND disconnected_at IS NOT NULL";

    /// $1 is now.
    const DUE: &str = select!(
        "WHERE next_run_at <= $1 AND NOT paused AND NOT needs_credentials AND disconnected_at IS NULL \
         AND NOT EXISTS (SELECT 1 FROM source_runs r WHERE r.workspace_id = s.workspace_id AND r.source_id = s.id \
         AND r.state < 4) AND ",
        not_suspended!("s.workspace_id"),
        " ORDER BY next_run_at LIMIT $2"
    );

    const FOLDER_TAKEN: &str = "SELECT COUNT(*) FROM sources WHERE workspace_id = $1 AND folder = $2 AND id <> $3 \
         AND disconnected_at IS NULL";

    const COUNT: &str = "SELECT COUNT(*) FROM sources WHERE workspace_id = $1 AND disconnected_at IS NULL";

    /// Visible documents of the source $2: $3 is the position before the first, $4 the kind, $5 the op.
    const PUBLISH: &str = "INSERT INTO feed_changes (workspace_id, position, kind, item_id, op, at) \
         SELECT workspace_id, $3 + ROW_NUMBER() OVER (ORDER BY id), $4, id, $5, $6 FROM source_documents \
         WHERE workspace_id = $1 AND source_id = $2 AND state IN (0, 1)";

    const COUNT_VISIBLE: &str =
        "SELECT COUNT(*) FROM source_documents WHERE workspace_id = $1 AND source_id = $2 AND state IN (0, 1)";

    pub(crate) const LIST_SEALED: &str =
        "SELECT id, credentials, sealing FROM sources WHERE credentials IS NOT NULL ORDER BY id";

    pub(crate) const RESEAL: &str = "UPDATE sources SET credentials = $2, sealing = $3 WHERE id = $1 AND credentials = $4";
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    workspace_id: Text<WorkspaceId>,
    id: Text<SourceId>,
    name: String,
    folder: String,
    provider: String,
    mode: i64,
    settings: String,
    credential_hint: Option<String>,
    account: Option<String>,
    every_seconds: i64,
    daily_budget: i64,
    paused: bool,
    needs_credentials: bool,
    error: Option<String>,
    position: Option<String>,
    not_before: Option<Timestamp>,
    failures: i64,
    next_run_at: Option<Timestamp>,
    full_next: bool,
    listed_at: Option<Timestamp>,
    last_synced_at: Option<Timestamp>,
    documents: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl TryFrom<Row> for Source {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let corrupt = |what: &str| Error::corrupt(format!("a source with {what}"));
        let provider: ProviderKind = row.provider.parse().map_err(|_| corrupt("an unknown provider"))?;
        let mode = SourceMode::from_number(row.mode).ok_or_else(|| corrupt("an unknown mode"))?;
        let settings =
            serde_json::from_str(&row.settings).map_err(|_| corrupt("settings that are no JSON"))?;
        // A position that this version cannot read counts as lost.
        let position = row.position.and_then(|text| Position::try_from(text).ok());
        Ok(Self {
            workspace: row.workspace_id.0,
            id: row.id.0,
            name: row.name,
            folder: row.folder,
            provider,
            mode,
            settings,
            credential_hint: row.credential_hint,
            account: row.account,
            every: Duration::from_secs(to_count(row.every_seconds)),
            daily_budget: to_small(row.daily_budget),
            paused: row.paused,
            needs_credentials: row.needs_credentials,
            error: row.error,
            position,
            not_before: row.not_before,
            failures: to_small(row.failures),
            next_run_at: row.next_run_at,
            full_next: row.full_next,
            listed_at: row.listed_at,
            last_synced_at: row.last_synced_at,
            documents: to_count(row.documents),
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

fn read(rows: Vec<Row>) -> Result<Vec<Source>, Error> {
    rows.into_iter().map(Source::try_from).collect()
}

/// A connected source.
pub(crate) async fn get(db: &Db, workspace: WorkspaceId, id: SourceId) -> Result<Option<Source>, Error> {
    let row: Option<Row> = fetch!(optional, db, GET, Text(workspace), Text(id))?;
    row.map(Source::try_from).transpose()
}

/// A connected source, locked until the transaction ends.
pub(crate) async fn get_for_update(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: SourceId,
) -> Result<Option<Source>, Error> {
    if let Engine::Postgres(connection) = tx.engine() {
        sqlx::query(HOLD.0).bind(Text(workspace)).bind(Text(id)).execute(connection).await?;
    }
    let row: Option<Row> = fetch!(optional, tx, GET, Text(workspace), Text(id))?;
    row.map(Source::try_from).transpose()
}

/// The sources of a workspace in the order of their names, then of their ids.
pub(crate) async fn list(db: &Db, workspace: WorkspaceId) -> Result<Vec<Source>, Error> {
    read(fetch!(all, db, LIST, Text(workspace))?)
}

/// The sources of every workspace.
pub(crate) async fn list_all(db: &Db) -> Result<Vec<Source>, Error> {
    read(fetch!(all, db, LIST_ALL)?)
}

/// How many sources a workspace has.
pub(crate) async fn count(tx: &mut Tx, workspace: WorkspaceId) -> Result<u64, Error> {
    let count: i64 = fetch!(scalar, tx, COUNT, Text(workspace))?;
    Ok(to_count(count))
}

/// The sealed credentials of a source.
pub(crate) async fn credentials(
    db: &Db,
    workspace: WorkspaceId,
    id: SourceId,
) -> Result<Option<SealedCredentials>, Error> {
    let row: Option<(Vec<u8>, String)> = fetch!(optional, db, CREDENTIALS, Text(workspace), Text(id))?;
    Ok(row.map(|(envelope, sealing)| SealedCredentials { envelope, sealing }))
}

/// The sealed credentials of a source, in a transaction.
pub(crate) async fn credentials_in(tx: &mut Tx, source: &Source) -> Result<Option<SealedCredentials>, Error> {
    let (workspace, id) = (Text(source.workspace), Text(source.id));
    let row: Option<(Vec<u8>, String)> = fetch!(optional, tx, CREDENTIALS, workspace, id)?;
    Ok(row.map(|(envelope, sealing)| SealedCredentials { envelope, sealing }))
}

/// Inserts a source.
pub(crate) async fn insert(
    tx: &mut Tx,
    source: &Source,
    credentials: Option<&SealedCredentials>,
) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(source.workspace),
        Text(source.id),
        &source.name,
        &source.folder,
        source.provider.as_str(),
        i64::from(source.mode.number()),
        source.settings.to_string(),
        credentials.map(|sealed| sealed.envelope.as_slice()),
        credentials.map_or(cairn_chassis::sealing::UNSEALED, |sealed| sealed.sealing.as_str()),
        source.credential_hint.as_deref(),
        to_column(source.every.as_secs()),
        i64::from(source.daily_budget),
        source.paused,
        source.next_run_at,
        source.created_at
    )
    .map(drop)
}

/// Updates the fields that users change.
pub(crate) async fn change(tx: &mut Tx, source: &Source) -> Result<(), Error> {
    execute!(
        tx,
        CHANGE,
        Text(source.workspace),
        Text(source.id),
        &source.name,
        &source.folder,
        i64::from(source.mode.number()),
        source.settings.to_string(),
        to_column(source.every.as_secs()),
        i64::from(source.daily_budget),
        source.paused,
        source.needs_credentials,
        source.error.as_deref(),
        source.position.as_ref().map(Position::as_str),
        i64::from(source.failures),
        source.next_run_at,
        source.full_next,
        source.not_before,
        source.account.as_deref(),
        source.updated_at
    )
    .map(drop)
}

/// Replaces or removes the credentials.
pub(crate) async fn set_credentials(
    tx: &mut Tx,
    source: &Source,
    credentials: Option<&SealedCredentials>,
) -> Result<(), Error> {
    execute!(
        tx,
        SET_CREDENTIALS,
        Text(source.workspace),
        Text(source.id),
        credentials.map(|sealed| sealed.envelope.as_slice()),
        credentials.map_or(cairn_chassis::sealing::UNSEALED, |sealed| sealed.sealing.as_str()),
        source.credential_hint.as_deref()
    )
    .map(drop)
}

/// Stores the account of the credentials; empty if the provider does not name one.
pub(crate) async fn set_account(db: &Db, source: &Source, account: &str) -> Result<(), Error> {
    let (workspace, id) = (Text(source.workspace), Text(source.id));
    execute!(db.writer(), SET_ACCOUNT, workspace, id, account, source.updated_at).map(drop)
}

/// Pauses all requests of a connection until then.
pub(crate) async fn set_rest_until(
    db: &Db,
    workspace: WorkspaceId,
    id: SourceId,
    until: Timestamp,
) -> Result<(), Error> {
    execute!(db.writer(), HOLD_UNTIL, Text(workspace), Text(id), until).map(drop)
}

/// Until when a connection is paused; the outer `None`: the source is not connected.
pub(crate) async fn rest(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: SourceId,
) -> Result<Option<Option<Timestamp>>, Error> {
    fetch!(optional_scalar, tx, REST, Text(workspace), Text(id))
}

/// Records that the provider refused the credentials of a source, unless the source was changed since it was read.
pub(crate) async fn refuse_credentials(db: &Db, source: &Source, message: &str) -> Result<(), Error> {
    let (workspace, id) = (Text(source.workspace), Text(source.id));
    execute!(db.writer(), REFUSE, workspace, id, message, source.updated_at).map(drop)
}

/// Stores the result of an ended run; `false` if the source is no longer connected.
pub(crate) async fn finish(tx: &mut Tx, source: &Source) -> Result<bool, Error> {
    let changed = execute!(
        tx,
        FINISH,
        Text(source.workspace),
        Text(source.id),
        source.needs_credentials,
        source.error.as_deref(),
        source.position.as_ref().map(Position::as_str),
        i64::from(source.failures),
        source.next_run_at,
        source.full_next,
        source.listed_at,
        source.last_synced_at
    )?;
    Ok(changed == 1)
}

/// Adds to the number of visible documents; negative to subtract.
pub(crate) async fn add_documents(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: SourceId,
    more: i64,
) -> Result<(), Error> {
    execute!(tx, ADD_DOCUMENTS, Text(workspace), Text(id), more).map(drop)
}

/// Stores when the next run is due, and whether it is a full one.
pub(crate) async fn set_next(tx: &mut Tx, source: &Source) -> Result<(), Error> {
    execute!(tx, QUEUED, Text(source.workspace), Text(source.id), source.next_run_at, source.full_next)
        .map(drop)
}

/// Marks a source as disconnected; `false` if it was already.
pub(crate) async fn disconnect(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: SourceId,
    now: Timestamp,
) -> Result<bool, Error> {
    Ok(execute!(tx, DISCONNECT, Text(workspace), Text(id), now)? == 1)
}

/// Disconnected sources that are not removed yet, at most `limit`.
pub(crate) async fn disconnected(db: &Db, limit: i64) -> Result<Vec<(WorkspaceId, SourceId)>, Error> {
    let rows: Vec<(Text<WorkspaceId>, Text<SourceId>)> = fetch!(all, db, DISCONNECTED, limit)?;
    Ok(rows.into_iter().map(|(workspace, id)| (workspace.0, id.0)).collect())
}

/// Live sources that still have stored documents, at most `limit`.
pub(crate) async fn emptied(db: &Db, limit: i64) -> Result<Vec<(WorkspaceId, SourceId)>, Error> {
    let rows: Vec<(Text<WorkspaceId>, Text<SourceId>)> = fetch!(all, db, EMPTIED, limit)?;
    Ok(rows.into_iter().map(|(workspace, id)| (workspace.0, id.0)).collect())
}

/// Removes a disconnected source.
pub(crate) async fn remove(tx: &mut Tx, workspace: WorkspaceId, id: SourceId) -> Result<(), Error> {
    execute!(tx, REMOVE, Text(workspace), Text(id)).map(drop)
}

/// Sources of all workspaces whose run is due, the longest due first.
pub(crate) async fn due(db: &Db, now: Timestamp, limit: i64) -> Result<Vec<Source>, Error> {
    read(fetch!(all, db, DUE, now, limit)?)
}

/// Whether another source of the workspace has that folder.
pub(crate) async fn is_folder_taken(
    tx: &mut Tx,
    workspace: WorkspaceId,
    folder: &str,
    id: SourceId,
) -> Result<bool, Error> {
    let count: i64 = fetch!(scalar, tx, FOLDER_TAKEN, Text(workspace), folder, Text(id))?;
    Ok(count > 0)
}

/// The number of visible documents of a source.
pub(crate) async fn visible(tx: &mut Tx, workspace: WorkspaceId, id: SourceId) -> Result<u64, Error> {
    let count: i64 = fetch!(scalar, tx, COUNT_VISIBLE, Text(workspace), Text(id))?;
    Ok(to_count(count))
}

/// Publishes a change of all documents of a source, at reserved feed positions.
pub(crate) async fn publish_documents(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: SourceId,
    op: Op,
    reserved: Reserved,
    at: Timestamp,
) -> Result<(), Error> {
    execute!(
        tx,
        PUBLISH,
        Text(workspace),
        Text(id),
        to_column(reserved.before),
        i64::from(i32::from(Kind::SourceDocument)),
        i64::from(i32::from(op)),
        at
    )
    .map(drop)
}
