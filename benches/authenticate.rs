//! What it costs to know who asks and whether they may: `cargo bench --bench authenticate -- --help`.

#[path = "support/report.rs"]
mod report;

use std::time::Duration;

use anyhow::ensure;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use cairn_chassis::ambient::Ambient;
use cairn_chassis::call::Call;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::identity::{Permission, Scope};
use cairn_chassis::testing::identity::Issuer;
use cairn_chassis::testing::server as double;
use cairn_chassis::{telemetry, token_format};
use cairn_gateway::{Config, Gateway, Upstreams};
use cairn_proto::auth::v1::token_service_server::{self, TokenService, TokenServiceServer};
use cairn_proto::auth::v1::{
    CreateTokenRequest, CreateTokenResponse, DeleteTokenRequest, DeleteTokenResponse, ExchangeRequest,
    ExchangeResponse, IssueTokenViewRequest, IssueTokenViewResponse, ListTokensRequest, ListTokensResponse,
    UpdateTokenRequest, UpdateTokenResponse,
};
use cairn_proto::ids::WorkspaceId;
use clap::Parser;
use cpu_time::ProcessTime;
use tonic::service::Routes;
use tonic::{Response, Status};
use tower::ServiceExt as _;

use self::report::{Run, Table, Verdicts};

/// The limit of authentication, rate limit and scope together.
const LIMIT_MICROS: f64 = 15.0;
/// The kinds are interleaved, so that other load on the machine affects all of them alike.
const ROUNDS: u32 = 20;
const WARM_UP: u32 = 500;
const BUDGET: Duration = Duration::from_secs(30);

/// Measures the CPU time that authentication, rate limit and scope cost a request in one process, in two parts:
///
///   edge     the gateway's whole router answers 404 to a path of /api/v1 with a token, less what it costs to answer 404
///            to a path where nobody is asked for a token. The difference is: the token's form and checksum, the
///            remembered exchange (asked anew each second), the windows of its plan in memory, and four headers.
///   service  what a service does with the identity that it is handed: the remembered check of the signature, the
///            permission, the scope.
///
/// The exchange is answered by a double that signs nothing anew: a look-up in svc-auth happens once a second for a
/// token, whatever it asks. The scope is that of a token for a whole workspace; that of a token for folders is looked
/// at in the transaction of the operation. All on one thread. Limit: 15 µs for both parts together.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Requests of each kind.
    #[arg(long, default_value_t = 100_000)]
    requests: u32,
    #[command(flatten)]
    run: Run,
}

/// Returns the same identity to every caller.
struct Tokens {
    identity: String,
}

#[tonic::async_trait]
impl TokenService for Tokens {
    async fn exchange(
        &self,
        _: tonic::Request<ExchangeRequest>,
    ) -> Result<Response<ExchangeResponse>, Status> {
        Ok(Response::new(ExchangeResponse { identity: self.identity.clone(), expires_at: None }))
    }

    async fn list_tokens(
        &self,
        _: tonic::Request<ListTokensRequest>,
    ) -> Result<Response<ListTokensResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn create_token(
        &self,
        _: tonic::Request<CreateTokenRequest>,
    ) -> Result<Response<CreateTokenResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn update_token(
        &self,
        _: tonic::Request<UpdateTokenRequest>,
    ) -> Result<Response<UpdateTokenResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn delete_token(
        &self,
        _: tonic::Request<DeleteTokenRequest>,
    ) -> Result<Response<DeleteTokenResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn issue_token_view(
        &self,
        _: tonic::Request<IssueTokenViewRequest>,
    ) -> Result<Response<IssueTokenViewResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if !options.run.is_bench() {
        return Ok(());
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(options))
}

async fn run(options: Options) -> anyhow::Result<()> {
    // As in a production process: metrics are recorded, and spans are disabled by the log filter.
    let _telemetry = telemetry::install("bench", "warn")?;
    let issuer = Issuer::new()?;
    let ambient = issuer.ambient();
    let workspace: WorkspaceId = ambient.ids.next();
    let identity = issuer.sign(&issuer.token(workspace, &Permission::ALL, Scope::All))?;
    let router = gateway(identity.clone(), ambient.clone()).await?;
    let token = token_format::generate(&OsEntropy);
    let call = Call::within(BUDGET).with_identity(&identity);

    let (mut outside, mut inside, mut service) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let requests = options.requests / ROUNDS;
    for _ in 0..ROUNDS {
        outside += measure(requests, async || ask(&router, "/nothing/here/to/find", &token).await).await?;
        inside += measure(requests, async || ask(&router, "/api/v1/nothing/to/find", &token).await).await?;
        service += measure(requests, async || authorize(&ambient, &call).await).await?;
    }

    let micros = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(requests * ROUNDS);
    let edge = micros(inside) - micros(outside);
    let both = edge + micros(service);
    let mut table = Table::new(&["", "CPU µs"]);
    for (name, figure) in [
        ("404 without a token", micros(outside)),
        ("404 with one", micros(inside)),
        ("edge: the difference", edge),
        ("service", micros(service)),
        ("together", both),
    ] {
        table.row(vec![name.to_owned(), format!("{figure:.2}")]);
    }
    table.print();
    let mut verdicts = Verdicts::default();
    verdicts.at_most("authentication, limit and scope", both, LIMIT_MICROS, "µs");
    verdicts.finish(&options.run)
}

async fn gateway(identity: String, ambient: Ambient) -> anyhow::Result<Router> {
    let routes = Routes::new(TokenServiceServer::new(Tokens { identity }));
    let composed = double::compose(routes, &[token_service_server::SERVICE_NAME]).await?;
    let nobody = ServiceChannel::remote("http://127.0.0.1:1")?;
    let upstreams = Upstreams {
        auth: ServiceChannel::local(composed.routes),
        content_feed: nobody.clone(),
        content: nobody.clone(),
        ingest_feed: nobody.clone(),
        ingest: nobody.clone(),
        retrieval: nobody.clone(),
        sync: nobody,
    };
    Ok(Gateway::build(&Config::default())?.connect(upstreams, ambient).router())
}

async fn ask(router: &Router, path: &str, token: &str) -> anyhow::Result<()> {
    let request = Request::get(path).header("authorization", format!("Bearer {token}")).body(Body::empty())?;
    let response = router.clone().oneshot(request).await?;
    ensure!(response.status() == StatusCode::NOT_FOUND, "{path} answered {}", response.status());
    Ok(())
}

async fn authorize(ambient: &Ambient, call: &Call) -> anyhow::Result<()> {
    let identity = ambient.verifier.authenticate(call.request(()).metadata()).await?;
    identity.require(Permission::Read)?;
    ensure!(identity.scope == Scope::All, "a token for a whole workspace");
    Ok(())
}

async fn measure(
    requests: u32,
    mut one: impl AsyncFnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Duration> {
    for _ in 0..WARM_UP {
        one().await?;
    }
    let cpu = ProcessTime::try_now()?;
    for _ in 0..requests {
        one().await?;
    }
    Ok(cpu.try_elapsed()?)
}
