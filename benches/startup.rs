//! How soon `cairn up` answers and what it holds in memory: `cargo bench --bench startup -- --help`.

#[path = "support/api.rs"]
mod api;
#[path = "support/bare.rs"]
mod bare;
#[path = "support/markdown.rs"]
mod markdown;
#[path = "support/report.rs"]
mod report;
#[path = "support/samples.rs"]
mod samples;
#[path = "support/server.rs"]
mod server;
#[path = "support/workspace.rs"]
mod workspace;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use clap::Parser;
use tempfile::TempDir;

use self::api::Api;
use self::report::{Run, Table, Verdicts};
use self::samples::percentile;
use self::server::{Memory, Server};

const READY_LIMIT_MS: f64 = 300.0;
const MEMORY_LIMIT_MIB: f64 = 80.0;
const READY_AIM_MS: f64 = 50.0;
const MEMORY_AIM_MIB: f64 = 30.0;
const SEARCHES: u32 = 200;

/// Measures `cairn up` on a data folder that holds a workspace already: the time from the spawn of the process to the
/// first 200 of `GET /readyz` (which asks every service), the CPU time until then, and the resident memory after a
/// moment of rest, before any request. Then also the memory after 200 searches. The files are in the system's
/// cache, as after a restart of the process, not of the machine. The peer is a bare axum server started alike.
///
/// Limits: ready within 300 ms and 80 MiB resident at rest (median); aims: 50 ms and 30 MiB.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Markdown files below this folder fill the workspace, instead of generated ones.
    #[arg(long, value_name = "DIR")]
    documents: Option<PathBuf>,
    /// How many documents to generate.
    #[arg(long, default_value_t = 500)]
    generated: u64,
    /// How often to start.
    #[arg(long, default_value_t = 15)]
    starts: u32,
    /// How long to rest before memory is read, in milliseconds.
    #[arg(long, default_value_t = 2_000)]
    rest: u64,
    #[command(flatten)]
    run: Run,
    /// Be the bare server.
    #[arg(long, hide = true)]
    bare: Option<SocketAddr>,
}

/// The figures of the starts of one server.
#[derive(Default)]
struct Starts {
    ready: Vec<Duration>,
    cpu: Vec<Duration>,
    memory: Option<Memory>,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match options.bare {
        Some(address) => {
            runtime.block_on(bare::serve(address, Router::new().route("/readyz", get(async || ()))))
        }
        None if options.run.is_bench() => runtime.block_on(run(options)),
        None => Ok(()),
    }
}

async fn run(options: Options) -> anyhow::Result<()> {
    let data = TempDir::new()?;
    let documents = prepare(data.path(), &options).await?;
    println!("{documents} documents in the workspace\n");

    let rest = Duration::from_millis(options.rest);
    let cairn = starts(options.starts, rest, || Server::cairn(data.path())).await?;
    let peer = starts(options.starts, rest, || bare::start(&[])).await?;
    let mut table = Table::new(&["", "p50 ms", "worst ms", "CPU ms", "MiB resident", "of it heap"]);
    let (ready, memory) = add(&mut table, "cairn up", &cairn);
    add(&mut table, "bare axum server", &peer);
    table.print();
    let used = after_searches(data.path()).await?;
    println!(
        "after {SEARCHES} searches: {:.1} MiB resident, {:.1} of it heap\n",
        used.resident, used.anonymous
    );

    let mut verdicts = Verdicts::default();
    verdicts.at_most("ready, median", ready, READY_LIMIT_MS, "ms");
    verdicts.at_most("resident at rest", memory, MEMORY_LIMIT_MIB, "MiB");
    println!("the aims are {READY_AIM_MS} ms and {MEMORY_AIM_MIB} MiB");
    verdicts.finish(&options.run)
}

/// A data folder with a filled workspace, after a graceful stop.
async fn prepare(data: &Path, options: &Options) -> anyhow::Result<usize> {
    let mut server = Server::cairn(data)?;
    server.ready().await?;
    let api = Api::open(server.address, data)?;
    let count = workspace::fill(&api, options.documents.as_deref(), options.generated).await?;
    server.stop().await?;
    Ok(count)
}

async fn starts(
    count: u32,
    rest: Duration,
    start: impl Fn() -> anyhow::Result<Server>,
) -> anyhow::Result<Starts> {
    let mut starts = Starts::default();
    for number in 0..count {
        let mut server = start()?;
        starts.ready.push(server.ready().await?);
        starts.cpu.push(server.cpu_time()?);
        if number == 0 {
            tokio::time::sleep(rest).await;
            starts.memory = Some(server.memory()?);
        }
        server.stop().await?;
    }
    Ok(starts)
}

async fn after_searches(data: &Path) -> anyhow::Result<Memory> {
    let mut server = Server::cairn(data)?;
    server.ready().await?;
    let api = Api::open(server.address, data)?;
    for _ in 0..SEARCHES {
        workspace::search(&api, "release of the staging server", None).await?;
    }
    let memory = server.memory()?;
    server.stop().await?;
    Ok(memory)
}

/// Adds a row; returns the median milliseconds until ready and the resident MiB.
fn add(table: &mut Table, name: &str, starts: &Starts) -> (f64, f64) {
    let ready = millis(percentile(&starts.ready, 0.5));
    let (resident, anonymous) =
        starts.memory.map_or((0.0, 0.0), |memory| (memory.resident, memory.anonymous));
    table.row(vec![
        name.to_owned(),
        format!("{ready:.0}"),
        format!("{:.0}", millis(percentile(&starts.ready, 1.0))),
        format!("{:.0}", millis(percentile(&starts.cpu, 0.5))),
        format!("{resident:.1}"),
        format!("{anonymous:.1}"),
    ]);
    (ready, resident)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
