//! What the sync of a directory costs: `cargo bench --bench sync -- --help`.

#[path = "support/api.rs"]
mod api;
#[expect(dead_code, reason = "questions are asked by another bench")]
#[path = "support/corpus.rs"]
mod corpus;
#[path = "support/freshness.rs"]
mod freshness;
#[path = "support/markdown.rs"]
mod markdown;
#[path = "support/report.rs"]
mod report;
#[path = "support/samples.rs"]
mod samples;
#[path = "support/server.rs"]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::slice;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use clap::Parser;
use reqwest::{Method, header};
use serde_json::{Value, json};
use tempfile::TempDir;

use self::api::{Api, accepted};
use self::freshness::By;
use self::report::{Run, Table, Verdicts};
use self::samples::percentile;
use self::server::Server;

const PREVIEW_LIMIT_S: f64 = 1.0;
const WORDS_LIMIT_S: f64 = 3.0;
const CPU_LIMIT_S: f64 = 5.0;
const UNCHANGED_LIMIT_MS: f64 = 150.0;
const CHANGED_LIMIT_MS: f64 = 500.0;
/// A sync takes 24 MiB in all: 5 000 of these, with the word of each, are 24.0 MB.
const GENERATED_BYTES: usize = 4_780;
const FILES_PER_FOLDER: usize = 100;
/// One document in this many changes.
const CHANGED_STEP: usize = 100;
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The time for background work after a run, which counts as its CPU time.
const SETTLING: Duration = Duration::from_millis(300);
const TIMEOUT: Duration = Duration::from_secs(600);

/// Syncs a directory into the workspace of a `cairn up` in a process of its own, over the REST API, and measures:
///
///   first       the preview of all documents, and their run: from its start until it is completed, until words find all
///               of them, and until vectors do, too; CPU of the server from the preview until then
///   unchanged   the same directory again: preview and run, each time; CPU of the server until moments after
///   1 % changed the same again with one document of a hundred changed, as the first
///
/// What is sent is made beforehand; its sender runs on the same machine and takes its share of it, and CPU time is the
/// server's alone. A run is looked at every 10 ms. The last two are medians of several rounds. Limits: preview 1 s, start
/// until words find all 3 s, CPU in all 5 s; unchanged 150 ms CPU; 1 % changed 500 ms of CPU until vectors find all, and
/// 500 ms from the preview's request until words do.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Markdown files below this folder are synced, instead of generated ones: at most 5 000, of 24 MB in all.
    #[arg(long, value_name = "DIR")]
    documents: Option<PathBuf>,
    /// How many documents of 4.8 kB to generate.
    #[arg(long, default_value_t = 5_000)]
    generated: usize,
    /// How often to sync again without changes, and with some.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
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
    let mut directory = Directory::read(options.documents.as_deref(), options.generated)?;
    let count = directory.0.len();
    println!("{count} documents, {:.1} MB\n", directory.bytes() as f64 / 1e6);
    let data = TempDir::new()?;
    let mut server = Server::cairn(data.path())?;
    server.ready().await?;
    let api = Api::open(server.address, data.path())?;
    let workspace = Workspace { server, api };

    let first = workspace.sync_until_found("first", directory.manifest()?).await?;
    ensure!(first.is(&[("created", count)]), "the first run made something else of it: {}", first.counters);
    for number in [0, count / 2, count.saturating_sub(1)] {
        freshness::ensure_found(&workspace.api, &word(number)).await?;
    }

    let manifest = directory.manifest()?;
    let mut unchanged = Vec::new();
    for _ in 0..options.rounds {
        let took = workspace.sync(manifest.clone()).await?;
        ensure!(took.is(&[("skipped", count)]), "an unchanged run found something else: {}", took.counters);
        unchanged.push(took);
    }

    let mut changed = Vec::new();
    for round in 0..options.rounds {
        let count_changed = directory.change(round);
        let took = workspace.sync_until_found(&format!("round-{round}"), directory.manifest()?).await?;
        let expected = [("updated", count_changed), ("skipped", count - count_changed)];
        ensure!(took.is(&expected), "a run with changes found something else: {}", took.counters);
        changed.push(took);
    }

    let memory = workspace.server.memory()?;
    workspace.server.stop().await?;
    tell(&[
        ("first", slice::from_ref(&first)),
        ("unchanged", unchanged.as_slice()),
        ("1 % changed", changed.as_slice()),
    ]);
    println!("{:.0} MiB resident, {:.0} of it heap\n", memory.resident, memory.anonymous);
    let mut verdicts = Verdicts::default();
    verdicts.at_most("preview", first.preview.as_secs_f64(), PREVIEW_LIMIT_S, "s");
    verdicts.at_most("start until words find all", first.words.as_secs_f64(), WORDS_LIMIT_S, "s");
    verdicts.at_most("CPU of the server, until vectors find all", first.cpu.as_secs_f64(), CPU_LIMIT_S, "s");
    verdicts.at_most("unchanged, CPU", median(&unchanged, |took| took.cpu), UNCHANGED_LIMIT_MS, "ms");
    verdicts.at_most("1 % changed, CPU", median(&changed, |took| took.cpu), CHANGED_LIMIT_MS, "ms");
    let until_words = median(&changed, |took| took.preview + took.words);
    verdicts.at_most("1 % changed, until words find all", until_words, CHANGED_LIMIT_MS, "ms");
    verdicts.finish(&options.run)
}

/// Path and content of each document.
struct Directory(Vec<(String, String)>);

impl Directory {
    fn read(folder: Option<&Path>, generated: usize) -> anyhow::Result<Self> {
        let documents: Vec<(String, String)> = match folder {
            Some(folder) => markdown::files(folder)?
                .into_iter()
                .map(|path| {
                    let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                    let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
                    anyhow::Ok((name, String::from_utf8_lossy(&text).into_owned()))
                })
                .collect::<Result<_, _>>()?,
            None => corpus::documents(None, 0..generated)?
                .into_iter()
                .enumerate()
                .map(|(number, document)| {
                    let text = document.text.get(..GENERATED_BYTES).unwrap_or(&document.text).to_owned();
                    (format!("part-{}/{}", number / FILES_PER_FOLDER, document.name), text)
                })
                .collect(),
        };
        ensure!(!documents.is_empty(), "there is no document");
        let marked = |(number, (path, text)): (usize, (String, String))| {
            (path, format!("{text}\n\n{}\n", word(number)))
        };
        Ok(Self(documents.into_iter().enumerate().map(marked).collect()))
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|(_, text)| text.len()).sum()
    }

    /// Changes one document in a hundred, other ones in each round; returns how many.
    fn change(&mut self, round: usize) -> usize {
        let mut count = 0;
        for (_, text) in self.0.iter_mut().skip(round % CHANGED_STEP).step_by(CHANGED_STEP) {
            text.push_str(&format!("\nRound {round}.\n"));
            count += 1;
        }
        count
    }

    /// The body of a preview.
    fn manifest(&self) -> anyhow::Result<Bytes> {
        let documents: Vec<Value> =
            self.0.iter().map(|(path, content)| json!({"path": path, "content": content})).collect();
        let body = json!({"manifest": {"name": "bench", "documents": documents}});
        Ok(serde_json::to_vec(&body)?.into())
    }
}

/// A word that only this document has.
fn word(number: usize) -> String {
    format!("zqdocument{number}x")
}

/// The figures of a sync.
#[derive(Debug, Default)]
struct Took {
    preview: Duration,
    /// From the start of the run, as are the next two.
    completed: Duration,
    words: Duration,
    vectors: Duration,
    cpu: Duration,
    counters: Value,
}

impl Took {
    /// Whether the counters are these, and the others zero.
    fn is(&self, expected: &[(&str, usize)]) -> bool {
        let counters = self.counters.as_object();
        counters.is_some_and(|counters| {
            counters.iter().all(|(name, counted)| {
                let expected =
                    expected.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count);
                counted.as_u64() == Some(expected as u64)
            })
        })
    }
}

/// The target of the syncs.
struct Workspace {
    server: Server,
    api: Api,
}

impl Workspace {
    /// Syncs without waiting for the index.
    async fn sync(&self, manifest: Bytes) -> anyhow::Result<Took> {
        let cpu = self.server.cpu_time()?;
        let (mut took, _) = self.carry_out(manifest).await?;
        tokio::time::sleep(SETTLING).await;
        took.cpu = self.server.cpu_time()?.saturating_sub(cpu);
        Ok(took)
    }

    /// Waits until everything is indexed, including a new file with that name.
    async fn sync_until_found(&self, mark: &str, manifest: Bytes) -> anyhow::Result<Took> {
        let cpu = self.server.cpu_time()?;
        let (mut took, started) = self.carry_out(manifest).await?;
        let change = freshness::mark(&self.api, &format!("{mark}.md")).await?;
        freshness::until_found(&self.api, By::Words, &change).await?;
        took.words = started.elapsed();
        freshness::until_found(&self.api, By::Meaning, &change).await?;
        took.vectors = started.elapsed();
        took.cpu = self.server.cpu_time()?.saturating_sub(cpu);
        Ok(took)
    }

    /// Previews and runs; also returns when the run was started.
    async fn carry_out(&self, manifest: Bytes) -> anyhow::Result<(Took, Instant)> {
        let asked = Instant::now();
        let request = self.api.request(Method::POST, "/api/v1/sync/preview");
        let request = request.header(header::CONTENT_TYPE, "application/json").body(manifest);
        let previewed: Value = accepted(request).await?.json().await?;
        let preview = asked.elapsed();
        let id = previewed.get("id").and_then(Value::as_str).context("a run without id")?;
        let path = format!("/api/v1/sync/{id}");
        let started = Instant::now();
        accepted(self.api.request(Method::POST, &format!("{path}/start"))).await?;
        let run = self.until_over(&path).await?;
        let completed = started.elapsed();
        let counters = run.get("counters").cloned().unwrap_or_default();
        Ok((Took { preview, completed, counters, ..Took::default() }, started))
    }

    async fn until_over(&self, path: &str) -> anyhow::Result<Value> {
        let began = Instant::now();
        loop {
            let run: Value = accepted(self.api.request(Method::GET, path)).await?.json().await?;
            match run.get("status").and_then(Value::as_str) {
                // The files of `--documents` may cause warnings.
                Some("completed" | "completed_with_warnings") => return Ok(run),
                Some("queued" | "running") => {}
                status => bail!("the run is {status:?}: {:?}", run.get("error")),
            }
            ensure!(began.elapsed() < TIMEOUT, "the run is not over after {TIMEOUT:?}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// The median of each figure.
fn tell(rows: &[(&str, &[Took])]) {
    let mut table =
        Table::new(&["ms", "preview", "start to completed", "to words", "to vectors", "CPU of the server"]);
    for (name, rounds) in rows {
        let columns: [fn(&Took) -> Duration; 5] = [
            |took| took.preview,
            |took| took.completed,
            |took| took.words,
            |took| took.vectors,
            |took| took.cpu,
        ];
        let cells = columns.map(|column| {
            let millis = median(rounds, column);
            // Without a write there was nothing to wait for.
            if millis > 0.0 { format!("{millis:.0}") } else { "–".to_owned() }
        });
        table.row([(*name).to_owned()].into_iter().chain(cells).collect());
    }
    table.print();
}

/// The median of a figure, in milliseconds.
fn median(rounds: &[Took], figure: impl Fn(&Took) -> Duration) -> f64 {
    let samples: Vec<Duration> = rounds.iter().map(figure).collect();
    percentile(&samples, 0.5).as_secs_f64() * 1e3
}
