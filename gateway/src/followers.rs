//! The stream that a program follows (REST as server-sent events, MCP as notifications).
//!
//! A stream asks who its caller is before each round, and once more before it tells what the round brought: so nothing is told
//! to a token that has ended, or that is bound to other folders by then.

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

/// How long a round of a stream waits: after it a token that has ended is found out, though nothing happens.
const ROUND: Duration = Duration::from_secs(5);
const BUDGET: Duration = Duration::from_secs(10);
/// Changes of a round at most.
const AT_ONCE: u32 = 200;

/// By which door a follower's token comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Api,
    Mcp,
}

/// Somebody who follows the changes of their workspace.
pub(crate) struct Follower {
    pub(crate) seat: Seat,
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) authenticator: Arc<Authenticator>,
    /// Of the request that began it: what tells who it is.
    pub(crate) parts: Parts,
    pub(crate) door: Door,
    pub(crate) place: Place,
}

/// What a round of a stream brought: its changes, in whose name, and the place behind them.
pub(crate) struct Round {
    pub(crate) changes: Vec<Change>,
    pub(crate) caller: Arc<CallerIdentity>,
    pub(crate) call: Call,
}

impl Follower {
    /// The rounds that brought something. It ends with the token, and when the server goes down.
    pub(crate) fn rounds(self) -> impl Stream<Item = Round> + Send {
        stream::unfold(self, |mut follower| async {
            let round = follower.next().await?;
            Some((round, follower))
        })
    }

    /// Each change, and the place behind it.
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
            // Bound to other folders by now: what they cover is looked at anew.
            if now.claims.scope != caller.claims.scope {
                continue;
            }
            self.place = next;
            return Some(Round { changes, caller: now, call });
        }
    }

    /// Who it is by now; without an answer the stream ends, and its program comes again.
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
