//! Calls Cairn over gRPC with the generated clients of `cairn-proto`.
//!
//! ```sh
//! CAIRN_TOKEN=cairn_… cargo run --example direct_grpc -- http://127.0.0.1:8710 "How do I add my first file?"
//! ```
//!
//! In a mesh, give the addresses of svc-auth, svc-content and svc-retrieval, one after the other, before the query.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, bail};
use cairn_proto::auth::v1::ExchangeRequest;
use cairn_proto::auth::v1::token_service_client::TokenServiceClient;
use cairn_proto::content::v1::ListFilesRequest;
use cairn_proto::content::v1::file_service_client::FileServiceClient;
use cairn_proto::retrieval::v1::SearchContextRequest;
use cairn_proto::retrieval::v1::search_service_client::SearchServiceClient;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

const DEADLINE: Duration = Duration::from_secs(15);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let token = std::env::var("CAIRN_TOKEN").context("set CAIRN_TOKEN to an API token")?;
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let query = arguments.pop().context("give the address of svc-auth and a query")?;
    let (auth, content, retrieval) = match arguments.as_slice() {
        [all] => (all, all, all),
        [auth, content, retrieval] => (auth, content, retrieval),
        _ => bail!("give one address, or those of svc-auth, svc-content and svc-retrieval"),
    };
    let mut out = std::io::stdout();

    // The token goes to svc-auth and nowhere else. The identity holds for five minutes: long-lived programs exchange
    // again when it nears its end, or when a call answers UNAUTHENTICATED.
    let exchange = ExchangeRequest { api_token: token };
    let issued = TokenServiceClient::new(connect(auth).await?).exchange(exchange).await?.into_inner();

    let mut files = FileServiceClient::new(connect(content).await?);
    let listed = files.list_files(signed(&issued.identity, ListFilesRequest::default())?).await?.into_inner();
    for file in &listed.files {
        writeln!(out, "file  {}  {}", file.id, file.path)?;
    }

    let request = SearchContextRequest { query, limit: 3, ..Default::default() };
    let mut search = SearchServiceClient::new(connect(retrieval).await?);
    let found = search.search_context(signed(&issued.identity, request)?).await?.into_inner();
    for result in &found.results {
        let label = result.citation.as_ref().map(|citation| citation.label.as_str());
        writeln!(out, "hit   {:.3}  {}", result.score, label.unwrap_or_default())?;
    }

    // The service itself refuses a call without an identity; the gateway is not the lock.
    match files.list_files(ListFilesRequest::default()).await {
        Err(refusal) if refusal.code() == Code::Unauthenticated => {
            writeln!(out, "without an identity: {:?}", refusal.code())?;
            Ok(())
        }
        other => bail!("a call without an identity was not refused as such: {other:?}"),
    }
}

async fn connect(address: &str) -> anyhow::Result<Channel> {
    let endpoint = Endpoint::from_shared(address.to_owned())?.timeout(DEADLINE);
    endpoint.connect().await.with_context(|| format!("{address} cannot be reached"))
}

/// A request with the identity, and with a deadline that every hop respects.
fn signed<T>(identity: &str, message: T) -> anyhow::Result<Request<T>> {
    let mut request = Request::new(message);
    request.set_timeout(DEADLINE);
    request.metadata_mut().insert("authorization", format!("Bearer {identity}").parse()?);
    Ok(request)
}
