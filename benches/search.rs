//! What a search costs over HTTP while others search: `cargo bench --bench search -- --help`.

#[path = "support/api.rs"]
mod api;
#[path = "support/corpus.rs"]
mod corpus;
#[path = "support/markdown.rs"]
mod markdown;
#[path = "support/mesh.rs"]
mod mesh;
#[path = "support/report.rs"]
mod report;
#[path = "support/samples.rs"]
mod samples;
#[path = "support/searches.rs"]
mod searches;
#[path = "support/server.rs"]
mod server;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Parser;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use self::api::{Api, accepted};
use self::corpus::Document;
use self::mesh::{Measured, Mesh};
use self::report::{Run, Table, Verdicts};
use self::samples::percentile;
use self::searches::{ask, wait_until_indexed};
use self::server::Server;

const CLIENTS: usize = 8;
const WRITERS: usize = 4;
const WARM_UP: usize = 400;
const P99_LIMIT_MS: f64 = 10.0;
const MIN_PER_SECOND: f64 = 500.0;
/// The interval between two searches of a client at that rate.
const INTERVAL: Duration = Duration::from_millis(16);
const FOUND_LIMIT_MS: f64 = 10.0;
const MEMORY_LIMIT_MIB: f64 = 200.0;
/// The ratio of a mesh to one process, in total CPU time.
const MESH_LIMIT: f64 = 3.0;

/// Fills the workspace of a `cairn up` in a process of its own, starts it again, and measures:
///
///   rate      searches (words and meaning, ten results) a second of 8 clients, each asking as soon as it is answered
///   hybrid    how long a search takes at 500 a second from 8 clients, counted from when it is due
///   found     from the acknowledgement of a write to the answer of a search that sends its change token, at that rate
///   memory    resident after all of it, beyond what the server holds before it is first asked
///
/// The clients run on the same machine and take their share of it. Limits: 500 a second; hybrid p99 10 ms; found p50
/// 10 ms; memory 200 MiB. The default documents make about 50 000 chunks.
///
/// With --mesh, six processes on PostgreSQL and Redis are filled and asked after it. Limit: a search takes 3 times the CPU
/// time of one process, PostgreSQL and Redis included.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Markdown files below this folder fill the workspace, instead of generated ones.
    #[arg(long, value_name = "DIR")]
    documents: Option<PathBuf>,
    /// How often they are written, each time under another name.
    #[arg(long, default_value_t = 1)]
    times: usize,
    /// How many documents to generate.
    #[arg(long, default_value_t = 7_100)]
    generated: usize,
    /// Searches in all.
    #[arg(long, default_value_t = 8_000)]
    searches: usize,
    /// Writes that are looked for.
    #[arg(long, default_value_t = 200)]
    writes: usize,
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
    let documents = Arc::new(corpus::documents(options.documents.as_deref(), 0..options.generated)?);
    let queries = Arc::new(corpus::queries(&documents, 2_000));
    let mut filled = Server::cairn(data.path())?;
    filled.ready().await?;
    let api = Arc::new(Api::open(filled.address, data.path())?);
    fill(&filled, &api, &documents, options.times).await?;
    filled.stop().await?;

    let mut server = Server::cairn(data.path())?;
    server.ready().await?;
    let api = Arc::new(Api::open(server.address, data.path())?);
    let alone = measure(&server, &api, &queries, &options).await?;
    server.stop().await?;
    let of_mesh = if options.mesh { Some(in_mesh(&documents, &queries, &options).await?) } else { None };

    let mut verdicts = Verdicts::default();
    verdicts.at_most("hybrid, p99", millis(alone.p99), P99_LIMIT_MS, "ms");
    verdicts.at_most("time of 500 hybrid searches", MIN_PER_SECOND / alone.a_second, 1.0, "s");
    verdicts.at_most("found with the token, p50", millis(alone.found), FOUND_LIMIT_MS, "ms");
    verdicts.at_most("memory beyond rest", alone.beyond_rest, MEMORY_LIMIT_MIB, "MiB");
    if let Some(of_mesh) = of_mesh {
        let ratio = millis(of_mesh.cpu) / millis(alone.cpu);
        verdicts.at_most(
            "CPU of a hybrid search by a mesh to that by one process",
            ratio,
            MESH_LIMIT,
            "times",
        );
    }
    verdicts.finish(&options.run)
}

/// The figures of a deployment.
struct Figures {
    /// CPU time of a search with 8 clients in a closed loop.
    cpu: Duration,
    a_second: f64,
    p99: Duration,
    found: Duration,
    /// In MiB.
    beyond_rest: f64,
}

async fn measure(
    server: &impl Measured,
    api: &Arc<Api>,
    queries: &Arc<Vec<String>>,
    options: &Options,
) -> anyhow::Result<Figures> {
    let rest = server.memory()?;
    search_all(api, queries, WARM_UP, Duration::ZERO).await?;
    let (cpu, a_second, p99) = hybrid(server, api, queries, options.searches).await?;
    let found = found(api, queries, options.writes).await?;
    let used = server.memory()?;
    println!(
        "memory: {:.0} MiB resident, {:.0} of it heap; {:.0} before it was asked\n",
        used.resident, used.anonymous, rest.resident
    );
    Ok(Figures { cpu, a_second, p99, found, beyond_rest: used.resident - rest.resident })
}

async fn in_mesh(
    documents: &Arc<Vec<Document>>,
    queries: &Arc<Vec<String>>,
    options: &Options,
) -> anyhow::Result<Figures> {
    println!("A mesh of six processes:\n");
    let mesh = Mesh::start(&[]).await?;
    let api = Arc::new(mesh.api()?);
    fill(&mesh, &api, documents, options.times).await?;
    mesh.count().await?;
    let figures = measure(&mesh, &api, queries, options).await?;
    mesh.stop().await?;
    Ok(figures)
}

async fn fill(
    server: &impl Measured,
    api: &Arc<Api>,
    documents: &Arc<Vec<Document>>,
    times: usize,
) -> anyhow::Result<()> {
    let (started, before) = (Instant::now(), server.spent()?);
    let next = Arc::new(AtomicUsize::new(0));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (api, documents, next) = (Arc::clone(api), Arc::clone(documents), Arc::clone(&next));
        writers.spawn(async move {
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(document) = documents.get(place % documents.len().max(1)) else { break };
                let time = place / documents.len().max(1);
                if time >= times {
                    break;
                }
                let name =
                    if time == 0 { document.name.clone() } else { format!("{time}-{}", document.name) };
                api.create_file(&name, &document.text).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(written) = writers.join_next().await {
        written??;
    }
    let (_, change) = api.create_file("last.md", "# Last\n\nNothing comes after it.\n").await?;
    wait_until_indexed(api, Some(&change)).await?;
    println!(
        "{} documents written and indexed in {:.0} s, {:.1} s CPU of the server\n",
        documents.len() * times,
        started.elapsed().as_secs_f64(),
        server.spent()?.since(&before).total().as_secs_f64()
    );
    Ok(())
}

/// Runs that many searches in an open loop over all clients; returns the latency of each, measured from when it was due.
async fn search_all(
    api: &Arc<Api>,
    queries: &Arc<Vec<String>>,
    count: usize,
    pace: Duration,
) -> anyhow::Result<Vec<Duration>> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (api, queries, next) = (Arc::clone(api), Arc::clone(queries), Arc::clone(&next));
        clients.spawn(async move {
            let mut took = Vec::new();
            let mut due = Instant::now() + pace * client as u32 / CLIENTS as u32;
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                if place >= count {
                    return anyhow::Ok(took);
                }
                let query = queries.get(place % queries.len().max(1)).context("no query")?;
                due = if pace.is_zero() { Instant::now() } else { due + pace };
                tokio::time::sleep_until(due.into()).await;
                accepted(
                    api.request(Method::POST, "/api/v1/search_context")
                        .json(&json!({"query": query, "limit": 10})),
                )
                .await?
                .bytes()
                .await?;
                took.push(due.elapsed());
            }
        });
    }
    let mut samples = Vec::with_capacity(count);
    while let Some(took) = clients.join_next().await {
        samples.extend(took??);
    }
    Ok(samples)
}

/// The CPU time of a search, the throughput, and the p99 at a steady rate.
async fn hybrid(
    server: &impl Measured,
    api: &Arc<Api>,
    queries: &Arc<Vec<String>>,
    count: usize,
) -> anyhow::Result<(Duration, f64, Duration)> {
    let (before, started) = (server.spent()?, Instant::now());
    let eager = search_all(api, queries, count, Duration::ZERO).await?;
    let a_second = eager.len() as f64 / started.elapsed().as_secs_f64();
    let (spent, requests) = (server.spent()?.since(&before), u32::try_from(count.max(1))?);
    let cpu = spent.total() / requests;
    let paced = search_all(api, queries, count, INTERVAL).await?;
    let mut table = Table::new(&["8 clients", "p50 ms", "p99 ms", "worst ms"]);
    row(&mut table, "as fast as they are answered", &eager);
    row(&mut table, "500 a second", &paced);
    table.print();
    println!("{a_second:.0} searches a second, {:.2} ms CPU of the server each\n", millis(cpu));
    spent.print("a search", requests);
    Ok((cpu, a_second, percentile(&paced, 0.99)))
}

/// Writes documents and searches for each while the clients search; returns the p50 until one is found.
async fn found(api: &Arc<Api>, queries: &Arc<Vec<String>>, writes: usize) -> anyhow::Result<Duration> {
    let over = Arc::new(AtomicBool::new(false));
    let others = {
        let (api, queries, over) = (Arc::clone(api), Arc::clone(queries), Arc::clone(&over));
        tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                search_all(&api, &queries, CLIENTS * 20, INTERVAL).await?;
            }
            anyhow::Ok(())
        })
    };
    let (mut written, mut looked) = (Vec::new(), Vec::new());
    for number in 0..writes {
        let word = format!("marker{number}x");
        let text =
            format!("# Note {number}\n\nThe release of {word} waits for the owner of the staging server.\n");
        let started = Instant::now();
        let (id, change) = api.create_file(&format!("note-{number}.md"), &text).await?;
        written.push(started.elapsed());
        let started = Instant::now();
        let answer = ask(api, &word, Some(&change)).await?;
        looked.push(started.elapsed());
        let results = answer.get("results").and_then(Value::as_array).context("an answer without results")?;
        if !results.iter().any(|result| result.get("documentId").and_then(Value::as_str) == Some(&id)) {
            bail!("a search with the change token of {id} did not find it");
        }
    }
    over.store(true, Ordering::Relaxed);
    others.await??;
    let mut table = Table::new(&["beside 500 searches a second", "p50 ms", "p99 ms", "worst ms"]);
    row(&mut table, "write acknowledged", &written);
    row(&mut table, "found, with the change token", &looked);
    table.print();
    Ok(percentile(&looked, 0.5))
}

fn row(table: &mut Table, name: &str, samples: &[Duration]) {
    let shares = [0.5, 0.99, 1.0].map(|share| format!("{:.1}", millis(percentile(samples, share))));
    table.row([name.to_owned()].into_iter().chain(shares).collect());
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
