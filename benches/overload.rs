//! What is served when more is asked for than can be done: `cargo bench --bench overload -- --help`.

#[path = "support/corpus.rs"]
mod corpus;
#[path = "support/markdown.rs"]
mod markdown;
#[path = "support/report.rs"]
mod report;
#[path = "support/samples.rs"]
mod samples;
#[expect(dead_code, reason = "memory is told by other benches")]
#[path = "support/server.rs"]
mod server;

use std::ffi::OsStr;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Parser;
use reqwest::{Client, Method, RequestBuilder, StatusCode, header};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use self::report::{Run, Table, Verdicts};
use self::samples::percentile;
use self::server::Server;

/// Clients of each tenant in a closed loop, to find the peak.
const CLIENTS: usize = 8;
const WRITERS: usize = 4;
const WARM_UP: Duration = Duration::from_secs(2);
/// How long requests in flight at the end of a phase are waited for.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The overload, as a multiple of the peak.
const OVERLOAD: f64 = 3.0;
/// The share of each of the two tenants.
const SHARE: f64 = 0.5;
/// The rate of the modest tenant, as a part of the peak.
const MODEST: f64 = 0.4;
/// The rate of the other tenant, as a multiple of its share.
const GREED: f64 = 10.0;

const LOST_LIMIT: f64 = 20.0;
const P99_LIMIT_MS: f64 = 500.0;
const SLOWED_LIMIT: f64 = 20.0;

/// Runs a `cairn up` in a process of its own, on half of the machine's cores where `taskset` is there, with two workspaces, and
/// asks it from the other half. Of ten requests six are searches by words and meaning, three read a file, and one is a
/// script (`grep` of a word). Open loops: a request is sent when it is due, whatever became of those before, and its time
/// counts from then.
///
///   peak      served a second of 8 clients of each workspace, each asking as soon as it is answered
///   1x, 3x    as much and three times as much, from both workspaces alike: what is served, refused, and how long it took
///   modest    one workspace asks for four fifths of its share, while the other asks for its share, and for ten times that
///
/// Limits: at three times the peak at least 80 % of it is served, p99 of what is served 500 ms; of what the modest workspace is
/// served beside the other one's share, at least 80 % is served beside ten times that, p99 500 ms. What is refused must be 503
/// with Retry-After, and nothing may fail otherwise.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Seconds of each phase.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Documents to generate for each workspace.
    #[arg(long, default_value_t = 600)]
    generated: usize,
    /// Units of capacity; as the server chooses when not given, 0 for none.
    #[arg(long)]
    capacity: Option<u32>,
    /// Let server and clients share all cores.
    #[arg(long)]
    share_cores: bool,
    #[command(flatten)]
    run: Run,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if !options.run.is_bench() {
        return Ok(());
    }
    let halves = if options.share_cores { None } else { halves() };
    // Child processes inherit the CPU affinity.
    if let Some((for_server, _)) = &halves {
        pin(for_server)?;
    }
    let data = TempDir::new()?;
    let server = start(data.path(), &options)?;
    if let Some((for_server, for_clients)) = &halves {
        pin(for_clients)?;
        println!("the server on cores {for_server}, the clients on cores {for_clients}\n");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(options, server, data.path()))
}

fn start(data: &Path, options: &Options) -> anyhow::Result<Server> {
    let capacity = options.capacity.map(|units| units.to_string()).unwrap_or_default();
    Server::cairn_with(
        data,
        &[
            ("CAIRN_CAPACITY", OsStr::new(&capacity)),
            ("CAIRN_MAX_CONNECTIONS_PER_ADDRESS", OsStr::new("100000")),
            ("CAIRN_PLANS", OsStr::new(r#"{"selfhosted": {"minute": null, "hour": null, "day": null}}"#)),
        ],
    )
}

/// The cores of the server and those of the clients, as `taskset` names them; `None` where there are no two.
fn halves() -> Option<(String, String)> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let has_taskset = Command::new("taskset").arg("--version").stdout(Stdio::null()).status().is_ok();
    let half = cores / 2;
    (has_taskset && half > 0).then(|| (format!("0-{}", half - 1), format!("{half}-{}", cores - 1)))
}

/// Sets the CPU affinity of this process and of its future children.
fn pin(cores: &str) -> anyhow::Result<()> {
    let id = std::process::id().to_string();
    let status =
        Command::new("taskset").args(["-a", "-c", "-p", cores, &id]).stdout(Stdio::null()).status()?;
    if !status.success() {
        bail!("taskset cannot hold this process to the cores {cores}");
    }
    Ok(())
}

async fn run(options: Options, mut server: Server, data: &Path) -> anyhow::Result<()> {
    server.ready().await?;
    let (first, second) = tenants(server.address, data).await?;
    let (first, second) = (fill(first, options.generated).await?, fill(second, options.generated).await?);
    let both = [Arc::clone(&first), Arc::clone(&second)];
    let length = Duration::from_secs(options.seconds);

    eager(&both, WARM_UP).await?;
    let peak = eager(&both, length).await?;
    println!("peak: {peak:.0} requests a second of {} clients\n", 2 * CLIENTS);
    let mut table = Table::new(&["", "asked/s", "served/s", "refused/s", "p50 ms", "p99 ms", "server CPU %"]);
    let phases = Phases { server: &server, length };
    let once = phases.run(&[(&first, peak * SHARE), (&second, peak * SHARE)]).await?;
    let thrice = phases.run(&[(&first, OVERLOAD * peak * SHARE), (&second, OVERLOAD * peak * SHARE)]).await?;
    row(&mut table, "1x, both", &once.all());
    row(&mut table, "3x, both", &thrice.all());
    let (modest, share) = (peak * MODEST, peak * SHARE);
    let beside_share = phases.run(&[(&first, modest), (&second, share)]).await?;
    let beside_greed = phases.run(&[(&first, modest), (&second, share * GREED)]).await?;
    for (what, phase) in [("its share", &beside_share), ("10x its share", &beside_greed)] {
        row(&mut table, &format!("modest beside {what}"), phase.of(0));
        row(&mut table, &format!("  the other: {what}"), phase.of(1));
    }
    table.print();
    server.stop().await?;

    let mut verdicts = Verdicts::default();
    let lost = |now: f64, before: f64| 100.0 * (1.0 - now / before).max(0.0);
    verdicts.at_most("of the peak, not served at 3x", lost(thrice.all().served(), peak), LOST_LIMIT, "%");
    verdicts.at_most("p99 of what is served at 3x", thrice.all().p99(), P99_LIMIT_MS, "ms");
    let slowed = lost(beside_greed.of(0).served(), beside_share.of(0).served());
    verdicts.at_most("of a modest workspace, not served beside 10x", slowed, SLOWED_LIMIT, "%");
    verdicts.at_most("p99 of a modest workspace beside 10x", beside_greed.of(0).p99(), P99_LIMIT_MS, "ms");
    verdicts.finish(&options.run)
}

/// A workspace with the requests of its clients.
#[derive(Debug)]
struct Tenant {
    client: Client,
    base: String,
    token: String,
    files: Vec<String>,
    queries: Vec<String>,
    next: AtomicUsize,
}

impl Tenant {
    fn new(address: SocketAddr, token: String) -> anyhow::Result<Self> {
        let client = Client::builder().no_proxy().build()?;
        let base = format!("http://{address}");
        Ok(Self { client, base, token, files: Vec::new(), queries: Vec::new(), next: AtomicUsize::new(0) })
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token)
    }

    /// The next request of the mix.
    fn any(&self) -> anyhow::Result<RequestBuilder> {
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        let file = self.files.get(place % self.files.len().max(1)).context("no file")?;
        let query = self.queries.get(place % self.queries.len().max(1)).context("no query")?;
        Ok(match place % 10 {
            0 | 3 | 6 => self.request(Method::GET, &format!("/api/v1/files/{file}")),
            9 => {
                let word = query.split_whitespace().next().unwrap_or("word");
                let script = format!("grep -rn {word} /files | head -3");
                self.request(Method::POST, "/api/v1/vfs/exec").json(&json!({"script": script}))
            }
            _ => self
                .request(Method::POST, "/api/v1/search_context")
                .json(&json!({"query": query, "limit": 10})),
        })
    }
}

/// The workspace of the first start and one more, with a token of each.
async fn tenants(address: SocketAddr, data: &Path) -> anyhow::Result<(Tenant, Tenant)> {
    // The TLS of this build has no default crypto provider.
    cairn_chassis::outbound::install_crypto();
    let file: Value = serde_json::from_slice(&fs::read(data.join("bootstrap.json"))?)?;
    let first = Tenant::new(address, text(&file, "token")?)?;
    let body = json!({"email": text(&file, "email")?, "password": text(&file, "password")?});
    let opened = first.client.post(format!("{}/api/session", first.base)).json(&body).send().await?;
    let opened = opened.error_for_status()?;
    let cookie = opened.headers().get(header::SET_COOKIE).and_then(|value| value.to_str().ok());
    let cookie = cookie.and_then(|cookie| cookie.split(';').next()).context("no session cookie")?.to_owned();
    let post = async |path: &str, body: Value| {
        let request = first.client.post(format!("{}{path}", first.base)).header(header::COOKIE, &cookie);
        anyhow::Ok(request.json(&body).send().await?.error_for_status()?.json::<Value>().await?)
    };
    let id = text(&post("/api/workspaces", json!({"name": "Another"})).await?, "id")?;
    let body = json!({"name": "all", "permissions": ["read", "write", "delete"]});
    let token = text(&post(&format!("/api/workspaces/{id}/tokens"), body).await?, "token")?;
    let second = Tenant::new(address, token)?;
    Ok((first, second))
}

fn text(record: &Value, field: &str) -> anyhow::Result<String> {
    let text = record.get(field).and_then(Value::as_str);
    Ok(text.with_context(|| format!("an answer without `{field}`"))?.to_owned())
}

/// Writes documents and waits until the last one is found.
async fn fill(tenant: Tenant, count: usize) -> anyhow::Result<Arc<Tenant>> {
    let documents = Arc::new(corpus::documents(None, 0..count)?);
    let (tenant, next) = (Arc::new(tenant), Arc::new(AtomicUsize::new(0)));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (tenant, documents, next) = (Arc::clone(&tenant), Arc::clone(&documents), Arc::clone(&next));
        writers.spawn(async move {
            let mut made = Vec::new();
            while let Some(document) = documents.get(next.fetch_add(1, Ordering::Relaxed)) {
                let body = json!({"name": document.name, "content": document.text, "fileType": "markdown"});
                let request = tenant.request(Method::POST, "/api/v1/files").json(&body);
                let answer = request.send().await?.error_for_status()?;
                let change = answer.headers().get("x-cairn-change").cloned().context("no X-Cairn-Change")?;
                made.push((text(&answer.json().await?, "id")?, change));
            }
            anyhow::Ok(made)
        });
    }
    let (mut files, mut changes) = (Vec::new(), Vec::new());
    while let Some(made) = writers.join_next().await {
        for (id, change) in made?? {
            files.push(id);
            changes.push(change);
        }
    }
    for change in changes {
        let request = tenant.request(Method::POST, "/api/v1/search_context");
        let request = request.header("X-Cairn-Change", change).header("X-Cairn-Wait-Ms", "10000");
        request.json(&json!({"query": "service", "limit": 1})).send().await?.error_for_status()?;
    }
    let tenant = Arc::into_inner(tenant).context("a writer goes on")?;
    Ok(Arc::new(Tenant { files, queries: corpus::queries(&documents, 2_000), ..tenant }))
}

/// Throughput of clients in a closed loop.
async fn eager(tenants: &[Arc<Tenant>], length: Duration) -> anyhow::Result<f64> {
    let begin = Instant::now();
    let mut clients = JoinSet::new();
    for tenant in tenants {
        for _ in 0..CLIENTS {
            let tenant = Arc::clone(tenant);
            clients.spawn(async move {
                let mut served = 0_u32;
                while begin.elapsed() < length {
                    tenant.any()?.send().await?.error_for_status()?.bytes().await?;
                    served += 1;
                }
                anyhow::Ok(served)
            });
        }
    }
    let mut served = 0;
    while let Some(client) = clients.join_next().await {
        served += client??;
    }
    Ok(f64::from(served) / begin.elapsed().as_secs_f64())
}

struct Phases<'a> {
    server: &'a Server,
    length: Duration,
}

/// The outcomes of the requests of a phase, by tenant.
struct Phase(Vec<Outcome>);

/// The outcomes of requests.
#[derive(Debug, Clone, Default)]
struct Outcome {
    took: Vec<Duration>,
    asked: usize,
    refused: usize,
    length: Duration,
    /// Of the server, in this phase.
    cpu: Duration,
}

impl Phases<'_> {
    /// Runs open loops with the given requests a second of each tenant.
    async fn run(&self, tenants: &[(&Arc<Tenant>, f64)]) -> anyhow::Result<Phase> {
        let before = self.server.cpu_time()?;
        let mut loops = JoinSet::new();
        for (place, (tenant, rate)) in tenants.iter().enumerate() {
            let (tenant, rate, length) = (Arc::clone(tenant), *rate, self.length);
            loops.spawn(async move { anyhow::Ok((place, open_loop(&tenant, rate, length).await?)) });
        }
        let mut outcomes = vec![Outcome::default(); tenants.len()];
        while let Some(done) = loops.join_next().await {
            let (place, outcome) = done??;
            if let Some(own) = outcomes.get_mut(place) {
                *own = outcome;
            }
        }
        let cpu = self.server.cpu_time()?.saturating_sub(before);
        for outcome in &mut outcomes {
            outcome.cpu = cpu;
        }
        Ok(Phase(outcomes))
    }
}

async fn open_loop(tenant: &Arc<Tenant>, rate: f64, length: Duration) -> anyhow::Result<Outcome> {
    let begin = Instant::now();
    let count = (rate * length.as_secs_f64()).round() as usize;
    let mut asked = JoinSet::new();
    for place in 0..count {
        let due = begin + Duration::from_secs_f64(place as f64 / rate);
        if due > Instant::now() {
            tokio::time::sleep_until(due.into()).await;
        }
        let tenant = Arc::clone(tenant);
        asked.spawn(async move {
            let answer = tenant.any()?.send().await?;
            if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
                answer.headers().get(header::RETRY_AFTER).context("503 without Retry-After")?;
                answer.bytes().await?;
                return anyhow::Ok(None);
            }
            answer.error_for_status()?.bytes().await?;
            Ok(Some(due.elapsed()))
        });
    }
    let mut outcome = Outcome { asked: count, length, ..Outcome::default() };
    let collected = tokio::time::timeout(TIMEOUT, async {
        while let Some(answer) = asked.join_next().await {
            match answer?? {
                Some(took) => outcome.took.push(took),
                None => outcome.refused += 1,
            }
        }
        anyhow::Ok(())
    });
    collected.await.context("requests hang")??;
    Ok(outcome)
}

impl Phase {
    fn of(&self, place: usize) -> &Outcome {
        const NOTHING: &Outcome =
            &Outcome { took: Vec::new(), asked: 0, refused: 0, length: Duration::ZERO, cpu: Duration::ZERO };
        self.0.get(place).unwrap_or(NOTHING)
    }

    fn all(&self) -> Outcome {
        let mut all = self.of(0).clone();
        for outcome in self.0.iter().skip(1) {
            all.took.extend(&outcome.took);
            all.asked += outcome.asked;
            all.refused += outcome.refused;
        }
        all
    }
}

impl Outcome {
    fn a_second(&self, count: usize) -> f64 {
        count as f64 / self.length.as_secs_f64()
    }

    /// Served requests a second.
    fn served(&self) -> f64 {
        self.a_second(self.took.len())
    }

    fn p99(&self) -> f64 {
        millis(percentile(&self.took, 0.99))
    }
}

fn row(table: &mut Table, name: &str, outcome: &Outcome) {
    table.row(vec![
        name.to_owned(),
        format!("{:.0}", outcome.a_second(outcome.asked)),
        format!("{:.0}", outcome.served()),
        format!("{:.0}", outcome.a_second(outcome.refused)),
        format!("{:.1}", millis(percentile(&outcome.took, 0.5))),
        format!("{:.1}", outcome.p99()),
        format!("{:.0}", 100.0 * outcome.cpu.as_secs_f64() / outcome.length.as_secs_f64()),
    ]);
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
