//! The public feed over gRPC: `cairn.feed.v1.ChangeService`, for content and ingest alike. The service that owns the documents
//! filters the changes for the caller ([`Lens`]); reads and long polling are shared.

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

/// The page size when the request has none.
const DEFAULT_LIMIT: u32 = 100;
/// How long a call waits for a change at most.
pub const MAX_WAIT: Duration = Duration::from_secs(25);
/// How often a waiting call polls for changes of other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// A change with its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedChange {
    /// The change and its position.
    pub change: Change,
    /// The time of the write.
    pub at: Timestamp,
}

/// The author of a write, as the owning service recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// `user`, `token`, `grant` or `service`.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// Its display name.
    pub name: String,
}

/// A change as a caller may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleChange {
    /// The position in the feed.
    pub position: u64,
    /// The type of the item.
    pub kind: Kind,
    /// The item's id.
    pub item_id: String,
    /// The change from the caller's view: an item that became invisible to them is deleted.
    pub op: Op,
    /// The version that the write created.
    pub version: Option<u64>,
    /// The author of the write.
    pub author: Option<Author>,
    /// The time of the write.
    pub at: Timestamp,
}

impl VisibleChange {
    /// A change without version and author.
    pub fn of(dated: TimedChange) -> Self {
        let TimedChange { change, at } = dated;
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

/// Decides which changes of a service's feed a caller may see.
#[tonic::async_trait]
pub trait Lens: Send + Sync + 'static {
    /// The visible ones of these changes of the caller's workspace, in the same order. `changes` is never empty.
    async fn look(&self, caller: &Identity, changes: Vec<TimedChange>)
    -> Result<Vec<VisibleChange>, Problem>;
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
        request: ListChangesRequest,
    ) -> Result<ListChangesResponse, Problem> {
        let workspace = caller.workspace_id()?;
        let wait_until = Instant::now() + Duration::from_millis(request.wait_ms.into()).min(MAX_WAIT);
        // Subscribed before the first read, so that no change is missed in between.
        let mut poll = LongPoll { notices: self.feed.notices.subscribe(), wait_until };
        let head = self.feed.head(workspace).await?;
        let Some(after) = request.after else {
            return Ok(ListChangesResponse { last: head, ..ListChangesResponse::default() });
        };
        let limit = if request.limit == 0 { DEFAULT_LIMIT } else { request.limit.min(MAX_READ) };
        // A position after the head is from another deployment, such as the one that a backup was restored from.
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
            // The caller may see no change of this page: the next page may have one.
            if has_more && Instant::now() < wait_until {
                continue;
            }
            if has_more || !poll.wait_for_change(&self.feed, workspace, last).await? {
                return Ok(ListChangesResponse { changes: Vec::new(), last, has_more });
            }
        }
    }
}

/// A long poll of one feed.
struct LongPoll {
    notices: Receiver<Head>,
    wait_until: Instant,
}

impl LongPoll {
    /// Waits until the head is after that position; whether that happened in time.
    async fn wait_for_change(
        &mut self,
        feed: &Feed,
        workspace: WorkspaceId,
        after: u64,
    ) -> Result<bool, sql::Error> {
        loop {
            let now = Instant::now();
            if now >= self.wait_until {
                return Ok(false);
            }
            // Notices do not cross processes: with a shared database the head is polled as well.
            let next_poll =
                if feed.db.is_shared() { self.wait_until.min(now + POLL_INTERVAL) } else { self.wait_until };
            tokio::select! {
                () = feed.closed.cancelled() => return Ok(false),
                notice = self.notices.recv() => match notice {
                    Ok(head) if head.workspace == workspace && head.position > after => return Ok(true),
                    Ok(_) => continue,
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return Ok(false),
                },
                () = sleep_until(next_poll) => {}
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

fn encode(seen: VisibleChange) -> proto::SeenChange {
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
