//! Webhooks and their sealed secrets. A claimed one has a lease: its holder, until a time. Only the holder may write its progress.

use std::collections::HashMap;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{execute, fetch, list_statement, not_suspended, statements};
use cairn_proto::domain::ChangeKind;
use cairn_proto::ids::{FolderId, UserId, WebhookId, WorkspaceId};

use super::numbers::{to_column, to_count, to_small};
use crate::model::{LastAttempt, Positions, SealedCredentials, Webhook};

macro_rules! select {
    ($($rest:expr),+) => {
        concat!(
            "SELECT workspace_id, id, name, url, kinds, folders, enabled, disabled_reason, acts_for, acts_for_name, \
             previous_until, content_position, ingest_position, look_at, refused_since, given_up, last_tried_at, \
             last_delivered_at, last_status, last_error, created_at, updated_at FROM webhooks ",
            $($rest),+
        )
    };
}

statements! {
    pub(super) fn statements;

    const GET: &str = select!("WHERE workspace_id = $1 AND id = $2");

    const LIST: &str = select!("WHERE workspace_id = $1 ORDER BY name, id");

    const COUNT: &str = "SELECT COUNT(*) FROM webhooks WHERE workspace_id = $1";

    const INSERT: &str = "INSERT INTO webhooks (workspace_id, id, name, url, kinds, folders, enabled, acts_for, \
         acts_for_name, secrets, sealing, content_position, ingest_position, look_at, given_up, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, $15, $15)";

    /// What people change, and what follows from it.
    const CHANGE: &str = "UPDATE webhooks SET name = $3, url = $4, kinds = $5, enabled = $6, disabled_reason = $7, \
         acts_for = $8, acts_for_name = $9, look_at = $10, refused_since = $11, given_up = $12, last_error = $13, \
         updated_at = $14 WHERE workspace_id = $1 AND id = $2";

    const SECRETS: &str = "SELECT secrets, sealing FROM webhooks WHERE workspace_id = $1 AND id = $2";

    const SET_SECRETS: &str = "UPDATE webhooks SET secrets = $3, sealing = $4, previous_until = $5, updated_at = $6 \
         WHERE workspace_id = $1 AND id = $2";

    const REMOVE: &str = "DELETE FROM webhooks WHERE workspace_id = $1 AND id = $2";

    /// Of all workspaces that are not suspended: webhooks that can be claimed at $1, the longest due first.
    const CLAIMABLE: &str = select!(
        "WHERE enabled AND look_at <= $1 AND (lease_until IS NULL OR lease_until <= $1) AND ",
        not_suspended!("webhooks.workspace_id"),
        " ORDER BY look_at LIMIT $2"
    );

    /// $6 is now; without a notification, the next poll is at $5.
    const CLAIM: &str = "UPDATE webhooks SET holder = $3, lease_until = $4, look_at = $5 \
         WHERE workspace_id = $1 AND id = $2 AND enabled AND look_at <= $6 AND (lease_until IS NULL OR lease_until <= $6)";

    const RENEW: &str = "UPDATE webhooks SET lease_until = $4 \
         WHERE workspace_id = $1 AND id = $2 AND holder = $3 AND enabled";

    /// An earlier round may have been requested meanwhile.
    const RELEASE: &str = "UPDATE webhooks SET holder = NULL, lease_until = NULL, \
         look_at = CASE WHEN look_at < $4 THEN look_at ELSE $4 END \
         WHERE workspace_id = $1 AND id = $2 AND holder = $3";

    /// After a restart of the storage's only process, no lease has a holder.
    const EXPIRE_ALL_LEASES: &str =
        "UPDATE webhooks SET holder = NULL, lease_until = NULL, look_at = $1 WHERE holder IS NOT NULL";

    const MOVE_ON: &str = "UPDATE webhooks SET content_position = $4, ingest_position = $5 \
         WHERE workspace_id = $1 AND id = $2 AND holder = $3 AND enabled";

    const REFUSED: &str = "UPDATE webhooks SET refused_since = COALESCE(refused_since, $3) \
         WHERE workspace_id = $1 AND id = $2";

    const ALLOWED: &str = "UPDATE webhooks SET refused_since = NULL WHERE workspace_id = $1 AND id = $2";

    const DISABLE: &str = "UPDATE webhooks SET enabled = FALSE, disabled_reason = $3, updated_at = $4 \
         WHERE workspace_id = $1 AND id = $2 AND enabled";

    const TRIED: &str = "UPDATE webhooks SET last_tried_at = $3, last_delivered_at = $4, last_status = $5, last_error = $6, \
         given_up = $7 WHERE workspace_id = $1 AND id = $2";

    /// Webhooks of the workspaces $2 that are not due at $1, and have no pending delivery.
    const IDLE: Dialect = list_statement!(
        "SELECT workspace_id, id, content_position, ingest_position FROM webhooks w WHERE enabled AND look_at > $1 \
         AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.workspace_id = w.workspace_id AND d.webhook_id = w.id \
         AND d.state = 1) AND workspace_id IN ",
        "$2",
        ""
    );

    const LOOK: &str = "UPDATE webhooks SET look_at = $3 WHERE workspace_id = $1 AND id = $2 AND look_at > $3";

    pub(crate) const LIST_SEALED: &str = "SELECT id, secrets, sealing FROM webhooks ORDER BY id";

    pub(crate) const RESEAL: &str = "UPDATE webhooks SET secrets = $2, sealing = $3 WHERE id = $1 AND secrets = $4";
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    workspace_id: Text<WorkspaceId>,
    id: Text<WebhookId>,
    name: String,
    url: String,
    kinds: String,
    folders: String,
    enabled: bool,
    disabled_reason: Option<String>,
    acts_for: Text<UserId>,
    acts_for_name: String,
    previous_until: Option<Timestamp>,
    content_position: i64,
    ingest_position: i64,
    look_at: Timestamp,
    refused_since: Option<Timestamp>,
    given_up: i64,
    last_tried_at: Option<Timestamp>,
    last_delivered_at: Option<Timestamp>,
    last_status: Option<i64>,
    last_error: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl TryFrom<Row> for Webhook {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let corrupt = |what: &str| Error::corrupt(format!("a webhook with {what}"));
        let kinds: Vec<ChangeKind> =
            serde_json::from_str(&row.kinds).map_err(|_| corrupt("kinds that are unknown"))?;
        let folders: Vec<FolderId> =
            serde_json::from_str(&row.folders).map_err(|_| corrupt("folders that are no ids"))?;
        Ok(Self {
            workspace: row.workspace_id.0,
            id: row.id.0,
            name: row.name,
            url: row.url,
            kinds,
            folders,
            enabled: row.enabled,
            disabled_reason: row.disabled_reason,
            acts_for: row.acts_for.0,
            acts_for_name: row.acts_for_name,
            previous_until: row.previous_until,
            positions: Positions {
                content: to_count(row.content_position),
                ingest: to_count(row.ingest_position),
            },
            look_at: row.look_at,
            refused_since: row.refused_since,
            given_up: to_small(row.given_up),
            last: LastAttempt {
                tried_at: row.last_tried_at,
                delivered_at: row.last_delivered_at,
                status: row.last_status.and_then(|status| u16::try_from(status).ok()),
                error: row.last_error,
            },
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

fn read(rows: Vec<Row>) -> Result<Vec<Webhook>, Error> {
    rows.into_iter().map(Webhook::try_from).collect()
}

fn list_of_names(kinds: &[ChangeKind]) -> String {
    json_list(kinds)
}

/// One webhook.
pub(crate) async fn get(db: &Db, workspace: WorkspaceId, id: WebhookId) -> Result<Option<Webhook>, Error> {
    let row: Option<Row> = fetch!(optional, db, GET, Text(workspace), Text(id))?;
    row.map(Webhook::try_from).transpose()
}

/// The same in a transaction.
pub(crate) async fn find(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: WebhookId,
) -> Result<Option<Webhook>, Error> {
    let row: Option<Row> = fetch!(optional, tx, GET, Text(workspace), Text(id))?;
    row.map(Webhook::try_from).transpose()
}

/// Those of a workspace in the order of their names, then of their ids.
pub(crate) async fn list(db: &Db, workspace: WorkspaceId) -> Result<Vec<Webhook>, Error> {
    read(fetch!(all, db, LIST, Text(workspace))?)
}

/// How many a workspace has.
pub(crate) async fn count(tx: &mut Tx, workspace: WorkspaceId) -> Result<u64, Error> {
    let count: i64 = fetch!(scalar, tx, COUNT, Text(workspace))?;
    Ok(to_count(count))
}

/// Writes a new webhook.
pub(crate) async fn insert(tx: &mut Tx, webhook: &Webhook, secrets: &SealedCredentials) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(webhook.workspace),
        Text(webhook.id),
        &webhook.name,
        &webhook.url,
        list_of_names(&webhook.kinds),
        json_list(&webhook.folders),
        webhook.enabled,
        Text(webhook.acts_for),
        &webhook.acts_for_name,
        secrets.envelope.as_slice(),
        &secrets.sealing,
        to_column(webhook.positions.content),
        to_column(webhook.positions.ingest),
        webhook.look_at,
        webhook.created_at
    )
    .map(drop)
}

/// Updates the fields that users change.
pub(crate) async fn change(tx: &mut Tx, webhook: &Webhook) -> Result<(), Error> {
    execute!(
        tx,
        CHANGE,
        Text(webhook.workspace),
        Text(webhook.id),
        &webhook.name,
        &webhook.url,
        list_of_names(&webhook.kinds),
        webhook.enabled,
        webhook.disabled_reason.as_deref(),
        Text(webhook.acts_for),
        &webhook.acts_for_name,
        webhook.look_at,
        webhook.refused_since,
        i64::from(webhook.given_up),
        webhook.last.error.as_deref(),
        webhook.updated_at
    )
    .map(drop)
}

/// The sealed secrets of a webhook.
pub(crate) async fn secrets(
    db: &Db,
    workspace: WorkspaceId,
    id: WebhookId,
) -> Result<Option<SealedCredentials>, Error> {
    let row: Option<(Vec<u8>, String)> = fetch!(optional, db, SECRETS, Text(workspace), Text(id))?;
    Ok(row.map(|(envelope, sealing)| SealedCredentials { envelope, sealing }))
}

/// The same in a transaction.
pub(crate) async fn held_secrets(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: WebhookId,
) -> Result<Option<SealedCredentials>, Error> {
    let row: Option<(Vec<u8>, String)> = fetch!(optional, tx, SECRETS, Text(workspace), Text(id))?;
    Ok(row.map(|(envelope, sealing)| SealedCredentials { envelope, sealing }))
}

/// Replaces the secrets.
pub(crate) async fn set_secrets(
    tx: &mut Tx,
    (workspace, id): (WorkspaceId, WebhookId),
    secrets: &SealedCredentials,
    previous_until: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), Error> {
    execute!(
        tx,
        SET_SECRETS,
        Text(workspace),
        Text(id),
        secrets.envelope.as_slice(),
        &secrets.sealing,
        previous_until,
        now
    )
    .map(drop)
}

/// Removes a webhook; its deliveries go after it, in the same transaction.
pub(crate) async fn remove(tx: &mut Tx, workspace: WorkspaceId, id: WebhookId) -> Result<bool, Error> {
    Ok(execute!(tx, REMOVE, Text(workspace), Text(id))? == 1)
}

/// Webhooks of all workspaces that can be claimed now.
pub(crate) async fn claimable(db: &Db, now: Timestamp, most: i64) -> Result<Vec<Webhook>, Error> {
    read(fetch!(all, db, CLAIMABLE, now, most)?)
}

/// Claims a webhook until `until`; `false` if another process was faster. Its next round is due at `again` at the latest.
pub(crate) async fn claim(
    db: &Db,
    webhook: &Webhook,
    holder: &str,
    until: Timestamp,
    again: Timestamp,
    now: Timestamp,
) -> Result<bool, Error> {
    let (workspace, id) = (Text(webhook.workspace), Text(webhook.id));
    Ok(execute!(db.writer(), CLAIM, workspace, id, holder, until, again, now)? == 1)
}

/// Extends the lease; `false` if it was lost or the webhook is disabled.
pub(crate) async fn renew(db: &Db, webhook: &Webhook, holder: &str, until: Timestamp) -> Result<bool, Error> {
    Ok(execute!(db.writer(), RENEW, Text(webhook.workspace), Text(webhook.id), holder, until)? == 1)
}

/// Releases the lease; the next round is due at that time at the latest.
pub(crate) async fn release(
    db: &Db,
    webhook: &Webhook,
    holder: &str,
    look_at: Timestamp,
) -> Result<(), Error> {
    execute!(db.writer(), RELEASE, Text(webhook.workspace), Text(webhook.id), holder, look_at).map(drop)
}

/// Expires the leases of all webhooks.
pub(crate) async fn expire_all_leases(db: &Db, now: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), EXPIRE_ALL_LEASES, now).map(drop)
}

/// Stores the feed positions, in the transaction of their delivery; `false` if the lease was lost.
pub(crate) async fn move_on(
    tx: &mut Tx,
    webhook: &Webhook,
    holder: &str,
    positions: Positions,
) -> Result<bool, Error> {
    let moved = execute!(
        tx,
        MOVE_ON,
        Text(webhook.workspace),
        Text(webhook.id),
        holder,
        to_column(positions.content),
        to_column(positions.ingest)
    )?;
    Ok(moved == 1)
}

/// Records since when its owner is refused, unless that is recorded already.
pub(crate) async fn refused(db: &Db, webhook: &Webhook, since: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), REFUSED, Text(webhook.workspace), Text(webhook.id), since).map(drop)
}

/// Clears the refusal.
pub(crate) async fn allowed(db: &Db, webhook: &Webhook) -> Result<(), Error> {
    execute!(db.writer(), ALLOWED, Text(webhook.workspace), Text(webhook.id)).map(drop)
}

/// Disables a webhook for a reason.
pub(crate) async fn disable(
    tx: &mut Tx,
    webhook: &Webhook,
    reason: &str,
    now: Timestamp,
) -> Result<(), Error> {
    execute!(tx, DISABLE, Text(webhook.workspace), Text(webhook.id), reason, now).map(drop)
}

/// Stores the result of a try.
pub(crate) async fn tried(
    tx: &mut Tx,
    webhook: &Webhook,
    last: &LastAttempt,
    given_up: u32,
) -> Result<(), Error> {
    execute!(
        tx,
        TRIED,
        Text(webhook.workspace),
        Text(webhook.id),
        last.tried_at,
        last.delivered_at,
        last.status.map(i64::from),
        last.error.as_deref(),
        i64::from(given_up)
    )
    .map(drop)
}

/// The webhooks of some workspaces that are not due now, with their positions.
pub(crate) async fn idle(
    db: &Db,
    workspaces: &HashMap<WorkspaceId, u64>,
    now: Timestamp,
) -> Result<Vec<(WorkspaceId, WebhookId, Positions)>, Error> {
    let rows: Vec<(Text<WorkspaceId>, Text<WebhookId>, i64, i64)> =
        fetch!(all, db, IDLE, now, json_list(workspaces.keys()))?;
    let read = |(workspace, id, content, ingest): (Text<WorkspaceId>, Text<WebhookId>, i64, i64)| {
        (workspace.0, id.0, Positions { content: to_count(content), ingest: to_count(ingest) })
    };
    Ok(rows.into_iter().map(read).collect())
}

/// Makes a webhook due.
pub(crate) async fn look(db: &Db, workspace: WorkspaceId, id: WebhookId, at: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), LOOK, Text(workspace), Text(id), at).map(drop)
}
