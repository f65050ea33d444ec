//! The feed as callers may see it, over gRPC: `cairn.feed.v1.ChangeService`, for content and ingest alike. What of a change a
//! caller sees, the service that owns the documents says ([`Lens`]); reading and waiting is the same everywhere.

use std::time::Duration;

use cairn_proto::feed::v1::change_service_server::{ChangeService, ChangeServiceServer};
use cairn_proto::feed::v1::{self as proto, ListChangesRequest, ListChangesResponse};
use cairn_proto::ids::WorkspaceId;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};
use tonic::{Request, Response, Status};

use super::{Change, Feed, Head, Kind, MAX_READ, Op};
use crate::channel::MAX_MESSAGE_BYTES;
use crate::clock::Timestamp;
use crate::identity::{Identity, Permission, Verifier};
use crate::sql;
use crate::status::Problem;

/// How many are looked at when no number is asked for.
const USUAL: u32 = 100;
/// The longest that a call waits.
pub const MAX_WAIT: Duration = Duration::from_secs(25);
/// How often a waiting call looks for what other processes wrote.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// A change, and when it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dated {
    /// What happened, and where in the feed.
    pub change: Change,
    /// The time of the write.
    pub at: Timestamp,
}

/// Who wrote, as the owner noted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// `user`, `token`, `grant` or `service`.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// What it is called.
    pub name: String,
}

/// A change as a caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Where in the feed.
    pub position: u64,
    /// What it is.
    pub kind: Kind,
    /// Its id.
    pub item_id: String,
    /// What happened, in the caller's eyes.
    pub op: Op,
    /// The version that the write made.
    pub version: Option<u64>,
    /// Who wrote.
    pub author: Option<Author>,
    /// The time of the write.
    pub at: Timestamp,
}

impl Seen {
    /// A change of which nothing else is known.
    pub fn of(dated: Dated) -> Self {
        let Dated { change, at } = dated;
        Self {
            position: change.position,
            kind: change.entry.kind,
            item_id: change.entry.item_id,
            op: change.entry.op,
            version: None,
            author: None,
            at,
        }
    }
}

/// What of its feed a service tells to whom.
#[tonic::async_trait]
pub trait Lens: Send + Sync + 'static {
    /// What the caller sees of these changes of their workspace, in the same order. They are never empty.
    async fn look(&self, caller: &Identity, changes: Vec<Dated>) -> Result<Vec<Seen>, Problem>;
}

/// The server of `cairn.feed.v1.ChangeService` on a service's feed.
#[derive(Debug, Clone)]
pub struct Rpc<L> {
    feed: Feed,
    lens: L,
    verifier: Verifier,
}

impl<L: Lens> Rpc<L> {
    /// A server for the routes.
    pub fn server(feed: Feed, lens: L, verifier: Verifier) -> ChangeServiceServer<Self> {
        ChangeServiceServer::new(Self { feed, lens, verifier }).max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    async fn list(
        &self,
        caller: &Identity,
        asked: ListChangesRequest,
    ) -> Result<ListChangesResponse, Problem> {
        let workspace = caller.workspace_id()?;
        let until = Instant::now() + Duration::from_millis(asked.wait_ms.into()).min(MAX_WAIT);
        // Before the first look, so that nothing falls between.
        let mut waiting = Waiting { notices: self.feed.notices.subscribe(), until };
        let head = self.feed.head(workspace).await?;
        let Some(after) = asked.after else {
            return Ok(ListChangesResponse { last: head, ..ListChangesResponse::default() });
        };
        let limit = if asked.limit == 0 { USUAL } else { asked.limit.min(MAX_READ) };
        // Whoever was told of more was told by another deployment.
        let mut last = after.min(head);
        loop {
            let dated = self.feed.read_dated(workspace, last, limit).await?;
            let has_more = dated.len() == limit as usize;
            if let Some(newest) = dated.last() {
                last = newest.change.position;
                let changes = self.lens.look(caller, dated).await?;
                if !changes.is_empty() {
                    let changes = changes.into_iter().map(encode).collect();
                    return Ok(ListChangesResponse { changes, last, has_more });
                }
            }
            // Nothing of it is the caller's: the next page may have something.
            if has_more && Instant::now() < until {
                continue;
            }
            if has_more || !waiting.moved(&self.feed, workspace, last).await? {
                return Ok(ListChangesResponse { changes: Vec::new(), last, has_more });
            }
        }
    }
}

/// A caller that waits for a feed to move.
struct Waiting {
    notices: Receiver<Head>,
    until: Instant,
}

impl Waiting {
    /// Whether the feed has moved beyond a position before the time was over.
    async fn moved(&mut self, feed: &Feed, workspace: WorkspaceId, after: u64) -> Result<bool, sql::Error> {
        loop {
            let now = Instant::now();
            if now >= self.until {
                return Ok(false);
            }
            // Processes that share a database do not hear each other.
            let next_look =
                if feed.db.is_shared() { self.until.min(now + POLL_INTERVAL) } else { self.until };
            tokio::select! {
                () = feed.closed.cancelled() => return Ok(false),
                notice = self.notices.recv() => match notice {
                    Ok(head) if head.workspace == workspace && head.position > after => return Ok(true),
                    Ok(_) => continue,
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return Ok(false),
                },
                () = sleep_until(next_look) => {}
            }
            if feed.head(workspace).await? > after {
                return Ok(true);
            }
        }
    }
}

#[tonic::async_trait]
impl<L: Lens> ChangeService for Rpc<L> {
    async fn list_changes(
        &self,
        request: Request<ListChangesRequest>,
    ) -> Result<Response<ListChangesResponse>, Status> {
        let caller = self.verifier.authenticate(request.metadata()).await?;
        caller.require(Permission::Read)?;
        Ok(Response::new(self.list(&caller, request.into_inner()).await?))
    }
}

fn encode(seen: Seen) -> proto::SeenChange {
    proto::SeenChange {
        position: seen.position,
        kind: seen.kind.into(),
        item_id: seen.item_id,
        op: seen.op.into(),
        version: seen.version,
        author: seen.author.map(|author| proto::ChangeAuthor {
            kind: author.kind,
            id: author.id,
            name: author.name,
        }),
        at: Some(seen.at.to_proto()),
    }
}
