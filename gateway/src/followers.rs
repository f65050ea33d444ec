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
use crate::follow::FollowPermit;
use crate::operations::changes::{self, Cursor, ListOptions};
use crate::upstreams::Upstreams;

/// The longest wait for a batch: it bounds how late an idle stream notices that its token has expired.
const MAX_BATCH_WAIT: Duration = Duration::from_secs(5);
const BUDGET: Duration = Duration::from_secs(10);
/// Changes per batch at most.
const MAX_BATCH: u32 = 200;

/// The entry point that the follower's token came in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryPoint {
    Api,
    Mcp,
}

/// A follower of the changes of its workspace.
pub(crate) struct Follower {
    pub(crate) permit: FollowPermit,
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) authenticator: Arc<Authenticator>,
    /// The head of the request that opened the stream, for authenticating again.
    pub(crate) parts: Parts,
    pub(crate) entry_point: EntryPoint,
    pub(crate) cursor: Cursor,
}

/// A batch of changes, and the identity they are delivered under.
pub(crate) struct Batch {
    pub(crate) changes: Vec<Change>,
    pub(crate) caller: Arc<CallerIdentity>,
    pub(crate) call: Call,
}

impl Follower {
    /// The non-empty batches. Ends with the token, and when the server shuts down.
    pub(crate) fn batches(self) -> impl Stream<Item = Batch> + Send {
        stream::unfold(self, |mut follower| async {
            let batch = follower.next().await?;
            Some((batch, follower))
        })
    }

    /// Each change, with the cursor after it.
    pub(crate) fn changes(self) -> impl Stream<Item = (Change, Cursor)> + Send {
        let start = (self.cursor, self, VecDeque::new());
        stream::unfold(start, |(cursor, mut follower, mut waiting)| async move {
            loop {
                if let Some(change) = waiting.pop_front() {
                    let change: Change = change;
                    let cursor = cursor.at(change.token);
                    return Some(((change, cursor), (cursor, follower, waiting)));
                }
                waiting.extend(follower.next().await?.changes);
            }
        })
    }

    async fn next(&mut self) -> Option<Batch> {
        loop {
            let (caller, call) = self.caller().await?;
            let options = ListOptions { after: Some(self.cursor), limit: MAX_BATCH, wait: MAX_BATCH_WAIT };
            let read = changes::list(&self.upstreams, &call, options);
            let (Changes { changes, .. }, next) = tokio::select! {
                () = self.permit.shutdown() => return None,
                read = read => read.ok()?,
            };
            if changes.is_empty() {
                self.cursor = next;
                continue;
            }
            let (now, call) = self.caller().await?;
            // The folder scope has changed: read the batch again under the new one.
            if now.claims.scope != caller.claims.scope {
                continue;
            }
            self.cursor = next;
            return Some(Batch { changes, caller: now, call });
        }
    }

    /// Authenticates again; on failure the stream ends and the client reconnects.
    async fn caller(&mut self) -> Option<(Arc<CallerIdentity>, Call)> {
        let channel = Class::of(&self.parts.extensions).surface.channel();
        let fresh = Call::within(BUDGET).with_channel(channel);
        self.parts.extensions.insert(fresh);
        let entered = match self.entry_point {
            EntryPoint::Api => self.authenticator.authenticate(&self.parts).await,
            EntryPoint::Mcp => self.authenticator.authenticate_agent(&self.parts).await,
        };
        let caller = entered.ok()?;
        let call = call_of(&self.parts).with_identity(&caller.signed);
        Some((caller, call))
    }
}
