//! One stream of one person. Nothing is sent before the session and the membership were found to hold after it happened.

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
use super::watcher::Watched;
use super::{Event, Seat, feeds};
use crate::auth::Authenticator;
use crate::upstreams::Upstreams;

/// A session that ended is found out within that time, though nothing happens; five seconds are promised.
const CHECK_EVERY: Duration = Duration::from_secs(2);
/// Between two checks, however much happens.
const LEAST_PAUSE: Duration = Duration::from_millis(200);
const CHECK_BUDGET: Duration = Duration::from_secs(2);
/// A comment line, so that nothing on the way takes the stream for dead.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// Who follows, and what they hear.
pub(super) struct Follower {
    pub(super) authenticator: Arc<Authenticator>,
    pub(super) upstreams: Arc<Upstreams>,
    pub(super) secret: String,
    pub(super) watched: Arc<Watched>,
    pub(super) hears: Receiver<Event>,
    pub(super) closed: watch::Receiver<bool>,
    /// Given back when the stream ends.
    pub(super) _seat: Seat,
}

/// By kind and id: when a token or an app was used last.
type Uses = HashMap<(&'static str, String), (i64, i32)>;

/// A stream that goes on.
struct Following {
    follower: Follower,
    told: Position,
    /// What may be sent.
    checked: VecDeque<Event>,
    checked_at: Instant,
    /// When which was used last; `None` before the first look.
    tokens: Option<Uses>,
}

impl Follower {
    /// The stream, from an event that arrived before or from now.
    pub(super) async fn begin(self, seen: Option<Position>, signed: &str) -> Result<Response, Problem> {
        let heads = feeds::heads(&self.upstreams, self.watched.workspace).await?;
        let from = seen.map_or(heads, |seen| seen.within(heads));
        let missed = feeds::since(&self.upstreams, self.watched.workspace, from).await;
        self.watched.begin(heads);
        self.watched.lend(signed);
        let following = Following {
            follower: self,
            told: from,
            checked: missed.into_iter().chain([Event::Ready {}]).collect(),
            checked_at: Instant::now(),
            tokens: None,
        };
        let written = stream::unfold(following, |mut following| async {
            let event = following.next().await?;
            Some((Ok::<_, Infallible>(event), following))
        });
        Ok(Sse::new(written).keep_alive(KeepAlive::new().interval(ALIVE_EVERY)).into_response())
    }
}

impl Following {
    /// `None` when the stream ends: the browser comes again, and is let in or not.
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
            let heard = self.hear().await?;
            let asks_tokens = heard.is_empty() || self.tokens.is_none();
            let signed = self.check().await?;
            self.checked.extend(heard);
            if asks_tokens {
                let used = self.used(&signed).await;
                self.checked.extend(used);
            }
        }
    }

    /// What has happened by now, or nothing when it is time to look whether the session holds.
    async fn hear(&mut self) -> Option<Vec<Event>> {
        let Follower { hears, closed, .. } = &mut self.follower;
        let mut heard = Vec::new();
        tokio::select! {
            _ = closed.changed() => return None,
            () = sleep_until(self.checked_at + CHECK_EVERY) => return Some(heard),
            event = hears.recv() => match event {
                Ok(event) => heard.push(event),
                // Too slow: the next stream begins where this one ended.
                Err(RecvError::Lagged(_) | RecvError::Closed) => return None,
            },
        }
        sleep_until(self.checked_at + LEAST_PAUSE).await;
        while let Ok(event) = hears.try_recv() {
            heard.push(event);
        }
        Some(heard)
    }

    /// The person's identity here as it is now; without one the stream ends. When it cannot be asked for, too: nothing is
    /// told to whom nobody knows.
    async fn check(&mut self) -> Option<String> {
        let call = Call::within(CHECK_BUDGET).with_channel(Channel::Console);
        let Follower { authenticator, watched, secret, .. } = &self.follower;
        let identity = authenticator.tokens().session_in(secret, watched.workspace, &call).await.ok()?;
        watched.lend(&identity.signed);
        self.checked_at = Instant::now();
        Some(identity.signed)
    }

    /// The tokens and apps that the person may see and that were used since the last look.
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

    /// The event as it travels; `None` for a change that was told before.
    fn written(&mut self, event: &Event) -> Option<Written> {
        let written = Written::default().event(event.name());
        let written = match event {
            Event::Change { feed, position, .. } | Event::Changes { feed, position } => {
                if !self.told.advance(*feed, *position) {
                    return None;
                }
                written.id(self.told.to_string())
            }
            Event::Ready {} => written.id(self.told.to_string()),
            Event::Index { .. } | Event::Run { .. } | Event::Token { .. } | Event::Call(_) => written,
        };
        let data = serde_json::to_string(event).unwrap_or_default();
        Some(written.data(data))
    }
}
