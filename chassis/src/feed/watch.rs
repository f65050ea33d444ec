//! Being woken: every head once, then each that moves.

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

/// How often heads that other processes moved are looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// A watcher hears of heads that move one after the other so often at most: each time wakes several tasks, for what the next
/// write makes stale. One that moves after a rest is told at once.
const LEAST_PAUSE: Duration = Duration::from_millis(10);
/// A head is stamped when its transaction appends and shows when it commits; processes' clocks differ too. Looking
/// back this far finds what showed late. Longer than a call may last.
const LOOK_BACK: Duration = Duration::from_secs(60);
/// The most heads that one read tells, of those that moved too: however many workspaces there are, a look is no dearer.
const HEADS_PER_READ: i64 = 1_000;

statements! {
    pub(super) fn statements;

    const LIST_HEADS: &str = "SELECT workspace_id, position FROM feed_heads \
         WHERE workspace_id > $1 ORDER BY workspace_id LIMIT $2";

    /// The newest first, from the place behind $2 and $3.
    const LIST_MOVED: &str = "SELECT workspace_id, position, updated_at FROM feed_heads \
         WHERE updated_at >= $1 AND updated_at <= $2 AND (updated_at, workspace_id) < ($2, $3) \
         ORDER BY updated_at DESC, workspace_id DESC LIMIT $4";
}

/// One watcher's place.
struct Watch {
    feed: Feed,
    notices: Receiver<Head>,
    waiting: VecDeque<WatchEvent>,
    /// The last workspace of the first round; `None` when that round is over.
    first_round: Option<String>,
    /// What was told of the workspaces that moved lately, and when they did, so that looking back repeats nothing.
    told: HashMap<WorkspaceId, (u64, Timestamp)>,
    /// Where looking back goes on, when more moved than one read tells.
    further_back: Option<Place>,
    next_poll: Instant,
    /// When notices are heard again.
    next_notice: Instant,
}

/// A place among the heads, by when they moved.
struct Place {
    at: Timestamp,
    workspace: String,
}

impl Place {
    /// Behind which all of them are.
    const fn newest() -> Self {
        Self { at: Timestamp::from_micros(i64::MAX), workspace: String::new() }
    }
}

impl Feed {
    /// Every head once, then that this was all, then each head that moved: within 10 ms when this process moved it, within
    /// 200 ms when another did. Anything may be told twice, and a head that moves fast is told at its newest only. Ends
    /// when the feed is closed.
    pub fn watch(&self) -> impl Stream<Item = Result<WatchEvent, Error>> + Send + 'static {
        let watch = Watch {
            // Before the first round, so that nothing falls between.
            notices: self.notices.subscribe(),
            feed: self.clone(),
            waiting: VecDeque::new(),
            first_round: Some(String::new()),
            told: HashMap::new(),
            further_back: None,
            next_poll: Instant::now(),
            next_notice: Instant::now(),
        };
        stream::unfold(Some(watch), |watch| async {
            let mut watch = watch?;
            match watch.next().await {
                Ok(Some(event)) => Some((Ok(event), Some(watch))),
                Ok(None) => None,
                // The consumer comes again and gets a first round.
                Err(error) => Some((Err(error), None)),
            }
        })
    }
}

impl Watch {
    async fn next(&mut self) -> Result<Option<WatchEvent>, Error> {
        loop {
            if self.feed.closed.is_cancelled() {
                return Ok(None);
            }
            if let Some(event) = self.waiting.pop_front() {
                return Ok(Some(event));
            }
            if let Some(after) = self.first_round.take() {
                self.read_round(&after).await?;
                continue;
            }
            let is_shared = self.feed.db.is_shared();
            tokio::select! {
                () = self.feed.closed.cancelled() => return Ok(None),
                notice = hear(&mut self.notices, self.next_notice) => match notice {
                    Ok(head) => self.tell_with_others(head),
                    // Too slow to hear them all: another first round says what they said.
                    Err(RecvError::Lagged(_)) => self.first_round = Some(String::new()),
                    Err(RecvError::Closed) => return Ok(None),
                },
                () = sleep_until(self.next_poll), if is_shared => self.poll().await?,
            }
        }
    }

    async fn read_round(&mut self, after: &str) -> Result<(), Error> {
        let rows: Vec<(Text<WorkspaceId>, i64)> =
            fetch!(all, self.feed.db, LIST_HEADS, after, HEADS_PER_READ)?;
        self.first_round = rows.last().map(|(workspace, _)| workspace.0.to_string());
        self.waiting.extend(rows.into_iter().map(|row| WatchEvent::Head(read_head(row))));
        if self.first_round.is_none() {
            self.waiting.push_back(WatchEvent::EveryHead);
        }
        Ok(())
    }

    async fn poll(&mut self) -> Result<(), Error> {
        self.next_poll = Instant::now() + POLL_INTERVAL;
        let back = i64::try_from(LOOK_BACK.as_micros()).unwrap_or(i64::MAX);
        let since = Timestamp::from_micros(self.feed.clock.now().as_micros().saturating_sub(back));
        let page_end = self.read_moved(since, &Place::newest()).await?;
        // The newest are told at each look. What is older has its turn page by page, one at each look.
        self.further_back = match (page_end, self.further_back.take()) {
            (None, _) => None,
            (Some(_), Some(place)) | (Some(place), None) => self.read_moved(since, &place).await?,
        };
        if self.further_back.is_none() {
            // Only what looking back can meet again is worth remembering.
            self.told.retain(|_, (_, at)| *at >= since);
        }
        Ok(())
    }

    /// Tells of the heads that moved before that place; answers where to go on, if there may be more.
    async fn read_moved(&mut self, since: Timestamp, before: &Place) -> Result<Option<Place>, Error> {
        let rows: Vec<(Text<WorkspaceId>, i64, Timestamp)> =
            fetch!(all, self.feed.db, LIST_MOVED, since, before.at, &before.workspace, HEADS_PER_READ)?;
        let is_full = i64::try_from(rows.len()).is_ok_and(|count| count >= HEADS_PER_READ);
        let last = rows.last().filter(|_| is_full);
        let end = last.map(|(workspace, _, at)| Place { at: *at, workspace: workspace.0.to_string() });
        for (workspace, position, at) in rows {
            self.tell(read_head((workspace, position)), at);
        }
        Ok(end)
    }

    /// Tells of a head and of those that moved since, of each workspace the newest.
    fn tell_with_others(&mut self, first: Head) {
        self.next_notice = Instant::now() + LEAST_PAUSE;
        let mut moved = vec![first];
        loop {
            match self.notices.try_recv() {
                Ok(head) => match moved.iter_mut().find(|known| known.workspace == head.workspace) {
                    Some(known) => known.position = known.position.max(head.position),
                    None => moved.push(head),
                },
                Err(TryRecvError::Lagged(_)) => {
                    self.first_round = Some(String::new());
                    break;
                }
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        let now = self.feed.clock.now();
        moved.into_iter().for_each(|head| self.tell(head, now));
    }

    fn tell(&mut self, head: Head, at: Timestamp) {
        let told = self.told.get(&head.workspace).map_or(0, |(position, _)| *position);
        if head.position > told {
            // Without other processes nothing looks back.
            if self.feed.db.is_shared() {
                self.told.insert(head.workspace, (head.position, at));
            }
            self.waiting.push_back(WatchEvent::Head(head));
        }
    }
}

/// Hears of the next head that has moved, from that moment on.
async fn hear(notices: &mut Receiver<Head>, from: Instant) -> Result<Head, RecvError> {
    sleep_until(from).await;
    notices.recv().await
}

fn read_head((workspace, position): (Text<WorkspaceId>, i64)) -> Head {
    Head { workspace: workspace.0, position: from_column(position) }
}
