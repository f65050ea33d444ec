//! The watch stream: a snapshot of every head, then each head that moves.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use cairn_proto::ids::WorkspaceId;
use futures::Stream;
use futures::stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{Instant, sleep_until};

use super::{Feed, Head, WatchEvent, from_column};
use crate::clock::Timestamp;
use crate::sql::{Error, Text};
use crate::{fetch, statements};

/// How often the database is polled for heads that other processes moved.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Throttles notices of a busy process: each event wakes several tasks, and the next write makes it stale. A notice after a
/// pause is delivered at once.
const MIN_NOTICE_INTERVAL: Duration = Duration::from_millis(10);
/// A head gets its time when its transaction appends, but becomes visible at the commit, and the clocks of processes differ.
/// Each poll looks this far back to find heads that became visible late. Longer than the deadline of any call.
const LOOKBACK: Duration = Duration::from_secs(60);
/// The page size, which bounds the cost of a poll regardless of the number of workspaces.
const HEADS_PER_READ: i64 = 1_000;

statements! {
    pub(super) fn statements;

    const LIST_HEADS: &str = "SELECT workspace_id, position FROM feed_heads \
         WHERE workspace_id > $1 ORDER BY workspace_id LIMIT $2";

    /// The newest first, after the cursor $2, $3.
    const LIST_MOVED: &str = "SELECT workspace_id, position, updated_at FROM feed_heads \
         WHERE updated_at >= $1 AND updated_at <= $2 AND (updated_at, workspace_id) < ($2, $3) \
         ORDER BY updated_at DESC, workspace_id DESC LIMIT $4";
}

/// The state of one watch stream.
struct Watcher {
    feed: Feed,
    notices: Receiver<Head>,
    pending: VecDeque<WatchEvent>,
    /// The last workspace that the snapshot has read; `None` when the snapshot is complete.
    snapshot_cursor: Option<String>,
    /// The last sent position of each workspace that moved within [`LOOKBACK`], and when it moved, so that polls send nothing
    /// twice.
    sent: HashMap<WorkspaceId, (u64, Timestamp)>,
    /// Where the next poll continues to look back, when more heads moved than one page holds.
    lookback_cursor: Option<Cursor>,
    next_poll: Instant,
    /// When notices are received again.
    next_notice: Instant,
}

/// A position in the list of heads by the time of their last move.
struct Cursor {
    at: Timestamp,
    workspace: String,
}

impl Cursor {
    /// Before the newest head.
    const fn start() -> Self {
        Self { at: Timestamp::from_micros(i64::MAX), workspace: String::new() }
    }
}

impl Feed {
    /// Every head once, then [`WatchEvent::EveryHead`], then each head that moves: within 10 ms when this process moved it,
    /// within 200 ms when another did. Delivery is at least once, and moves in quick succession are coalesced into the newest
    /// head. The stream ends when the feed is closed.
    pub fn watch(&self) -> impl Stream<Item = Result<WatchEvent, Error>> + Send + 'static {
        let watcher = Watcher {
            // Subscribed before the snapshot, so that no move is missed in between.
            notices: self.notices.subscribe(),
            feed: self.clone(),
            pending: VecDeque::new(),
            snapshot_cursor: Some(String::new()),
            sent: HashMap::new(),
            lookback_cursor: None,
            next_poll: Instant::now(),
            next_notice: Instant::now(),
        };
        stream::unfold(Some(watcher), |watcher| async {
            let mut watcher = watcher?;
            match watcher.next().await {
                Ok(Some(event)) => Some((Ok(event), Some(watcher))),
                Ok(None) => None,
                // The stream ends: a consumer that watches again gets a new snapshot.
                Err(error) => Some((Err(error), None)),
            }
        })
    }
}

impl Watcher {
    async fn next(&mut self) -> Result<Option<WatchEvent>, Error> {
        loop {
            if self.feed.closed.is_cancelled() {
                return Ok(None);
            }
            if let Some(event) = self.pending.pop_front() {
                return Ok(Some(event));
            }
            if let Some(after) = self.snapshot_cursor.take() {
                self.read_snapshot_page(&after).await?;
                continue;
            }
            let is_shared = self.feed.db.is_shared();
            tokio::select! {
                () = self.feed.closed.cancelled() => return Ok(None),
                notice = receive_after(&mut self.notices, self.next_notice) => match notice {
                    Ok(head) => self.push_coalesced(head),
                    // Notices were lost: a new snapshot covers them.
                    Err(RecvError::Lagged(_)) => self.snapshot_cursor = Some(String::new()),
                    Err(RecvError::Closed) => return Ok(None),
                },
                () = sleep_until(self.next_poll), if is_shared => self.poll().await?,
            }
        }
    }

    async fn read_snapshot_page(&mut self, after: &str) -> Result<(), Error> {
        let rows: Vec<(Text<WorkspaceId>, i64)> =
            fetch!(all, self.feed.db, LIST_HEADS, after, HEADS_PER_READ)?;
        self.snapshot_cursor = rows.last().map(|(workspace, _)| workspace.0.to_string());
        self.pending.extend(rows.into_iter().map(|row| WatchEvent::Head(decode_head(row))));
        if self.snapshot_cursor.is_none() {
            self.pending.push_back(WatchEvent::EveryHead);
        }
        Ok(())
    }

    async fn poll(&mut self) -> Result<(), Error> {
        self.next_poll = Instant::now() + POLL_INTERVAL;
        let lookback = i64::try_from(LOOKBACK.as_micros()).unwrap_or(i64::MAX);
        let since = Timestamp::from_micros(self.feed.clock.now().as_micros().saturating_sub(lookback));
        let page_end = self.read_moved(since, &Cursor::start()).await?;
        // Each poll reads the page of the newest heads, and one further page of the older ones.
        self.lookback_cursor = match (page_end, self.lookback_cursor.take()) {
            (None, _) => None,
            (Some(_), Some(cursor)) | (Some(cursor), None) => self.read_moved(since, &cursor).await?,
        };
        if self.lookback_cursor.is_none() {
            // Polls cannot find older heads again.
            self.sent.retain(|_, (_, at)| *at >= since);
        }
        Ok(())
    }

    /// Queues the heads that moved before the cursor; returns the next cursor when there may be more.
    async fn read_moved(&mut self, since: Timestamp, before: &Cursor) -> Result<Option<Cursor>, Error> {
        let rows: Vec<(Text<WorkspaceId>, i64, Timestamp)> =
            fetch!(all, self.feed.db, LIST_MOVED, since, before.at, &before.workspace, HEADS_PER_READ)?;
        let is_full = i64::try_from(rows.len()).is_ok_and(|count| count >= HEADS_PER_READ);
        let last = rows.last().filter(|_| is_full);
        let end = last.map(|(workspace, _, at)| Cursor { at: *at, workspace: workspace.0.to_string() });
        for (workspace, position, at) in rows {
            self.push(decode_head((workspace, position)), at);
        }
        Ok(end)
    }

    /// Queues a head and those of all further notices that have arrived, coalesced into the newest head of each workspace.
    fn push_coalesced(&mut self, first: Head) {
        self.next_notice = Instant::now() + MIN_NOTICE_INTERVAL;
        let mut moved = vec![first];
        loop {
            match self.notices.try_recv() {
                Ok(head) => match moved.iter_mut().find(|known| known.workspace == head.workspace) {
                    Some(known) => known.position = known.position.max(head.position),
                    None => moved.push(head),
                },
                Err(TryRecvError::Lagged(_)) => {
                    self.snapshot_cursor = Some(String::new());
                    break;
                }
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        let now = self.feed.clock.now();
        moved.into_iter().for_each(|head| self.push(head, now));
    }

    fn push(&mut self, head: Head, at: Timestamp) {
        let sent = self.sent.get(&head.workspace).map_or(0, |(position, _)| *position);
        if head.position > sent {
            // Without other processes nothing polls, so nothing can be sent twice.
            if self.feed.db.is_shared() {
                self.sent.insert(head.workspace, (head.position, at));
            }
            self.pending.push_back(WatchEvent::Head(head));
        }
    }
}

/// Receives the next notice, but not before that moment.
async fn receive_after(notices: &mut Receiver<Head>, not_before: Instant) -> Result<Head, RecvError> {
    sleep_until(not_before).await;
    notices.recv().await
}

fn decode_head((workspace, position): (Text<WorkspaceId>, i64)) -> Head {
    Head { workspace: workspace.0, position: from_column(position) }
}
