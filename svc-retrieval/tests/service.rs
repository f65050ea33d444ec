//! The retrieval service against an owner that the test plays: what the index proposes and the owner disposes of.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking; clippy knows that of test functions, but not of their helpers"
)]

use std::collections::{BTreeMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::SystemClock;
use cairn_chassis::identity::{Identity, Permission, Scope, ServiceIdentitySource};
use cairn_chassis::server;
use cairn_chassis::testing::identity::Issuer;
use cairn_proto::auth::v1::key_service_server::{KeyService, KeyServiceServer};
use cairn_proto::auth::v1::{
    IssueServiceIdentityRequest, IssueServiceIdentityResponse, ListKeysRequest, ListKeysResponse,
};
use cairn_proto::content::v1 as content;
use cairn_proto::content::v1::folder_service_server::{FolderService, FolderServiceServer};
use cairn_proto::document::v1::document_service_server::{DocumentService, DocumentServiceServer};
use cairn_proto::document::v1::{
    ConfirmDocumentsRequest, ConfirmDocumentsResponse, ConfirmedDocument, Document, DocumentRef, Format,
    ReadDocumentsRequest, ReadDocumentsResponse,
};
use cairn_proto::feed::v1::feed_service_server::{FeedService, FeedServiceServer};
use cairn_proto::feed::v1::{
    Change, Kind, Op, ReadFeedRequest, ReadFeedResponse, WatchFeedRequest, WatchFeedResponse,
};
use cairn_proto::ids::{FolderId, WorkspaceId};
use cairn_proto::retrieval::v1::search_service_client::SearchServiceClient;
use cairn_proto::retrieval::v1::{
    FeedPosition, SearchContextRequest, SearchContextResponse, Strategy, Subquery, SubqueryType,
};
use cairn_retrieval::{Config, Service, Upstreams};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::{Code, Request, Response, Status};
use uuid::Uuid;

const FOLDER: u128 = 77;

/// An owner whose documents the test writes by hand. The feed says what the test wants it to say, so that the index
/// can be made to lag behind the truth.
#[derive(Debug, Clone)]
struct Owner {
    issuer: Arc<Issuer>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    documents: BTreeMap<String, Document>,
    trashed: HashSet<String>,
    feed: Vec<Change>,
}

impl Owner {
    fn write(&self, id: u128, title: &str, content: &str, folder: Option<u128>) -> u64 {
        let id = Uuid::from_u128(id).hyphenated().to_string();
        self.write_silently(&id, title, content, folder);
        self.tell(&id, Op::Upsert)
    }

    fn write_silently(&self, id: &str, title: &str, content: &str, folder: Option<u128>) {
        let document = Document {
            r#ref: Some(DocumentRef { kind: Kind::File.into(), id: id.to_owned() }),
            title: title.to_owned(),
            format: Format::Markdown.into(),
            content: content.to_owned(),
            content_hash: format!("hash of {content}"),
            folder_id: folder.map(|id| Uuid::from_u128(id).hyphenated().to_string()),
            updated_at: None,
        };
        self.state.lock().unwrap().documents.insert(id.to_owned(), document);
    }

    fn tell(&self, id: &str, op: Op) -> u64 {
        let mut state = self.state.lock().unwrap();
        let position = u64::try_from(state.feed.len()).unwrap() + 1;
        state.feed.push(Change { position, kind: Kind::File.into(), item_id: id.to_owned(), op: op.into() });
        position
    }

    /// Trashes a document without telling the feed: the index still believes in it.
    fn trash_silently(&self, id: u128) {
        self.state.lock().unwrap().trashed.insert(Uuid::from_u128(id).hyphenated().to_string());
    }

    fn live(&self, refs: &[DocumentRef]) -> Vec<Document> {
        let state = self.state.lock().unwrap();
        let wanted = refs.iter().filter(|reference| !state.trashed.contains(&reference.id));
        wanted.filter_map(|reference| state.documents.get(&reference.id)).cloned().collect()
    }

    fn routes(&self) -> Routes {
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

    type WatchFeedStream = tokio_stream::Once<Result<WatchFeedResponse, Status>>;

    /// Tells the head once and ends; who watches comes again.
    async fn watch_feed(
        &self,
        _: Request<WatchFeedRequest>,
    ) -> Result<Response<Self::WatchFeedStream>, Status> {
        let position = u64::try_from(self.state.lock().unwrap().feed.len()).unwrap();
        let workspace_id = WorkspaceId(Uuid::from_u128(1)).to_string();
        Ok(Response::new(tokio_stream::once(Ok(WatchFeedResponse { workspace_id, position }))))
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
            updated_at: None,
            database_id: None,
        });
        Ok(Response::new(ConfirmDocumentsResponse { documents: documents.collect() }))
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

struct Bench {
    owner: Owner,
    workspace: WorkspaceId,
    channel: ServiceChannel,
    folder: TempDir,
}

impl Bench {
    async fn new() -> Self {
        let owner = Owner { issuer: Arc::new(Issuer::new().unwrap()), state: Arc::default() };
        let folder = tempfile::tempdir().unwrap();
        let channel = open(&owner, &folder).await;
        Self { owner, workspace: WorkspaceId(Uuid::from_u128(1)), channel, folder }
    }

    fn token(&self) -> Identity {
        self.owner.issuer.token(self.workspace, &[Permission::Read], Scope::All)
    }

    async fn search_as(
        &self,
        identity: &Identity,
        request: SearchContextRequest,
    ) -> Result<SearchContextResponse, Status> {
        let request = self.owner.issuer.request_as(identity, request).unwrap();
        Ok(SearchServiceClient::new(self.channel.clone()).search_context(request).await?.into_inner())
    }

    async fn search(&self, query: &str, strategy: Strategy, after: u64) -> SearchContextResponse {
        self.search_as(&self.token(), request(query, strategy, after)).await.unwrap()
    }
}

/// Without the watch: the index moves only when a search waits for a write.
async fn open(owner: &Owner, folder: &TempDir) -> ServiceChannel {
    serve(&open_service(owner, folder).await).await
}

async fn open_service(owner: &Owner, folder: &TempDir) -> Service {
    let upstream = ServiceChannel::local(owner.routes());
    let identity =
        ServiceIdentitySource::new("retrieval", "secret".into(), upstream.clone(), Arc::new(SystemClock));
    let config = Config { index_folder: folder.path().join("index") };
    let upstreams = Upstreams { content: upstream, identity };
    Service::open(config, owner.issuer.ambient(), upstreams).await.unwrap()
}

async fn serve(service: &Service) -> ServiceChannel {
    let composed = server::compose(service.routes(), cairn_retrieval::SERVICE_NAMES).await.unwrap();
    ServiceChannel::local(composed.routes)
}

fn request(query: &str, strategy: Strategy, after: u64) -> SearchContextRequest {
    SearchContextRequest {
        query: query.to_owned(),
        strategy: strategy.into(),
        after: vec![FeedPosition { feed: "content".into(), position: after }],
        ..SearchContextRequest::default()
    }
}

const HONEY: &str =
    "# Bees\n\nBees make honey from nectar.\n\n# Bears\n\nA bear sleeps through the winter.\n";

#[tokio::test(flavor = "multi_thread")]
async fn every_strategy_finds_and_cites() {
    let bench = Bench::new().await;
    let position = bench.owner.write(1, "animals.md", HONEY, None);
    for strategy in [Strategy::Keyword, Strategy::Semantic, Strategy::Hybrid] {
        let answer = bench.search("honey nectar", strategy, position).await;
        let best = answer.results.first().unwrap_or_else(|| panic!("{strategy:?} found nothing"));
        assert!(best.content.contains("Bees make honey"), "{strategy:?}: {}", best.content);
        let citation = best.citation.clone().unwrap();
        let location = citation.location.unwrap();
        let lines: Vec<&str> = HONEY.lines().collect();
        let cited = &lines[location.start_line as usize - 1..location.end_line as usize];
        assert_eq!(cited.join("\n"), best.content, "{strategy:?}");
        assert_eq!(citation.path, "/animals.md");
        assert!(best.score > 0.0 && best.score <= 1.0);
        assert!(answer.coverage.is_empty(), "{:?}", answer.coverage);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_has_the_last_word() {
    let bench = Bench::new().await;
    bench.owner.write(1, "one.md", "The launch code is swordfish.\n", None);
    let position = bench.owner.write(2, "two.md", "Swordfish is a fish.\n", None);
    assert_eq!(bench.search("swordfish", Strategy::Keyword, position).await.results.len(), 2);

    bench.owner.trash_silently(1);
    let answer = bench.search("swordfish", Strategy::Hybrid, position).await;
    assert_eq!(answer.results.len(), 1);
    assert_eq!(answer.results[0].document_id, Uuid::from_u128(2).hyphenated().to_string());

    // The text changed and the index does not know yet: the old lines are not shown.
    let id = Uuid::from_u128(2).hyphenated().to_string();
    bench.owner.write_silently(&id, "two.md", "Nothing to see.\n", None);
    let answer = bench.search("swordfish", Strategy::Keyword, position).await;
    assert!(answer.results.is_empty());
    assert_eq!(answer.coverage[0].code, "index_behind");

    let position = bench.owner.tell(&id, Op::Upsert);
    let answer = bench.search("nothing", Strategy::Keyword, position).await;
    assert_eq!(answer.results[0].content, "Nothing to see.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_document_leaves_the_index() {
    let bench = Bench::new().await;
    let position = bench.owner.write(1, "one.md", "A heron stands still.\n", None);
    assert_eq!(bench.search("heron", Strategy::Keyword, position).await.results.len(), 1);
    let id = Uuid::from_u128(1).hyphenated().to_string();
    bench.owner.trash_silently(1);
    let position = bench.owner.tell(&id, Op::Delete);
    assert!(bench.search("heron", Strategy::Keyword, position).await.results.is_empty());
    // Were it back without the feed's word, the index would still know nothing of it.
    bench.owner.state.lock().unwrap().trashed.clear();
    assert!(bench.search("heron", Strategy::Keyword, position).await.results.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_narrows_the_lists_before_they_are_cut() {
    let bench = Bench::new().await;
    for number in 0..150 {
        bench.owner.write(1_000 + number, "outside.md", "Badger badger badger badger.\n", None);
    }
    let text =
        "One badger among many other words that make this passage a weaker match than all of the others.\n";
    let position = bench.owner.write(1, "inside.md", text, Some(FOLDER));
    let folder = FolderId(Uuid::from_u128(FOLDER));
    let scoped =
        bench.owner.issuer.token(bench.workspace, &[Permission::Read], Scope::Folders([folder].into()));
    for strategy in [Strategy::Keyword, Strategy::Semantic, Strategy::Hybrid] {
        let answer = bench.search_as(&scoped, request("badger", strategy, position)).await.unwrap();
        let found: Vec<&str> = answer.results.iter().map(|result| result.document_id.as_str()).collect();
        assert_eq!(found, [Uuid::from_u128(1).hyphenated().to_string()], "{strategy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exclusions_hold_for_every_list() {
    let bench = Bench::new().await;
    bench.owner.write(1, "one.md", "Python is a snake.\n", None);
    let position = bench.owner.write(2, "two.md", "Python is a language.\n", None);
    for strategy in [Strategy::Keyword, Strategy::Semantic, Strategy::Hybrid] {
        let answer = bench.search("python -snake", strategy, position).await;
        assert!(!answer.results.is_empty(), "{strategy:?}");
        assert!(answer.results.iter().all(|result| !result.content.contains("snake")), "{strategy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_adds_up_to_the_score() {
    let bench = Bench::new().await;
    let position = bench.owner.write(1, "animals.md", HONEY, None);
    let subquery = |kind: SubqueryType, text: &str| Subquery { r#type: kind.into(), text: text.into() };
    let several =
        vec![subquery(SubqueryType::Lex, "bear winter"), subquery(SubqueryType::Hyde, "bears sleep")];
    for (strategy, searches) in [
        (Strategy::Keyword, Vec::new()),
        (Strategy::Semantic, Vec::new()),
        (Strategy::Hybrid, Vec::new()),
        (Strategy::Hybrid, several),
    ] {
        let explained =
            SearchContextRequest { explain: true, searches, ..request("honey", strategy, position) };
        let answer = bench.search_as(&bench.token(), explained).await.unwrap();
        assert!(!answer.results.is_empty());
        for result in answer.results {
            let trace = result.trace.unwrap();
            let sum: f64 = trace.subqueries.iter().map(|list| list.contribution).sum::<f64>() + trace.bonuses;
            assert!((sum - result.score).abs() < 1e-5, "{strategy:?}: {sum} is not {}", result.score);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_budget_cuts_whole_chunks_and_says_so() {
    let bench = Bench::new().await;
    for number in 1..=4 {
        bench.owner.write(
            number,
            "long.md",
            &format!("Otter {number}. {}\n", "river stone ".repeat(100)),
            None,
        );
    }
    let position = bench.owner.write(5, "short.md", "An otter.\n", None);
    let cut = SearchContextRequest { token_budget: 400, ..request("otter", Strategy::Keyword, position) };
    let answer = bench.search_as(&bench.token(), cut).await.unwrap();
    let bytes: usize = answer.results.iter().map(|result| result.content.len()).sum();
    assert!(bytes <= 1_600 && !answer.results.is_empty());
    assert_eq!(answer.coverage[0].code, "token_budget");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_index_folder_comes_back_from_the_feed() {
    let mut bench = Bench::new().await;
    let position = bench.owner.write(1, "animals.md", HONEY, None);
    assert_eq!(bench.search("honey", Strategy::Keyword, position).await.results.len(), 1);
    bench.channel = ServiceChannel::local(Routes::default());
    std::fs::remove_dir_all(bench.folder.path().join("index")).unwrap();
    bench.channel = open(&bench.owner, &bench.folder).await;
    assert_eq!(bench.search("honey", Strategy::Keyword, position).await.results.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_is_not_there_is_a_note_and_not_an_error() {
    let bench = Bench::new().await;
    let position = bench.owner.write(1, "animals.md", HONEY, None);
    let waiting = SearchContextRequest {
        after: vec![FeedPosition { feed: "unknown".into(), position: 1 }],
        ..request("honey", Strategy::Keyword, position)
    };
    let answer = bench.search_as(&bench.token(), waiting).await.unwrap();
    assert_eq!(answer.coverage[0].code, "index_behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_are_checked_here_too() {
    let bench = Bench::new().await;
    let mut client = SearchServiceClient::new(bench.channel.clone());
    let nobody = client.search_context(request("x", Strategy::Hybrid, 0)).await.unwrap_err();
    assert_eq!(nobody.code(), Code::Unauthenticated);
    let writer = bench.owner.issuer.token(bench.workspace, &[Permission::Write], Scope::All);
    let refused = bench.search_as(&writer, request("x", Strategy::Hybrid, 0)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let invalid = bench.search_as(&bench.token(), request(" ", Strategy::Hybrid, 0)).await.unwrap_err();
    assert_eq!(invalid.code(), Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_answers_come_over_tcp() {
    let mut bench = Bench::new().await;
    let upstream = ServiceChannel::local(bench.owner.routes());
    let identity =
        ServiceIdentitySource::new("retrieval", "secret".into(), upstream.clone(), Arc::new(SystemClock));
    let folder = tempfile::tempdir().unwrap();
    let config = Config { index_folder: folder.path().join("index") };
    let service =
        Service::open(config, bench.owner.issuer.ambient(), Upstreams { content: upstream, identity })
            .await
            .unwrap();
    let composed = server::compose(service.routes(), cairn_retrieval::SERVICE_NAMES).await.unwrap();
    let listener = server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(composed.serve(listener, CancellationToken::new()));

    let position = bench.owner.write(1, "animals.md", HONEY, None);
    let local = bench.search("bear in winter", Strategy::Hybrid, position).await;
    bench.channel = ServiceChannel::remote(&format!("http://{address}")).unwrap();
    let remote = tokio::time::timeout(
        Duration::from_secs(30),
        bench.search("bear in winter", Strategy::Hybrid, position),
    );
    assert_eq!(remote.await.unwrap(), local);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_restored_from_an_older_copy_is_indexed_anew() {
    let mut bench = Bench::new().await;
    bench.owner.write(1, "old.md", "The herons came in March.\n", None);
    let position = bench.owner.write(2, "lost.md", "The herons left in June.\n", None);
    assert_eq!(bench.search("herons", Strategy::Keyword, position).await.results.len(), 2);

    // Back to the first write, and on to another one at the position of the lost one.
    bench.channel = ServiceChannel::local(Routes::default());
    let lost = Uuid::from_u128(2).hyphenated().to_string();
    {
        let mut state = bench.owner.state.lock().unwrap();
        state.feed.truncate(1);
        state.documents.remove(&lost);
    }
    let service = open_service(&bench.owner, &bench.folder).await;
    bench.channel = serve(&service).await;
    let shutdown = CancellationToken::new();
    let watching = tokio::spawn({
        let (service, shutdown) = (service.clone(), shutdown.clone());
        async move { service.run(shutdown).await }
    });
    // Until the index has started over, it believes that it has seen the lost position.
    let started_over = async {
        while bench.search("herons", Strategy::Keyword, position).await.coverage.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), started_over).await.unwrap();

    let position = bench.owner.write(3, "new.md", "The herons are back.\n", None);
    assert_eq!(position, 2);
    let answer = bench.search("herons back", Strategy::Keyword, position).await;
    assert_eq!(answer.results[0].content, "The herons are back.");
    shutdown.cancel();
    watching.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_that_the_feed_does_not_have_is_not_waited_for() {
    let bench = Bench::new().await;
    let position = bench.owner.write(1, "animals.md", HONEY, None);
    let answer = bench.search("honey", Strategy::Keyword, u64::MAX).await;
    assert_eq!(answer.coverage[0].code, "index_behind");
    assert_eq!(answer.results.len(), 1);
    // Nobody else is told that the index is behind because of it.
    assert!(bench.search("honey", Strategy::Keyword, position).await.coverage.is_empty());
}
