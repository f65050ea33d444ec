//! `cairn search`.

use std::fmt::Write as _;

use anyhow::Context as _;
use clap::Args;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::connection::{Connection, ConnectionOptions};
use super::output::{print, print_json};

pub(super) const EXAMPLES: &str = "Examples:
  cairn search \"how do we roll back a release\"
  cairn search '\"error 5031\" -draft' --strategy keyword --limit 3
  cairn search \"open decisions\" --tag planning --kind file --updated-after 2026-11-01T00:00:00Z --detail lines
  cairn search onboarding --json | jq '.results[].citation.path'";

#[derive(Debug, Args)]
pub(crate) struct SearchOptions {
    #[command(flatten)]
    connection: ConnectionOptions,
    /// What to look for, in plain words; \"quoted\" words stand together, -word is left out.
    query: String,
    /// keyword, semantic or hybrid. Default: hybrid.
    #[arg(long, value_name = "STRATEGY")]
    strategy: Option<String>,
    /// How many results at most: 1 to 50.
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: u32,
    /// Only what stands in this folder or below it.
    #[arg(long, value_name = "ID")]
    folder: Option<String>,
    /// Only files with this tag; given more than once, with all of them.
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Only file, record, memory, ingested or source_document; given more than once, any of them.
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Only what was changed after this time (RFC 3339).
    #[arg(long, value_name = "TIME")]
    updated_after: Option<String>,
    /// Only what was changed before this time (RFC 3339).
    #[arg(long, value_name = "TIME")]
    updated_before: Option<String>,
    /// lines (only those that answer), passages or documents (each document once). Default: passages.
    #[arg(long, value_name = "DETAIL")]
    detail: Option<String>,
    /// How many tokens of content at most, about.
    #[arg(long, value_name = "N")]
    token_budget: Option<u32>,
    /// Search the workspace as it stood at a time (RFC 3339), or after the write that answered a change token.
    #[arg(long, value_name = "TIME|TOKEN")]
    as_of: Option<String>,
    /// Print the answer as the API gives it.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(options: SearchOptions) -> anyhow::Result<()> {
    // The API treats null like an absent field.
    let body = json!({
        "query": options.query, "limit": options.limit, "strategy": options.strategy, "folderId": options.folder,
        "tags": options.tag, "kinds": options.kind, "updatedAfter": options.updated_after,
        "updatedBefore": options.updated_before, "detail": options.detail, "tokenBudget": options.token_budget,
        "asOf": options.as_of,
    });
    let connection = Connection::open(&options.connection)?;
    let request = connection.request(Method::POST, "/api/v1/search_context").json(&body);
    let answer = connection.json(request).await?;
    if options.json {
        return print_json(&answer);
    }
    print(&as_text(&serde_json::from_value(answer).context("the answer is not as expected")?))
}

/// The answer, as far as it is displayed.
#[derive(Deserialize)]
struct Answer {
    results: Vec<Found>,
    #[serde(default)]
    coverage: Vec<Note>,
}

#[derive(Deserialize)]
struct Found {
    content: String,
    citation: Citation,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Citation {
    path: String,
    url: String,
    start_line: Option<u32>,
    end_line: Option<u32>,
}

#[derive(Deserialize)]
struct Note {
    message: String,
}

fn as_text(answer: &Answer) -> String {
    let mut text = String::new();
    for (place, Found { content, citation }) in answer.results.iter().enumerate() {
        let lines = match (citation.start_line, citation.end_line) {
            (Some(start), Some(end)) => format!(":{start}-{end}"),
            _ => String::new(),
        };
        let (path, url) = (harmless(&citation.path), harmless(&citation.url));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "[{}] {path}{lines}  {url}", place + 1);
        text.extend(content.trim_end().lines().map(|line| format!("    {}\n", harmless(line))));
    }
    if text.is_empty() {
        text.push_str("No results.\n");
    }
    for note in &answer.coverage {
        let _ = writeln!(text, "note: {}", note.message);
    }
    text
}

/// Without control characters, which a terminal would interpret.
fn harmless(line: &str) -> String {
    line.replace(|letter: char| letter.is_control() && letter != '\t', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_shown_with_their_lines_and_notes() {
        let citation = json!({"path": "/a.md", "url": "http://c/file/1", "startLine": 3, "endLine": 4});
        let answer = json!({
            "results": [{"content": "one\ntwo\n", "citation": citation}],
            "coverage": [{"code": "index_behind", "message": "the index is behind"}],
        });
        let expected = "[1] /a.md:3-4  http://c/file/1\n    one\n    two\nnote: the index is behind\n";
        assert_eq!(as_text(&serde_json::from_value(answer).unwrap()), expected);
        assert_eq!(as_text(&serde_json::from_value(json!({"results": []})).unwrap()), "No results.\n");
    }
}
