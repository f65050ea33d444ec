//! The services that own documents: their feeds are read, their documents indexed, their word asked before a result
//! leaves.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::breaker::{Breaker, Threshold};
use cairn_chassis::call::Call;
use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::clock::Clock;
use cairn_chassis::identity::ServiceIdentitySource;
use cairn_chassis::status::Problem;
use cairn_proto::content::v1::record_service_client::RecordServiceClient;
use cairn_proto::content::v1::tree_service_client::TreeServiceClient;
use cairn_proto::content::v1::{
    NamedDatabase, PreviewRecordRequest, PreviewRecordResponse, ReadFoldersRequest, TreeFolder,
};
use cairn_proto::document::v1::document_service_client::DocumentServiceClient;
use cairn_proto::document::v1::{
    ConfirmDocumentsRequest, ConfirmedDocument, Document, DocumentRef, ReadDocumentsRequest,
    SelectDocumentsRequest,
};
use cairn_proto::domain::Feed;
use cairn_proto::feed::v1::feed_service_client::FeedServiceClient;
use cairn_proto::feed::v1::{ReadFeedRequest, ReadFeedResponse, WatchFeedRequest, WatchFeedResponse};
use cairn_proto::ids::WorkspaceId;
use cairn_proto::ingest::v1::indexing_service_client::IndexingServiceClient;
use cairn_proto::ingest::v1::{AckDocumentsRequest, IndexedDocument};
use tonic::Streaming;
use uuid::Uuid;

use crate::error::Error;

/// How long an owner may take to answer a read of its feed or documents.
const READ_BUDGET: Duration = Duration::from_secs(30);
/// A watch is opened anew after this time, so that a connection that died silently is noticed.
const WATCH_BUDGET: Duration = Duration::from_secs(300);
/// How long an answer waits for an owner that it can do without.
const PATIENCE: Duration = Duration::from_secs(2);
/// When such an owner is left alone, so that no search waits for it.
const THRESHOLD: Threshold = Threshold { failures: 2, pause: Duration::from_secs(5) };

fn unanswered() -> Error {
    let message = "the service that keeps documents from outside does not answer now; the other routes work";
    Problem::unavailable(message, THRESHOLD.pause).into()
}

/// The names that documents are found by besides their own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    pub(crate) folders: Vec<TreeFolder>,
    pub(crate) databases: Vec<NamedDatabase>,
}

/// A service that owns documents.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    /// Its feed.
    pub(crate) feed: Feed,
    channel: ServiceChannel,
    identity: ServiceIdentitySource,
    /// Of an owner that answers can do without.
    breaker: Option<Arc<Breaker>>,
}

impl Owner {
    /// The owner of what the workspace holds itself, behind a channel; `identity` is this service's own.
    pub(crate) const fn of_content(channel: ServiceChannel, identity: ServiceIdentitySource) -> Self {
        Self { feed: Feed::Content, channel, identity, breaker: None }
    }

    /// The owner of outside documents. They stand beside what the workspace holds itself: an answer without them is one,
    /// so this owner may be down.
    pub(crate) fn of_outside(
        channel: ServiceChannel,
        identity: ServiceIdentitySource,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let breaker = Some(Arc::new(Breaker::new(THRESHOLD, clock)));
        Self { feed: Feed::Ingest, channel, identity, breaker }
    }

    /// Whether answers can do without it.
    pub(crate) const fn is_optional(&self) -> bool {
        self.breaker.is_some()
    }

    /// What the owner answers; none when it does not, and the caller's answer can do without.
    pub(crate) async fn answered<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<Option<T>, Error> {
        self.answered_within(PATIENCE, answer).await
    }

    /// The same of an answer that may take longer, or less long, than usual.
    pub(crate) async fn answered_within<T>(
        &self,
        patience: Duration,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<Option<T>, Error> {
        let Some(breaker) = &self.breaker else { return answer.await.map(Some) };
        if !breaker.lets_through() {
            return Ok(None);
        }
        let answered = self.attempt(breaker, patience, answer).await;
        answered.map(Some).or_else(|error| {
            tracing::warn!(feed = %self.feed, %error, "an answer does without an owner");
            Ok(None)
        })
    }

    /// What the owner answers to what cannot be answered without it. Its refusals are the caller's.
    pub(crate) async fn told<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        match &self.breaker {
            Some(breaker) if breaker.lets_through() => self.attempt(breaker, PATIENCE, answer).await,
            Some(_) => Err(unanswered()),
            None => answer.await,
        }
    }

    async fn attempt<T>(
        &self,
        breaker: &Breaker,
        patience: Duration,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let answered = match tokio::time::timeout(patience, answer).await {
            Ok(answered) => answered,
            Err(_elapsed) => Err(unanswered()),
        };
        let is_up = answered.as_ref().err().is_none_or(Error::is_refusal);
        metrics::gauge!("cairn_owner_answers", "feed" => self.feed.as_str()).set(f64::from(is_up));
        if is_up {
            breaker.succeeded();
        } else {
            breaker.failed(None);
        }
        answered
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

    /// The names of the workspace's folders and databases, and the position that they are of; none where none has changed
    /// after a position. At most so many are read, of folders first.
    pub(crate) async fn read_names(
        &self,
        workspace: WorkspaceId,
        after: u64,
        most: usize,
    ) -> Result<(Option<Names>, u64), Error> {
        let mut tree =
            TreeServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let call = self.own_call(PATIENCE).await?;
        let mut names = Names::default();
        let mut position = None;
        let mut page_token = String::new();
        loop {
            let request = ReadFoldersRequest { workspace_id: workspace.to_string(), after, page_token };
            let page = tree.read_folders(call.request(request)).await?.into_inner();
            let position = *position.get_or_insert(page.position);
            if page.unchanged {
                return Ok((None, position));
            }
            names.folders.extend(page.folders);
            names.databases.extend(page.databases);
            if page.next_page_token.is_empty() || names.folders.len() + names.databases.len() >= most {
                names.folders.truncate(most);
                names.databases.truncate(most - names.folders.len());
                return Ok((Some(names), position));
            }
            page_token = page.next_page_token;
        }
    }

    /// A record as it would be searched with other values, where this owner has records and the caller may see it.
    pub(crate) async fn preview_record(
        &self,
        call: &Call,
        request: PreviewRecordRequest,
    ) -> Result<PreviewRecordResponse, Error> {
        let mut records =
            RecordServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Ok(records.preview_record(call.request(request)).await?.into_inner())
    }

    /// Tells what became of documents, once that is committed.
    pub(crate) async fn acknowledge(
        &self,
        workspace: WorkspaceId,
        documents: Vec<IndexedDocument>,
    ) -> Result<(), Error> {
        let call = self.own_call(READ_BUDGET).await?;
        let request = AckDocumentsRequest { workspace_id: workspace.to_string(), documents };
        IndexingServiceClient::new(self.channel.clone()).ack_documents(call.request(request)).await?;
        Ok(())
    }

    /// Which documents live and are in the caller's scope, and where they stand now; none when this owner does not answer
    /// and the caller's answer can do without.
    pub(crate) async fn confirm(
        &self,
        call: &Call,
        refs: Vec<DocumentRef>,
    ) -> Result<Option<Vec<ConfirmedDocument>>, Error> {
        let mut documents = self.documents();
        let request = call.request(ConfirmDocumentsRequest { refs });
        self.answered(async move { Ok(documents.confirm_documents(request).await?.into_inner().documents) })
            .await
    }

    /// Which documents live, are in the caller's scope and meet what a search is narrowed to; none when this owner does
    /// not answer and the caller's answer can do without.
    pub(crate) async fn select(
        &self,
        call: &Call,
        narrowing: SelectDocumentsRequest,
    ) -> Result<Option<Vec<Uuid>>, Error> {
        let mut documents = self.documents();
        let request = call.request(narrowing);
        let selected =
            self.answered(
                async move { Ok(documents.select_documents(request).await?.into_inner().document_ids) },
            );
        let ids =
            |ids: Vec<_>| ids.iter().filter_map(|id: &bytes::Bytes| Uuid::from_slice(id).ok()).collect();
        Ok(selected.await?.map(ids))
    }
}
