//! Direct gRPC over TCP (contract, "Identity"): each service authorizes by itself, without relying on the gateway.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::token_format;
use cairn_proto::auth::v1::invitation_service_client::InvitationServiceClient;
use cairn_proto::auth::v1::key_service_client::KeyServiceClient;
use cairn_proto::auth::v1::oauth_service_client::OauthServiceClient;
use cairn_proto::auth::v1::oidc_service_client::OidcServiceClient;
use cairn_proto::auth::v1::session_service_client::SessionServiceClient;
use cairn_proto::auth::v1::token_service_client::TokenServiceClient;
use cairn_proto::auth::v1::{
    CreateSessionRequest, DeleteSessionRequest, ExchangeRequest, GetProviderRequest,
    IssueServiceIdentityRequest, LookUpInvitationRequest, RegisterClientRequest,
};
use cairn_proto::content::v1::file_service_client::FileServiceClient;
use cairn_proto::content::v1::folder_service_client::FolderServiceClient;
use cairn_proto::content::v1::{
    CreateFileRequest, DeleteFileRequest, FileType, GetFileRequest, ListFilesRequest, ListFoldersRequest,
};
use cairn_proto::document::v1::ReadDocumentsRequest;
use cairn_proto::document::v1::document_service_client::DocumentServiceClient;
use cairn_proto::feed::v1::ReadFeedRequest;
use cairn_proto::feed::v1::feed_service_client::FeedServiceClient;
use cairn_proto::retrieval::v1::SearchContextRequest;
use cairn_proto::retrieval::v1::search_service_client::SearchServiceClient;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_types::StatusExt as _;

use crate::support::callers::ApiToken;
use crate::support::http::fresh_address;
use crate::support::mesh::{Mesh, SERVICES};
use crate::support::prelude::*;

scenarios![
    a_call_without_an_identity_is_refused,
    an_exchanged_token_may_call,
    a_token_that_is_none_is_not_exchanged,
    a_forged_identity_is_refused,
    a_missing_permission_is_refused_by_the_service,
    the_folder_scope_holds_in_the_service,
    feeds_are_for_services_only,
    people_sign_in_through_the_gateway_only,
    a_flood_of_sign_ins_over_grpc_is_refused,
    every_service_answers_health_and_reflection,
];

async fn a_call_without_an_identity_is_refused(deployment: &Deployment) {
    let content = connect(deployment, "content").await;
    let listed = FileServiceClient::new(content.clone()).list_files(ListFilesRequest::default()).await;
    refused(listed.unwrap_err(), Code::Unauthenticated, "UNAUTHORIZED");
    let folders = FolderServiceClient::new(content).list_folders(ListFoldersRequest::default()).await;
    refused(folders.unwrap_err(), Code::Unauthenticated, "UNAUTHORIZED");
    let retrieval = connect(deployment, "retrieval").await;
    let search = SearchContextRequest { query: "x".into(), ..Default::default() };
    let found = SearchServiceClient::new(retrieval).search_context(search).await;
    refused(found.unwrap_err(), Code::Unauthenticated, "UNAUTHORIZED");
}

async fn an_exchanged_token_may_call(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let identity = exchange(deployment, &workspace.token).await;
    let mut files = FileServiceClient::new(connect(deployment, "content").await);
    let made = files
        .create_file(as_caller(&identity, new_file("a.md", "The okapi grazes.\n")))
        .await
        .unwrap()
        .into_inner();
    let file = made.file.unwrap();
    assert_eq!(file.workspace_id, workspace.id, "the workspace is the identity's");
    let read =
        files.get_file(as_caller(&identity, GetFileRequest { file_id: file.id.clone() })).await.unwrap();
    assert_eq!(read.into_inner().file.unwrap().content.as_deref(), Some("The okapi grazes.\n"));
    let mut search = SearchServiceClient::new(connect(deployment, "retrieval").await);
    let found = eventually("a direct search finds the file", async || {
        let request = SearchContextRequest { query: "okapi".into(), ..Default::default() };
        let answer = search.search_context(as_caller(&identity, request)).await.unwrap().into_inner();
        answer.results.into_iter().next()
    })
    .await;
    assert_eq!(found.document_id, file.id);
}

async fn a_token_that_is_none_is_not_exchanged(deployment: &Deployment) {
    let mut tokens = TokenServiceClient::new(connect(deployment, "auth").await);
    for secret in ["", "nonsense", "cairn_0000000000000000000000000000000000000000000000"] {
        let status = tokens.exchange(ExchangeRequest { api_token: secret.into() }).await.unwrap_err();
        refused(status, Code::Unauthenticated, "UNAUTHORIZED");
    }
}

async fn a_forged_identity_is_refused(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let reader = workspace.token_with(&["read"]).await;
    let genuine = exchange(deployment, &reader).await;
    let mut files = FileServiceClient::new(connect(deployment, "content").await);
    files.list_files(as_caller(&genuine, ListFilesRequest::default())).await.unwrap();

    let parts: Vec<&str> = genuine.split('.').collect();
    let [header, claims, signature] = parts.as_slice() else { panic!("no JWT") };
    let raised = claims_with(claims, |claims| claims["permissions"] = json!(["read", "write", "delete"]));
    let lasting = claims_with(claims, |claims| claims["exp"] = json!(32_503_680_000_i64));
    let service = claims_with(claims, |claims| claims["kind"] = json!("service"));
    let unsigned = URL_SAFE_NO_PAD.encode(json!({"alg": "none", "typ": "JWT"}).to_string());
    for forged in [
        format!("{header}.{raised}.{signature}"),
        format!("{header}.{lasting}.{signature}"),
        format!("{header}.{service}.{signature}"),
        format!("{unsigned}.{claims}."),
        format!("{header}.{claims}.{}", "A".repeat(signature.len())),
        format!("{header}.{claims}"),
        "nonsense".to_owned(),
        workspace.token.secret.clone(),
    ] {
        let status = files.list_files(as_caller(&forged, ListFilesRequest::default())).await.unwrap_err();
        refused(status, Code::Unauthenticated, "UNAUTHORIZED");
    }
}

async fn a_missing_permission_is_refused_by_the_service(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file_id = workspace.file_id("a.md", None, "x").await;
    let reader = exchange(deployment, &workspace.token_with(&["read"]).await).await;
    let writer = exchange(deployment, &workspace.token_with(&["write"]).await).await;
    let mut files = FileServiceClient::new(connect(deployment, "content").await);
    let created = files.create_file(as_caller(&reader, new_file("b.md", "x"))).await.unwrap_err();
    refused(created, Code::PermissionDenied, "FORBIDDEN");
    let deleted = files.delete_file(as_caller(&reader, DeleteFileRequest { file_id: file_id.clone() })).await;
    refused(deleted.unwrap_err(), Code::PermissionDenied, "FORBIDDEN");
    let read = files.get_file(as_caller(&writer, GetFileRequest { file_id })).await.unwrap_err();
    refused(read, Code::PermissionDenied, "FORBIDDEN");
    let mut search = SearchServiceClient::new(connect(deployment, "retrieval").await);
    let request = SearchContextRequest { query: "x".into(), ..Default::default() };
    let found = search.search_context(as_caller(&writer, request)).await.unwrap_err();
    refused(found, Code::PermissionDenied, "FORBIDDEN");
}

async fn the_folder_scope_holds_in_the_service(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let inside = workspace.folder("inside", None).await;
    let mine = workspace.file_id("in.md", Some(&inside), "The kiwi is inside.\n").await;
    let outside = workspace.file("out.md", None, "The kiwi is outside.\n").await;
    let identity = exchange(deployment, &workspace.token_for(&[&inside]).await).await;
    let mut files = FileServiceClient::new(connect(deployment, "content").await);
    let file_id = outside.json()["id"].as_str().unwrap().to_owned();
    let status = files.get_file(as_caller(&identity, GetFileRequest { file_id })).await.unwrap_err();
    refused(status, Code::PermissionDenied, "OUT_OF_SCOPE");
    let status = files.create_file(as_caller(&identity, new_file("root.md", "x"))).await.unwrap_err();
    refused(status, Code::PermissionDenied, "OUT_OF_SCOPE");
    let listed =
        files.list_files(as_caller(&identity, ListFilesRequest::default())).await.unwrap().into_inner();
    assert_eq!(listed.files.iter().map(|file| file.id.as_str()).collect::<Vec<_>>(), [mine.as_str()]);

    workspace.search_after(&outside.change(), json!({"query": "kiwi"})).await;
    let mut search = SearchServiceClient::new(connect(deployment, "retrieval").await);
    let request = SearchContextRequest { query: "kiwi".into(), limit: 50, ..Default::default() };
    let found = search.search_context(as_caller(&identity, request)).await.unwrap().into_inner();
    assert_eq!(
        found.results.iter().map(|result| result.document_id.as_str()).collect::<Vec<_>>(),
        [mine.as_str()]
    );
}

async fn feeds_are_for_services_only(deployment: &Deployment) {
    // The public address serves no feeds.
    if deployment.mesh().is_none() {
        return;
    }
    let workspace = deployment.workspace().await;
    let identity = exchange(deployment, &workspace.token).await;
    let content = connect(deployment, "content").await;
    let request = ReadFeedRequest { workspace_id: workspace.id.clone(), after: 0, limit: 0 };
    let mut feed = FeedServiceClient::new(content.clone());
    refused(feed.read_feed(request.clone()).await.unwrap_err(), Code::Unauthenticated, "UNAUTHORIZED");
    let status = feed.read_feed(as_caller(&identity, request)).await.unwrap_err();
    refused(status, Code::PermissionDenied, "FORBIDDEN");
    let request = ReadDocumentsRequest { workspace_id: workspace.id.clone(), refs: Vec::new() };
    let status =
        DocumentServiceClient::new(content).read_documents(as_caller(&identity, request)).await.unwrap_err();
    refused(status, Code::PermissionDenied, "FORBIDDEN");
}

/// The responses of the four services behind the gateway's sign-in to a call with this authorization.
async fn call_services(auth: &Channel, authorization: Option<&str>) -> Vec<(Code, String)> {
    fn with<T>(authorization: Option<&str>, message: T) -> Request<T> {
        match authorization {
            Some(identity) => as_caller(identity, message),
            None => Request::new(message),
        }
    }
    let mut sessions = SessionServiceClient::new(auth.clone());
    let form =
        CreateSessionRequest { email: "a@b.example".into(), password: "x".into(), ..Default::default() };
    let mut invitations = InvitationServiceClient::new(auth.clone());
    let mut oauth = OauthServiceClient::new(auth.clone());
    let mut oidc = OidcServiceClient::new(auth.clone());
    let answers = [
        sessions.create_session(with(authorization, form)).await.map(drop),
        sessions.delete_session(with(authorization, DeleteSessionRequest::default())).await.map(drop),
        invitations
            .look_up_invitation(with(authorization, LookUpInvitationRequest::default()))
            .await
            .map(drop),
        oauth.register_client(with(authorization, RegisterClientRequest::default())).await.map(drop),
        oidc.get_provider(with(authorization, GetProviderRequest {})).await.map(drop),
    ];
    answers
        .map(|answer| {
            answer.map_or_else(|no| (no.code(), no.message().to_owned()), |()| (Code::Ok, String::new()))
        })
        .to_vec()
}

async fn people_sign_in_through_the_gateway_only(deployment: &Deployment) {
    let Some(mesh) = deployment.mesh() else { return };
    let auth = connect(deployment, "auth").await;
    for (code, message) in call_services(&auth, None).await {
        assert_eq!(code, Code::Unauthenticated, "{message}");
    }
    let identity = exchange(deployment, &deployment.workspace().await.token).await;
    for (code, message) in call_services(&auth, Some(&identity)).await {
        assert_eq!(code, Code::PermissionDenied, "{message}");
    }
    let service = service_identity(mesh).await;
    for (code, message) in call_services(&auth, Some(&service)).await {
        assert_ne!(code, Code::PermissionDenied, "{message}");
    }
}

/// Not even a caller with the mesh secret can guess passwords.
async fn a_flood_of_sign_ins_over_grpc_is_refused(deployment: &Deployment) {
    let Some(mesh) = deployment.mesh() else { return };
    let auth = connect(deployment, "auth").await;
    let service = service_identity(mesh).await;
    let email = format!("{}@example.com", token_format::generate(&OsEntropy).to_lowercase());
    let mut guesses = 0;
    let refused = eventually("the account must wait", async || {
        guesses += 1;
        let form = CreateSessionRequest {
            email: email.clone(),
            password: "a wrong one".into(),
            // Each comes from another address.
            source_address: Some(format!("2001:db8:{guesses:x}::1")),
            ..CreateSessionRequest::default()
        };
        let answer = SessionServiceClient::new(auth.clone()).create_session(as_caller(&service, form)).await;
        answer.err().filter(|status| status.code() != Code::Unauthenticated)
    })
    .await;
    assert!(guesses > 10, "the first {guesses} may fail");
    assert!(refused.get_error_details().retry_info().is_some_and(|info| info.retry_delay.is_some()));
    self::refused(refused, Code::ResourceExhausted, "RATE_LIMITED");
}

async fn every_service_answers_health_and_reflection(deployment: &Deployment) {
    if deployment.mesh().is_none() {
        return;
    }
    let main_services = [
        "cairn.auth.v1.TokenService",
        "cairn.content.v1.FileService",
        "cairn.ingest.v1.IngestService",
        "cairn.sync.v1.SyncService",
        "cairn.retrieval.v1.SearchService",
    ];
    for (service, full_name) in SERVICES.into_iter().zip(main_services) {
        let channel = connect(deployment, service).await;
        for name in ["", full_name] {
            let request = HealthCheckRequest { service: name.to_owned() };
            let health = HealthClient::new(channel.clone()).check(request).await.unwrap().into_inner();
            assert_eq!(health.status(), ServingStatus::Serving, "{service}: {name:?}");
        }
        let ask = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::ListServices(String::new())),
        };
        let mut reflection = ServerReflectionClient::new(channel);
        let mut answers =
            reflection.server_reflection_info(tokio_stream::once(ask)).await.unwrap().into_inner();
        let answer = answers.message().await.unwrap().unwrap();
        let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
            panic!("{service}: no list of services");
        };
        let names: Vec<&str> = list.service.iter().map(|one| one.name.as_str()).collect();
        assert!(names.contains(&full_name), "{service} does not list {full_name}: {names:?}");
    }
}

pub(crate) async fn connect(deployment: &Deployment, service: &str) -> Channel {
    Endpoint::from_shared(deployment.grpc_url(service)).unwrap().connect().await.unwrap()
}

pub(crate) async fn exchange(deployment: &Deployment, token: &ApiToken) -> String {
    let mut tokens = TokenServiceClient::new(connect(deployment, "auth").await);
    let request = ExchangeRequest { api_token: token.secret.clone() };
    tokens.exchange(request).await.unwrap().into_inner().identity
}

/// The identity token of a service, issued for the mesh secret.
pub(crate) async fn service_identity(mesh: &Mesh) -> String {
    let auth = Endpoint::from_shared(mesh.grpc_url("auth")).unwrap().connect().await.unwrap();
    let request =
        IssueServiceIdentityRequest { service: "tests".into(), mesh_secret: mesh.mesh_secret().to_owned() };
    let issued = KeyServiceClient::new(auth).issue_service_identity(request).await.unwrap();
    issued.into_inner().identity
}

pub(crate) fn as_caller<T>(identity: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let metadata = request.metadata_mut();
    metadata.insert("authorization", format!("Bearer {identity}").parse().unwrap());
    // Where one process serves gRPC, invalid identity tokens count against the address.
    metadata.insert("x-forwarded-for", fresh_address().parse().unwrap());
    request
}

fn new_file(name: &str, content: &str) -> CreateFileRequest {
    CreateFileRequest {
        name: name.to_owned(),
        content: content.to_owned(),
        file_type: FileType::Markdown.into(),
        ..Default::default()
    }
}

/// The claims, modified and re-encoded.
fn claims_with(encoded: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(encoded).unwrap()).unwrap();
    let before = claims.clone();
    change(&mut claims);
    assert_ne!(claims, before, "the forgery changes nothing");
    URL_SAFE_NO_PAD.encode(claims.to_string())
}

/// Every error has the code, the reason and our domain.
#[track_caller]
pub(crate) fn refused(status: Status, code: Code, reason: &str) {
    assert_eq!(status.code(), code, "{status:?}");
    let details = status.get_error_details();
    let info = details.error_info().unwrap_or_else(|| panic!("no ErrorInfo in {status:?}"));
    assert_eq!((info.reason.as_str(), info.domain.as_str()), (reason, "cairn.dev"), "{status:?}");
    assert!(!status.message().is_empty(), "{status:?}");
}
