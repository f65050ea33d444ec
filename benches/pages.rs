//! What the pages of the console cost the server: `cargo bench --bench pages -- --help`.

#[path = "support/api.rs"]
mod api;
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
#[expect(dead_code, reason = "answers of the API are read by other benches")]
#[path = "support/session.rs"]
mod session;

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Parser;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use self::api::{Api, accepted};
use self::report::{Run, Table, Verdicts};
use self::samples::percentile;
use self::searches::wait_until_indexed;
use self::server::Server;
use self::session::Session;

const WRITERS: usize = 8;
const FOLDERS: usize = 100;
/// The first part of a generated document: pages bound the text that they show, so longer ones would not change the figures.
const DOCUMENT_BYTES: usize = 700;
/// The size of the file that is read and edited.
const FILE_BYTES: usize = 20_000;
const RECORDS_PER_DATABASE: usize = 10_000;
const OPTIONS: [&str; 4] = ["Open", "Blocked", "Done", "Dropped"];
const WARM_UP: u32 = 20;
const LIMIT_MS: f64 = 5.0;
static REQUESTS: AtomicUsize = AtomicUsize::new(0);

/// Fills the workspace of a `cairn up` in a process of its own with small documents in 100 folders and a database of
/// 10 000 records with seven fields, starts it again, and asks for each page of the console as a signed-in owner, one
/// request at a time. The figure is the CPU time of the server process (user and system, from /proc) for each request,
/// beside that of a page with next to nothing on it (the list of one workspace), in the same run; wall times are the client's.
///
/// Limit: 5 ms of CPU for each page.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// How many documents to generate.
    #[arg(long, default_value_t = 50_000)]
    documents: usize,
    /// How many records.
    #[arg(long, default_value_t = RECORDS_PER_DATABASE)]
    records: usize,
    /// Requests of each page.
    #[arg(long, default_value_t = 200)]
    requests: u32,
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
    let filled = fill(&data, &options).await?;
    // Reads of public memories are rate limited by address, so each request has another one.
    let environment = [("CAIRN_TRUSTED_PROXIES", OsStr::new("127.0.0.1"))];
    let mut server = Server::cairn_with(data.path(), &environment)?;
    server.ready().await?;
    let session = Session::open(server.address, data.path()).await?;
    let mut table = Table::new(&["page", "CPU ms", "p50 ms", "p95 ms", "kB"]);
    let mut verdicts = Verdicts::default();
    for (name, path) in pages(&session.workspace, &filled) {
        let cost = measured(&server, &session, &path, options.requests).await?;
        table.row(vec![
            name.to_owned(),
            format!("{:.2}", cost.cpu_ms),
            format!("{:.1}", millis(percentile(&cost.walls, 0.5))),
            format!("{:.1}", millis(percentile(&cost.walls, 0.95))),
            format!("{:.1}", cost.bytes as f64 / 1000.0),
        ]);
        verdicts.at_most(&format!("CPU of {name}"), cost.cpu_ms, LIMIT_MS, "ms");
    }
    println!();
    table.print();
    let memory = server.memory()?;
    println!("{:.0} MiB resident after all of them, {:.0} of it heap\n", memory.resident, memory.anonymous);
    server.stop().await?;
    verdicts.finish(&options.run)
}

/// The items of the workspace that the pages show.
struct Filled {
    folder: String,
    file: String,
    memory: String,
    database: String,
    record: String,
    /// A number field and a select field.
    number: String,
    select: String,
    words: String,
}

fn pages(workspace: &str, filled: &Filled) -> Vec<(&'static str, String)> {
    let w = format!("/w/{workspace}");
    let Filled { folder, file, memory, database, record, number, select, words } = filled;
    let words = words.replace(' ', "+");
    vec![
        ("workspaces, nearly empty", "/workspaces".to_owned()),
        ("overview", w.clone()),
        ("search", format!("{w}/search?q={words}")),
        ("files, the root", format!("{w}/files")),
        ("files, a folder", format!("{w}/files?folder={folder}")),
        ("file, read", format!("/file/{file}")),
        ("file, cited lines", format!("/file/{file}?lines=12-18")),
        ("file, source", format!("/file/{file}?view=source")),
        ("file, edit", format!("/file/{file}/edit")),
        ("databases", format!("{w}/databases")),
        ("grid", format!("/databases/{database}")),
        ("grid, sorted by a number", format!("/databases/{database}?sort={number}:desc")),
        ("grid, filtered by an option", format!("/databases/{database}?filter={select}:equals:Open")),
        ("grid, page 150", format!("/databases/{database}?page=150")),
        ("record beside the grid", format!("/databases/{database}?record={record}")),
        ("memories", format!("{w}/memories")),
        ("memory", format!("/memories/{memory}")),
        ("public memory", format!("/m/{memory}")),
        ("activity", format!("{w}/activity")),
        ("questions", format!("{w}/questions")),
        ("documents", format!("{w}/documents")),
        ("sources", format!("{w}/sources")),
        ("sync", format!("{w}/sync")),
        ("import", format!("{w}/import")),
        ("go to", format!("{w}/go?q=folder")),
        ("go to, a name that is nowhere", format!("{w}/go?q=nowhere-at-all")),
        ("go to, a letter", format!("{w}/go?q=e")),
        ("trash", format!("{w}/trash")),
        ("tokens", format!("{w}/tokens")),
        ("members", format!("{w}/members")),
        ("settings", format!("{w}/settings")),
        ("health", format!("{w}/health")),
        ("analytics", format!("{w}/analytics")),
        ("freshness", format!("{w}/freshness")),
    ]
}

struct Cost {
    cpu_ms: f64,
    walls: Vec<Duration>,
    bytes: usize,
}

async fn measured(server: &Server, session: &Session, path: &str, requests: u32) -> anyhow::Result<Cost> {
    for _ in 0..WARM_UP {
        page(session, path).await?;
    }
    let (before, mut walls, mut bytes) = (server.cpu_time()?, Vec::new(), 0);
    for _ in 0..requests {
        let started = Instant::now();
        bytes = page(session, path).await?;
        walls.push(started.elapsed());
    }
    let cpu = server.cpu_time()?.saturating_sub(before);
    Ok(Cost { cpu_ms: millis(cpu) / f64::from(requests), walls, bytes })
}

async fn page(session: &Session, path: &str) -> anyhow::Result<usize> {
    let [.., high, low] = REQUESTS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let request = session.request(Method::GET, path).header("x-forwarded-for", format!("10.0.{high}.{low}"));
    let answer = accepted(request).await.with_context(|| path.to_owned())?;
    if answer.url().path() != path.split('?').next().unwrap_or(path) {
        bail!("{path} led to {}", answer.url());
    }
    Ok(answer.bytes().await?.len())
}

async fn fill(data: &TempDir, options: &Options) -> anyhow::Result<Filled> {
    let mut server = Server::cairn(data.path())?;
    server.ready().await?;
    let api = Arc::new(Api::open(server.address, data.path())?);
    let started = Instant::now();
    let folder = documents(&api, options.documents).await?;
    let (database, number, select) = database(&api).await?;
    let record = records(&api, &database, [&number, &select], options.records).await?;
    let file = file(&api).await?;
    let memory = memory(&api, &file).await?;
    let (_, change) = api.create_file("last.md", "# Last\n\nNothing comes after it.\n").await?;
    wait_until_indexed(&api, Some(&change)).await?;
    println!("filled in {:.0} s\n", started.elapsed().as_secs_f64());
    server.stop().await?;
    let words =
        corpus::queries(&corpus::documents(None, 0..20)?, 1).into_iter().next().context("no query")?;
    Ok(Filled { folder, file, memory, database, record, number, select, words })
}

/// Creates documents in folders; returns the id of one folder.
async fn documents(api: &Arc<Api>, count: usize) -> anyhow::Result<String> {
    let mut folders = Vec::new();
    for number in 0..FOLDERS {
        folders.push(create(api, "/api/v1/folders", &json!({"name": format!("Folder {number}")})).await?);
    }
    let (folders, next) = (Arc::new(folders), Arc::new(AtomicUsize::new(0)));
    let documents = Arc::new(corpus::documents(None, 0..count)?);
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (api, folders, next) = (Arc::clone(api), Arc::clone(&folders), Arc::clone(&next));
        let documents = Arc::clone(&documents);
        writers.spawn(async move {
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(document) = documents.get(place) else { break };
                let folder = folders.get(place % FOLDERS).context("no folder")?;
                let text = document.text.get(..DOCUMENT_BYTES).unwrap_or(&document.text);
                let body =
                    json!({"name": document.name, "content": text, "fileType": "markdown", "folderId": folder});
                create(&api, "/api/v1/files", &body).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(written) = writers.join_next().await {
        written??;
    }
    folders.first().cloned().context("no folder")
}

/// Creates a database with seven fields beside the title; returns its id, and those of a number and of a select field.
async fn database(api: &Api) -> anyhow::Result<(String, String, String)> {
    let id = create(api, "/api/v1/databases", &json!({"name": "Tasks"})).await?;
    let path = format!("/api/v1/databases/{id}/fields");
    for (name, kind) in [("Note", "text"), ("Due", "date"), ("Urgent", "boolean"), ("Link", "url")] {
        create(api, &path, &json!({"name": name, "type": kind})).await?;
    }
    let number = create(api, &path, &json!({"name": "Effort", "type": "number"})).await?;
    let options: Vec<Value> = OPTIONS.iter().map(|name| json!({"name": name})).collect();
    let select = json!({"name": "State", "type": "select", "config": {"options": options}});
    let select = create(api, &path, &select).await?;
    Ok((id, number, select))
}

/// Creates records of the database; returns the id of the last.
async fn records(api: &Api, database: &str, fields: [&String; 2], count: usize) -> anyhow::Result<String> {
    let [number, select] = fields;
    let path = format!("/api/v1/databases/{database}/records");
    let mut last = None;
    for place in 0..count {
        let option = OPTIONS.get(place % OPTIONS.len()).context("no option")?;
        let body = json!({"values": {number: place * 7919 % count, select: option}});
        last = Some(create(api, &path, &body).await?);
    }
    last.context("no record")
}

async fn file(api: &Api) -> anyhow::Result<String> {
    let documents = corpus::documents(None, 0..8)?;
    let text: String = documents.iter().map(|document| document.text.as_str()).collect();
    Ok(api.create_file("read.md", text.get(..FILE_BYTES).unwrap_or(&text)).await?.0)
}

async fn memory(api: &Api, file: &str) -> anyhow::Result<String> {
    let body = json!({"name": "Guide", "isPublic": true, "members": [{"kind": "file", "fileId": file}]});
    create(api, "/api/v1/memories", &body).await
}

async fn create(api: &Api, path: &str, body: &Value) -> anyhow::Result<String> {
    let made: Value = accepted(api.request(Method::POST, path).json(body)).await?.json().await?;
    made.get("id").and_then(Value::as_str).context("something without id").map(ToOwned::to_owned)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
