//! A change feed that a test advances.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_proto::feed::v1::change_service_server::ChangeService;
use cairn_proto::feed::v1::feed_service_server::FeedService;
use cairn_proto::feed::v1::{
    Change, ChangeAuthor, Kind, ListChangesRequest, ListChangesResponse, Op, ReadFeedRequest,
    ReadFeedResponse, SeenChange, WatchFeedRequest, WatchFeedResponse,
};
use futures::stream::Pending;
use tonic::{Request, Response, Status};

use super::FILE;

/// The head of the feed; each of its changes is one of the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Feed(pub(super) Arc<AtomicU64>);

impl Feed {
    /// Advances the feed by a number of changes.
    pub(crate) fn moves(&self, by: u64) {
        self.0.fetch_add(by, Ordering::SeqCst);
    }
}

#[tonic::async_trait]
impl FeedService for Feed {
    type WatchFeedStream = Pending<Result<WatchFeedResponse, Status>>;

    async fn read_feed(
        &self,
        request: Request<ReadFeedRequest>,
    ) -> Result<Response<ReadFeedResponse>, Status> {
        let asked = request.into_inner();
        let head = self.0.load(Ordering::SeqCst);
        let last = asked.after.saturating_add(asked.limit.into()).min(head);
        let change = |position| Change {
            position,
            kind: Kind::File.into(),
            item_id: FILE.to_owned(),
            op: Op::Upsert.into(),
        };
        let changes = (asked.after.saturating_add(1)..=last).map(change).collect();
        Ok(Response::new(ReadFeedResponse { changes, head }))
    }

    async fn watch_feed(
        &self,
        _: Request<WatchFeedRequest>,
    ) -> Result<Response<Self::WatchFeedStream>, Status> {
        Err(Status::unimplemented(""))
    }
}

#[tonic::async_trait]
impl ChangeService for Feed {
    /// Long polls by polling.
    async fn list_changes(
        &self,
        request: Request<ListChangesRequest>,
    ) -> Result<Response<ListChangesResponse>, Status> {
        let asked = request.into_inner();
        let until = tokio::time::Instant::now() + std::time::Duration::from_millis(asked.wait_ms.into());
        loop {
            let head = self.0.load(Ordering::SeqCst);
            let Some(after) = asked.after else {
                return Ok(Response::new(ListChangesResponse { last: head, ..Default::default() }));
            };
            let last = after.saturating_add(asked.limit.into()).min(head);
            if last > after || tokio::time::Instant::now() >= until {
                let change = |position| SeenChange {
                    position,
                    kind: Kind::File.into(),
                    item_id: FILE.to_owned(),
                    op: Op::Upsert.into(),
                    version: Some(2),
                    author: Some(ChangeAuthor { kind: "token".into(), id: "t".into(), name: "T".into() }),
                    at: Some(prost_types::Timestamp { seconds: 1_800_000_000, nanos: 0 }),
                };
                let changes = (after.saturating_add(1)..=last).map(change).collect();
                return Ok(Response::new(ListChangesResponse { changes, last, has_more: last < head }));
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}
