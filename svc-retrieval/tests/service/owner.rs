//! An owner of documents that the tests play, and a retrieval service that indexes it.

#[path = "owner/content.rs"]
mod content;

use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::SystemClock;
use cairn_chassis::identity::{Identity, Permission, Scope, ServiceIdentitySource};
use cairn_chassis::sql;
use cairn_chassis::testing::identity::Issuer;
use cairn_chassis::testing::server as double;
use cairn_proto::auth::v1::key_service_server::{KeyService, KeyServiceServer};
use cairn_proto::auth::v1::{
    IssueServiceIdentityRequest, IssueServiceIdentityResponse, ListKeysRequest, ListKeysResponse,
};
use cairn_proto::content::v1::folder_service_server::FolderServiceServer;
use cairn_proto::content::v1::trash_service_server::TrashServiceServer;
use cairn_proto::content::v1::tree_service_server::TreeServiceServer;
use cairn_proto::document::v1::document_service_server::{DocumentService, DocumentServiceServer};
use cairn_proto::document::v1::{
    ConfirmDocumentsRequest, ConfirmDocumentsResponse, ConfirmedDocument, Document, DocumentRef, Format,
    ReadDocumentsRequest, ReadDocumentsResponse, SelectDocumentsRequest, SelectDocumentsResponse,
};
use cairn_proto::feed::v1::feed_service_server::{FeedService, FeedServiceServer};
use cairn_proto::feed::v1::{
    Change, Kind, Op, ReadFeedRequest, ReadFeedResponse, WatchFeedRequest, WatchFeedResponse,
};
use cairn_proto::ids::WorkspaceId;
use cairn_proto::ingest::v1::indexing_service_server::{IndexingService, IndexingServiceServer};
use cairn_proto::ingest::v1::live_service_server::LiveServiceServer;
use cairn_proto::ingest::v1::source_service_server::SourceServiceServer;
use cairn_proto::ingest::v1::{AckDocumentsRequest, AckDocumentsResponse, IndexedDocument, Source};
use cairn_proto::retrieval::v1::search_service_client::SearchServiceClient;
use cairn_proto::retrieval::v1::{FeedPosition, SearchContextRequest, SearchContextResponse, Strategy};
use cairn_retrieval::{Config, Error, Preferences, Service, Upstreams};
use futures::Stream;
use std::collections::{BTreeMap, HashSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use tempfile::TempDir;
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::providers::Providers;

pub(crate) const FOLDER: u128 = 77;

/// An owner whose documents the test writes by hand. The feed says what the test wants it to say, so that the index
/// can be made to lag behind the truth.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) issuer: Arc<Issuer>,
    pub(crate) state: Arc<Mutex<State>>,
    /// What its documents are.
    pub(crate) kind: Kind,
    /// The owner of outside documents beside it.
    pub(crate) outside: Option<Arc<Self>>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) documents: BTreeMap<String, Document>,
    pub(crate) trashed: HashSet<String>,
    /// What callers of some folders are not told of.
    pub(crate) hidden: HashSet<String>,
    pub(crate) feed: Vec<Change>,
    /// The folders' names.
    pub(crate) folders: BTreeMap<u128, String>,
    /// The databases' names.
    pub(crate) databases: BTreeMap<u128, String>,
    pub(crate) keeps_names_to_itself: bool,
    /// Whether it answers nothing.
    pub(crate) is_down: bool,
    /// How many of its next calls fail, after they were done.
    pub(crate) lost_answers: usize,
    /// What it was told that was indexed.
    pub(crate) acknowledged: Vec<IndexedDocument>,
    pub(crate) sources: Vec<Source>,
    pub(crate) providers: Providers,
    pub(crate) asked: Asked,
}

/// How often it was asked.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) confirm: usize,
    pub(crate) select: usize,
    pub(crate) sources: usize,
    pub(crate) folders: usize,
}

impl State {
    fn tell_of(&mut self, kind: Kind, id: u128) -> u64 {
        let position = u64::try_from(self.feed.len()).unwrap() + 1;
        let item_id = Uuid::from_u128(id).hyphenated().to_string();
        self.feed.push(Change { position, kind: kind.into(), item_id, op: Op::Upsert.into() });
        position
    }
}

impl Owner {
    pub(crate) fn new() -> Self {
        let issuer = Arc::new(Issuer::new().unwrap());
        let outside =
            Self { issuer: Arc::clone(&issuer), state: Arc::default(), kind: Kind::Ingested, outside: None };
        Self { issuer, state: Arc::default(), kind: Kind::File, outside: Some(Arc::new(outside)) }
    }

    pub(crate) fn outside(&self) -> &Self {
        self.outside.as_ref().unwrap()
    }

    pub(crate) fn answering(&self) -> Result<MutexGuard<'_, State>, Status> {
        let state = self.state.lock().unwrap();
        if state.is_down { Err(Status::unavailable("it is down")) } else { Ok(state) }
    }

    pub(crate) fn write(&self, id: u128, title: &str, content: &str, folder: Option<u128>) -> u64 {
        let id = Uuid::from_u128(id).hyphenated().to_string();
        self.write_silently(&id, title, content, folder);
        self.tell(&id, Op::Upsert)
    }

    pub(crate) fn write_silently(&self, id: &str, title: &str, content: &str, folder: Option<u128>) {
        let document = Document {
            r#ref: Some(DocumentRef { kind: self.kind.into(), id: id.to_owned() }),
            title: title.to_owned(),
            format: Format::Markdown.into(),
            content: content.to_owned(),
            content_hash: format!("hash of {content}"),
            folder_id: folder.map(|id| Uuid::from_u128(id).hyphenated().to_string()),
            updated_at: None,
            path: format!("/{title}"),
            ..Document::default()
        };
        self.state.lock().unwrap().documents.insert(id.to_owned(), document);
    }

    pub(crate) fn tell(&self, id: &str, op: Op) -> u64 {
        let mut state = self.state.lock().unwrap();
        let position = u64::try_from(state.feed.len()).unwrap() + 1;
        let document = state.documents.get(id).and_then(|document| document.r#ref.clone());
        let kind = document.map_or_else(|| self.kind.into(), |reference| reference.kind);
        state.feed.push(Change { position, kind, item_id: id.to_owned(), op: op.into() });
        position
    }

    /// Calls a folder so, and tells the feed.
    pub(crate) fn name_folder(&self, id: u128, name: &str) -> u64 {
        let mut state = self.state.lock().unwrap();
        state.folders.insert(id, name.to_owned());
        state.tell_of(Kind::Folder, id)
    }

    /// Calls a database so, and tells the feed.
    pub(crate) fn name_database(&self, id: u128, name: &str) -> u64 {
        let mut state = self.state.lock().unwrap();
        state.databases.insert(id, name.to_owned());
        state.tell_of(Kind::Database, id)
    }

    /// Writes a record of a database in the root, and tells the feed.
    pub(crate) fn write_record(&self, id: u128, title: &str, content: &str, database: u128) -> u64 {
        let id = Uuid::from_u128(id).hyphenated().to_string();
        self.write_silently(&id, title, content, None);
        if let Some(document) = self.state.lock().unwrap().documents.get_mut(&id) {
            document.r#ref = Some(DocumentRef { kind: Kind::Record.into(), id: id.clone() });
            document.database_id = Some(Uuid::from_u128(database).hyphenated().to_string());
        }
        self.tell(&id, Op::Upsert)
    }

    /// Trashes a document without telling the feed: the index still believes in it.
    pub(crate) fn trash_silently(&self, id: u128) {
        self.state.lock().unwrap().trashed.insert(Uuid::from_u128(id).hyphenated().to_string());
    }

    pub(crate) fn live(&self, refs: &[DocumentRef]) -> Vec<Document> {
        let state = self.state.lock().unwrap();
        let wanted = refs.iter().filter(|reference| !state.trashed.contains(&reference.id));
        wanted.filter_map(|reference| state.documents.get(&reference.id)).cloned().collect()
    }

    pub(crate) fn routes(&self) -> Routes {
        Routes::new(FeedServiceServer::new(self.clone()))
            .add_service(DocumentServiceServer::new(self.clone()))
            .add_service(FolderServiceServer::new(self.clone()))
            .add_service(TrashServiceServer::new(self.clone()))
            .add_service(TreeServiceServer::new(self.clone()))
            .add_service(KeyServiceServer::new(self.clone()))
            .add_service(IndexingServiceServer::new(self.clone()))
            .add_service(SourceServiceServer::new(self.clone()))
            .add_service(LiveServiceServer::new(self.clone()))
    }
}

#[tonic::async_trait]
impl FeedService for Owner {
    async fn read_feed(
        &self,
        request: Request<ReadFeedRequest>,
    ) -> Result<Response<ReadFeedResponse>, Status> {
        let after = usize::try_from(request.into_inner().after).unwrap();
        let state = self.answering()?;
        let changes = state.feed.iter().skip(after).take(1_000).cloned().collect();
        Ok(Response::new(ReadFeedResponse { changes, head: u64::try_from(state.feed.len()).unwrap() }))
    }

    type WatchFeedStream = Pin<Box<dyn Stream<Item = Result<WatchFeedResponse, Status>> + Send>>;

    /// Tells the head once, and that it is the only one, and ends; who watches comes again.
    async fn watch_feed(
        &self,
        _: Request<WatchFeedRequest>,
    ) -> Result<Response<Self::WatchFeedStream>, Status> {
        let position = u64::try_from(self.answering()?.feed.len()).unwrap();
        let workspace_id = WorkspaceId(Uuid::from_u128(1)).to_string();
        let told = [
            WatchFeedResponse { workspace_id, position, every_head_told: false },
            WatchFeedResponse { every_head_told: true, ..WatchFeedResponse::default() },
        ];
        Ok(Response::new(Box::pin(tokio_stream::iter(told.map(Ok)))))
    }
}

#[tonic::async_trait]
impl DocumentService for Owner {
    async fn read_documents(
        &self,
        request: Request<ReadDocumentsRequest>,
    ) -> Result<Response<ReadDocumentsResponse>, Status> {
        let refs = request.into_inner().refs;
        drop(self.answering()?);
        // Half of them at a time, as an owner may.
        let read = refs.len().div_ceil(2);
        let documents = self.live(&refs[..read]);
        Ok(Response::new(ReadDocumentsResponse { documents, read: u32::try_from(read).unwrap() }))
    }

    async fn confirm_documents(
        &self,
        request: Request<ConfirmDocumentsRequest>,
    ) -> Result<Response<ConfirmDocumentsResponse>, Status> {
        self.answering()?.asked.confirm += 1;
        let hidden = self.answering()?.hidden.clone();
        let is_scoped = match hidden.is_empty() {
            true => false,
            false => {
                let verifier = self.issuer.ambient().verifier;
                verifier.authenticate(request.metadata()).await?.scope != Scope::All
            }
        };
        let mut refs = request.into_inner().refs;
        refs.retain(|reference| !is_scoped || !hidden.contains(&reference.id));
        let live = self.live(&refs).into_iter();
        let documents = live.map(|document| ConfirmedDocument {
            r#ref: document.r#ref,
            path: document.path,
            url: (self.kind == Kind::Ingested).then(|| format!("https://outside.example/{}", document.title)),
            title: document.title,
            folder_id: document.folder_id,
            content_hash: document.content_hash,
            updated_at: document.updated_at,
            source_name: document.source_id.as_ref().map(|_| "Wiki".to_owned()),
            provider: document.source_id.as_ref().map(|_| "notion".to_owned()),
            source_id: document.source_id,
            catalog_only: document.catalog_only,
            ..ConfirmedDocument::default()
        });
        Ok(Response::new(ConfirmDocumentsResponse { documents: documents.collect() }))
    }

    async fn select_documents(
        &self,
        request: Request<SelectDocumentsRequest>,
    ) -> Result<Response<SelectDocumentsResponse>, Status> {
        let mut state = self.answering()?;
        state.asked.select += 1;
        let kinds = request.into_inner().kinds;
        let is_wanted = |document: &&Document| kinds.contains(&document.r#ref.as_ref().unwrap().kind);
        let wanted = state.documents.values().filter(is_wanted);
        let id = |document: &Document| {
            let id = Uuid::try_parse(&document.r#ref.as_ref().unwrap().id).unwrap();
            bytes::Bytes::copy_from_slice(id.as_bytes())
        };
        Ok(Response::new(SelectDocumentsResponse { document_ids: wanted.map(id).collect() }))
    }
}

#[tonic::async_trait]
impl IndexingService for Owner {
    async fn ack_documents(
        &self,
        request: Request<AckDocumentsRequest>,
    ) -> Result<Response<AckDocumentsResponse>, Status> {
        let mut state = self.answering()?;
        state.acknowledged.extend(request.into_inner().documents);
        if state.lost_answers > 0 {
            state.lost_answers -= 1;
            return Err(Status::unavailable("the answer is lost"));
        }
        Ok(Response::new(AckDocumentsResponse {}))
    }
}

fn unused<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("the test does not need it"))
}

#[tonic::async_trait]
impl KeyService for Owner {
    async fn list_keys(&self, _: Request<ListKeysRequest>) -> Result<Response<ListKeysResponse>, Status> {
        unused()
    }

    async fn issue_service_identity(
        &self,
        _: Request<IssueServiceIdentityRequest>,
    ) -> Result<Response<IssueServiceIdentityResponse>, Status> {
        let service = self.issuer.service("retrieval");
        let identity = self.issuer.sign(&service).unwrap();
        let expires_at = Some(service.expires_at.to_proto());
        Ok(Response::new(IssueServiceIdentityResponse { identity, expires_at }))
    }
}

pub(crate) struct Bench {
    pub(crate) owner: Owner,
    pub(crate) workspace: WorkspaceId,
    pub(crate) channel: ServiceChannel,
    pub(crate) folder: TempDir,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let owner = Owner::new();
        let folder = tempfile::tempdir().unwrap();
        let channel = open(&owner, &folder).await;
        Self { owner, workspace: WorkspaceId(Uuid::from_u128(1)), channel, folder }
    }

    pub(crate) fn token(&self) -> Identity {
        self.owner.issuer.token(self.workspace, &[Permission::Read], Scope::All)
    }

    pub(crate) async fn search_as(
        &self,
        identity: &Identity,
        request: SearchContextRequest,
    ) -> Result<SearchContextResponse, Status> {
        let request = self.owner.issuer.request_as(identity, request).unwrap();
        Ok(SearchServiceClient::new(self.channel.clone()).search_context(request).await?.into_inner())
    }

    pub(crate) async fn search(&self, query: &str, strategy: Strategy, after: u64) -> SearchContextResponse {
        self.search_as(&self.token(), request(query, strategy, after)).await.unwrap()
    }
}

/// Without the watch: the index moves only when a search waits for a write.
pub(crate) async fn open(owner: &Owner, folder: &TempDir) -> ServiceChannel {
    serve(&open_service(owner, folder).await).await
}

pub(crate) async fn open_service(owner: &Owner, folder: &TempDir) -> Service {
    try_open(owner, config(folder)).await.unwrap()
}

pub(crate) async fn try_open(owner: &Owner, config: Config) -> Result<Service, Error> {
    let upstream = ServiceChannel::local(owner.routes());
    let identity =
        ServiceIdentitySource::new("retrieval", "secret".into(), upstream.clone(), Arc::new(SystemClock));
    let ingest = ServiceChannel::local(owner.outside().routes());
    let upstreams = Upstreams { content: upstream, ingest, identity };
    Box::pin(Service::open(config, owner.issuer.ambient(), upstreams)).await
}

pub(crate) fn config(folder: &TempDir) -> Config {
    Config {
        ranking: Preferences::default(),
        browse: cairn_browse::Config::default(),
        names_bytes: 1 << 20,
        index_folder: folder.path().join("index"),
        qdrant: None,
        embedding: cairn_embed::Config::default(),
        storage: sql::Config::sqlite(folder.path().join("retrieval.db")),
    }
}

pub(crate) async fn serve(service: &Service) -> ServiceChannel {
    let names = cairn_retrieval::SERVICE_NAMES;
    let composed = double::compose(service.routes(), names).await.unwrap();
    ServiceChannel::local(composed.routes)
}

pub(crate) fn request(query: &str, strategy: Strategy, after: u64) -> SearchContextRequest {
    SearchContextRequest {
        query: query.to_owned(),
        strategy: strategy.into(),
        after: vec![FeedPosition { feed: "content".into(), position: after }],
        ..SearchContextRequest::default()
    }
}
