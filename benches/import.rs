//! What the import of a vault costs: `cargo bench --bench import -- --help`.

#[path = "support/api.rs"]
mod api;
#[path = "support/children.rs"]
mod children;
#[expect(dead_code, reason = "questions are asked by another bench")]
#[path = "support/corpus.rs"]
mod corpus;
#[path = "support/freshness.rs"]
mod freshness;
#[path = "support/markdown.rs"]
mod markdown;
#[path = "support/report.rs"]
mod report;
#[path = "support/server.rs"]
mod server;
#[path = "support/session.rs"]
mod session;
#[path = "support/vault.rs"]
mod vault;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::Parser;
use reqwest::{Method, header};
use serde_json::Value;
use tempfile::TempDir;

use self::api::{Api, accepted};
use self::children::{Peaks, Sampler};
use self::freshness::By;
use self::report::{Run, Table, Verdicts};
use self::server::{Memory, Server};
use self::session::Session;
use self::vault::Vault;

const COMPLETED_LIMIT_S: f64 = 8.0;
const GROWTH_LIMIT: f64 = 1.3;
const MEMORY_LIMIT_MIB: f64 = 200.0;
const BOUNDARY: &str = "cairn-import-bench";
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// After this, the memory that signing in took is free again.
const REST: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(600);

/// Imports a vault of Obsidian into the workspace of a `cairn up` in a process of its own, as a signed-in person, and
/// measures:
///
///   preview     from the first byte of the archive until the answer says what would become of it
///   completed   from the start of the run on; and until words find all notes, and vectors do, too
///   CPU         of the server and of its children, which read the archive: for the preview, until the run is completed,
///               and until all is indexed, which is what a note's cost is taken from
///   memory      of the server and its children at most, beyond what the server holds at rest before; of each at most
///
/// The kernel adds a child's CPU time to the server's when the server has waited for the child, so each reading waits until
/// no child is left. Memory is what was seen every 20 ms. Notes of generated vaults have about 2 kB each, and 42 000 links
/// for 6 700 notes. Each vault goes into a server of its own; smaller and larger ones show how the cost of a note grows.
/// One more vault has few notes and large attachments, which cost memory where they are not handed on as they come. Limits:
/// completed 8 s; a note's cost with many 1.3 times that with few; memory 200 MiB beyond rest, whatever the vault.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Markdown files below this folder are packed and imported, instead of a generated vault of `--notes`.
    #[arg(long, value_name = "DIR")]
    vault: Option<PathBuf>,
    /// Notes of the vault that is to be imported in time.
    #[arg(long, default_value_t = 6_700)]
    notes: usize,
    /// Notes of the smaller vault.
    #[arg(long, default_value_t = 1_000)]
    few: usize,
    /// Notes of the larger vault.
    #[arg(long, default_value_t = 10_000)]
    many: usize,
    /// Attachments of 4 MiB in the vault that has some.
    #[arg(long, default_value_t = 50)]
    attachments: usize,
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
    let few = import(&Vault::generated(options.few)?).await?;
    let usual = match &options.vault {
        Some(folder) => Vault::of_folder(folder)?,
        None => Vault::generated(options.notes)?,
    };
    let usual = import(&usual).await?;
    let many = import(&Vault::generated(options.many)?).await?;
    let heavy = import(&Vault::with_attachments(options.attachments)?).await?;
    let all = [few, usual, many, heavy];
    tell(&all);
    let beyond = all.iter().map(Took::beyond_rest).fold(0.0, f64::max);
    let [few, usual, many, _] = all;
    let mut verdicts = Verdicts::default();
    verdicts.at_most(
        &format!("{} notes, start until completed", usual.notes),
        usual.completed.as_secs_f64(),
        COMPLETED_LIMIT_S,
        "s",
    );
    verdicts.at_most(
        &format!("a note of {} to one of {}, CPU", many.notes, few.notes),
        many.cost(many.cpu) / few.cost(few.cpu),
        GROWTH_LIMIT,
        "times",
    );
    verdicts.at_most("memory of the server and its children beyond rest", beyond, MEMORY_LIMIT_MIB, "MiB");
    verdicts.finish(&options.run)
}

/// The figures of an import.
struct Took {
    notes: usize,
    attachments: usize,
    preview: Duration,
    /// From the start of the run, as are the next two.
    completed: Duration,
    words: Duration,
    vectors: Duration,
    preview_cpu: Duration,
    /// Including the preview, as is the next.
    completed_cpu: Duration,
    cpu: Duration,
    rest: Memory,
    peaks: Peaks,
}

impl Took {
    /// Per note, in milliseconds.
    fn cost(&self, cpu: Duration) -> f64 {
        cpu.as_secs_f64() * 1e3 / self.notes as f64
    }

    fn name(&self) -> String {
        match self.attachments {
            0 => self.notes.to_string(),
            some => format!("{} and {some} attachments", self.notes),
        }
    }

    /// Of the server and its children.
    fn beyond_rest(&self) -> f64 {
        self.peaks.together - self.rest.resident
    }
}

/// Imports into an empty workspace.
async fn import(vault: &Vault) -> anyhow::Result<Took> {
    println!(
        "{} notes, {:.1} MB, {:.1} MB packed",
        vault.notes,
        vault.bytes as f64 / 1e6,
        vault.archive.len() as f64 / 1e6
    );
    let data = TempDir::new()?;
    let mut server = Server::cairn(data.path())?;
    server.ready().await?;
    let api = Api::open(server.address, data.path())?;
    let session = Session::open(server.address, data.path()).await?;
    let form = form(&session.workspace, &vault.archive);
    tokio::time::sleep(REST).await;
    let rest = server.memory()?;
    let sampler = Sampler::start(&server);
    let before = children::cpu_time(&server).await?;

    let asked = Instant::now();
    let request = session.request(Method::POST, "/api/import/preview");
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    let previewed: Value =
        accepted(request.header(header::CONTENT_TYPE, kind).body(form)).await?.json().await?;
    let preview = asked.elapsed();
    let preview_cpu = children::cpu_time(&server).await?.saturating_sub(before);
    let id = previewed.get("id").and_then(Value::as_str).context("a run without id")?;

    let path = format!("/api/import/{id}");
    let started = Instant::now();
    accepted(session.request(Method::POST, &format!("{path}/start"))).await?;
    let run = until_over(&session, &path).await?;
    let completed = started.elapsed();
    let change = freshness::mark(&api, "last.md").await?;
    let completed_cpu = children::cpu_time(&server).await?.saturating_sub(before);
    freshness::until_found(&api, By::Words, &change).await?;
    let words = started.elapsed();
    freshness::until_found(&api, By::Meaning, &change).await?;
    let vectors = started.elapsed();
    let cpu = children::cpu_time(&server).await?.saturating_sub(before);
    let peaks = sampler.peaks();

    check(vault, &run, &session.get(&format!("{path}/report")).await?)?;
    if vault.links.is_some() {
        for number in [0, vault.notes / 2, vault.notes.saturating_sub(1)] {
            freshness::ensure_found(&api, &vault::word(number)).await?;
        }
    }
    drop(sampler);
    server.stop().await?;
    let (notes, attachments) = (vault.notes, vault.attachments);
    Ok(Took {
        notes,
        attachments,
        preview,
        completed,
        words,
        vectors,
        preview_cpu,
        completed_cpu,
        cpu,
        rest,
        peaks,
    })
}

/// The body of a preview request.
fn form(workspace: &str, archive: &[u8]) -> Vec<u8> {
    let mut form = Vec::with_capacity(archive.len() + 1_024);
    for (name, value) in [("workspaceId", workspace), ("provider", "obsidian_zip")] {
        let part =
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        form.extend_from_slice(part.as_bytes());
    }
    let head = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"archive\"; filename=\"Vault.zip\"\r\n\
         Content-Type: application/zip\r\n\r\n"
    );
    form.extend_from_slice(head.as_bytes());
    form.extend_from_slice(archive);
    form.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    form
}

async fn until_over(session: &Session, path: &str) -> anyhow::Result<Value> {
    let began = Instant::now();
    loop {
        let run = session.get(path).await?;
        match run.get("status").and_then(Value::as_str) {
            Some("completed" | "completed_with_warnings") => return Ok(run),
            Some("queued" | "running") => {}
            status => bail!("the run is {status:?}: {:?}", run.get("error")),
        }
        ensure!(began.elapsed() < TIMEOUT, "the run is not over after {TIMEOUT:?}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Fails unless all notes of a generated vault were imported, with all of their links. A folder of `--vault` may contain files
/// that no import takes.
fn check(vault: &Vault, run: &Value, report: &Value) -> anyhow::Result<()> {
    let Some(links) = vault.links else { return Ok(()) };
    let counts = report.get("counts").cloned().unwrap_or_default();
    let counted = |name: &str| counts.get(name).and_then(Value::as_u64);
    let (files, assets) = (Some(vault.notes as u64), Some(vault.attachments as u64));
    let found = (counted("files"), counted("assets"));
    ensure!(found == (files, assets), "the import found something else: {counts}");
    ensure!(counted("linksResolved") == Some(links as u64), "of {links} links, not all were found: {counts}");
    let created = run.get("counters").and_then(|counters| counters.get("created")).and_then(Value::as_u64);
    let expected = Some((vault.notes + vault.attachments) as u64);
    ensure!(created == expected, "the run created something else: {created:?}");
    ensure!(
        run.get("status").and_then(Value::as_str) == Some("completed"),
        "the run has warnings: {:?}",
        run.get("warnings")
    );
    Ok(())
}

fn tell(imports: &[Took]) {
    let mut table = Table::new(&["notes", "preview s", "start to completed", "to words", "to vectors"]);
    for took in imports {
        let times = [took.preview, took.completed, took.words, took.vectors];
        let cells = times.map(|time| format!("{:.2}", time.as_secs_f64()));
        table.row([took.name()].into_iter().chain(cells).collect());
    }
    println!();
    table.print();
    let mut table = Table::new(&["CPU ms a note, with children", "preview", "to completed", "to vectors"]);
    for took in imports {
        let cells =
            [took.preview_cpu, took.completed_cpu, took.cpu].map(|cpu| format!("{:.3}", took.cost(cpu)));
        table.row([took.name()].into_iter().chain(cells).collect());
    }
    table.print();
    let mut table =
        Table::new(&["MiB resident", "rest", "of it heap", "server", "a child", "together", "beyond rest"]);
    for took in imports {
        let (rest, peaks) = (took.rest, took.peaks);
        let figures =
            [rest.resident, rest.anonymous, peaks.server, peaks.child, peaks.together, took.beyond_rest()];
        let cells = figures.map(|figure| format!("{figure:.0}"));
        table.row([took.name()].into_iter().chain(cells).collect());
    }
    table.print();
}
