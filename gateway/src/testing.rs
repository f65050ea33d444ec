//! A gateway over in-process fake services. The services' own rules are tested in their crates, and in black-box
//! tests.

mod activity;
mod auth;
mod batches;
pub(crate) mod console;
mod content;
pub(crate) mod databases;
pub(crate) mod feeds;
mod files;
mod memories;
pub(crate) mod outside;
pub(crate) mod questions;
mod retrieval;
pub(crate) mod syncs;
pub(crate) mod webhooks;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use axum::Router;
use axum::body::Body;
use cairn_chassis::ambient::Ambient;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::Clock;
use cairn_chassis::identity::{Identity, Permission, Role, Scope};
use cairn_chassis::testing::identity::Issuer;
use cairn_chassis::testing::server as double;
use cairn_chassis::token_format;
use cairn_proto::auth::v1::grant_service_server::GrantServiceServer;
use cairn_proto::auth::v1::invitation_service_server::InvitationServiceServer;
use cairn_proto::auth::v1::member_service_server::MemberServiceServer;
use cairn_proto::auth::v1::session_service_server::SessionServiceServer;
use cairn_proto::auth::v1::token_service_server::TokenServiceServer;
use cairn_proto::auth::v1::workspace_service_server::WorkspaceServiceServer;
use cairn_proto::content::v1::activity_service_server::ActivityServiceServer;
use cairn_proto::content::v1::batch_service_server::BatchServiceServer;
use cairn_proto::content::v1::database_service_server::DatabaseServiceServer;
use cairn_proto::content::v1::file_service_server::FileServiceServer;
use cairn_proto::content::v1::file_version_service_server::FileVersionServiceServer;
use cairn_proto::content::v1::folder_service_server::FolderServiceServer;
use cairn_proto::content::v1::location_service_server::LocationServiceServer;
use cairn_proto::content::v1::memory_service_server::MemoryServiceServer;
use cairn_proto::content::v1::name_service_server::NameServiceServer;
use cairn_proto::content::v1::overview_service_server::OverviewServiceServer;
use cairn_proto::content::v1::record_service_server::RecordServiceServer;
use cairn_proto::content::v1::trash_service_server::TrashServiceServer;
use cairn_proto::content::v1::usage_service_server::UsageServiceServer;
use cairn_proto::feed::v1::change_service_server::ChangeServiceServer;
use cairn_proto::feed::v1::feed_service_server::FeedServiceServer;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::ingest::v1::ingest_service_server::IngestServiceServer;
use cairn_proto::ingest::v1::location_service_server::LocationServiceServer as DocumentLocationServiceServer;
use cairn_proto::ingest::v1::source_service_server::SourceServiceServer;
use cairn_proto::ingest::v1::webhook_service_server::WebhookServiceServer;
use cairn_proto::retrieval::v1::golden_service_server::GoldenServiceServer;
use cairn_proto::retrieval::v1::index_service_server::IndexServiceServer;
use cairn_proto::retrieval::v1::search_service_server::SearchServiceServer;
use cairn_proto::sync::v1::import_service_server::ImportServiceServer;
use cairn_proto::sync::v1::sync_service_server::SyncServiceServer;
use http::{HeaderMap, Request, StatusCode};
use serde_json::Value;
use tonic::service::Routes;
use tower::ServiceExt as _;

use crate::{Config, Gateway, Upstreams};

/// The id of the one file that exists.
pub(crate) const FILE: &str = "0199c0de-0000-7000-8000-0000000000f1";
/// The id of the one file that is in trash.
pub(crate) const TRASHED: &str = "0199c0de-0000-7000-8000-0000000000f2";
/// The id of the one memory that exists, `guide`.
pub(crate) const MEMORY: &str = "0199c0de-0000-7000-8000-0000000000b1";
/// The id of the one workspace that exists.
pub(crate) const WORKSPACE: &str = "0199c0de-0000-7000-8000-0000000000a1";
/// The password of the one person that exists.
pub(crate) const PASSWORD: &str = "correct horse";

/// A gateway with a counter of the calls to its svc-auth.
pub(crate) struct Bench {
    pub(crate) router: Router,
    pub(crate) exchanges: Arc<AtomicUsize>,
    /// The feed of its svc-content.
    pub(crate) feed: feeds::Feed,
    pub(crate) gateway: Gateway,
}

/// A response with its body read.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }
}

/// A token that the fake svc-auth accepts.
pub(crate) fn token() -> String {
    token_format::assemble(&"a".repeat(token_format::RANDOM_LENGTH))
}

/// A well-formed token that it rejects.
pub(crate) fn refused_token() -> String {
    token_format::assemble(&"b".repeat(token_format::RANDOM_LENGTH))
}

pub(crate) async fn bench() -> Bench {
    bench_with(|ambient| ambient, nothing()).await
}

/// The same with a working svc-retrieval.
pub(crate) async fn bench_with_retrieval() -> Bench {
    let routes = Routes::new(SearchServiceServer::new(retrieval::Retrieval))
        .add_service(IndexServiceServer::new(retrieval::Retrieval))
        .add_service(GoldenServiceServer::new(retrieval::Retrieval));
    let retrieval = local(routes).await;
    bench_with(|ambient| ambient, retrieval).await
}

/// The channel to a service that is not there.
fn nothing() -> ServiceChannel {
    ServiceChannel::remote("http://127.0.0.1:1").unwrap()
}

/// A gateway on that clock.
pub(crate) async fn bench_on(clock: Arc<dyn Clock>) -> Bench {
    bench_with(|ambient| Ambient::new(clock, ambient.entropy, ambient.verifier), nothing()).await
}

/// A gateway with this svc-retrieval, for a person of that role in a workspace with the question log on.
pub(crate) async fn bench_of_questions(role: Role, retrieval: Routes) -> Bench {
    let retrieval = local(retrieval).await;
    bench_as(
        |ambient| ambient,
        retrieval,
        |issuer, workspace| Identity { question_log_days: Some(30), ..issuer.member(workspace, role) },
    )
    .await
}

async fn bench_with(change: impl FnOnce(Ambient) -> Ambient, retrieval: ServiceChannel) -> Bench {
    bench_as(change, retrieval, |issuer, workspace| issuer.member(workspace, Role::Owner)).await
}

async fn bench_as(
    change: impl FnOnce(Ambient) -> Ambient,
    retrieval: ServiceChannel,
    person: impl FnOnce(&Issuer, WorkspaceId) -> Identity,
) -> Bench {
    let issuer = Issuer::new().unwrap();
    let workspace: WorkspaceId = WORKSPACE.parse().unwrap();
    let identity = issuer.sign(&issuer.token(workspace, &Permission::ALL, Scope::All)).unwrap();
    let person = issuer.sign(&person(&issuer, workspace)).unwrap();
    let exchanges = Arc::new(AtomicUsize::new(0));
    let tokens = auth::Tokens { identity: identity.clone(), asked: Arc::clone(&exchanges) };
    let auth_routes = Routes::new(TokenServiceServer::new(tokens))
        .add_service(SessionServiceServer::new(auth::Sessions::new(person)))
        .add_service(WorkspaceServiceServer::new(auth::Workspaces))
        .add_service(GrantServiceServer::new(console::Console))
        .add_service(MemberServiceServer::new(console::Console))
        .add_service(InvitationServiceServer::new(console::Console));
    let auth = local(auth_routes).await;
    let feed = feeds::Feed::default();
    let content_routes = Routes::new(FileServiceServer::new(content::Files))
        .add_service(FeedServiceServer::new(feed.clone()))
        .add_service(ChangeServiceServer::new(feed.clone()))
        .add_service(MemoryServiceServer::new(memories::Memories))
        .add_service(NameServiceServer::new(console::Console))
        .add_service(OverviewServiceServer::new(console::Console))
        .add_service(ActivityServiceServer::new(activity::Activity))
        .add_service(BatchServiceServer::new(batches::Batches))
        .add_service(TrashServiceServer::new(console::Console))
        .add_service(UsageServiceServer::new(console::Console))
        .add_service(FolderServiceServer::new(console::Console))
        .add_service(DatabaseServiceServer::new(databases::Databases))
        .add_service(RecordServiceServer::new(databases::Databases))
        .add_service(LocationServiceServer::new(files::Locations))
        .add_service(FileVersionServiceServer::new(files::Versions));
    let content = local(content_routes).await;
    let ingest_routes = Routes::new(IngestServiceServer::new(outside::Outside))
        .add_service(ChangeServiceServer::new(feeds::Feed::default()))
        .add_service(DocumentLocationServiceServer::new(outside::Outside))
        .add_service(SourceServiceServer::new(outside::Outside))
        .add_service(WebhookServiceServer::new(webhooks::Webhooks));
    let ingest = local(ingest_routes).await;
    let sync = Routes::new(SyncServiceServer::new(syncs::Syncs));
    let sync = local(sync.add_service(ImportServiceServer::new(syncs::Syncs))).await;
    let upstreams = Upstreams {
        auth,
        content_feed: content.clone(),
        content,
        ingest_feed: nothing(),
        ingest,
        retrieval,
        sync,
    };
    let config = Config {
        base_url: Some("http://127.0.0.1:8700".to_owned()),
        max_body_bytes: 64 * 1024,
        ..Config::default()
    };
    let ambient = change(issuer.ambient());
    let gateway = Gateway::build(&config).unwrap().connect(upstreams, ambient);
    Bench { router: gateway.router(), exchanges, feed, gateway }
}

async fn local(routes: Routes) -> ServiceChannel {
    ServiceChannel::local(double::compose(routes, &[]).await.unwrap().routes)
}

impl Bench {
    /// Sends a request with the valid token, unless it has an Authorization of its own.
    pub(crate) async fn send(&self, mut request: Request<Body>) -> Answer {
        let bearer = format!("Bearer {}", token()).parse().unwrap();
        request.headers_mut().entry(http::header::AUTHORIZATION).or_insert(bearer);
        self.send_as_is(request).await
    }

    pub(crate) async fn send_as_is(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Body>) -> Answer {
        let request = Request::post(path).header("content-type", "application/json");
        self.send(request.body(body.into()).unwrap()).await
    }
}
