//! An owner of documents that the tests play, and a retrieval service that indexes it.

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
use cairn_proto::content::v1 as content;
use cairn_proto::content::v1::folder_service_server::{FolderService, FolderServiceServer};
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
use cairn_proto::retrieval::v1::search_service_client::SearchServiceClient;
use cairn_proto::retrieval::v1::{FeedPosition, SearchContextRequest, SearchContextResponse, Strategy};
use cairn_retrieval::{Config, Error, Preferences, Service, Upstreams};
use futures::Stream;
use std::collections::{BTreeMap, HashSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use uuid::Uuid;

pub(crate) const FOLDER: u128 = 77;

/// An owner whose documents the test writes by hand. The feed says what the test wants it to say, so that the index
/// can be made to lag behind the truth.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) issuer: Arc<Issuer>,
    pub(crate) state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) documents: BTreeMap<String, Document>,
    pub(crate) trashed: HashSet<String>,
    pub(crate) feed: Vec<Change>,
}

impl Owner {
    pub(crate) fn write(&self, id: u128, title: &str, content: &str, folder: Option<u128>) -> u64 {
        let id = Uuid::from_u128(id).hyphenated().to_string();
        self.write_silently(&id, title, content, folder);
        self.tell(&id, Op::Upsert)
    }

    pub(crate) fn write_silently(&self, id: &str, title: &str, content: &str, folder: Option<u128>) {
        let document = Document {
            r#ref: Some(DocumentRef { kind: Kind::File.into(), id: id.to_owned() }),
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
        state.feed.push(Change { position, kind: Kind::File.into(), item_id: id.to_owned(), op: op.into() });
        position
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
            .add_service(KeyServiceServer::new(self.clone()))
    }
}

#[tonic::async_trait]
impl FeedService for Owner {
    async fn read_feed(
        &self,
        request: Request<ReadFeedRequest>,
    ) -> Result<Response<ReadFeedResponse>, Status> {
        let after = usize::try_from(request.into_inner().after).unwrap();
        let state = self.state.lock().unwrap();
        let changes = state.feed.iter().skip(after).take(1_000).cloned().collect();
        Ok(Response::new(ReadFeedResponse { changes, head: u64::try_from(state.feed.len()).unwrap() }))
    }

    type WatchFeedStream = Pin<Box<dyn Stream<Item = Result<WatchFeedResponse, Status>> + Send>>;

    /// Tells the head once, and that it is the only one, and ends; who watches comes again.
    async fn watch_feed(
        &self,
        _: Request<WatchFeedRequest>,
    ) -> Result<Response<Self::WatchFeedStream>, Status> {
        let position = u64::try_from(self.state.lock().unwrap().feed.len()).unwrap();
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
        // Half of them at a time, as an owner may.
        let read = refs.len().div_ceil(2);
        let documents = self.live(&refs[..read]);
        Ok(Response::new(ReadDocumentsResponse { documents, read: u32::try_from(read).unwrap() }))
    }

    async fn confirm_documents(
        &self,
        request: Request<ConfirmDocumentsRequest>,
    ) -> Result<Response<ConfirmDocumentsResponse>, Status> {
        let live = self.live(&request.into_inner().refs).into_iter();
        let documents = live.map(|document| ConfirmedDocument {
            r#ref: document.r#ref,
            path: format!("/{}", document.title),
            title: document.title,
            folder_id: document.folder_id,
            content_hash: document.content_hash,
            updated_at: document.updated_at,
            ..ConfirmedDocument::default()
        });
        Ok(Response::new(ConfirmDocumentsResponse { documents: documents.collect() }))
    }

    async fn select_documents(
        &self,
        _: Request<SelectDocumentsRequest>,
    ) -> Result<Response<SelectDocumentsResponse>, Status> {
        unused()
    }
}

fn unused<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("the test does not need it"))
}

#[tonic::async_trait]
impl FolderService for Owner {
    async fn create_folder(
        &self,
        _: Request<content::CreateFolderRequest>,
    ) -> Result<Response<content::CreateFolderResponse>, Status> {
        unused()
    }

    async fn get_folder(
        &self,
        _: Request<content::GetFolderRequest>,
    ) -> Result<Response<content::GetFolderResponse>, Status> {
        unused()
    }

    async fn list_folders(
        &self,
        _: Request<content::ListFoldersRequest>,
    ) -> Result<Response<content::ListFoldersResponse>, Status> {
        unused()
    }

    async fn update_folder(
        &self,
        _: Request<content::UpdateFolderRequest>,
    ) -> Result<Response<content::UpdateFolderResponse>, Status> {
        unused()
    }

    async fn delete_folder(
        &self,
        _: Request<content::DeleteFolderRequest>,
    ) -> Result<Response<content::DeleteFolderResponse>, Status> {
        unused()
    }

    async fn resolve_scope(
        &self,
        _: Request<content::ResolveScopeRequest>,
    ) -> Result<Response<content::ResolveScopeResponse>, Status> {
        let folder_ids = vec![Uuid::from_u128(FOLDER).hyphenated().to_string()];
        Ok(Response::new(content::ResolveScopeResponse { whole_workspace: false, folder_ids }))
    }
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
        let owner = Owner { issuer: Arc::new(Issuer::new().unwrap()), state: Arc::default() };
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
    let upstreams = Upstreams { content: upstream, identity };
    Box::pin(Service::open(config, owner.issuer.ambient(), upstreams)).await
}

pub(crate) fn config(folder: &TempDir) -> Config {
    Config {
        ranking: Preferences::default(),
        browse: cairn_browse::Config::default(),
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
