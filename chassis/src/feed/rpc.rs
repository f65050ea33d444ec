//! The feed over gRPC, for content and ingest alike. Only services of the mesh may read it.

use std::pin::Pin;

use cairn_proto::feed::v1::feed_service_server::{FeedService, FeedServiceServer};
use cairn_proto::feed::v1::{
    self as proto, ReadFeedRequest, ReadFeedResponse, WatchFeedRequest, WatchFeedResponse,
};
use cairn_proto::ids::WorkspaceId;
use futures::{Stream, StreamExt as _};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use super::{Change, Feed, WatchEvent};
use crate::channel::MAX_MESSAGE_BYTES;
use crate::identity::Verifier;
use crate::sql;
use crate::status::{Problem, Violation};
use crate::wording;

/// The server of `cairn.feed.v1.FeedService` on a service's feed.
#[derive(Debug, Clone)]
pub struct Rpc {
    feed: Feed,
    verifier: Verifier,
}

impl Rpc {
    /// A server for the routes.
    pub fn server(feed: Feed, verifier: Verifier) -> FeedServiceServer<Self> {
        FeedServiceServer::new(Self { feed, verifier })
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Accepts a service, calling for itself or on behalf of a user.
    async fn authorize(&self, metadata: &MetadataMap) -> Result<(), Problem> {
        self.verifier.authenticate_service(metadata).await.map(drop)
    }
}

#[tonic::async_trait]
impl FeedService for Rpc {
    type WatchFeedStream = Pin<Box<dyn Stream<Item = Result<WatchFeedResponse, Status>> + Send>>;

    async fn read_feed(
        &self,
        request: Request<ReadFeedRequest>,
    ) -> Result<Response<ReadFeedResponse>, Status> {
        self.authorize(request.metadata()).await?;
        let request = request.into_inner();
        let workspace: WorkspaceId = request
            .workspace_id
            .parse()
            .map_err(|_| Problem::validation(vec![Violation::new("workspaceId", "invalid", wording::ID)]))?;
        let page = self.feed.read(workspace, request.after, request.limit).await.map_err(Problem::from)?;
        let changes = page.changes.into_iter().map(encode).collect();
        Ok(Response::new(ReadFeedResponse { changes, head: page.head }))
    }

    async fn watch_feed(
        &self,
        request: Request<WatchFeedRequest>,
    ) -> Result<Response<Self::WatchFeedStream>, Status> {
        self.authorize(request.metadata()).await?;
        Ok(Response::new(Box::pin(self.feed.watch().map(encode_event))))
    }
}

fn encode(change: Change) -> proto::Change {
    proto::Change {
        position: change.position,
        kind: change.entry.kind.into(),
        item_id: change.entry.item_id,
        op: change.entry.op.into(),
    }
}

fn encode_event(event: Result<WatchEvent, sql::Error>) -> Result<WatchFeedResponse, Status> {
    Ok(match event.map_err(Problem::from)? {
        WatchEvent::Head(head) => WatchFeedResponse {
            workspace_id: head.workspace.to_string(),
            position: head.position,
            every_head_told: false,
        },
        WatchEvent::EveryHead => WatchFeedResponse { every_head_told: true, ..WatchFeedResponse::default() },
    })
}
