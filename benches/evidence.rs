//! What an agent reads of a search, in tokens: `cargo bench --bench evidence -- --help`.

#[path = "support/api.rs"]
mod api;
#[path = "support/markdown.rs"]
mod markdown;
#[path = "support/report.rs"]
mod report;
#[expect(dead_code, reason = "time and memory are told by other benches")]
#[path = "support/server.rs"]
mod server;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::Parser;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::api::{Api, accepted};
use self::report::{Run, Table, Verdicts};
use self::server::Server;

/// The text of lines to that of passages, where both hold the answer, in percent.
const SHARE_LIMIT: f64 = 60.0;
/// As a token budget counts them. The list of tools has 4.1 to 4.2 with o200k (ADR 22).
const BYTES_PER_TOKEN: usize = 4;
/// Each `detail` of a search.
const DETAILS: [&str; 3] = ["passages", "lines", "documents"];
const QUESTIONS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/svc-retrieval/src/search/highlights/passages.jsonl");

/// Asks a `cairn up` in a process of its own questions with known answers, over MCP with `search_context`, with each `detail`,
/// and tells how long the texts are that an agent reads, and how many of them hold the answer.
///
/// Tokens are counted as the service counts a token budget, 4 bytes each: a tokenizer would be one more dependency for a
/// figure that is a ratio. For the same evidence, those questions are compared that are answered both ways. With `passages` the
/// text is what it was before there was a choice, but for the marks before lines.
///
/// The questions are those of `passages.jsonl`, to this project's documentation; each passage is a document. Others have
/// the same form: a line each with `question`, `passage`, and `answers`, parts of the passage word by word.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// The questions.
    #[arg(long, value_name = "FILE", default_value = QUESTIONS)]
    questions: PathBuf,
    /// Markdown files below this folder are searched, too.
    #[arg(long, value_name = "DIR")]
    documents: Option<PathBuf>,
    #[command(flatten)]
    run: Run,
}

/// A question, and what answers it.
#[derive(Debug, Deserialize)]
struct Case {
    question: String,
    passage: String,
    answers: Vec<String>,
}

impl Case {
    /// Whether a text has one of the answers, wherever its lines break.
    fn is_answered(&self, text: &str) -> bool {
        let text = flat(text.lines().map(unmarked));
        self.answers.iter().any(|answer| text.contains(&flat(answer.lines())))
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if !options.run.is_bench() {
        return Ok(());
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run(options))
}

async fn run(options: Options) -> anyhow::Result<()> {
    let text = fs::read_to_string(&options.questions)
        .with_context(|| format!("cannot read {}", options.questions.display()))?;
    let cases = text.lines().map(serde_json::from_str).collect::<Result<Vec<Case>, _>>()?;
    ensure!(!cases.is_empty(), "there are no questions");

    let data = TempDir::new()?;
    let mut server = Server::cairn(data.path())?;
    server.ready().await?;
    let api = Api::open(server.address, data.path())?;
    fill(&api, &options, &cases).await?;
    let mut texts: Vec<[String; DETAILS.len()]> = Vec::with_capacity(cases.len());
    for case in &cases {
        let [passages, lines, documents] = DETAILS;
        texts.push([
            ask(&api, &case.question, passages).await?,
            ask(&api, &case.question, lines).await?,
            ask(&api, &case.question, documents).await?,
        ]);
    }
    server.stop().await?;
    report(&cases, &texts).finish(&options.run)
}

/// Writes the passages and the documents, and waits until all can be found.
async fn fill(api: &Api, options: &Options, cases: &[Case]) -> anyhow::Result<()> {
    let passages: BTreeSet<&str> = cases.iter().map(|case| case.passage.as_str()).collect();
    for (number, passage) in passages.iter().enumerate() {
        api.create_file(&format!("passage-{number}.md"), passage).await?;
    }
    let documents = match &options.documents {
        Some(folder) => markdown::files(folder)?,
        None => Vec::new(),
    };
    for (number, path) in documents.iter().enumerate() {
        api.create_file(&format!("document-{number}.md"), &fs::read_to_string(path)?).await?;
    }
    let (_, change) = api.create_file("last.md", "Nothing comes after it.\n").await?;
    let request = api
        .request(Method::POST, "/api/v1/search_context")
        .header("X-Cairn-Change", change)
        .header("X-Cairn-Wait-Ms", "10000")
        .json(&json!({"query": "nothing comes after"}));
    let answer: Value = accepted(request).await?.json().await?;
    let is_complete = answer.get("coverage").and_then(Value::as_array).is_none_or(Vec::is_empty);
    ensure!(is_complete, "not all is indexed in time: {answer}");
    println!("{} questions, {} passages, {} documents\n", cases.len(), passages.len(), documents.len());
    Ok(())
}

/// What an agent reads.
async fn ask(api: &Api, question: &str, detail: &str) -> anyhow::Result<String> {
    let arguments = json!({"query": question, "detail": detail});
    let params = json!({"name": "search_context", "arguments": arguments});
    let request = api
        .request(Method::POST, "/mcp")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25")
        .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
    let answer: Value = accepted(request).await?.json().await?;
    let text = answer.pointer("/result/content/0/text").and_then(Value::as_str);
    Ok(text.with_context(|| format!("a search without a text: {answer}"))?.to_owned())
}

fn report(cases: &[Case], texts: &[[String; DETAILS.len()]]) -> Verdicts {
    let mut table = Table::new(&["detail", "tokens a question", "hold the answer", "of"]);
    for (place, detail) in DETAILS.iter().enumerate() {
        let of_detail = || texts.iter().filter_map(move |all| all.get(place));
        let read: usize = of_detail().map(|text| tokens(text)).sum();
        let answered = cases.iter().zip(of_detail()).filter(|(case, text)| case.is_answered(text)).count();
        table.row(vec![
            (*detail).to_owned(),
            format!("{:.0}", read as f64 / cases.len() as f64),
            answered.to_string(),
            cases.len().to_string(),
        ]);
    }
    table.print();

    let (mut of_passages, mut of_lines, mut both) = (0, 0, 0);
    for (case, [passages, lines, _]) in cases.iter().zip(texts) {
        if case.is_answered(passages) && case.is_answered(lines) {
            of_passages += tokens(passages);
            of_lines += tokens(lines);
            both += 1;
        }
    }
    let mut verdicts = Verdicts::default();
    let share = of_lines as f64 / of_passages.max(1) as f64 * 100.0;
    let what = format!("tokens of lines to those of passages, of the {both} questions that both answer");
    verdicts.at_most(&what, if both == 0 { f64::INFINITY } else { share }, SHARE_LIMIT, "%");
    verdicts
}

fn tokens(text: &str) -> usize {
    text.len().div_ceil(BYTES_PER_TOKEN)
}

/// A line without the number that stands before one that answers (`> 7: `).
fn unmarked(line: &str) -> &str {
    let marked = line.strip_prefix("> ").and_then(|rest| rest.split_once(": "));
    match marked {
        Some((number, content)) if number.parse::<u32>().is_ok() => content,
        _ => line,
    }
}

fn flat<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}
