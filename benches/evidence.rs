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
use tiktoken_rs::o200k_base_singleton;

use self::api::{Api, accepted};
use self::report::{Run, Table, Verdicts};
use self::server::Server;

/// The maximum size of `lines` relative to `passages`, in percent, where both contain the answer.
const SHARE_LIMIT: f64 = 60.0;
/// How far the content of an answer may exceed its token budget, in percent: the service assumes four bytes per token, and
/// tables of numbers have fewer.
const OVER_LIMIT: f64 = 33.0;
/// Each `detail` of a search.
const DETAILS: [&str; 3] = ["passages", "lines", "documents"];
/// The details for which a token budget is filled with pieces of varying length.
const BUDGETED_DETAILS: [&str; 2] = ["passages", "lines"];
/// Budgets for one or two passages, and for a page of them.
const BUDGETS: [usize; 2] = [500, 2_000];
/// The maximum of a search, so that the budget is the limit that applies.
const MAX_RESULTS: usize = 50;
const QUESTIONS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/svc-retrieval/src/search/highlights/passages.jsonl");

/// Asks a `cairn up` in a process of its own questions with known answers, over MCP with `search_context`, with each `detail`,
/// and tells how long the texts are that an agent reads, and how many of them hold the answer.
///
/// Tokens are those of o200k, which GPT-4o and the models of OpenAI since read. For the same evidence, those questions are compared
/// that are answered both ways. With `passages` the text is what it was before there was a choice, but for the marks before lines.
///
/// The same questions are asked with token budgets, which the service counts in bytes, and it is told by how much the content
/// of an answer has more tokens than it was asked for. What stands around it, labels and links, no budget counts; it is in the
/// tokens of the text.
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

/// The result of a search for an agent.
#[derive(Debug)]
struct Answer {
    /// The text of the response.
    text: String,
    /// The parts that count towards a token budget: the content of each result, and the repeated headers of its tables.
    content: Vec<String>,
}

impl Answer {
    fn content_tokens(&self) -> usize {
        self.content.iter().map(|part| tokens(part)).sum()
    }
}

/// The answers to all questions with one `detail` and one token budget.
#[derive(Debug)]
struct Budgeted {
    detail: &'static str,
    budget: usize,
    answers: Vec<Answer>,
}

/// A question with its known answers.
#[derive(Debug, Deserialize)]
struct Case {
    question: String,
    passage: String,
    answers: Vec<String>,
}

impl Case {
    /// Whether a text contains one of the answers, regardless of line breaks.
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
            with_detail(&api, &case.question, passages).await?,
            with_detail(&api, &case.question, lines).await?,
            with_detail(&api, &case.question, documents).await?,
        ]);
    }
    let mut budgeted = Vec::new();
    for detail in BUDGETED_DETAILS {
        for budget in BUDGETS {
            budgeted.push(within_budget(&api, &cases, detail, budget).await?);
        }
    }
    server.stop().await?;

    let mut verdicts = Verdicts::default();
    report_details(&cases, &texts, &mut verdicts);
    report_budgets(&budgeted, &mut verdicts);
    verdicts.finish(&options.run)
}

/// The text of a search with that `detail`.
async fn with_detail(api: &Api, question: &str, detail: &str) -> anyhow::Result<String> {
    let answer = ask(api, &json!({"query": question, "detail": detail})).await?;
    Ok(answer.text)
}

/// The answers to all questions with that `detail` and that token budget.
async fn within_budget(
    api: &Api,
    cases: &[Case],
    detail: &'static str,
    budget: usize,
) -> anyhow::Result<Budgeted> {
    let mut answers = Vec::with_capacity(cases.len());
    for case in cases {
        let arguments = json!({
            "query": case.question, "detail": detail, "tokenBudget": budget, "limit": MAX_RESULTS,
        });
        answers.push(ask(api, &arguments).await?);
    }
    Ok(Budgeted { detail, budget, answers })
}

/// Writes the passages and the documents, and waits until all are indexed.
async fn fill(api: &Api, options: &Options, cases: &[Case]) -> anyhow::Result<()> {
    let passages: BTreeSet<&str> = cases.iter().map(|case| case.passage.as_str()).collect();
    for (number, passage) in passages.iter().enumerate() {
        api.create_file(&format!("passage-{number}.md"), passage).await?;
    }
    let paths = match &options.documents {
        Some(folder) => markdown::files(folder)?,
        None => Vec::new(),
    };
    let documents = paths.iter().map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    for (number, document) in documents.iter().enumerate() {
        api.create_file(&format!("document-{number}.md"), document).await?;
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
    let texts = passages.iter().copied().chain(documents.iter().map(String::as_str));
    let size = bytes_a_token(texts);
    println!(
        "{} questions, {} passages, {} documents, {size:.2} bytes a token\n",
        cases.len(),
        passages.len(),
        documents.len()
    );
    Ok(())
}

/// Calls `search_context`.
async fn ask(api: &Api, arguments: &Value) -> anyhow::Result<Answer> {
    let params = json!({"name": "search_context", "arguments": arguments});
    let request = api
        .request(Method::POST, "/mcp")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25")
        .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
    let answer: Value = accepted(request).await?.json().await?;
    let text = answer.pointer("/result/content/0/text").and_then(Value::as_str);
    let text = text.with_context(|| format!("a search without a text: {answer}"))?;
    let results = answer.pointer("/result/structuredContent/results").and_then(Value::as_array);
    let results = results.with_context(|| format!("a search without results: {answer}"))?;
    let parts = results.iter().flat_map(|result| [result.get("tableHeader"), result.get("content")]);
    let content = parts.flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    Ok(Answer { text: text.to_owned(), content })
}

fn report_details(cases: &[Case], texts: &[[String; DETAILS.len()]], verdicts: &mut Verdicts) {
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
    let share = of_lines as f64 / of_passages.max(1) as f64 * 100.0;
    let what = format!("tokens of lines to those of passages, of the {both} questions that both answer");
    verdicts.at_most(&what, if both == 0 { f64::INFINITY } else { share }, SHARE_LIMIT, "%");
    println!();
}

fn report_budgets(all: &[Budgeted], verdicts: &mut Verdicts) {
    let mut table = Table::new(&["detail", "budget", "content", "at most", "beyond it", "of", "with labels"]);
    let mut worst = 0.0_f64;
    for Budgeted { detail, budget, answers } in all {
        let contents: Vec<usize> = answers.iter().map(Answer::content_tokens).collect();
        let most = contents.iter().copied().max().unwrap_or(0);
        let beyond = contents.iter().filter(|content| *content > budget).count();
        let text: usize = answers.iter().map(|answer| tokens(&answer.text)).sum();
        let mean = |sum: usize| format!("{:.0}", sum as f64 / answers.len().max(1) as f64);
        table.row(vec![
            (*detail).to_owned(),
            budget.to_string(),
            mean(contents.iter().sum()),
            most.to_string(),
            beyond.to_string(),
            answers.len().to_string(),
            mean(text),
        ]);
        worst = worst.max(most as f64 / *budget as f64);
    }
    table.print();
    let over = (worst - 1.0).max(0.0) * 100.0;
    verdicts.at_most("content beyond its token budget, the worst of these searches", over, OVER_LIMIT, "%");
}

/// The number of o200k tokens. Special tokens in the text count as plain text.
fn tokens(text: &str) -> usize {
    o200k_base_singleton().count_ordinary(text)
}

fn bytes_a_token<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    let sizes = texts.map(|text| (text.len(), tokens(text)));
    let (bytes, counted) = sizes.fold((0_usize, 0_usize), |all, one| (all.0 + one.0, all.1 + one.1));
    bytes as f64 / counted.max(1) as f64
}

/// A line without its line-number prefix (`> 7: `).
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
