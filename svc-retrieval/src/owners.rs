//! Clients of the services that own documents: to follow their feeds, read their documents, and confirm results before they
//! are returned.

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

/// The deadline for reads of an owner's feed or documents.
const READ_BUDGET: Duration = Duration::from_secs(30);
/// A watch is reopened after this time, so that a half-open connection is noticed.
const WATCH_BUDGET: Duration = Duration::from_secs(300);
/// The timeout for an optional owner.
const PATIENCE: Duration = Duration::from_secs(2);
/// The circuit breaker of an optional owner, so that no search waits for it.
const THRESHOLD: Threshold = Threshold { failures: 2, pause: Duration::from_secs(5) };

fn unanswered() -> Error {
    let message = "the service that keeps documents from outside does not answer now; the other routes work";
    Problem::unavailable(message, THRESHOLD.pause).into()
}

/// The names of folders and databases, by which the documents in them are found.
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
    /// The circuit breaker of an optional owner.
    breaker: Option<Arc<Breaker>>,
}

impl Owner {
    /// The owner of the workspace's own content; `identity` is that of this service.
    pub(crate) const fn of_content(channel: ServiceChannel, identity: ServiceIdentitySource) -> Self {
        Self { feed: Feed::Content, channel, identity, breaker: None }
    }

    /// The owner of outside documents. It is optional: a search without them still has an answer.
    pub(crate) fn of_outside(
        channel: ServiceChannel,
        identity: ServiceIdentitySource,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let breaker = Some(Arc::new(Breaker::new(THRESHOLD, clock)));
        Self { feed: Feed::Ingest, channel, identity, breaker }
    }

    /// Whether it is optional.
    pub(crate) const fn is_optional(&self) -> bool {
        self.breaker.is_some()
    }

    /// The owner's answer; `None` when an optional owner does not answer.
    pub(crate) async fn answered<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<Option<T>, Error> {
        self.answered_within(PATIENCE, answer).await
    }

    /// The same with another timeout.
    pub(crate) async fn answered_within<T>(
        &self,
        patience: Duration,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<Option<T>, Error> {
        let Some(breaker) = &self.breaker else { return answer.await.map(Some) };
        if !breaker.allows() {
            return Ok(None);
        }
        let answered = self.attempt(breaker, patience, answer).await;
        answered.map(Some).or_else(|error| {
            tracing::warn!(feed = %self.feed, %error, "an answer does without an owner");
            Ok(None)
        })
    }

    /// The owner's answer, for requests that need it. Its refusals are returned to the caller.
    pub(crate) async fn require<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        match &self.breaker {
            Some(breaker) if breaker.allows() => self.attempt(breaker, PATIENCE, answer).await,
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

    /// Streams the head of every feed, then each new head.
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

    /// Those of these documents that exist. Repeats the request until all were read.
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

    /// The names of the workspace's folders and databases with their position; `None` where none has changed after `after`. At
    /// most `most` are read, folders first.
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

    /// The document of a record with other values, where this owner has records and the caller may see it.
    pub(crate) async fn preview_record(
        &self,
        call: &Call,
        request: PreviewRecordRequest,
    ) -> Result<PreviewRecordResponse, Error> {
        let mut records =
            RecordServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Ok(records.preview_record(call.request(request)).await?.into_inner())
    }

    /// Acknowledges documents, once they are committed.
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

    /// Those of the documents that exist and are in the caller's scope, with their current paths; `None` when an optional owner does
    /// not answer.
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

    /// The documents that exist, are in the caller's scope and match the filter of a search; `None` when an optional owner does not
    /// answer.
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
