//! The owner of documents: what is true, and how it tells it.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::Timestamp;
use cairn_proto::auth::v1::key_service_server::{KeyService, KeyServiceServer};
use cairn_proto::auth::v1::{
    IssueServiceIdentityRequest, IssueServiceIdentityResponse, ListKeysRequest, ListKeysResponse,
};
use cairn_proto::document::v1::document_service_server::{DocumentService, DocumentServiceServer};
use cairn_proto::document::v1::{
    ConfirmDocumentsRequest, ConfirmDocumentsResponse, Document, DocumentRef, Format, ReadDocumentsRequest,
    ReadDocumentsResponse, SelectDocumentsRequest, SelectDocumentsResponse,
};
use cairn_proto::feed::v1::feed_service_server::{FeedService, FeedServiceServer};
use cairn_proto::feed::v1::{
    Change, Kind, Op, ReadFeedRequest, ReadFeedResponse, WatchFeedRequest, WatchFeedResponse,
};
use futures::{Stream, stream};
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::WORKSPACE;
use super::course::Course;

/// No identity of a simulation comes to its end.
const END_OF_TIME: Timestamp = Timestamp::from_seconds(4_000_000_000);

/// One write of the owner.
#[derive(Debug, Clone)]
pub(in crate::indexing) enum Edit {
    Put(u128, String),
    Remove(u128),
    /// A folder has changed, which is no document.
    Folder,
}

impl fmt::Display for Edit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Put(id, text) => write!(formatter, "put {id} {text:?}"),
            Self::Remove(id) => write!(formatter, "remove {id}"),
            Self::Folder => formatter.write_str("a folder"),
        }
    }
}

/// What the owner has in its tables.
#[derive(Debug, Clone, Default)]
pub(in crate::indexing) struct Truth {
    pub(in crate::indexing) texts: BTreeMap<Uuid, String>,
    feed: Vec<Change>,
}

impl Truth {
    pub(in crate::indexing) fn apply(&mut self, edit: Edit) {
        match edit {
            Edit::Put(id, text) => {
                self.texts.insert(Uuid::from_u128(id), text);
                self.tell(Kind::File, id, Op::Upsert);
            }
            Edit::Remove(id) => {
                self.texts.remove(&Uuid::from_u128(id));
                self.tell(Kind::File, id, Op::Delete);
            }
            Edit::Folder => self.tell(Kind::Folder, 1, Op::Upsert),
        }
    }

    fn tell(&mut self, kind: Kind, id: u128, op: Op) {
        let item_id = Uuid::from_u128(id).hyphenated().to_string();
        let position = self.head() + 1;
        self.feed.push(Change { position, kind: kind.into(), item_id, op: op.into() });
    }

    pub(in crate::indexing) fn head(&self) -> u64 {
        self.feed.len() as u64
    }

    /// The position of the last change of each document that ever was.
    pub(in crate::indexing) fn last_changes(&self) -> BTreeMap<Uuid, u64> {
        let documents = self.feed.iter().filter(|change| change.kind() == Kind::File);
        documents.map(|change| (change.item_id.parse().unwrap(), change.position)).collect()
    }

    fn document(&self, reference: &DocumentRef) -> Option<Document> {
        let id: Uuid = reference.id.parse().ok()?;
        let text = self.texts.get(&id)?;
        Some(Document {
            r#ref: Some(reference.clone()),
            title: "a file.md".to_owned(),
            format: Format::Markdown.into(),
            content: text.clone(),
            content_hash: hash_of(text),
            path: "/a file.md".to_owned(),
            ..Document::default()
        })
    }
}

/// What an owner would say that a text's hash is.
pub(in crate::indexing) fn hash_of(text: &str) -> String {
    format!("hash of {text}")
}

/// The owner as one process of retrieval meets it.
#[derive(Debug, Clone)]
pub(in crate::indexing) struct Double {
    pub(in crate::indexing) truth: Arc<Mutex<Truth>>,
    pub(in crate::indexing) course: Course,
    /// Changes that a read of the feed answers at most.
    pub(in crate::indexing) page: usize,
    /// The heads that its watch tells.
    pub(in crate::indexing) heads: Vec<u64>,
}

impl Double {
    pub(in crate::indexing) fn channel(&self) -> ServiceChannel {
        let routes = Routes::new(FeedServiceServer::new(self.clone()))
            .add_service(DocumentServiceServer::new(self.clone()))
            .add_service(KeyServiceServer::new(self.clone()));
        ServiceChannel::local(routes)
    }

    async fn pass(&self) -> Result<(), Status> {
        self.course.pass().await.map_err(|refused| Status::unavailable(refused.to_string()))
    }
}

#[tonic::async_trait]
impl FeedService for Double {
    type WatchFeedStream = Pin<Box<dyn Stream<Item = Result<WatchFeedResponse, Status>> + Send>>;

    async fn read_feed(
        &self,
        request: Request<ReadFeedRequest>,
    ) -> Result<Response<ReadFeedResponse>, Status> {
        self.pass().await?;
        let after = usize::try_from(request.into_inner().after).unwrap();
        let truth = self.truth.lock().unwrap();
        let changes = truth.feed.iter().skip(after).take(self.page).cloned().collect();
        Ok(Response::new(ReadFeedResponse { changes, head: truth.head() }))
    }

    async fn watch_feed(
        &self,
        _: Request<WatchFeedRequest>,
    ) -> Result<Response<Self::WatchFeedStream>, Status> {
        let told = |position| WatchFeedResponse {
            workspace_id: WORKSPACE.to_string(),
            position,
            every_head_told: false,
        };
        let heads: Vec<Result<_, Status>> = self.heads.iter().map(|position| Ok(told(*position))).collect();
        Ok(Response::new(Box::pin(stream::iter(heads))))
    }
}

#[tonic::async_trait]
impl DocumentService for Double {
    async fn read_documents(
        &self,
        request: Request<ReadDocumentsRequest>,
    ) -> Result<Response<ReadDocumentsResponse>, Status> {
        self.pass().await?;
        let refs = request.into_inner().refs;
        // Half of them at a time, as an owner may.
        let read = refs.len().div_ceil(2);
        let truth = self.truth.lock().unwrap();
        let documents = refs.iter().take(read).filter_map(|reference| truth.document(reference)).collect();
        Ok(Response::new(ReadDocumentsResponse { documents, read: u32::try_from(read).unwrap() }))
    }

    async fn confirm_documents(
        &self,
        _: Request<ConfirmDocumentsRequest>,
    ) -> Result<Response<ConfirmDocumentsResponse>, Status> {
        Err(Status::unimplemented("nobody searches here"))
    }

    async fn select_documents(
        &self,
        _: Request<SelectDocumentsRequest>,
    ) -> Result<Response<SelectDocumentsResponse>, Status> {
        Err(Status::unimplemented("nobody searches here"))
    }
}

#[tonic::async_trait]
impl KeyService for Double {
    async fn list_keys(&self, _: Request<ListKeysRequest>) -> Result<Response<ListKeysResponse>, Status> {
        Err(Status::unimplemented("nobody is asked who it is here"))
    }

    async fn issue_service_identity(
        &self,
        _: Request<IssueServiceIdentityRequest>,
    ) -> Result<Response<IssueServiceIdentityResponse>, Status> {
        let (identity, expires_at) = ("simulated".to_owned(), Some(END_OF_TIME.to_proto()));
        Ok(Response::new(IssueServiceIdentityResponse { identity, expires_at }))
    }
}
