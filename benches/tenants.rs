//! What many workspaces cost one process, and each other: `cargo bench --bench tenants -- --help`.

#[expect(dead_code, reason = "the workspace of the first start is asked by other benches")]
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
#[expect(dead_code, reason = "this one is always told how many workspaces somebody may own")]
#[path = "support/server.rs"]
mod server;
#[expect(dead_code, reason = "the workspace of the first start is looked at by other benches")]
#[path = "support/session.rs"]
mod session;

use std::ffi::OsStr;
use std::fs;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Parser;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use self::api::{Api, accepted, client};
use self::report::{Run, Table, Verdicts};
use self::samples::percentile;
use self::searches::{ask, wait_until_indexed};
use self::server::{Memory, Server};
use self::session::Session;

const COLD_LIMIT_MS: f64 = 30.0;
const OWNED: &str = "CAIRN_WORKSPACES_PER_PERSON";
/// Workspaces that are filled concurrently.
const FILLERS: usize = 4;
const CLIENTS: usize = 4;
/// The interval between two searches of a client, next to the writer.
const INTERVAL: Duration = Duration::from_millis(40);
const RECORDS: usize = 20;
/// A server is idle when it uses less than a fifth of this interval as CPU time.
const REST: Duration = Duration::from_millis(500);
const REST_WAIT: Duration = Duration::from_secs(300);
/// The numbers of the writer's documents, above those of all initial ones.
const WRITTEN: Range<usize> = 10_000_000..10_000_200;

/// Fills that many workspaces of a `cairn up` in a process of its own, each with some documents of about 5 kB and a
/// database of 20 records, starts it again, and measures:
///
///   at rest   spawn to ready, resident memory and open files, beyond what a new server with one workspace has
///   cold      the first search of each workspace since the start: words and meaning, ten results
///   warm      the second one
///   touched   memory and files once every workspace was searched
///   writer    searches of 4 clients in all workspaces, 100 a second, while somebody writes in one as fast as that is
///             acknowledged, and without
///
/// Limits: a cold search takes 30 ms, at the median and at the 99th percentile, and as much CPU time of the server.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Workspaces, beside the one that every server begins with.
    #[arg(long, default_value_t = 1_000)]
    workspaces: usize,
    /// Documents of each.
    #[arg(long, default_value_t = 20)]
    documents: usize,
    /// Searches beside the writer.
    #[arg(long, default_value_t = 2_000)]
    searches: usize,
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
    let mut server = start(data.path(), &options)?;
    server.ready().await?;
    until_at_rest(&server).await?;
    let empty = Held::by(&server)?;
    let tenants = fill(&server, data.path(), &options).await?;
    server.stop().await?;

    let mut server = start(data.path(), &options)?;
    let ready = server.ready().await?;
    println!("{} workspaces: ready after {:.0} ms\n", tenants.len(), millis(ready));
    until_at_rest(&server).await?;
    let rest = Held::by(&server)?;
    let client = client()?;
    let tenants: Vec<Tenant> = tenants.into_iter().map(|tenant| tenant.at(&client, &server)).collect();
    let tenants = Arc::new(tenants);
    let (cold, cold_cpu) = one_by_one(&server, &tenants, 0).await?;
    let touched = Held::by(&server)?;
    let (warm, warm_cpu) = one_by_one(&server, &tenants, 1).await?;
    let alone = together(&tenants, options.searches).await?;
    let (beside, written) = beside_a_writer(&tenants, options.searches).await?;
    server.stop().await?;

    let mut table = Table::new(&["held", "MiB resident", "of it heap", "KiB each", "open files"]);
    empty.add(&mut table, "a new server", None);
    rest.add(&mut table, "at rest", Some((&empty, tenants.len())));
    touched.add(&mut table, "every workspace searched", Some((&empty, tenants.len())));
    table.print();
    let mut table = Table::new(&["searches", "p50 ms", "p99 ms", "worst ms", "CPU ms"]);
    row(&mut table, "the first of each workspace", &cold, Some(cold_cpu));
    row(&mut table, "the second of each", &warm, Some(warm_cpu));
    row(&mut table, "100 a second, in all", &alone, None);
    row(&mut table, "100 a second, beside a writer", &beside, None);
    table.print();
    println!("{written} documents written beside them\n");
    let mut verdicts = Verdicts::default();
    verdicts.at_most("cold first search, p50", millis(percentile(&cold, 0.5)), COLD_LIMIT_MS, "ms");
    verdicts.at_most("cold first search, p99", millis(percentile(&cold, 0.99)), COLD_LIMIT_MS, "ms");
    verdicts.at_most("cold first search, CPU", millis(cold_cpu), COLD_LIMIT_MS, "ms");
    verdicts.finish(&options.run)
}

fn start(data: &Path, options: &Options) -> anyhow::Result<Server> {
    // The account also owns the initial workspace.
    let owned = (options.workspaces + 1).to_string();
    Server::cairn_with(data, &[(OWNED, OsStr::new(&owned))])
}

/// Waits until the background work of a server is done.
async fn until_at_rest(server: &Server) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let before = server.cpu_time()?;
        tokio::time::sleep(REST).await;
        if server.cpu_time()?.saturating_sub(before) < REST / 5 {
            return Ok(());
        }
        if began.elapsed() > REST_WAIT {
            bail!("the server is not at rest after {REST_WAIT:?}");
        }
    }
}

/// The memory and the open files of a process.
struct Held {
    memory: Memory,
    files: usize,
}

impl Held {
    fn by(server: &Server) -> anyhow::Result<Self> {
        let files = fs::read_dir(format!("/proc/{}/fd", server.id()))?.count();
        Ok(Self { memory: server.memory()?, files })
    }

    /// Adds a row with the totals, and the difference to an empty server per workspace.
    fn add(&self, table: &mut Table, name: &str, beyond: Option<(&Self, usize)>) {
        let each = beyond.map(|(empty, count)| {
            let more = self.memory.resident - empty.memory.resident;
            format!("{:.1}", more * 1024.0 / count.max(1) as f64)
        });
        table.row(vec![
            name.to_owned(),
            format!("{:.1}", self.memory.resident),
            format!("{:.1}", self.memory.anonymous),
            each.unwrap_or_default(),
            self.files.to_string(),
        ]);
    }
}

/// The owner of the workspaces, and its HTTP client.
struct Owner {
    session: Session,
    client: reqwest::Client,
    server: SocketAddr,
}

/// A workspace with its queries.
#[derive(Debug)]
struct Tenant {
    token: String,
    api: Api,
    queries: [String; 2],
}

impl Tenant {
    /// Creates and fills a workspace, and waits until it is indexed.
    async fn make(owner: &Owner, number: usize, documents: usize) -> anyhow::Result<Self> {
        let post = async |path: &str, body: Value| -> anyhow::Result<Value> {
            Ok(accepted(owner.session.request(Method::POST, path).json(&body)).await?.json().await?)
        };
        let text = |value: &Value, name: &str| -> anyhow::Result<String> {
            let found = value.get(name).and_then(Value::as_str);
            Ok(found.with_context(|| format!("an answer without {name}"))?.to_owned())
        };
        let made = post("/api/workspaces", json!({"name": format!("Tenant {number}")})).await?;
        let tokens = format!("/api/workspaces/{}/tokens", text(&made, "id")?);
        let made = post(&tokens, json!({"name": "bench", "permissions": ["read", "write"]})).await?;
        let token = text(&made, "token")?;
        let api = Api::with_token(owner.client.clone(), owner.server, &token);
        let documents = corpus::documents(None, number * documents..(number + 1) * documents)?;
        let table = json!({"name": "Tasks", "csv": csv(number)});
        accepted(api.request(Method::POST, "/api/v1/databases/csv").json(&table)).await?;
        let mut change = None;
        for document in &documents {
            change = Some(api.create_file(&document.name, &document.text).await?.1);
        }
        wait_until_indexed(&api, change.as_deref()).await?;
        let queries = corpus::queries(&documents, 2).try_into();
        let queries = queries.map_err(|_few| anyhow::anyhow!("no questions about no documents"))?;
        Ok(Self { token, api, queries })
    }

    /// The same workspace on the restarted server.
    fn at(self, client: &reqwest::Client, server: &Server) -> Self {
        Self { api: Api::with_token(client.clone(), server.address, &self.token), ..self }
    }

    /// The latency of a hybrid search for ten results.
    async fn search(&self, query: usize) -> anyhow::Result<Duration> {
        let query = self.queries.get(query % 2).context("no question")?;
        let started = Instant::now();
        ask(&self.api, query, None).await?;
        Ok(started.elapsed())
    }
}

/// Creates all workspaces, several concurrently; returns them in the order of their numbers.
async fn fill(server: &Server, data: &Path, options: &Options) -> anyhow::Result<Vec<Tenant>> {
    let started = Instant::now();
    let session = Session::open(server.address, data).await?;
    let owner = Arc::new(Owner { session, client: client()?, server: server.address });
    let next = Arc::new(AtomicUsize::new(0));
    let (count, documents) = (options.workspaces, options.documents);
    let mut fillers = JoinSet::new();
    for _ in 0..FILLERS {
        let (owner, next) = (Arc::clone(&owner), Arc::clone(&next));
        fillers.spawn(async move {
            let mut made = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok(made);
                }
                made.push((number, Tenant::make(&owner, number, documents).await?));
            }
        });
    }
    let mut made = Vec::with_capacity(count);
    while let Some(more) = fillers.join_next().await {
        made.extend(more??);
    }
    made.sort_unstable_by_key(|(number, _)| *number);
    println!(
        "{count} workspaces of {documents} documents and {RECORDS} records made in {:.0} s, {:.1} s CPU of the server",
        started.elapsed().as_secs_f64(),
        server.cpu_time()?.as_secs_f64()
    );
    Ok(made.into_iter().map(|(_, tenant)| tenant).collect())
}

/// Creates a small database of tasks.
fn csv(tenant: usize) -> String {
    let mut csv = "Name,Points,Status\n".to_owned();
    for number in 0..RECORDS {
        let status = if number % 3 == 0 { "Open" } else { "Finished" };
        csv.push_str(&format!("Task {number} of {tenant},{},{status}\n", number * 7 % RECORDS));
    }
    csv
}

/// Runs one search in each workspace, one by one; returns the latencies, and the CPU time of the server per search.
async fn one_by_one(
    server: &Server,
    tenants: &[Tenant],
    query: usize,
) -> anyhow::Result<(Vec<Duration>, Duration)> {
    let (before, mut took) = (server.cpu_time()?, Vec::with_capacity(tenants.len()));
    for tenant in tenants {
        took.push(tenant.search(query).await?);
    }
    let cpu = server.cpu_time()?.saturating_sub(before);
    Ok((took, cpu / u32::try_from(tenants.len().max(1))?))
}

/// Runs searches of all clients at a steady rate, each in the next workspace; returns the latencies, measured from when each
/// was due.
async fn together(tenants: &Arc<Vec<Tenant>>, searches: usize) -> anyhow::Result<Vec<Duration>> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (tenants, next) = (Arc::clone(tenants), Arc::clone(&next));
        clients.spawn(async move {
            let mut took = Vec::new();
            let mut due = Instant::now() + INTERVAL * client as u32 / CLIENTS as u32;
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                if place >= searches {
                    return anyhow::Ok(took);
                }
                let tenant = tenants.get(place % tenants.len().max(1)).context("no workspace")?;
                tokio::time::sleep_until(due.into()).await;
                tenant.search(place).await?;
                took.push(due.elapsed());
                due += INTERVAL;
            }
        });
    }
    let mut samples = Vec::with_capacity(searches);
    while let Some(took) = clients.join_next().await {
        samples.extend(took??);
    }
    Ok(samples)
}

/// The same with a concurrent writer in the first workspace; also returns how many documents it has written.
async fn beside_a_writer(
    tenants: &Arc<Vec<Tenant>>,
    searches: usize,
) -> anyhow::Result<(Vec<Duration>, usize)> {
    let over = Arc::new(AtomicBool::new(false));
    let writer = {
        let (tenants, over) = (Arc::clone(tenants), Arc::clone(&over));
        let documents = corpus::documents(None, WRITTEN)?;
        tokio::spawn(async move {
            let (tenant, mut count) = (tenants.first().context("no workspace")?, 0);
            while !over.load(Ordering::Relaxed) {
                let document = documents.get(count % documents.len().max(1)).context("no document")?;
                tenant.api.create_file(&format!("{count}-{}", document.name), &document.text).await?;
                count += 1;
            }
            anyhow::Ok(count)
        })
    };
    let samples = together(tenants, searches).await?;
    over.store(true, Ordering::Relaxed);
    Ok((samples, writer.await??))
}

fn row(table: &mut Table, name: &str, samples: &[Duration], cpu: Option<Duration>) {
    let shares = [0.5, 0.99, 1.0].map(|share| format!("{:.1}", millis(percentile(samples, share))));
    let cpu = cpu.map(|cpu| format!("{:.2}", millis(cpu))).unwrap_or_default();
    table.row([name.to_owned()].into_iter().chain(shares).chain([cpu]).collect());
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
