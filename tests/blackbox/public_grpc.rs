//! Public gRPC (contract, "Identity"): programs exchange a token and call, within the limits that hold over REST.

use cairn_proto::auth::v1::ExchangeRequest;
use cairn_proto::auth::v1::token_service_client::TokenServiceClient;
use cairn_proto::content::v1::file_service_client::FileServiceClient;
use cairn_proto::content::v1::memory_service_client::MemoryServiceClient;
use cairn_proto::content::v1::{CreateFileRequest, ExportMemoryRequest, FileType, ListFilesRequest};
use cairn_proto::retrieval::v1::SearchContextRequest;
use cairn_proto::retrieval::v1::search_service_client::SearchServiceClient;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

use crate::grpc::{as_caller, refused, service_identity};
use crate::support::callers::ApiToken;
use crate::support::http::{fresh_address, id};
use crate::support::prelude::*;
use crate::support::windows::{set_plan, window};

scenarios![
    a_program_exchanges_its_token_and_calls,
    an_identity_is_judged_before_the_message,
    the_windows_are_those_of_rest,
    wrong_tokens_and_identities_count_for_the_address,
    public_memories_are_exported_without_an_identity,
];

/// The daily limit of the plan `studio` in these deployments.
const STUDIO: u64 = 20;

async fn connect(deployment: &Deployment) -> Channel {
    Endpoint::from_shared(deployment.public_grpc_url()).unwrap().connect().await.unwrap()
}

/// Like a program with a source address of its own: the gateways of these deployments trust the header.
fn from<T>(address: &str, mut request: Request<T>) -> Request<T> {
    request.metadata_mut().insert("x-forwarded-for", address.parse().unwrap());
    request
}

async fn exchange(channel: &Channel, token: &str, address: &str) -> Result<String, Status> {
    let request = from(address, Request::new(ExchangeRequest { api_token: token.to_owned() }));
    let mut tokens = TokenServiceClient::new(channel.clone());
    tokens.exchange(request).await.map(|answer| answer.into_inner().identity)
}

async fn a_program_exchanges_its_token_and_calls(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let channel = connect(deployment).await;
    let mut tokens = TokenServiceClient::new(channel.clone());
    let request = ExchangeRequest { api_token: workspace.token.secret.clone() };
    let exchanged = tokens.exchange(request).await.unwrap().into_inner();
    assert!(exchanged.expires_at.is_some());
    let identity = exchanged.identity;
    let mut files = FileServiceClient::new(channel.clone());
    // Larger than an HTTP/2 flow-control window, in both directions.
    let content = format!("The okapi grazes.\n{}", "Grass. ".repeat(100_000));
    let message = CreateFileRequest {
        name: "a.md".to_owned(),
        content: content.clone(),
        file_type: FileType::Markdown.into(),
        ..Default::default()
    };
    let made = files.create_file(as_caller(&identity, message)).await.unwrap().into_inner().file.unwrap();
    assert_eq!(made.workspace_id, workspace.id);
    let path = format!("/api/v1/files/{}", made.id);
    assert_eq!(workspace.token.get(&path).await.expect(200).json()["content"], content);
    let mut search = SearchServiceClient::new(channel);
    let found = eventually("a search finds the file", async || {
        let request = SearchContextRequest { query: "okapi".into(), ..Default::default() };
        let answer = search.search_context(as_caller(&identity, request)).await.unwrap().into_inner();
        answer.results.into_iter().next()
    })
    .await;
    assert_eq!(found.document_id, made.id);
    // Errors of a service pass through unchanged.
    let reader = workspace.token_with(&["read"]).await;
    let reader = exchange(&connect(deployment).await, &reader.secret, &fresh_address()).await.unwrap();
    let message = CreateFileRequest { name: "b.md".to_owned(), ..Default::default() };
    let status = files.create_file(as_caller(&reader, message)).await.unwrap_err();
    refused(status, Code::PermissionDenied, "FORBIDDEN");
}

async fn an_identity_is_judged_before_the_message(deployment: &Deployment) {
    let channel = connect(deployment).await;
    let mut files = FileServiceClient::new(channel.clone());
    let large = || CreateFileRequest { content: "x".repeat(8 * 1024 * 1024), ..Default::default() };
    let status = files.create_file(large()).await.unwrap_err();
    refused(status, Code::Unauthenticated, "UNAUTHORIZED");
    let forged = from(&fresh_address(), as_caller("nonsense", large()));
    refused(files.create_file(forged).await.unwrap_err(), Code::Unauthenticated, "UNAUTHORIZED");
    let token = exchange(&channel, &"x".repeat(8 * 1024 * 1024), &fresh_address()).await.unwrap_err();
    assert!([Code::OutOfRange, Code::ResourceExhausted].contains(&token.code()), "{token:?}");
    // Identity tokens of services are for the mesh's internal calls.
    if let Some(mesh) = deployment.mesh() {
        let service = service_identity(mesh).await;
        let status = files.list_files(as_caller(&service, ListFilesRequest::default())).await.unwrap_err();
        refused(status, Code::PermissionDenied, "FORBIDDEN");
    }
}

async fn the_windows_are_those_of_rest(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    set_plan(&workspace, &workspace.token, "studio", STUDIO).await;
    let token = workspace.token_with(&["read"]).await;
    let channel = connect(deployment).await;
    let identity = exchange(&channel, &token.secret, &fresh_address()).await.unwrap();
    let mut files = FileServiceClient::new(channel.clone());
    let mut last = None;
    for _ in 0..STUDIO - 2 {
        let listed = files.list_files(as_caller(&identity, ListFilesRequest::default())).await.unwrap();
        last =
            listed.metadata().get("x-ratelimit-remaining").and_then(|left| left.to_str().ok()?.parse().ok());
    }
    assert_eq!(last, Some(1_u64), "the exchange and each call count");
    assert_eq!(window(&token.get("/api/v1/workspace").await.expect(200)).remaining, 0);
    let status = files.list_files(as_caller(&identity, ListFilesRequest::default())).await.unwrap_err();
    assert!(status.get_error_details().retry_info().is_some_and(|info| info.retry_delay.is_some()));
    refused(status, Code::ResourceExhausted, "RATE_LIMITED");
    let again = exchange(&channel, &token.secret, &fresh_address()).await.unwrap_err();
    refused(again, Code::ResourceExhausted, "RATE_LIMITED");
    token.get("/api/v1/workspace").await.expect_error(429, "RATE_LIMITED");
}

async fn wrong_tokens_and_identities_count_for_the_address(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let channel = connect(deployment).await;
    let mut files = FileServiceClient::new(channel.clone());
    let http = deployment.http();
    let address = http.address();
    let mut number = 0;
    let status = eventually("the address must wait", async || {
        number += 1;
        let status = if number % 2 == 0 {
            exchange(&channel, "cairn_mistyped", address).await.unwrap_err()
        } else {
            let call = from(address, as_caller("nonsense", ListFilesRequest::default()));
            files.list_files(call).await.unwrap_err()
        };
        (status.code() != Code::Unauthenticated).then_some(status)
    })
    .await;
    assert!(number > 30, "the first {number} may be wrong");
    refused(status, Code::ResourceExhausted, "RATE_LIMITED");
    // Over REST the address is limited, too, with a token that is not cached yet.
    let stranger = ApiToken { http: http.clone(), ..workspace.token_with(&["read"]).await };
    stranger.get("/api/v1/workspace").await.expect_error(429, "RATE_LIMITED");
}

async fn public_memories_are_exported_without_an_identity(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let body = json!({"name": "Public", "isPublic": true});
    let memory = id(&workspace.token.post("/api/v1/memories").json(body).await.expect(201).json());
    let mut memories = MemoryServiceClient::new(connect(deployment).await);
    let address = fresh_address();
    let mut exported = 0;
    let status = eventually("the address must wait", async || {
        let message = ExportMemoryRequest { memory: memory.clone(), ..Default::default() };
        let answer = memories.export_memory(from(&address, Request::new(message))).await;
        exported += u64::from(answer.is_ok());
        answer.err()
    })
    .await;
    assert!(exported >= 60, "{exported}");
    refused(status, Code::ResourceExhausted, "RATE_LIMITED");
}
