//! What documents from outside cost: `cargo bench --bench ingest -- --help`.

#[expect(dead_code, reason = "files are written by other benches")]
#[path = "support/api.rs"]
mod api;
#[path = "support/console.rs"]
mod console;
#[expect(dead_code, reason = "questions are asked by another bench")]
#[path = "support/corpus.rs"]
mod corpus;
#[path = "support/markdown.rs"]
mod markdown;
#[path = "support/report.rs"]
mod report;
#[path = "support/samples.rs"]
mod samples;
#[path = "support/server.rs"]
mod server;
#[path = "support/session.rs"]
mod session;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::Parser;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use self::api::{Api, accepted};
use self::console::Console;
use self::corpus::Document;
use self::report::{Run, Table, Verdicts};
use self::samples::percentile;
use self::server::Server;

const CALLERS: usize = 8;
const FOUND_LIMIT_MS: f64 = 15.0;
const BULK_LIMIT_S: f64 = 10.0;
const MIN_PER_SECOND: f64 = 1_000.0;
const MEMORY_LIMIT_MIB: f64 = 150.0;
const UNCHANGED_LIMIT_S: f64 = 1.0;
const WAITS: usize = 60;
/// A file that was modified just before a scan may change again within the resolution of its timestamp, so it is scanned again.
const SETTLING: Duration = Duration::from_secs(4);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const TIMEOUT: Duration = Duration::from_secs(600);
/// Paths of the index are not full at once.
const FILES_PER_FOLDER: usize = 500;

/// Sends documents to a `cairn up` in a process of its own, has it read a folder as a connected source, and measures:
///
///   found       from the acknowledgement of an ingested document to the answer of a search that sends its change token
///   bulk        CPU of the server from the first of many documents, sent by 8 callers, until all of them are found
///   first run   documents a second of the first run over a folder of small files, and memory beyond rest until all of
///               them are indexed
///   unchanged   the next run over the same folder
///
/// The callers run on the same machine and take their share of it; CPU time is the server's alone. Limits: found 15 ms at
/// p50; bulk 10 s; 1 000 documents a second and 150 MiB; unchanged 1 s.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Markdown files below this folder are ingested, instead of generated ones.
    #[arg(long, value_name = "DIR")]
    documents: Option<PathBuf>,
    /// How many documents of about 5 kB to generate.
    #[arg(long, default_value_t = 5_000)]
    generated: usize,
    /// Documents that are looked for one by one.
    #[arg(long, default_value_t = 200)]
    found: usize,
    /// Files of the folder that is connected.
    #[arg(long, default_value_t = 20_000)]
    files: usize,
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
    let documents = Arc::new(corpus::documents(options.documents.as_deref(), 0..options.generated)?);
    let mut verdicts = Verdicts::default();
    bulk(&documents, &mut verdicts).await?;
    found(options.found, options.generated, &mut verdicts).await?;
    source(options.files, &mut verdicts).await?;
    verdicts.finish(&options.run)
}

/// Sends all documents from several concurrent clients.
async fn bulk(documents: &Arc<Vec<Document>>, verdicts: &mut Verdicts) -> anyhow::Result<()> {
    let data = TempDir::new()?;
    let mut server = Server::cairn(data.path())?;
    server.ready().await?;
    let api = Arc::new(Api::open(server.address, data.path())?);
    let (cpu, started) = (server.cpu_time()?, Instant::now());
    let next = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (api, documents, next) = (Arc::clone(&api), Arc::clone(documents), Arc::clone(&next));
        callers.spawn(async move {
            let mut last = None;
            while let Some(document) = documents.get(next.fetch_add(1, Ordering::Relaxed)) {
                last = Some(ingest(&api, &document.name, &document.text).await?);
            }
            anyhow::Ok(last)
        });
    }
    let mut last: Option<Taken> = None;
    while let Some(ended) = callers.join_next().await {
        last = last.into_iter().chain(ended??).max_by_key(Taken::position);
    }
    let sent = started.elapsed();
    wait_until_found(&api, &last.context("no document")?).await?;
    let (found, cpu) = (started.elapsed(), server.cpu_time()?.saturating_sub(cpu));
    let bytes: usize = documents.iter().map(|document| document.text.len()).sum();
    let memory = server.memory()?;
    println!(
        "{} documents, {:.1} MB: taken in {:.1} s, found after {:.1} s; {:.0} MiB resident, {:.0} of it heap\n",
        documents.len(),
        bytes as f64 / 1e6,
        sent.as_secs_f64(),
        found.as_secs_f64(),
        memory.resident,
        memory.anonymous
    );
    server.stop().await?;
    verdicts.at_most("bulk, CPU of the server", cpu.as_secs_f64(), BULK_LIMIT_S, "s");
    Ok(())
}

/// Sends documents one by one.
async fn found(count: usize, from: usize, verdicts: &mut Verdicts) -> anyhow::Result<()> {
    let data = TempDir::new()?;
    let mut server = Server::cairn(data.path())?;
    server.ready().await?;
    let api = Api::open(server.address, data.path())?;
    let (mut writes, mut searches, mut both) = (Vec::new(), Vec::new(), Vec::new());
    for (number, document) in corpus::documents(None, from..from + count)?.into_iter().enumerate() {
        let word = format!("marker{number}x");
        let started = Instant::now();
        let taken = ingest(&api, &document.name, &format!("{}\n{word}\n", document.text)).await?;
        writes.push(started.elapsed());
        let asked = Instant::now();
        let answer = ask(&api, &word, Some(&taken.change)).await?;
        searches.push(asked.elapsed());
        both.push(started.elapsed());
        ensure!(has(&answer, &taken.id), "a search with the change token of {} did not find it", taken.id);
    }
    server.stop().await?;
    let mut table = Table::new(&["found", "p50 ms", "p99 ms", "worst ms"]);
    for (name, samples) in
        [("taken", &writes), ("found, with its token", &searches), ("from the request on", &both)]
    {
        let shares = [0.5, 0.99, 1.0].map(|share| format!("{:.1}", millis(percentile(samples, share))));
        table.row([name.to_owned()].into_iter().chain(shares).collect());
    }
    table.print();
    verdicts.at_most("found, p50", millis(percentile(&searches, 0.5)), FOUND_LIMIT_MS, "ms");
    Ok(())
}

/// A folder as a connected source.
async fn source(files: usize, verdicts: &mut Verdicts) -> anyhow::Result<()> {
    let (data, folder) = (TempDir::new()?, TempDir::new()?);
    write_files(folder.path(), files)?;
    tokio::time::sleep(SETTLING).await;
    let roots = [("CAIRN_SOURCE_ROOTS", folder.path().as_os_str())];
    let mut server = Server::cairn_with(data.path(), &roots)?;
    server.ready().await?;
    let console = Console::open(server.address, data.path()).await?;
    let rest = server.memory()?.resident;

    let (cpu, started) = (server.cpu_time()?, Instant::now());
    let draft =
        json!({"name": "Bench", "provider": "folder", "settings": {"path": folder.path()}, "every": "1d"});
    let connected = console.post("", &draft).await?;
    let id = connected.get("id").and_then(Value::as_str).context("a source without id")?.to_owned();
    let mut most = rest;
    let run = until_over(&console, &id, &server, &mut most).await?;
    let took = started.elapsed();
    ensure!(counted(&run, "created") == Some(files as u64), "the first run made something else of it: {run}");
    let in_run = most;
    let indexed_after = until_indexed(&console, &id, &server, &mut most, started).await?;
    let cpu = server.cpu_time()?.saturating_sub(cpu);
    println!(
        "{files} files: read in {:.1} s ({:.0} a second), indexed after {:.1} s, {:.1} s CPU of the server; {:.0} MiB beyond rest while \
         read, {:.0} with the index\n",
        took.as_secs_f64(),
        files as f64 / took.as_secs_f64(),
        indexed_after.as_secs_f64(),
        cpu.as_secs_f64(),
        in_run - rest,
        most - rest
    );

    let started = Instant::now();
    console.post(&format!("/{id}/sync"), &json!({})).await?;
    let run = until_over(&console, &id, &server, &mut most).await?;
    let unchanged = started.elapsed();
    ensure!(counted(&run, "unchanged") == Some(files as u64), "the second run found something else: {run}");
    server.stop().await?;
    verdicts.at_most("first run, a document", millis(took) / files as f64, 1_000.0 / MIN_PER_SECOND, "ms");
    verdicts.at_most("memory beyond rest", most - rest, MEMORY_LIMIT_MIB, "MiB");
    verdicts.at_most("unchanged run", unchanged.as_secs_f64(), UNCHANGED_LIMIT_S, "s");
    Ok(())
}

/// Writes small files with distinct texts.
fn write_files(folder: &Path, files: usize) -> anyhow::Result<()> {
    for number in 0..files {
        let below = folder.join(format!("part-{}", number / FILES_PER_FOLDER));
        fs::create_dir_all(&below)?;
        let text = format!(
            "# Note {number}\n\nThe release of service {} waits for the owner of server {}.\n",
            number % 97,
            number % 1_009
        );
        fs::write(below.join(format!("note-{number}.md")), text)?;
    }
    Ok(())
}

/// Waits for the end of the newest run and returns it; updates `most`, the peak memory of the server.
async fn until_over(console: &Console, id: &str, server: &Server, most: &mut f64) -> anyhow::Result<Value> {
    let started = Instant::now();
    loop {
        let shown = console.get(&format!("/{id}")).await?;
        *most = most.max(server.memory()?.resident);
        let run = shown.get("run").cloned().unwrap_or_default();
        match run.get("status").and_then(Value::as_str) {
            Some("completed") => return Ok(run),
            Some("queued" | "running") | None => {}
            Some(_) => bail!("the run has not completed: {run}"),
        }
        ensure!(started.elapsed() < TIMEOUT, "the run is not over after {TIMEOUT:?}: {run}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn counted(run: &Value, counter: &str) -> Option<u64> {
    run.get("counters")?.get(counter)?.as_u64()
}

async fn until_indexed(
    console: &Console,
    id: &str,
    server: &Server,
    most: &mut f64,
    started: Instant,
) -> anyhow::Result<Duration> {
    loop {
        let waiting = console.get(&format!("/{id}/documents?status=indexing&limit=1")).await?;
        *most = most.max(server.memory()?.resident);
        if waiting.as_array().is_some_and(Vec::is_empty) {
            return Ok(started.elapsed());
        }
        ensure!(started.elapsed() < TIMEOUT, "not all documents are indexed after {TIMEOUT:?}");
        tokio::time::sleep(10 * POLL_INTERVAL).await;
    }
}

/// An accepted document.
#[derive(Debug)]
struct Taken {
    id: String,
    change: String,
}

impl Taken {
    /// Ascending in the order of changes.
    fn position(&self) -> u64 {
        let digits: String = self.change.chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap_or_default()
    }
}

async fn ingest(api: &Api, key: &str, content: &str) -> anyhow::Result<Taken> {
    let body = json!({"idempotencyKey": key, "title": key, "content": content});
    let response = accepted(api.request(Method::POST, "/api/v1/ingest").json(&body)).await?;
    let change = response.headers().get("x-cairn-change").and_then(|value| value.to_str().ok());
    let change = change.context("a document was taken without X-Cairn-Change")?.to_owned();
    let document: Value = response.json().await?;
    let id = document.get("id").and_then(Value::as_str).context("a document without id")?.to_owned();
    Ok(Taken { id, change })
}

async fn wait_until_found(api: &Api, taken: &Taken) -> anyhow::Result<()> {
    for _ in 0..WAITS {
        let answer = ask(api, "service", Some(&taken.change)).await?;
        if answer.get("coverage").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            return Ok(());
        }
    }
    bail!("not all documents are indexed in time")
}

async fn ask(api: &Api, query: &str, change: Option<&str>) -> anyhow::Result<Value> {
    let body = json!({"query": query, "limit": 5, "mode": "fast"});
    let mut request = api.request(Method::POST, "/api/v1/search_context").json(&body);
    if let Some(change) = change {
        request = request.header("X-Cairn-Change", change).header("X-Cairn-Wait-Ms", "10000");
    }
    Ok(accepted(request).await?.json().await?)
}

fn has(answer: &Value, id: &str) -> bool {
    let results = answer.get("results").and_then(Value::as_array);
    results.is_some_and(|results| {
        results.iter().any(|result| result.get("documentId").and_then(Value::as_str) == Some(id))
    })
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
