//! What one small unary call costs from one service of the mesh to another: `cargo bench --bench rpc_hop -- --help`.

#[path = "support/report.rs"]
mod report;
#[path = "support/samples.rs"]
mod samples;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use cairn_chassis::call::Call;
use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::identity::{Permission, Scope, Verifier};
use cairn_chassis::testing::identity::Issuer;
use cairn_chassis::testing::server as double;
use cairn_chassis::{server, telemetry};
use cairn_proto::ids::WorkspaceId;
use cairn_proto::ingest::v1::ingest_service_client::IngestServiceClient;
use cairn_proto::ingest::v1::ingest_service_server::{self, IngestService, IngestServiceServer};
use cairn_proto::ingest::v1::{
    DeleteIngestedDocumentRequest, DeleteIngestedDocumentResponse, GetIngestedContentRequest,
    GetIngestedContentResponse, GetIngestedDocumentRequest, GetIngestedDocumentResponse, GetUsageRequest,
    GetUsageResponse, IngestDocumentRequest, IngestDocumentResponse, IngestFileRequest, IngestFileResponse,
    IngestedDocument, ListIngestedDocumentsRequest, ListIngestedDocumentsResponse,
};
use clap::Parser;
use cpu_time::ProcessTime;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

use self::report::{Run, Table, Verdicts};
use self::samples::percentile;

/// "Single-digit microseconds."
const LOCAL_LIMIT_MICROS: f64 = 10.0;
/// The kinds are interleaved, so that other load on the machine affects all of them alike.
const ROUNDS: u32 = 10;
const WARM_UP: u32 = 500;
const BUDGET: Duration = Duration::from_secs(30);

/// Measures one small unary call (a 36-byte id in, a record of about 200 bytes out) that carries a signed identity and
/// a deadline, one call after the other, four ways:
///
///   direct       the handler called as a Rust method: no protobuf, no metadata
///   local bare   the generated client over the generated server in this process, without the mesh's layers
///   local        ServiceChannel::local, as `cairn up` calls: with deadline, panic guard, span and metrics
///   tcp          ServiceChannel::remote to this process over loopback, as `cairn serve` calls
///
/// and `local checked`: as `local`, and the handler verifies the identity as every service does.
///
/// Wall time is the caller's; CPU time is this process's, so that of `tcp` is both ends'. Limit: `local` takes
/// single-digit microseconds (median).
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Calls of each kind.
    #[arg(long, default_value_t = 20_000)]
    calls: u32,
    #[command(flatten)]
    run: Run,
}

/// Returns a small record; verifies the identity if it has a verifier.
#[derive(Debug, Clone)]
struct Double {
    verifier: Option<Verifier>,
}

#[tonic::async_trait]
impl IngestService for Double {
    async fn ingest_document(
        &self,
        _request: Request<IngestDocumentRequest>,
    ) -> Result<Response<IngestDocumentResponse>, Status> {
        unused()
    }

    async fn get_ingested_document(
        &self,
        request: Request<GetIngestedDocumentRequest>,
    ) -> Result<Response<GetIngestedDocumentResponse>, Status> {
        if let Some(verifier) = &self.verifier {
            verifier.authenticate(request.metadata()).await?.require(Permission::Read)?;
        }
        let document = IngestedDocument {
            id: request.into_inner().document_id,
            title: "How the staging server is rebuilt".to_owned(),
            content_hash: Some(format!("blake3:{}", "0".repeat(64))),
            idempotency_key: "wiki:page:1234".to_owned(),
            ..IngestedDocument::default()
        };
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
    Err(Status::unimplemented("not measured"))
}

/// The cost of calls of one kind.
#[derive(Default)]
struct Cost {
    walls: Vec<Duration>,
    cpu: Duration,
}

impl Cost {
    fn median(&self) -> f64 {
        micros(percentile(&self.walls, 0.5))
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if !options.run.is_bench() {
        return Ok(());
    }
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(run(options))
}

async fn run(options: Options) -> anyhow::Result<()> {
    // As in a production process: metrics are recorded, and spans are disabled by the log filter.
    let _telemetry = telemetry::install("bench", "warn")?;
    let issuer = Issuer::new()?;
    let ambient = issuer.ambient();
    let workspace: WorkspaceId = ambient.ids.next();
    let identity = issuer.sign(&issuer.token(workspace, &Permission::ALL, Scope::All))?;
    let call = Call::within(BUDGET).with_identity(&identity).with_request_id("bench");
    let plain = Double { verifier: None };
    let checked = Double { verifier: Some(ambient.verifier.clone()) };

    let listener = server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let address = listener.local_addr()?;
    tokio::spawn(composed(plain.clone()).await?.serve(listener, CancellationToken::new()));

    let bare_server = ServiceChannel::local(routes(plain.clone()));
    let local = ServiceChannel::local(composed(plain.clone()).await?.routes);
    let local_checked = ServiceChannel::local(composed(checked).await?.routes);
    let remote = ServiceChannel::remote(&format!("http://{address}"))?;

    let mut direct = Cost::default();
    let mut over_channels: Vec<(&str, ServiceChannel, Cost)> =
        [("local bare", bare_server), ("local", local), ("local checked", local_checked), ("tcp", remote)]
            .map(|(name, channel)| (name, channel, Cost::default()))
            .into();
    for _ in 0..ROUNDS {
        let calls = options.calls / ROUNDS;
        let ask = async || plain.get_ingested_document(Request::new(question())).await.map(|_| ());
        measure(calls, &mut direct, ask).await?;
        for (_, channel, cost) in &mut over_channels {
            let mut client =
                IngestServiceClient::new(channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
            let ask = async || client.get_ingested_document(call.request(question())).await.map(|_| ());
            measure(calls, cost, ask).await?;
        }
    }

    let mut table = Table::new(&["", "p50 µs", "p99 µs", "CPU µs", "p50 to direct"]);
    let base = direct.median();
    add(&mut table, "direct", &direct, base);
    for (name, _, cost) in &over_channels {
        add(&mut table, name, cost, base);
    }
    table.print();
    let mut verdicts = Verdicts::default();
    for (name, _, cost) in over_channels.iter().filter(|(name, ..)| *name == "local") {
        verdicts.at_most(&format!("{name} channel, median"), cost.median(), LOCAL_LIMIT_MICROS, "µs");
    }
    verdicts.finish(&options.run)
}

fn routes(service: Double) -> Routes {
    Routes::new(IngestServiceServer::new(service).max_decoding_message_size(MAX_MESSAGE_BYTES))
}

async fn composed(service: Double) -> anyhow::Result<server::Composed> {
    Ok(double::compose(routes(service), &[ingest_service_server::SERVICE_NAME]).await?)
}

fn question() -> GetIngestedDocumentRequest {
    GetIngestedDocumentRequest { document_id: "01931e5c-8a70-7000-8000-000000000001".to_owned() }
}

async fn measure(
    calls: u32,
    cost: &mut Cost,
    mut one: impl AsyncFnMut() -> Result<(), Status>,
) -> anyhow::Result<()> {
    for _ in 0..WARM_UP {
        one().await?;
    }
    let cpu = ProcessTime::try_now()?;
    for _ in 0..calls {
        let started = Instant::now();
        one().await?;
        cost.walls.push(started.elapsed());
    }
    cost.cpu += cpu.try_elapsed()?;
    Ok(())
}

fn add(table: &mut Table, name: &str, cost: &Cost, base: f64) {
    table.row(vec![
        name.to_owned(),
        format!("{:.2}", cost.median()),
        format!("{:.2}", micros(percentile(&cost.walls, 0.99))),
        format!("{:.2}", micros(cost.cpu) / cost.walls.len() as f64),
        format!("{:.1}", cost.median() / base),
    ]);
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
