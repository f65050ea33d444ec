//! A local and a remote channel must not differ to whoever calls: each trap of `chassis::channel` on both.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking; clippy knows that of test functions, but not of their helpers"
)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::clock::SystemClock;
use cairn_chassis::identity::{StaticKeys, Verifier};
use cairn_chassis::server::Access;
use cairn_chassis::status::{Problem, Reason};
use cairn_chassis::transport::{Connections, Settings};
use cairn_chassis::{deadline, server};
use cairn_proto::ingest::v1::ingest_service_client::IngestServiceClient;
use cairn_proto::ingest::v1::ingest_service_server::{self, IngestService, IngestServiceServer};
use cairn_proto::ingest::v1::{
    DeleteIngestedDocumentRequest, DeleteIngestedDocumentResponse, GetIngestedContentRequest,
    GetIngestedContentResponse, GetIngestedDocumentRequest, GetIngestedDocumentResponse, GetUsageRequest,
    GetUsageResponse, IngestDocumentRequest, IngestDocumentResponse, IngestFileRequest, IngestFileResponse,
    IngestedDocument, ListIngestedDocumentsRequest, ListIngestedDocumentsResponse,
};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt as _;

/// Anybody may call this one.
const GET: &str = "/cairn.ingest.v1.IngestService/GetIngestedDocument";
const INGEST: &str = "/cairn.ingest.v1.IngestService/IngestDocument";

/// What a caller may smuggle into the extensions of a request.
#[derive(Debug, Clone)]
struct Smuggled;

/// Does what the id or the title asks for.
#[derive(Debug)]
struct Double;

#[tonic::async_trait]
impl IngestService for Double {
    async fn ingest_document(
        &self,
        request: Request<IngestDocumentRequest>,
    ) -> Result<Response<IngestDocumentResponse>, Status> {
        let title = request.into_inner().content;
        let document = IngestedDocument { title, ..IngestedDocument::default() };
        let document = Some(document);
        Ok(Response::new(IngestDocumentResponse { document, ..IngestDocumentResponse::default() }))
    }

    async fn get_ingested_document(
        &self,
        request: Request<GetIngestedDocumentRequest>,
    ) -> Result<Response<GetIngestedDocumentResponse>, Status> {
        let title = match request.get_ref().document_id.as_str() {
            "sleep" => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                String::new()
            }
            "panic" => panic!("as the test asked"),
            "extensions" => request.extensions().get::<Smuggled>().map_or("clear", |_| "smuggled").to_owned(),
            "budget" => Call::from_metadata(request.metadata()).remaining().as_millis().to_string(),
            "refuse" => return Err(Problem::version_conflict("it changed").into()),
            _ => String::new(),
        };
        let document = IngestedDocument { title, ..IngestedDocument::default() };
        Ok(Response::new(GetIngestedDocumentResponse { document: Some(document) }))
    }

    async fn ingest_file(
        &self,
        _request: Request<Streaming<IngestFileRequest>>,
    ) -> Result<Response<IngestFileResponse>, Status> {
        unused()
    }

    async fn list_ingested_documents(
        &self,
        _request: Request<ListIngestedDocumentsRequest>,
    ) -> Result<Response<ListIngestedDocumentsResponse>, Status> {
        unused()
    }

    async fn get_ingested_content(
        &self,
        _request: Request<GetIngestedContentRequest>,
    ) -> Result<Response<GetIngestedContentResponse>, Status> {
        unused()
    }

    async fn delete_ingested_document(
        &self,
        _request: Request<DeleteIngestedDocumentRequest>,
    ) -> Result<Response<DeleteIngestedDocumentResponse>, Status> {
        unused()
    }

    async fn get_usage(
        &self,
        _request: Request<GetUsageRequest>,
    ) -> Result<Response<GetUsageResponse>, Status> {
        unused()
    }
}

fn unused<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("not called"))
}

async fn routes(access: Access) -> server::Composed {
    let double = IngestServiceServer::new(Double).max_decoding_message_size(MAX_MESSAGE_BYTES);
    let verifier = Verifier::new(Arc::new(StaticKeys(Vec::new())), Arc::new(SystemClock));
    let names = [ingest_service_server::SERVICE_NAME];
    server::compose(Routes::new(double), &names, &[access], &verifier).await.unwrap()
}

/// The same service behind both kinds of channel, open to everybody.
async fn channels() -> [(&'static str, ServiceChannel); 2] {
    channels_with(Access { open: &[GET, INGEST], large: &[INGEST] }).await
}

async fn channels_with(access: Access) -> [(&'static str, ServiceChannel); 2] {
    let listener = server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(routes(access).await.serve(listener, CancellationToken::new()));
    [
        ("local", ServiceChannel::local(routes(access).await.routes)),
        ("remote", ServiceChannel::remote(&format!("http://{address}")).unwrap()),
    ]
}

fn client(channel: &ServiceChannel) -> IngestServiceClient<ServiceChannel> {
    IngestServiceClient::new(channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
}

async fn ask(channel: &ServiceChannel, call: &Call, id: &str) -> Result<String, Status> {
    let request = call.request(GetIngestedDocumentRequest { document_id: id.to_owned() });
    let answer = client(channel).get_ingested_document(request).await?;
    Ok(answer.into_inner().document.unwrap_or_default().title)
}

#[tokio::test]
async fn a_deadline_ends_a_call() {
    for (kind, channel) in channels().await {
        let status = ask(&channel, &Call::within(Duration::from_millis(50)), "sleep").await.unwrap_err();
        // Over TCP, the client's transport may notice first and call it cancelled.
        assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{kind}: {status}");
        assert_eq!(Problem::from_status(&status).reason, Reason::DeadlineExceeded, "{kind}");
    }
}

#[tokio::test]
async fn what_is_left_of_a_deadline_is_passed_on() {
    for (kind, channel) in channels().await {
        let given = Duration::from_secs(5);
        let left: u128 = ask(&channel, &Call::within(given), "budget").await.unwrap().parse().unwrap();
        assert!(left > 0 && left <= given.as_millis(), "{kind}: {left} ms");
        let unnamed = Request::new(GetIngestedDocumentRequest { document_id: "budget".into() });
        let answer = client(&channel).get_ingested_document(unnamed).await.unwrap().into_inner();
        let left: u128 = answer.document.unwrap().title.parse().unwrap();
        assert!(left > 0 && left <= deadline::DEFAULT.as_millis(), "{kind}: {left} ms without a timeout");
    }
}

#[tokio::test]
async fn extensions_do_not_cross() {
    for (kind, channel) in channels().await {
        let mut request = Request::new(GetIngestedDocumentRequest { document_id: "extensions".into() });
        request.extensions_mut().insert(Smuggled);
        let answer = client(&channel).get_ingested_document(request).await.unwrap().into_inner();
        assert_eq!(answer.document.unwrap().title, "clear", "{kind}");
    }
}

#[tokio::test]
async fn layers_stand_on_the_routes() {
    for (kind, channel) in channels().await {
        // Health is part of the composition, so it answers on both.
        let request = HealthCheckRequest { service: ingest_service_server::SERVICE_NAME.to_owned() };
        let answer = HealthClient::new(channel.clone()).check(request).await.unwrap().into_inner();
        assert_eq!(
            answer.status(),
            tonic_health::pb::health_check_response::ServingStatus::Serving,
            "{kind}"
        );
    }
}

#[tokio::test]
async fn a_message_of_five_mebibytes_passes_and_one_beyond_the_limit_does_not() {
    for (kind, channel) in channels().await {
        let content = "x".repeat(5 * 1024 * 1024);
        let request = IngestDocumentRequest { content: content.clone(), ..IngestDocumentRequest::default() };
        let answer = client(&channel).ingest_document(request).await.unwrap().into_inner();
        assert_eq!(answer.document.unwrap().title.len(), content.len(), "{kind}");

        let request = IngestDocumentRequest {
            content: "x".repeat(MAX_MESSAGE_BYTES),
            ..IngestDocumentRequest::default()
        };
        let status = client(&channel).ingest_document(request).await.unwrap_err();
        assert!(status.code() == Code::ResourceExhausted, "{kind}: {status}");
    }
}

#[tokio::test]
async fn what_must_not_be_large_is_not() {
    for (kind, channel) in channels_with(Access { open: &[INGEST], large: &[] }).await {
        let of = |length: usize| IngestDocumentRequest {
            content: "x".repeat(length),
            ..IngestDocumentRequest::default()
        };
        client(&channel).ingest_document(of(server::MAX_OPEN_BYTES - 8)).await.unwrap();
        let status = client(&channel).ingest_document(of(server::MAX_OPEN_BYTES)).await.unwrap_err();
        assert_eq!(Problem::from_status(&status).reason, Reason::PayloadTooLarge, "{kind}: {status}");
    }
}

#[tokio::test]
async fn nobody_calls_without_an_identity_what_is_not_open() {
    for (kind, channel) in channels_with(Access { open: &[], large: &[INGEST] }).await {
        let content = "x".repeat(31 * 1024 * 1024);
        let request = IngestDocumentRequest { content, ..IngestDocumentRequest::default() };
        let status = client(&channel).ingest_document(request).await.unwrap_err();
        assert_eq!(Problem::from_status(&status).reason, Reason::Unauthorized, "{kind}: {status}");
        let status = ask(&channel, &Call::within(Duration::from_secs(5)), "x").await.unwrap_err();
        assert_eq!(Problem::from_status(&status).reason, Reason::Unauthorized, "{kind}: {status}");
    }
}

#[tokio::test]
async fn a_caller_cannot_name_a_deadline_of_hours() {
    for (kind, channel) in channels().await {
        let call = Call::within(Duration::from_secs(3 * 60 * 60));
        let left: u128 = ask(&channel, &call, "budget").await.unwrap().parse().unwrap();
        assert!(left <= deadline::MAX_TIMEOUT.as_millis(), "{kind}: {left} ms");
    }
}

#[tokio::test]
async fn a_panic_becomes_an_internal_error() {
    for (kind, channel) in channels().await {
        let call = Call::within(Duration::from_secs(5));
        let status = ask(&channel, &call, "panic").await.unwrap_err();
        assert_eq!(status.code(), Code::Internal, "{kind}: {status}");
        assert!(!status.message().contains("as the test asked"), "{kind}: the detail leaked");
        assert!(ask(&channel, &call, "budget").await.is_ok(), "{kind}: the service is gone");
    }
}

#[tokio::test]
async fn an_error_keeps_its_details() {
    for (kind, channel) in channels().await {
        let status = ask(&channel, &Call::within(Duration::from_secs(5)), "refuse").await.unwrap_err();
        assert_eq!(Problem::from_status(&status), Problem::version_conflict("it changed"), "{kind}");
    }
}

#[tokio::test]
async fn a_service_that_is_not_there_is_unavailable() {
    let listener = server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let channel = ServiceChannel::remote(&format!("http://{address}")).unwrap();
    let status = ask(&channel, &Call::within(Duration::from_secs(5)), "x").await.unwrap_err();
    assert_eq!(Problem::from_status(&status).reason, Reason::Unavailable, "{status}");
}

/// The service at an address of its own, and what ends it.
async fn serving(settings: Settings) -> (SocketAddr, CancellationToken) {
    let listener = server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    let (address, shutdown) = (listener.local_addr().unwrap(), CancellationToken::new());
    let composed = routes(Access { open: &[GET, INGEST], large: &[INGEST] }).await;
    tokio::spawn(composed.serve_over(listener, settings, shutdown.clone()));
    (address, shutdown)
}

#[tokio::test]
async fn an_address_that_goes_away_costs_no_call() {
    let settings = || Settings::mesh(&Connections::default());
    let ((one, end_of_one), (other, _running)) = (serving(settings()).await, serving(settings()).await);
    let channel = ServiceChannel::remote(&format!("http://{one},http://{other}")).unwrap();
    for turn in 0..300 {
        if turn == 100 {
            end_of_one.cancel();
        }
        // A write, which is made once more only when it was never sent.
        let write = IngestDocumentRequest { content: "x".to_owned(), ..IngestDocumentRequest::default() };
        client(&channel).ingest_document(write).await.unwrap();
    }
}

#[tokio::test]
async fn a_service_that_is_replaced_is_waited_for() {
    let (one, end_of_one) = serving(Settings::mesh(&Connections::default())).await;
    let channel = ServiceChannel::remote(&format!("http://{one}")).unwrap();
    let write = || IngestDocumentRequest { content: "x".to_owned(), ..IngestDocumentRequest::default() };
    client(&channel).ingest_document(write()).await.unwrap();
    end_of_one.cancel();
    // Nobody listens, so that what is sent now is refused, until another process takes the address.
    while tokio::net::TcpStream::connect(one).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let call = tokio::spawn(async move { client(&channel).ingest_document(write()).await });
    tokio::time::sleep(Duration::from_millis(80)).await;
    let listener = server::bind(one).await.unwrap();
    tokio::spawn(
        routes(Access { open: &[GET, INGEST], large: &[INGEST] })
            .await
            .serve(listener, CancellationToken::new()),
    );
    call.await.unwrap().unwrap();
}

#[tokio::test]
async fn who_is_about_to_go_says_so_and_serves_on() {
    let leaving = CancellationToken::new();
    let settings = Settings::mesh(&Connections::default()).leaving(leaving.clone());
    let (address, _running) = serving(settings).await;
    let channel = ServiceChannel::remote(&format!("http://{address}")).unwrap();
    let check = async || {
        let asked = HealthClient::new(channel.clone()).check(HealthCheckRequest::default()).await;
        asked.unwrap().into_inner().status()
    };
    assert_eq!(check().await, ServingStatus::Serving);
    leaving.cancel();
    while check().await == ServingStatus::Serving {
        tokio::task::yield_now().await;
    }
    ask(&channel, &Call::within(Duration::from_secs(5)), "x").await.unwrap();
}

#[tokio::test]
async fn an_error_of_the_framework_has_its_details_too() {
    let access = Access { open: &["/cairn.sync.v1.SyncService/GetSync"], large: &[] };
    for (kind, channel) in channels_with(access).await {
        let mut other = cairn_proto::sync::v1::sync_service_client::SyncServiceClient::new(channel);
        let status = other.get_sync(cairn_proto::sync::v1::GetSyncRequest::default()).await.unwrap_err();
        let info = status.get_error_details().error_info().cloned();
        let info = info.unwrap_or_else(|| panic!("{kind}: no ErrorInfo in {status}"));
        assert_eq!((info.reason.as_str(), info.domain.as_str()), ("UNIMPLEMENTED", "cairn.dev"), "{kind}");
    }
}
