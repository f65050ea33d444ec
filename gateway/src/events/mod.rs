//! What happens in a workspace, told to the people who look at it (contract, "What agents did"): changes, the index, runs,
//! tokens in use, calls of agents. Ids and kinds, no texts of anybody.
//!
//! One task watches a workspace for everybody who looks at it through this gateway ([`watcher`]); each stream checks by
//! itself, before anything is sent, that its session and membership still hold ([`follower`]). ADR 73 says why so.

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

use self::calls::Recent;
pub(crate) use self::calls::{AgentCall, Asked, Results};
use self::follower::Follower;
use self::position::Position;
use self::watcher::Watched;
use crate::auth::{Authenticator, Member};
use crate::error::Error;
use crate::upstreams::Upstreams;

/// Streams of one person at once, over all workspaces: a browser has a few tabs in view.
const MOST_OF_PERSON: usize = 32;
/// Streams of this process at once.
const MOST: usize = 1_024;
/// When it may be tried again.
const RETRY: Duration = Duration::from_secs(5);
/// Whoever is further behind is cut off, and goes on from the last event that arrived.
const EVENTS_KEPT: usize = 1_024;
const LAST_EVENT_ID: &str = "last-event-id";

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Event {
    /// What was missed has been told; from here on it is told as it happens.
    Ready {},
    /// An item of the workspace was written or went.
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
    /// More items than are told one by one.
    Changes {
        #[serde(serialize_with = "write_feed")]
        feed: Source,
        position: u64,
    },
    /// How the index stands: `current`, `behind` or `unavailable`.
    Index { state: &'static str, behind: u64 },
    /// A run of a sync, an import or a source has moved.
    Run { kind: &'static str, id: String, status: String },
    /// A token or an app that the person may see was used.
    Token { kind: &'static str, id: String },
    /// An agent or a program has called.
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
    /// What the stream calls it.
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

/// Who looks at which workspaces through this process.
pub(crate) struct Events {
    upstreams: Arc<Upstreams>,
    clock: Arc<dyn Clock>,
    looking: Mutex<Looking>,
    recent: Recent,
    closed: watch::Sender<bool>,
}

cairn_chassis::debug_fields!(Events);

#[derive(Default)]
struct Looking {
    watched: HashMap<WorkspaceId, Arc<Watched>>,
    of_persons: HashMap<String, usize>,
    total: usize,
}

/// A stream's place among those that there may be; dropped with the stream.
struct Seat {
    events: Arc<Events>,
    person: String,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut looking = self.events.looking();
        looking.total = looking.total.saturating_sub(1);
        if let Some(count) = looking.of_persons.get_mut(&self.person) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                looking.of_persons.remove(&self.person);
            }
        }
        metrics::gauge!("cairn_event_streams").set(u32::try_from(looking.total).unwrap_or(u32::MAX));
    }
}

impl Events {
    pub(crate) fn new(upstreams: Arc<Upstreams>, clock: Arc<dyn Clock>) -> Self {
        let closed = watch::Sender::new(false);
        Self { upstreams, clock, looking: Mutex::default(), recent: Recent::default(), closed }
    }

    /// Ends every stream, so that a server that drains need not wait for them. There are no new ones from then on.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Notes a call of an agent or a program, and tells whoever looks.
    pub(crate) fn note(&self, caller: &Identity, call: Asked) {
        let (Some(workspace), Some(call)) = (caller.workspace, AgentCall::of(caller, call, self.clock.now()))
        else {
            return;
        };
        let call = Arc::new(call);
        self.recent.keep(workspace, Arc::clone(&call));
        let watched = self.looking().watched.get(&workspace).cloned();
        if let Some(watched) = watched {
            watched.tell(Event::Call(call));
        }
    }

    /// The calls of late that this process has answered, newest first.
    pub(crate) fn recent(&self, workspace: WorkspaceId) -> Vec<Arc<AgentCall>> {
        self.recent.of(workspace)
    }

    fn looking(&self) -> MutexGuard<'_, Looking> {
        self.looking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, and hears of the workspace from now on.
    fn join(
        self: &Arc<Self>,
        workspace: WorkspaceId,
        person: &str,
    ) -> Result<(Seat, Arc<Watched>, broadcast::Receiver<Event>), Problem> {
        if *self.closed.borrow() {
            return Err(Problem::unavailable("this server is going down; another answers", RETRY));
        }
        let mut looking = self.looking();
        if looking.total >= MOST {
            let message = "too many people follow events at once; pages ask again by themselves meanwhile";
            return Err(Problem::unavailable(message, RETRY));
        }
        let own = looking.of_persons.entry(person.to_owned()).or_default();
        if *own >= MOST_OF_PERSON {
            let message = format!("you follow events {MOST_OF_PERSON} times already; close a page first");
            return Err(Problem { retry_after: Some(RETRY), ..Problem::new(Reason::RateLimited, message) });
        }
        *own += 1;
        looking.total += 1;
        metrics::gauge!("cairn_event_streams").set(u32::try_from(looking.total).unwrap_or(u32::MAX));
        let seat = Seat { events: Arc::clone(self), person: person.to_owned() };
        let known = looking.watched.get(&workspace).cloned();
        let watched = known.unwrap_or_else(|| {
            let watched = Arc::new(Watched::new(workspace));
            looking.watched.insert(workspace, Arc::clone(&watched));
            tokio::spawn(watcher::watch(Arc::clone(self), Arc::clone(&watched)));
            watched
        });
        let hears = watched.listen();
        drop(looking);
        Ok((seat, watched, hears))
    }

    /// Forgets a workspace that nobody looks at any more; `false` when somebody does.
    fn leave(&self, watched: &Watched) -> bool {
        let mut looking = self.looking();
        let is_left = !watched.is_heard();
        if is_left {
            looking.watched.remove(&watched.workspace);
        }
        is_left
    }
}

/// The stream of a member's workspace, as server-sent events. It goes on from the event that `Last-Event-ID` names.
pub(crate) async fn stream(
    events: &Arc<Events>,
    authenticator: &Arc<Authenticator>,
    member: &Member,
    parts: &Parts,
) -> Result<Response, Error> {
    let workspace = member.identity.claims.workspace_id()?;
    let (seat, watched, hears) = events.join(workspace, &member.identity.claims.principal.id)?;
    let secret = authenticator.session_secret(&parts.headers).unwrap_or_default().to_owned();
    let seen =
        parts.headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok()?.parse::<Position>().ok());
    let follower = Follower {
        authenticator: Arc::clone(authenticator),
        upstreams: Arc::clone(&events.upstreams),
        secret,
        watched,
        hears,
        closed: events.closed.subscribe(),
        _seat: seat,
    };
    let mut response = follower.begin(seen, &member.identity.signed).await?;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that keep answers back until they are whole would keep this one for ever.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

#[cfg(test)]
mod tests;
