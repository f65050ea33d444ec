//! What scripts over the workspace cost, beside ripgrep on disk: `cargo bench --bench browse -- --help`.

#[path = "support/api.rs"]
mod api;
#[expect(dead_code, reason = "questions about the documents are what other benches ask")]
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

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::Parser;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::api::{Api, accepted};
use self::report::{Run, Table, Verdicts};
use self::samples::percentile;
use self::server::Server;

/// A word that only one document has.
const RARE: &str = "quokkaxylograph";
const REGEX: &str = "[A-Z][a-z]{3,}[0-9]{2,}[a-z]";
const REGEX_ANY_CASE: &str = "[xz][a-z]{2}q[a-z]{4,}";
const RARE_LIMIT_MS: f64 = 1.0;
const SCAN_RATIO_LIMIT: f64 = 0.5;
const FIND_LIMIT_MS: f64 = 1.0;
const CAT_LIMIT_MS: f64 = 0.2;
const TICKS_PER_SECOND: f64 = 100.0;
/// A server is idle when its CPU time has not changed for this long.
const QUIET: Duration = Duration::from_secs(2);
const FILES_PER_FOLDER: usize = 100;

/// Writes a tree of Markdown files to disk and into the workspace of a `cairn up`, and runs the same searches on both:
///
///   rare   grep -rn of a word that one file holds      limit: 1 ms
///   regex  grep -rnE over every line, also with -i     limit: half of `rg -j1`
///   find   find -name over every name                  limit: 1 ms
///   cat    one file                                    limit: .2 ms
///   edits  a file is changed, and the next script must find what was written; each time
///
/// Ours is CPU time of the whole server process, with HTTP and JSON; rg's that of a process of its own with the files in
/// the page cache (it is told as missing when there is no `rg`). With --just-bash, the npm package of that name runs the
/// same scripts over the same files in its memory. Both sides must find as many lines.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// A folder with Markdown files, instead of generated ones.
    #[arg(long, value_name = "DIR")]
    documents: Option<PathBuf>,
    /// How many documents to generate.
    #[arg(long, default_value_t = 5_000)]
    generated: usize,
    /// How often each script runs.
    #[arg(long, default_value_t = 400)]
    runs: u32,
    /// How many scripts are under way at once, each on a connection of its own. One alone pays for waking the server.
    #[arg(long, default_value_t = 1)]
    connections: u32,
    /// A folder in whose node_modules just-bash is.
    #[arg(long, value_name = "DIR")]
    just_bash: Option<PathBuf>,
    #[command(flatten)]
    run: Run,
}

/// A search, in the syntax of each side.
struct Search {
    name: &'static str,
    script: String,
    /// Arguments of ripgrep; `None` without an equivalent.
    rg: Option<Vec<String>>,
    /// A run takes so long that fewer of them are enough.
    is_scan: bool,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if !options.run.is_bench() {
        return Ok(());
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run(options))
}

async fn run(options: Options) -> anyhow::Result<()> {
    let (data, disk) = (TempDir::new()?, TempDir::new()?);
    let sample = write_tree(&options, disk.path())?;
    let mut server = Server::cairn(data.path())?;
    server.ready().await?;
    let api = Api::open(server.address, data.path())?;
    let filled = fill(&api, disk.path()).await?;
    quiet(&server).await?;
    println!("{} files, {:.1} MB\n", filled.files, filled.bytes as f64 / 1e6);

    let searches = searches(&sample);
    let mut table =
        Table::new(&["", "CPU ms", "p50 ms", "p99 ms", "rg -j1, CPU ms", "just-bash, CPU ms", "lines"]);
    let mut verdicts = Verdicts::default();
    let mut figures = HashMap::new();
    for search in &searches {
        let runs = if search.is_scan { options.runs.div_ceil(10) } else { options.runs };
        let ours = measure(&server, &api, &search.script, runs, options.connections).await?;
        let peer =
            search.rg.as_ref().map(|arguments| ripgrep(arguments, disk.path(), runs.min(40))).transpose()?;
        let peer = peer.flatten();
        if let Some((_, lines)) = &peer {
            ensure!(*lines == ours.lines, "{}: {} lines, and rg finds {lines}", search.name, ours.lines);
        }
        let bash = just_bash(&options, search, disk.path())?;
        let shown =
            |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.2}"));
        table.row(vec![
            search.name.to_owned(),
            format!("{:.3}", ours.cpu_ms),
            format!("{:.2}", ours.p50_ms),
            format!("{:.2}", ours.p99_ms),
            shown(peer.map(|(cpu, _)| cpu)),
            shown(bash),
            ours.lines.to_string(),
        ]);
        figures.insert(search.name, (ours.cpu_ms, peer.map(|(cpu, _)| cpu)));
    }
    table.print();
    judge(&figures, &mut verdicts);
    edits(&api, &filled, &mut verdicts).await?;
    let memory = server.memory()?;
    println!("\nthe server holds {:.0} MiB, {:.0} of it heap", memory.resident, memory.anonymous);
    server.stop().await?;
    verdicts.finish(&options.run)
}

fn searches(sample: &str) -> Vec<Search> {
    let rg = |arguments: &[&str]| Some(arguments.iter().map(|text| (*text).to_owned()).collect());
    vec![
        Search {
            name: "rare",
            script: format!("grep -rn {RARE} /files"),
            rg: rg(&["-n", "-F", RARE]),
            is_scan: false,
        },
        Search {
            name: "regex",
            script: format!("grep -rnE '{REGEX}' /files"),
            rg: rg(&["-n", REGEX]),
            is_scan: true,
        },
        Search {
            name: "regex -i",
            script: format!("grep -rniE '{REGEX_ANY_CASE}' /files"),
            rg: rg(&["-n", "-i", REGEX_ANY_CASE]),
            is_scan: true,
        },
        Search { name: "find", script: "find /files -name '*77*'".to_owned(), rg: None, is_scan: false },
        Search { name: "cat", script: format!("cat '/files/{sample}'"), rg: None, is_scan: false },
    ]
}

fn judge(figures: &HashMap<&str, (f64, Option<f64>)>, verdicts: &mut Verdicts) {
    let ours = |name: &str| figures.get(name).map_or(f64::INFINITY, |(cpu, _)| *cpu);
    verdicts.at_most("grep of a rare word", ours("rare"), RARE_LIMIT_MS, "ms CPU");
    for name in ["regex", "regex -i"] {
        match figures.get(name) {
            Some((cpu, Some(peer))) => {
                verdicts.at_most(
                    &format!("{name} over everything, to rg -j1"),
                    cpu / peer,
                    SCAN_RATIO_LIMIT,
                    "times",
                );
            }
            _ => println!("skipped: {name}: ripgrep is not installed (apt-get install ripgrep)"),
        }
    }
    verdicts.at_most("find -name", ours("find"), FIND_LIMIT_MS, "ms CPU");
    verdicts.at_most("cat", ours("cat"), CAT_LIMIT_MS, "ms CPU");
}

/// Writes the files below a folder, one of them with the rare word; returns the path of a file in it.
fn write_tree(options: &Options, disk: &Path) -> anyhow::Result<String> {
    let mut paths = Vec::new();
    if let Some(folder) = &options.documents {
        for path in markdown::files(folder)? {
            let relative = path.strip_prefix(folder)?.to_owned();
            put(&disk.join(&relative), &fs::read_to_string(&path)?)?;
            paths.push(relative);
        }
    } else {
        for (number, document) in corpus::documents(None, 0..options.generated)?.into_iter().enumerate() {
            let relative = PathBuf::from(format!("part-{}", number / FILES_PER_FOLDER)).join(&document.name);
            put(&disk.join(&relative), &document.text)?;
            paths.push(relative);
        }
    }
    let middle = paths.get(paths.len() / 2).context("no documents")?;
    let text = fs::read_to_string(disk.join(middle))?;
    put(&disk.join(middle), &format!("{text}\nThe {RARE} is here.\n"))?;
    Ok(middle.to_string_lossy().into_owned())
}

fn put(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::create_dir_all(path.parent().context("a file without a folder")?)?;
    Ok(fs::write(path, text)?)
}

/// The contents of the workspace.
struct Filled {
    files: usize,
    bytes: usize,
    /// The id of the file to edit.
    edited: String,
}

async fn fill(api: &Api, disk: &Path) -> anyhow::Result<Filled> {
    let mut folders: HashMap<PathBuf, String> = HashMap::new();
    let (edited, _change) = api.create_file("edited.md", "# Edited\n").await?;
    let mut filled = Filled { files: 0, bytes: 0, edited };
    for path in markdown::files(disk)? {
        let relative = path.strip_prefix(disk)?;
        let folder = folder_of(api, relative.parent().unwrap_or(Path::new("")), &mut folders).await?;
        let name = relative.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let content = fs::read_to_string(&path)?;
        filled.files += 1;
        filled.bytes += content.len();
        let body = json!({"name": name, "content": content, "fileType": "markdown", "folderId": folder});
        create(api, "/api/v1/files", &body).await?;
    }
    Ok(filled)
}

/// The id of the folder at a path, which is created if missing.
async fn folder_of(
    api: &Api,
    path: &Path,
    folders: &mut HashMap<PathBuf, String>,
) -> anyhow::Result<Option<String>> {
    let (mut at, mut parent) = (PathBuf::new(), None);
    for part in path.components() {
        at.push(part);
        let id = match folders.get(&at) {
            Some(id) => id.clone(),
            None => {
                let name = part.as_os_str().to_string_lossy().into_owned();
                let id = create(api, "/api/v1/folders", &json!({"name": name, "parentId": parent})).await?;
                folders.insert(at.clone(), id.clone());
                id
            }
        };
        parent = Some(id);
    }
    Ok(parent)
}

async fn create(api: &Api, path: &str, body: &Value) -> anyhow::Result<String> {
    let made: Value = accepted(api.request(Method::POST, path).json(body)).await?.json().await?;
    Ok(made.get("id").and_then(Value::as_str).context("a record without id")?.to_owned())
}

/// Waits until the server has indexed everything, which is when it is idle.
async fn quiet(server: &Server) -> anyhow::Result<()> {
    let mut before = server.cpu_time()?;
    loop {
        tokio::time::sleep(QUIET).await;
        let now = server.cpu_time()?;
        if now <= before + Duration::from_millis(20) {
            return Ok(());
        }
        before = now;
    }
}

async fn exec(api: &Api, script: &str) -> anyhow::Result<Value> {
    let request = api.request(Method::POST, "/api/v1/vfs/exec").json(&json!({"script": script}));
    let answer: Value = accepted(request).await?.json().await?;
    if answer.get("truncated").and_then(Value::as_bool) != Some(false) {
        bail!("the output of {script} is cut: the figures would not compare");
    }
    Ok(answer)
}

fn output(answer: &Value) -> &str {
    answer.get("output").and_then(Value::as_str).unwrap_or_default()
}

/// CPU milliseconds of one run in Cairn.
struct Figure {
    cpu_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
    lines: usize,
}

async fn measure(
    server: &Server,
    api: &Api,
    script: &str,
    runs: u32,
    connections: u32,
) -> anyhow::Result<Figure> {
    // Not measured: the first run reads the bodies.
    let lines = output(&exec(api, script).await?).lines().count();
    let before = server.cpu_time()?;
    let rounds = runs.div_ceil(connections);
    let askers = (0..connections).map(|_| async move {
        let mut took = Vec::new();
        for _ in 0..rounds {
            let started = Instant::now();
            exec(api, script).await?;
            took.push(started.elapsed());
        }
        anyhow::Ok(took)
    });
    let took = futures::future::try_join_all(askers).await?.concat();
    let runs = rounds * connections;
    let cpu = server.cpu_time()?.saturating_sub(before);
    let millis = |share: f64| percentile(&took, share).as_secs_f64() * 1e3;
    Ok(Figure {
        cpu_ms: cpu.as_secs_f64() * 1e3 / f64::from(runs),
        p50_ms: millis(0.5),
        p99_ms: millis(0.99),
        lines,
    })
}

/// CPU milliseconds of one run, and the number of lines that it finds; `None` if ripgrep is not installed.
fn ripgrep(arguments: &[String], disk: &Path, runs: u32) -> anyhow::Result<Option<(f64, usize)>> {
    let mut command = Command::new("rg");
    command.args(["-j1", "--no-heading", "--no-config", "--no-ignore"]).args(arguments).arg(disk);
    command.stdin(Stdio::null());
    let Ok(warm) = command.output() else { return Ok(None) };
    let lines = String::from_utf8_lossy(&warm.stdout).lines().count();
    let before = children_cpu()?;
    for _ in 0..runs {
        command.output()?;
    }
    let cpu = children_cpu()?.saturating_sub(before);
    Ok(Some((cpu.as_secs_f64() * 1e3 / f64::from(runs), lines)))
}

/// CPU time of all exited children.
fn children_cpu() -> anyhow::Result<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').context("no name in /proc/self/stat")?;
    // cutime and cstime are fields 16 and 17.
    let ticks: u64 =
        fields.split_whitespace().skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Ok(Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND))
}

const JUST_BASH: &str = "
import { Bash } from 'just-bash';
import { readFileSync, readdirSync } from 'node:fs';
const [root, script, most] = process.argv.slice(2);
const files = {};
for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue;
  const path = entry.parentPath + '/' + entry.name;
  files['/files' + path.slice(root.length)] = readFileSync(path, 'utf8');
}
const limits = { maxCommandCount: 1e9, maxLoopIterations: 1e9, maxGlobOperations: 1e9 };
const bash = new Bash({ files, executionLimits: limits });
await bash.exec(script);
const before = process.cpuUsage();
for (let run = 0; run < Number(most); run++) await bash.exec(script);
const used = process.cpuUsage(before);
console.log((used.user + used.system) / 1000 / Number(most));
";

/// CPU milliseconds of one run in just-bash, if that is installed.
fn just_bash(options: &Options, search: &Search, disk: &Path) -> anyhow::Result<Option<f64>> {
    let Some(folder) = &options.just_bash else { return Ok(None) };
    let program = folder.join("cairn-bench.mjs");
    fs::write(&program, JUST_BASH)?;
    let runs = if search.is_scan { "3" } else { "20" };
    let ran = Command::new("node").arg(&program).arg(disk).args([&search.script, runs]).output()?;
    let told = String::from_utf8_lossy(&ran.stdout);
    let figure = told
        .trim()
        .parse()
        .with_context(|| format!("just-bash says: {told}{}", String::from_utf8_lossy(&ran.stderr)))?;
    Ok(Some(figure))
}

/// Checks that each edit is visible to the next script.
async fn edits(api: &Api, filled: &Filled, verdicts: &mut Verdicts) -> anyhow::Result<()> {
    const EDITS: usize = 100;
    let (mut missed, mut took) = (0, Vec::new());
    for number in 0..EDITS {
        let word = format!("edit{number}quokka");
        let path = format!("/api/v1/files/{}", filled.edited);
        let body = json!({"content": format!("# Edited\n\nHere stands {word}.\n")});
        accepted(api.request(Method::PATCH, &path).json(&body)).await?;
        let started = Instant::now();
        let answer = exec(api, &format!("grep -rn {word} /files")).await?;
        took.push(started.elapsed());
        missed += usize::from(!output(&answer).contains(&word));
    }
    let p50 = percentile(&took, 0.5).as_secs_f64() * 1e3;
    println!("\n{EDITS} edits; the next grep over everything takes {p50:.2} ms (p50)");
    verdicts.at_most("edits that the next script does not see", missed as f64, 0.0, "");
    Ok(())
}
