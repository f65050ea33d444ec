//! The services that own documents: their feeds are read, their documents indexed, their word asked before a result
//! leaves.

use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::identity::ServiceIdentitySource;
use cairn_proto::document::v1::document_service_client::DocumentServiceClient;
use cairn_proto::document::v1::{
    ConfirmDocumentsRequest, ConfirmedDocument, Document, DocumentRef, ReadDocumentsRequest,
    SelectDocumentsRequest,
};
use cairn_proto::domain::Feed;
use cairn_proto::feed::v1::feed_service_client::FeedServiceClient;
use cairn_proto::feed::v1::{ReadFeedRequest, ReadFeedResponse, WatchFeedRequest, WatchFeedResponse};
use cairn_proto::ids::WorkspaceId;
use tonic::Streaming;
use uuid::Uuid;

use crate::error::Error;

/// How long an owner may take to answer a read of its feed or documents.
const READ_BUDGET: Duration = Duration::from_secs(30);
/// A watch is opened anew after this time, so that a connection that died silently is noticed.
const WATCH_BUDGET: Duration = Duration::from_secs(300);

/// A service that owns documents.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    /// Its feed.
    pub(crate) feed: Feed,
    channel: ServiceChannel,
    identity: ServiceIdentitySource,
}

impl Owner {
    /// The owner behind a channel; `identity` is this service's own.
    pub(crate) fn new(feed: Feed, channel: ServiceChannel, identity: ServiceIdentitySource) -> Self {
        Self { feed, channel, identity }
    }

    fn documents(&self) -> DocumentServiceClient<ServiceChannel> {
        DocumentServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    fn changes(&self) -> FeedServiceClient<ServiceChannel> {
        FeedServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    async fn own_call(&self, budget: Duration) -> Result<Call, Error> {
        Ok(Call::within(budget).with_identity(&self.identity.identity().await?))
    }

    /// The head of every feed, then each head that moves.
    pub(crate) async fn watch(&self) -> Result<Streaming<WatchFeedResponse>, Error> {
        let call = self.own_call(WATCH_BUDGET).await?;
        Ok(self.changes().watch_feed(call.request(WatchFeedRequest {})).await?.into_inner())
    }

    /// The changes of a workspace after a position.
    pub(crate) async fn read_feed(
        &self,
        workspace: WorkspaceId,
        after: u64,
    ) -> Result<ReadFeedResponse, Error> {
        let call = self.own_call(READ_BUDGET).await?;
        let request = ReadFeedRequest { workspace_id: workspace.to_string(), after, limit: 0 };
        Ok(self.changes().read_feed(call.request(request)).await?.into_inner())
    }

    /// The live ones of these documents, asked for again until all were looked at.
    pub(crate) async fn read_documents(
        &self,
        workspace: WorkspaceId,
        refs: Vec<DocumentRef>,
    ) -> Result<Vec<Document>, Error> {
        let mut documents = Vec::with_capacity(refs.len());
        let mut rest = refs;
        while !rest.is_empty() {
            let call = self.own_call(READ_BUDGET).await?;
            let request = ReadDocumentsRequest { workspace_id: workspace.to_string(), refs: rest.clone() };
            let answer = self.documents().read_documents(call.request(request)).await?.into_inner();
            let read = usize::try_from(answer.read).unwrap_or(usize::MAX);
            if read == 0 {
                return Err(Error::Answer("it looked at none of the documents asked for"));
            }
            documents.extend(answer.documents);
            rest = rest.split_off(read.min(rest.len()));
        }
        Ok(documents)
    }

    /// Which documents live and are in the caller's scope, and where they stand now.
    pub(crate) async fn confirm(
        &self,
        call: &Call,
        refs: Vec<DocumentRef>,
    ) -> Result<Vec<ConfirmedDocument>, Error> {
        let request = call.request(ConfirmDocumentsRequest { refs });
        Ok(self.documents().confirm_documents(request).await?.into_inner().documents)
    }

    /// Which documents live, are in the caller's scope and meet what a search is narrowed to.
    pub(crate) async fn select(
        &self,
        call: &Call,
        narrowing: SelectDocumentsRequest,
    ) -> Result<Vec<Uuid>, Error> {
        let request = call.request(narrowing);
        let selected = self.documents().select_documents(request).await?.into_inner().document_ids;
        Ok(selected.iter().filter_map(|id| Uuid::from_slice(id).ok()).collect())
    }
}
