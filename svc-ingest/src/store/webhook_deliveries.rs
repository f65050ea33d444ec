//! Deliveries to webhooks: stored before they are sent, and retained for a while.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::domain::WebhookDeliveryState as State;
use cairn_proto::ids::{WebhookDeliveryId, WebhookId, WorkspaceId};

use super::numbers::{to_count, to_small};
use crate::model::{Contents, Delivery};

macro_rules! select {
    ($($rest:expr),+) => {
        concat!(
            "SELECT id, state, change_count, tries, next_try_at, last_tried_at, last_status, last_error, created_at \
             FROM webhook_deliveries ",
            $($rest),+
        )
    };
}

statements! {
    pub(super) fn statements;

    const INSERT: &str = "INSERT INTO webhook_deliveries (workspace_id, webhook_id, id, state, changes, change_count, \
         next_place, tries, next_try_at, created_at) VALUES ($1, $2, $3, 1, $4, $5, $6, 0, $7, $7)";

    /// Those that are to be tried, what others wait for first.
    const OPEN: &str = select!("WHERE workspace_id = $1 AND webhook_id = $2 AND state IN (1, 4) ORDER BY state, id LIMIT $3");

    const CONTENTS: &str = "SELECT changes, next_place FROM webhook_deliveries \
         WHERE workspace_id = $1 AND webhook_id = $2 AND id = $3";

    /// Unless somebody asked for it anew, or removed it.
    const SAVE: &str = "UPDATE webhook_deliveries SET state = $4, tries = $5, next_try_at = $6, last_tried_at = $7, \
         last_status = $8, last_error = $9, changes = CASE WHEN CAST($4 AS BIGINT) = 2 THEN '[]' ELSE changes END \
         WHERE workspace_id = $1 AND webhook_id = $2 AND id = $3 AND state IN (1, 4)";

    /// $3 is the state, 0 for any; $4 the id before which the page begins. Ids sort by time.
    const PAGE: &str = select!(
        "WHERE workspace_id = $1 AND webhook_id = $2 AND (CAST($3 AS BIGINT) = 0 OR state = $3) AND id < $4 ORDER BY id DESC LIMIT $5"
    );

    const COUNT: &str = "SELECT COUNT(*) FROM webhook_deliveries \
         WHERE workspace_id = $1 AND webhook_id = $2 AND (CAST($3 AS BIGINT) = 0 OR state = $3)";

    /// Of each webhook of a workspace: its dead letters, and when what others wait for is tried.
    const BACKLOGS: &str = "SELECT webhook_id, SUM(CASE WHEN state = 3 THEN 1 ELSE 0 END), \
         MAX(CASE WHEN state = 1 AND tries > 0 THEN next_try_at END) FROM webhook_deliveries WHERE workspace_id = $1 \
         GROUP BY webhook_id";

    const REPLAY: &str = "UPDATE webhook_deliveries SET state = 4, tries = 0, next_try_at = $4 \
         WHERE workspace_id = $1 AND webhook_id = $2 AND id = $3 AND state = 3";

    const REPLAY_ALL: &str = "UPDATE webhook_deliveries SET state = 4, tries = 0, next_try_at = $3 \
         WHERE workspace_id = $1 AND webhook_id = $2 AND state = 3";

    const HASTEN: &str = "UPDATE webhook_deliveries SET next_try_at = $3 \
         WHERE workspace_id = $1 AND webhook_id = $2 AND state IN (1, 4) AND next_try_at > $3";

    const STATE_OF: &str = "SELECT state FROM webhook_deliveries WHERE workspace_id = $1 AND webhook_id = $2 AND id = $3";

    /// All of that state but the newest $4.
    const FORGET: &str = "DELETE FROM webhook_deliveries WHERE workspace_id = $1 AND webhook_id = $2 AND state = $3 AND id < \
         (SELECT MIN(id) FROM (SELECT id FROM webhook_deliveries WHERE workspace_id = $1 AND webhook_id = $2 AND state = $3 \
         ORDER BY id DESC LIMIT $4) AS kept)";

    const FORGET_OLD: &str = "DELETE FROM webhook_deliveries WHERE state = 3 AND created_at < $1";

    const REMOVE_OF: &str = "DELETE FROM webhook_deliveries WHERE workspace_id = $1 AND webhook_id = $2";
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    id: Text<WebhookDeliveryId>,
    state: i64,
    change_count: i64,
    tries: i64,
    next_try_at: Option<Timestamp>,
    last_tried_at: Option<Timestamp>,
    last_status: Option<i64>,
    last_error: Option<String>,
    created_at: Timestamp,
}

impl TryFrom<Row> for Delivery {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let unknown = || Error::corrupt("a delivery of an unknown state");
        Ok(Self {
            id: row.id.0,
            state: State::from_number(row.state).ok_or_else(unknown)?,
            changes: to_small(row.change_count),
            tries: to_small(row.tries),
            next_try_at: row.next_try_at,
            last_tried_at: row.last_tried_at,
            last_status: row.last_status.and_then(|status| u16::try_from(status).ok()),
            last_error: row.last_error,
            created_at: row.created_at,
        })
    }
}

fn read(rows: Vec<Row>) -> Result<Vec<Delivery>, Error> {
    rows.into_iter().map(Delivery::try_from).collect()
}

/// Of which webhook.
pub(crate) type Of = (WorkspaceId, WebhookId);

/// Inserts a delivery that is due at once.
pub(crate) async fn insert(
    tx: &mut Tx,
    (workspace, webhook): Of,
    id: WebhookDeliveryId,
    contents: &Contents,
    changes: u32,
    now: Timestamp,
) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(workspace),
        Text(webhook),
        Text(id),
        &contents.changes,
        i64::from(changes),
        &contents.next,
        now
    )
    .map(drop)
}

/// The open deliveries, the one that blocks others first.
pub(crate) async fn open(db: &Db, (workspace, webhook): Of, most: i64) -> Result<Vec<Delivery>, Error> {
    read(fetch!(all, db, OPEN, Text(workspace), Text(webhook), most)?)
}

/// What a delivery sends.
pub(crate) async fn contents(
    db: &Db,
    (workspace, webhook): Of,
    id: WebhookDeliveryId,
) -> Result<Option<Contents>, Error> {
    let row: Option<(String, String)> =
        fetch!(optional, db, CONTENTS, Text(workspace), Text(webhook), Text(id))?;
    Ok(row.map(|(changes, next)| Contents { changes, next }))
}

/// Stores the result of a delivery; drops its payload after a success.
pub(crate) async fn save(tx: &mut Tx, (workspace, webhook): Of, delivery: &Delivery) -> Result<(), Error> {
    execute!(
        tx,
        SAVE,
        Text(workspace),
        Text(webhook),
        Text(delivery.id),
        i64::from(delivery.state.number()),
        i64::from(delivery.tries),
        delivery.next_try_at,
        delivery.last_tried_at,
        delivery.last_status.map(i64::from),
        delivery.last_error.as_deref()
    )
    .map(drop)
}

/// Some deliveries, newest first, of that state or of any.
pub(crate) async fn page(
    db: &Db,
    (workspace, webhook): Of,
    state: Option<State>,
    before: &str,
    most: i64,
) -> Result<Vec<Delivery>, Error> {
    let state = i64::from(state.map_or(0, State::number));
    read(fetch!(all, db, PAGE, Text(workspace), Text(webhook), state, before, most)?)
}

/// Counts deliveries in a state, or in any.
pub(crate) async fn count(db: &Db, (workspace, webhook): Of, state: Option<State>) -> Result<u64, Error> {
    let state = i64::from(state.map_or(0, State::number));
    let count: i64 = fetch!(scalar, db, COUNT, Text(workspace), Text(webhook), state)?;
    Ok(to_count(count))
}

/// The dead letters of a webhook, and its next attempt.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Backlog {
    pub(crate) dead: u64,
    /// When the delivery at the head of the queue is retried.
    pub(crate) next_try_at: Option<Timestamp>,
}

/// The backlogs of the webhooks of a workspace; those without deliveries are absent.
pub(crate) async fn backlogs(db: &Db, workspace: WorkspaceId) -> Result<Vec<(WebhookId, Backlog)>, Error> {
    let rows: Vec<(Text<WebhookId>, i64, Option<Timestamp>)> = fetch!(all, db, BACKLOGS, Text(workspace))?;
    let read = |(id, dead, next_try_at): (Text<WebhookId>, i64, Option<Timestamp>)| {
        (id.0, Backlog { dead: to_count(dead), next_try_at })
    };
    Ok(rows.into_iter().map(read).collect())
}

/// Requeues a dead letter; `false` if it is none.
pub(crate) async fn replay(
    tx: &mut Tx,
    (workspace, webhook): Of,
    id: WebhookDeliveryId,
    now: Timestamp,
) -> Result<bool, Error> {
    Ok(execute!(tx, REPLAY, Text(workspace), Text(webhook), Text(id), now)? == 1)
}

/// Requeues all dead letters; returns how many.
pub(crate) async fn replay_all(tx: &mut Tx, (workspace, webhook): Of, now: Timestamp) -> Result<u64, Error> {
    execute!(tx, REPLAY_ALL, Text(workspace), Text(webhook), now)
}

/// Makes the open deliveries due at once.
pub(crate) async fn hasten(tx: &mut Tx, (workspace, webhook): Of, now: Timestamp) -> Result<(), Error> {
    execute!(tx, HASTEN, Text(workspace), Text(webhook), now).map(drop)
}

/// The state of a delivery, if there is one.
pub(crate) async fn state_of(
    tx: &mut Tx,
    (workspace, webhook): Of,
    id: WebhookDeliveryId,
) -> Result<Option<State>, Error> {
    let state: Option<i64> = fetch!(optional_scalar, tx, STATE_OF, Text(workspace), Text(webhook), Text(id))?;
    Ok(state.and_then(State::from_number))
}

/// Removes all deliveries of a state but the newest.
pub(crate) async fn forget(
    tx: &mut Tx,
    (workspace, webhook): Of,
    state: State,
    kept: i64,
) -> Result<(), Error> {
    execute!(tx, FORGET, Text(workspace), Text(webhook), i64::from(state.number()), kept).map(drop)
}

/// Removes dead letters from before that time.
pub(crate) async fn forget_old(db: &Db, before: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), FORGET_OLD, before).map(drop)
}

/// Removes all of a webhook.
pub(crate) async fn remove_of(tx: &mut Tx, (workspace, webhook): Of) -> Result<(), Error> {
    execute!(tx, REMOVE_OF, Text(workspace), Text(webhook)).map(drop)
}
