//! The event stream of one person. Nothing is sent unless the session and the membership were checked after it
//! happened.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event as Written, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use cairn_chassis::call::{Call, Channel};
use cairn_chassis::status::Problem;
use cairn_proto::auth::v1::{ListGrantsRequest, ListTokensRequest};
use futures::stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::position::Position;
use super::watcher::WatchedWorkspace;
use super::{Event, StreamPermit, feeds};
use crate::auth::Authenticator;
use crate::upstreams::Upstreams;

/// Bounds how long an idle stream outlives its session; the contract promises five seconds.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The least interval between two checks, however many events arrive.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(200);
const CHECK_BUDGET: Duration = Duration::from_secs(2);
/// Interval of keep-alive comments, so that no proxy closes an idle stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// A subscriber, before its stream has started.
pub(super) struct Follower {
    pub(super) authenticator: Arc<Authenticator>,
    pub(super) upstreams: Arc<Upstreams>,
    pub(super) secret: String,
    pub(super) watched: Arc<WatchedWorkspace>,
    pub(super) receiver: Receiver<Event>,
    pub(super) closed: watch::Receiver<bool>,
    /// Released when the stream ends.
    pub(super) _permit: StreamPermit,
}

/// By kind and id: when a token or an app was used last.
type Uses = HashMap<(&'static str, String), (i64, i32)>;

/// A running stream.
struct EventStream {
    follower: Follower,
    sent: Position,
    /// Events that were checked and may be sent.
    checked: VecDeque<Event>,
    checked_at: Instant,
    /// Last use of each token and app; `None` before the first poll.
    tokens: Option<Uses>,
}

impl Follower {
    /// Starts the stream, resuming after the last event received, or from now.
    pub(super) async fn begin(self, seen: Option<Position>, signed: &str) -> Result<Response, Problem> {
        let heads = feeds::heads(&self.upstreams, self.watched.workspace).await?;
        let from = seen.map_or(heads, |seen| seen.within(heads));
        let missed = feeds::since(&self.upstreams, self.watched.workspace, from).await;
        self.watched.begin(heads);
        self.watched.set_identity(signed);
        let event_stream = EventStream {
            follower: self,
            sent: from,
            checked: missed.into_iter().chain([Event::Ready {}]).collect(),
            checked_at: Instant::now(),
            tokens: None,
        };
        let written = stream::unfold(event_stream, |mut event_stream| async {
            let event = event_stream.next().await?;
            Some((Ok::<_, Infallible>(event), event_stream))
        });
        Ok(Sse::new(written).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL)).into_response())
    }
}

impl EventStream {
    /// `None` ends the stream: the browser reconnects, and is authenticated again.
    async fn next(&mut self) -> Option<Written> {
        loop {
            if *self.follower.closed.borrow() {
                return None;
            }
            while let Some(event) = self.checked.pop_front() {
                if let Some(written) = self.written(&event) {
                    return Some(written);
                }
            }
            let received = self.receive().await?;
            let polls_tokens = received.is_empty() || self.tokens.is_none();
            let signed = self.check().await?;
            self.checked.extend(received);
            if polls_tokens {
                let used = self.used(&signed).await;
                self.checked.extend(used);
            }
        }
    }

    /// The events since the last call; empty when only a check of the session is due.
    async fn receive(&mut self) -> Option<Vec<Event>> {
        let Follower { receiver, closed, .. } = &mut self.follower;
        let mut received = Vec::new();
        tokio::select! {
            _ = closed.changed() => return None,
            () = sleep_until(self.checked_at + CHECK_INTERVAL) => return Some(received),
            event = receiver.recv() => match event {
                Ok(event) => received.push(event),
                // Too slow: the client reconnects and resumes where this stream ended.
                Err(RecvError::Lagged(_) | RecvError::Closed) => return None,
            },
        }
        sleep_until(self.checked_at + MIN_CHECK_INTERVAL).await;
        while let Ok(event) = receiver.try_recv() {
            received.push(event);
        }
        Some(received)
    }

    /// Checks session and membership; the person's current identity. `None` ends the stream, also if the check
    /// itself fails.
    async fn check(&mut self) -> Option<String> {
        let call = Call::within(CHECK_BUDGET).with_channel(Channel::Console);
        let Follower { authenticator, watched, secret, .. } = &self.follower;
        let identity = authenticator.tokens().session_in(secret, watched.workspace, &call).await.ok()?;
        watched.set_identity(&identity.signed);
        self.checked_at = Instant::now();
        Some(identity.signed)
    }

    /// The tokens and apps, of those that the person may see, that were used since the last poll.
    async fn used(&mut self, signed: &str) -> Vec<Event> {
        let call = Call::within(CHECK_BUDGET).with_channel(Channel::Console).with_identity(signed);
        let workspace_id = self.follower.watched.workspace.to_string();
        let (mut tokens, mut grants) = (self.follower.upstreams.tokens(), self.follower.upstreams.grants());
        let (tokens, grants) = tokio::join!(
            tokens.list_tokens(call.request(ListTokensRequest { workspace_id: workspace_id.clone() })),
            grants.list_grants(call.request(ListGrantsRequest { workspace_id })),
        );
        let (Ok(tokens), Ok(grants)) = (tokens, grants) else { return Vec::new() };
        let time = |at: Option<prost_types::Timestamp>| at.map(|at| (at.seconds, at.nanos));
        let tokens = tokens.into_inner().tokens.into_iter();
        let tokens = tokens.filter_map(|token| Some((("token", token.id), time(token.last_used_at)?)));
        let grants = grants.into_inner().grants.into_iter();
        let grants = grants.filter_map(|grant| Some((("grant", grant.id), time(grant.last_used_at)?)));
        let now: Uses = tokens.chain(grants).collect();
        let known = self.tokens.replace(now.clone());
        let Some(known) = known else { return Vec::new() };
        let used = now.into_iter().filter(|(one, at)| known.get(one) != Some(at));
        used.map(|((kind, id), _)| Event::Token { kind, id }).collect()
    }

    /// The event as server-sent event; `None` for a change that was already sent.
    fn written(&mut self, event: &Event) -> Option<Written> {
        let written = Written::default().event(event.name());
        let written = match event {
            Event::Change { feed, position, .. } | Event::Changes { feed, position } => {
                if !self.sent.advance(*feed, *position) {
                    return None;
                }
                written.id(self.sent.to_string())
            }
            Event::Ready {} => written.id(self.sent.to_string()),
            Event::Index { .. } | Event::Run { .. } | Event::Token { .. } | Event::Call(_) => written,
        };
        let data = serde_json::to_string(event).unwrap_or_default();
        Some(written.data(data))
    }
}
