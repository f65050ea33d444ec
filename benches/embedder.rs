//! What it costs to embed a workspace anew with a transformer: `cargo bench --bench embedder -- --help`.

#[path = "support/api.rs"]
mod api;
#[expect(dead_code, reason = "questions are asked by another bench")]
#[path = "support/corpus.rs"]
mod corpus;
#[path = "support/markdown.rs"]
mod markdown;
#[path = "support/report.rs"]
mod report;
#[path = "support/samples.rs"]
mod samples;
#[path = "support/searches.rs"]
mod searches;
#[path = "support/server.rs"]
mod server;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Parser;
use reqwest::Method;
use reqwest::header::ACCEPT;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::api::{Api, accepted};
use self::report::{Run, Table, Verdicts};
use self::samples::percentile;
use self::searches::{ask, wait_until_indexed};
use self::server::{Server, mebibytes};

const MEMORY_LIMIT_MIB: f64 = 250.0;
/// How long a server is idle before its memory is read.
const REST: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_secs(3_600);

/// Fills the workspace of a `cairn up` in a process of its own, starts it again with a transformer as its embedder, and measures
/// until the index of that one has taken over:
///
///   memory     the most that was resident (VmHWM, the reading of the model's files included) beyond what a server with this model
///              and nothing in it holds at rest
///   CPU, time  of the whole, and how long searches took meanwhile
///
/// Limit: 250 MiB. Without --model nothing is measured.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// The folder of a model, as `cairn models add` takes it.
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Markdown files below this folder fill the workspace, instead of generated ones.
    #[arg(long, value_name = "DIR")]
    documents: Option<PathBuf>,
    /// How many documents of about 5 kB to generate.
    #[arg(long, default_value_t = 300)]
    generated: usize,
    #[command(flatten)]
    run: Run,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if !options.run.is_bench() {
        return Ok(());
    }
    let Some(model) = options.model.clone() else {
        println!("without --model nothing is measured");
        return Ok(());
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run(&options, &model))
}

async fn run(options: &Options, model: &Path) -> anyhow::Result<()> {
    let data = TempDir::new()?;
    let written = fill(data.path(), options).await?;
    let mut embedder = OsString::from("candle:");
    embedder.push(model.canonicalize()?);
    let environment = [("CAIRN_EMBEDDER", embedder.as_os_str())];

    let empty = TempDir::new()?;
    let mut server = Server::cairn_with(empty.path(), &environment)?;
    server.ready().await?;
    taken_over(&Api::open(server.address, empty.path())?, async || anyhow::Ok(())).await?;
    tokio::time::sleep(REST).await;
    let rest = server.memory()?;
    server.stop().await?;

    let mut server = Server::cairn_with(data.path(), &environment)?;
    server.ready().await?;
    let api = Api::open(server.address, data.path())?;
    let started = Instant::now();
    let mut searches = Vec::new();
    let searched = async || {
        let asked = Instant::now();
        ask(&api, "service", None).await?;
        searches.push(asked.elapsed());
        anyhow::Ok(())
    };
    taken_over(&api, searched).await?;
    let (took, cpu) = (started.elapsed(), server.cpu_time()?);
    let peak = mebibytes(&fs::read_to_string(format!("/proc/{}/status", server.id()))?, "VmHWM")?;
    let after = server.memory()?;
    server.stop().await?;

    let mut table = Table::new(&["", "MiB resident", "of it heap"]);
    table.row(vec!["the model at rest".into(), mib(rest.resident), mib(rest.anonymous)]);
    table.row(vec!["at most while embedding".into(), mib(peak), String::new()]);
    table.row(vec!["afterwards".into(), mib(after.resident), mib(after.anonymous)]);
    table.print();
    println!(
        "{written} documents embedded in {:.1} s, {:.1} s CPU; {} searches meanwhile, p50 {:.1} ms, p99 {:.1} ms\n",
        took.as_secs_f64(),
        cpu.as_secs_f64(),
        searches.len(),
        percentile(&searches, 0.5).as_secs_f64() * 1_000.0,
        percentile(&searches, 0.99).as_secs_f64() * 1_000.0,
    );
    let mut verdicts = Verdicts::default();
    verdicts.at_most("memory beyond the model", peak - rest.resident, MEMORY_LIMIT_MIB, "MiB");
    verdicts.finish(&options.run)
}

/// Writes the documents with the built-in embedder; returns their number.
async fn fill(data: &Path, options: &Options) -> anyhow::Result<usize> {
    let documents = corpus::documents(options.documents.as_deref(), 0..options.generated)?;
    let mut server = Server::cairn(data)?;
    server.ready().await?;
    let api = Api::open(server.address, data)?;
    let mut last = None;
    for document in &documents {
        last = Some(api.create_file(&document.name, &document.text).await?.1);
    }
    wait_until_indexed(&api, last.as_deref()).await?;
    server.stop().await?;
    Ok(documents.len())
}

/// Waits until searches use a transformer and no index is being built, and repeats an action meanwhile.
async fn taken_over(api: &Api, mut meanwhile: impl AsyncFnMut() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let asked = Instant::now();
    while asked.elapsed() < TIMEOUT {
        meanwhile().await?;
        let indexing = indexing(api).await?;
        let embedder = indexing.get("embedder").and_then(Value::as_str).unwrap_or_default();
        if embedder.starts_with("candle-") && indexing.get("nextEmbedder").is_none() {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    bail!("the index of the model has not taken over within {} minutes", TIMEOUT.as_secs() / 60)
}

async fn indexing(api: &Api) -> anyhow::Result<Value> {
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "get_workspace_overview", "arguments": {}},
    });
    let request = api.request(Method::POST, "/mcp").header(ACCEPT, "application/json, text/event-stream");
    let answer: Value = accepted(request.json(&call)).await?.json().await?;
    answer.pointer("/result/structuredContent/indexing").cloned().context("the overview tells no index")
}

fn mib(figure: f64) -> String {
    format!("{figure:.0}")
}
