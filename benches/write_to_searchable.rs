//! How soon a write is found by a search: `cargo bench --bench write_to_searchable -- --help`.

#[path = "support/api.rs"]
mod api;
#[path = "support/markdown.rs"]
mod markdown;
#[path = "support/mesh.rs"]
mod mesh;
#[path = "support/report.rs"]
mod report;
#[path = "support/samples.rs"]
mod samples;
#[path = "support/server.rs"]
mod server;
#[path = "support/workspace.rs"]
mod workspace;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Parser;
use tempfile::TempDir;

use self::api::Api;
use self::mesh::{Measured, Mesh};
use self::report::{Run, Table, Verdicts};
use self::samples::percentile;
use self::server::Server;

/// The limit for clients without the change token, at the 99th percentile.
const LIMIT_MS: f64 = 1_000.0;
const TIMEOUT: Duration = Duration::from_secs(30);
const PROBE_INTERVAL: Duration = Duration::from_millis(1);

/// Measures the time from the acknowledgement of a write (`POST /api/v1/files` has answered) to a search answer that
/// holds the written file, against a `cairn up` in a process of its own with a filled workspace:
///
///   with token      one search that sends `X-Cairn-Change` back: it must hold the file, and takes this long
///   without token   searches one after the other until one holds the file
///   search alone    the same search once the index has caught up: what the two contain anyway
///
/// One writer at a time. Limit: without the token, 1000 ms at the 99th percentile. With --mesh, six processes on PostgreSQL
/// and Redis are held to it as well.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Markdown files below this folder fill the workspace first, instead of generated ones.
    #[arg(long, value_name = "DIR")]
    documents: Option<PathBuf>,
    /// How many documents to generate.
    #[arg(long, default_value_t = 500)]
    generated: u64,
    /// Writes of each kind.
    #[arg(long, default_value_t = 300)]
    writes: u32,
    /// Measure a mesh, too.
    #[arg(long)]
    mesh: bool,
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

async fn run(options: Options) -> anyhow::Result<()> {
    let data = TempDir::new()?;
    let mut server = Server::cairn(data.path())?;
    let ready = server.ready().await?;
    println!("first start: {:.0} ms", millis(ready));
    let api = Api::open(server.address, data.path())?;
    fill(&api, &options).await?;
    let alone = measure(&server, &api, &options).await?;
    server.stop().await?;
    let mut verdicts = Verdicts::default();
    verdicts.at_most("without token, p99", millis(alone), LIMIT_MS, "ms");
    if options.mesh {
        println!("\nA mesh of six processes:");
        let mesh = Mesh::start(&[]).await?;
        let api = mesh.api()?;
        fill(&api, &options).await?;
        mesh.count().await?;
        let of_mesh = measure(&mesh, &api, &options).await?;
        mesh.stop().await?;
        verdicts.at_most("in a mesh, without token, p99", millis(of_mesh), LIMIT_MS, "ms");
    }
    verdicts.finish(&options.run)
}

async fn fill(api: &Api, options: &Options) -> anyhow::Result<()> {
    let documents = workspace::fill(api, options.documents.as_deref(), options.generated).await?;
    println!("{documents} documents in the workspace\n");
    Ok(())
}

/// The time until a write is found without the change token, at the 99th percentile.
async fn measure(server: &impl Measured, api: &Api, options: &Options) -> anyhow::Result<Duration> {
    let before = server.spent()?;
    let (mut writes, mut with, mut without, mut alone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for number in 0..options.writes {
        let written = write(api, "with", number).await?;
        writes.push(written.took);
        let started = Instant::now();
        if !finds(api, &written, Some(&written.change)).await? {
            bail!("a search with the change token of {} did not find it", written.id);
        }
        with.push(started.elapsed());
        let started = Instant::now();
        finds(api, &written, None).await?;
        alone.push(started.elapsed());

        let written = write(api, "without", number).await?;
        writes.push(written.took);
        without.push(wait_until_found(api, &written).await.context("without a change token")?);
    }
    let spent = server.spent()?.since(&before);

    let mut table = Table::new(&["", "p50 ms", "p99 ms", "worst ms"]);
    for (name, samples) in [
        ("write acknowledged", &writes),
        ("with token", &with),
        ("without token", &without),
        ("search alone", &alone),
    ] {
        let shares = [0.5, 0.99, 1.0].map(|share| format!("{:.1}", millis(percentile(samples, share))));
        table.row([name.to_owned()].into_iter().chain(shares).collect());
    }
    table.print();
    let memory = server.memory()?;
    println!(
        "server: {:.1} ms CPU for each write with its searches, {:.1} MiB resident, {:.1} of it heap\n",
        millis(spent.total()) / f64::from(options.writes * 2),
        memory.resident,
        memory.anonymous
    );
    spent.print("a write with its searches", options.writes * 2);
    Ok(percentile(&without, 0.99))
}

/// A file with a word that no other file has.
struct Written {
    id: String,
    change: String,
    word: String,
    took: Duration,
}

async fn write(api: &Api, kind: &str, number: u32) -> anyhow::Result<Written> {
    let word = format!("marker{kind}{number}");
    let content =
        format!("# Note {number}\n\nThe release of {word} waits for the owner of the staging server.\n");
    let started = Instant::now();
    let (id, change) = api.create_file(&format!("{kind}-{number}.md"), &content).await?;
    Ok(Written { id, change, word, took: started.elapsed() })
}

async fn finds(api: &Api, written: &Written, change: Option<&str>) -> anyhow::Result<bool> {
    Ok(workspace::search(api, &written.word, change).await?.contains(&written.id))
}

async fn wait_until_found(api: &Api, written: &Written) -> anyhow::Result<Duration> {
    let started = Instant::now();
    while !finds(api, written, None).await? {
        if started.elapsed() > TIMEOUT {
            bail!("{} was not found within {TIMEOUT:?}", written.id);
        }
        tokio::time::sleep(PROBE_INTERVAL).await;
    }
    Ok(started.elapsed())
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
