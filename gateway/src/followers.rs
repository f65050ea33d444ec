//! The stream of changes that a program follows (REST as server-sent events, MCP as notifications).
//!
//! The caller is authenticated before each batch is read, and again before it is delivered: nothing is sent to a
//! token that has expired, or whose folder scope has changed meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::call::Call;
use futures::{Stream, stream};
use http::request::Parts;

use crate::answers::{Change, Changes};
use crate::auth::{Authenticator, CallerIdentity, call_of};
use crate::class::Class;
use crate::follow::Seat;
use crate::operations::changes::{self, Asked, Place};
use crate::upstreams::Upstreams;

/// The longest wait for a batch: it bounds how late an idle stream notices that its token has expired.
const ROUND: Duration = Duration::from_secs(5);
const BUDGET: Duration = Duration::from_secs(10);
/// Changes per batch at most.
const AT_ONCE: u32 = 200;

/// The entry point that the follower's token came in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Api,
    Mcp,
}

/// A follower of the changes of its workspace.
pub(crate) struct Follower {
    pub(crate) seat: Seat,
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) authenticator: Arc<Authenticator>,
    /// The head of the request that opened the stream, for authenticating again.
    pub(crate) parts: Parts,
    pub(crate) door: Door,
    pub(crate) place: Place,
}

/// A batch of changes, and the identity they are delivered under.
pub(crate) struct Round {
    pub(crate) changes: Vec<Change>,
    pub(crate) caller: Arc<CallerIdentity>,
    pub(crate) call: Call,
}

impl Follower {
    /// The non-empty batches. Ends with the token, and when the server shuts down.
    pub(crate) fn rounds(self) -> impl Stream<Item = Round> + Send {
        stream::unfold(self, |mut follower| async {
            let round = follower.next().await?;
            Some((round, follower))
        })
    }

    /// Each change, with the cursor after it.
    pub(crate) fn changes(self) -> impl Stream<Item = (Change, Place)> + Send {
        let start = (self.place, self, VecDeque::new());
        stream::unfold(start, |(place, mut follower, mut waiting)| async move {
            loop {
                if let Some(change) = waiting.pop_front() {
                    let change: Change = change;
                    let place = place.at(change.token);
                    return Some(((change, place), (place, follower, waiting)));
                }
                waiting.extend(follower.next().await?.changes);
            }
        })
    }

    async fn next(&mut self) -> Option<Round> {
        loop {
            let (caller, call) = self.caller().await?;
            let asked = Asked { after: Some(self.place), limit: AT_ONCE, wait: ROUND };
            let read = changes::list(&self.upstreams, &call, asked);
            let (Changes { changes, .. }, next) = tokio::select! {
                () = self.seat.ended() => return None,
                read = read => read.ok()?,
            };
            if changes.is_empty() {
                self.place = next;
                continue;
            }
            let (now, call) = self.caller().await?;
            // The folder scope has changed: read the batch again under the new one.
            if now.claims.scope != caller.claims.scope {
                continue;
            }
            self.place = next;
            return Some(Round { changes, caller: now, call });
        }
    }

    /// Authenticates again; on failure the stream ends and the client reconnects.
    async fn caller(&mut self) -> Option<(Arc<CallerIdentity>, Call)> {
        let channel = Class::of(&self.parts.extensions).surface.channel();
        let fresh = Call::within(BUDGET).with_channel(channel);
        self.parts.extensions.insert(fresh);
        let entered = match self.door {
            Door::Api => self.authenticator.authenticate(&self.parts).await,
            Door::Mcp => self.authenticator.authenticate_agent(&self.parts).await,
        };
        let caller = entered.ok()?;
        let call = call_of(&self.parts).with_identity(&caller.signed);
        Some((caller, call))
    }
}
