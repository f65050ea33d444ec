//! Live events of a workspace for the people who have it open (contract, "What agents did"): changes, the index,
//! runs, tokens in use, calls of agents. Events carry ids and kinds, never texts.
//!
//! One task per workspace polls on behalf of all its streams on this gateway ([`watcher`]); each stream checks by
//! itself, before anything is sent, that its session and membership still hold ([`follower`]). The reasons are in
//! ADR 73.

mod calls;
mod feeds;
mod follower;
mod position;
mod watcher;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::response::Response;
use cairn_chassis::clock::Clock;
use cairn_chassis::feed::Source;
use cairn_chassis::identity::Identity;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::feed::v1::{Kind, Op};
use cairn_proto::ids::WorkspaceId;
use http::request::Parts;
use http::{HeaderValue, header};
use serde::{Serialize, Serializer};
use tokio::sync::{broadcast, watch};

use self::calls::RecentCalls;
pub(crate) use self::calls::{AgentCall, CompletedCall, Results};
use self::follower::Follower;
use self::position::Position;
use self::watcher::WatchedWorkspace;
use crate::auth::{Authenticator, Member};
use crate::error::Error;
use crate::upstreams::Upstreams;

/// Concurrent streams per person, over all workspaces: a browser has a few tabs in view.
const MAX_OF_PERSON: usize = 32;
/// Concurrent streams of this process.
const MAX_STREAMS: usize = 1_024;
/// `Retry-After` of a refusal.
const RETRY: Duration = Duration::from_secs(5);
/// Buffer of the broadcast channel. A stream that lags further behind is closed, and resumes after the last event it
/// received.
const CHANNEL_CAPACITY: usize = 1_024;
const LAST_EVENT_ID: &str = "last-event-id";

/// An event of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Event {
    /// Catch-up is complete; from here on events are live.
    Ready {},
    /// An item of the workspace was written or deleted.
    Change {
        #[serde(serialize_with = "write_feed")]
        feed: Source,
        position: u64,
        #[serde(serialize_with = "write_kind")]
        kind: Kind,
        id: String,
        #[serde(serialize_with = "write_op")]
        op: Op,
    },
    /// Too many changed items to report one by one.
    Changes {
        #[serde(serialize_with = "write_feed")]
        feed: Source,
        position: u64,
    },
    /// State of the index: `current`, `behind` or `unavailable`.
    Index { state: &'static str, behind: u64 },
    /// A run of a sync, an import or a source has progressed.
    Run { kind: &'static str, id: String, status: String },
    /// A token or an app that the person may see was used.
    Token { kind: &'static str, id: String },
    /// An agent or a program has made a call.
    Call(#[serde(serialize_with = "write_call")] Arc<AgentCall>),
}

fn write_feed<S: Serializer>(feed: &Source, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(feed.as_str())
}

fn write_call<S: Serializer>(call: &Arc<AgentCall>, to: S) -> Result<S::Ok, S::Error> {
    call.as_ref().serialize(to)
}

/// As `file`, `source_document`.
fn write_kind<S: Serializer>(kind: &Kind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&kind.as_str_name().trim_start_matches("KIND_").to_ascii_lowercase())
}

/// As `upsert`, `delete`.
fn write_op<S: Serializer>(op: &Op, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&op.as_str_name().trim_start_matches("OP_").to_ascii_lowercase())
}

impl Event {
    /// The event name on the wire.
    const fn name(&self) -> &'static str {
        match self {
            Self::Ready {} => "ready",
            Self::Change { .. } => "change",
            Self::Changes { .. } => "changes",
            Self::Index { .. } => "index",
            Self::Run { .. } => "run",
            Self::Token { .. } => "token",
            Self::Call(_) => "call",
        }
    }
}

/// The event streams of this process.
pub(crate) struct Events {
    upstreams: Arc<Upstreams>,
    clock: Arc<dyn Clock>,
    streams: Mutex<Streams>,
    recent: RecentCalls,
    closed: watch::Sender<bool>,
}

cairn_chassis::debug_fields!(Events);

#[derive(Default)]
struct Streams {
    watched: HashMap<WorkspaceId, Arc<WatchedWorkspace>>,
    of_persons: HashMap<String, usize>,
    total: usize,
}

/// The slot of a stream within the limits; released on drop.
struct StreamPermit {
    events: Arc<Events>,
    person: String,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut streams = self.events.streams();
        streams.total = streams.total.saturating_sub(1);
        if let Some(count) = streams.of_persons.get_mut(&self.person) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                streams.of_persons.remove(&self.person);
            }
        }
        metrics::gauge!("cairn_event_streams").set(u32::try_from(streams.total).unwrap_or(u32::MAX));
    }
}

impl Events {
    pub(crate) fn new(upstreams: Arc<Upstreams>, clock: Arc<dyn Clock>) -> Self {
        let closed = watch::Sender::new(false);
        Self { upstreams, clock, streams: Mutex::default(), recent: RecentCalls::default(), closed }
    }

    /// Ends every stream, so that draining does not wait for them, and refuses new ones.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Records a call of an agent or a program, and publishes it.
    pub(crate) fn note(&self, caller: &Identity, call: CompletedCall) {
        let (Some(workspace), Some(call)) = (caller.workspace, AgentCall::of(caller, call, self.clock.now()))
        else {
            return;
        };
        let call = Arc::new(call);
        self.recent.push(workspace, Arc::clone(&call));
        let watched = self.streams().watched.get(&workspace).cloned();
        if let Some(watched) = watched {
            watched.publish(Event::Call(call));
        }
    }

    /// Recent calls that this process has answered, newest first.
    pub(crate) fn recent(&self, workspace: WorkspaceId) -> Vec<Arc<AgentCall>> {
        self.recent.of(workspace)
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires a slot and subscribes to the workspace, starting its watcher if needed.
    fn join(
        self: &Arc<Self>,
        workspace: WorkspaceId,
        person: &str,
    ) -> Result<(StreamPermit, Arc<WatchedWorkspace>, broadcast::Receiver<Event>), Problem> {
        if *self.closed.borrow() {
            return Err(Problem::unavailable("this server is going down; another answers", RETRY));
        }
        let mut streams = self.streams();
        if streams.total >= MAX_STREAMS {
            let message = "too many people follow events at once; pages ask again by themselves meanwhile";
            return Err(Problem::unavailable(message, RETRY));
        }
        let own = streams.of_persons.entry(person.to_owned()).or_default();
        if *own >= MAX_OF_PERSON {
            let message = format!("you follow events {MAX_OF_PERSON} times already; close a page first");
            return Err(Problem { retry_after: Some(RETRY), ..Problem::new(Reason::RateLimited, message) });
        }
        *own += 1;
        streams.total += 1;
        metrics::gauge!("cairn_event_streams").set(u32::try_from(streams.total).unwrap_or(u32::MAX));
        let permit = StreamPermit { events: Arc::clone(self), person: person.to_owned() };
        let known = streams.watched.get(&workspace).cloned();
        let watched = known.unwrap_or_else(|| {
            let watched = Arc::new(WatchedWorkspace::new(workspace));
            streams.watched.insert(workspace, Arc::clone(&watched));
            tokio::spawn(watcher::watch(Arc::clone(self), Arc::clone(&watched)));
            watched
        });
        let receiver = watched.subscribe();
        drop(streams);
        Ok((permit, watched, receiver))
    }

    /// Removes a workspace without subscribers; `false` if it still has some.
    fn leave(&self, watched: &WatchedWorkspace) -> bool {
        let mut streams = self.streams();
        let is_left = !watched.has_subscribers();
        if is_left {
            streams.watched.remove(&watched.workspace);
        }
        is_left
    }
}

/// The event stream of a member's workspace, as server-sent events. Resumes after `Last-Event-ID`.
pub(crate) async fn stream(
    events: &Arc<Events>,
    authenticator: &Arc<Authenticator>,
    member: &Member,
    parts: &Parts,
) -> Result<Response, Error> {
    let workspace = member.identity.claims.workspace_id()?;
    let (permit, watched, receiver) = events.join(workspace, &member.identity.claims.principal.id)?;
    let secret = authenticator.session_secret(&parts.headers).unwrap_or_default().to_owned();
    let seen =
        parts.headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok()?.parse::<Position>().ok());
    let follower = Follower {
        authenticator: Arc::clone(authenticator),
        upstreams: Arc::clone(&events.upstreams),
        secret,
        watched,
        receiver,
        closed: events.closed.subscribe(),
        _permit: permit,
    };
    let mut response = follower.begin(seen, &member.identity.signed).await?;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Buffering proxies would hold the response back for ever.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

#[cfg(test)]
mod tests;
