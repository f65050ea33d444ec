//! `cairn exec`.

use std::io::{IsTerminal as _, Write as _};

use anyhow::anyhow;
use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};

use super::connection::{Connection, ConnectionOptions};
use super::output::print_json;

pub(super) const EXAMPLES: &str = "Examples:
  cairn exec help                                    the commands that there are
  cairn exec 'tree -L 2 /files'
  cairn exec 'grep -rniF \"rate limit\" . | head -20' --cwd /files/handbook
  cairn exec 'cat -n /memories/release-process/README.md' --citations
  cairn exec 'ls -l /files/plans' --as-of 2026-11-23T14:00:00Z
  cairn exec 'find /databases -name \"*.md\" | wc -l' --json | jq .stats

It ends with 1 when the last command of the script failed, as a shell does.";

#[derive(Debug, Args)]
pub(crate) struct ExecOptions {
    #[command(flatten)]
    connection: ConnectionOptions,
    /// What to run: commands of the read-only shell, joined by |, ;, && or ||.
    script: String,
    /// The folder to begin in.
    #[arg(long, value_name = "PATH", default_value = "/")]
    cwd: String,
    /// The output is cut to so many bytes: 1024 to 204800. Default: 61440.
    #[arg(long, value_name = "BYTES")]
    max_output_bytes: Option<u32>,
    /// Show the workspace as it stood at a time (RFC 3339), or after the write that answered a change token.
    #[arg(long, value_name = "TIME|TOKEN")]
    as_of: Option<String>,
    /// Print on stderr whose content the output is, with lines and links.
    #[arg(long)]
    citations: bool,
    /// Print the answer as the API gives it.
    #[arg(long, conflicts_with = "citations")]
    json: bool,
}

pub(super) async fn run(options: ExecOptions) -> anyhow::Result<()> {
    // The API treats null like an absent field.
    let body = json!({
        "script": options.script, "cwd": options.cwd, "maxOutputBytes": options.max_output_bytes,
        "asOf": options.as_of,
    });
    let connection = Connection::open(&options.connection)?;
    let request = connection.request(Method::POST, "/api/v1/vfs/exec").json(&body);
    let answer = connection.json(request).await?;
    if options.json {
        print_json(&answer)?;
    } else {
        print_output(answer.get("output").and_then(Value::as_str).unwrap_or_default())?;
        print_coverage(&answer)?;
    }
    if options.citations {
        print_citations(&answer)?;
    }
    match answer.get("failed").and_then(Value::as_bool) {
        Some(true) => Err(anyhow!("the script failed")),
        Some(false) | None => Ok(()),
    }
}

/// Verbatim to a program; without control sequences to a terminal.
fn print_output(output: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        out.write_all(harmless(output).as_bytes())?;
    } else {
        out.write_all(output.as_bytes())?;
    }
    Ok(out.flush()?)
}

fn harmless(output: &str) -> String {
    output.replace(|letter: char| letter.is_control() && !matches!(letter, '\n' | '\t'), " ")
}

/// The note about what a view of the past does not cover.
fn print_coverage(answer: &Value) -> anyhow::Result<()> {
    let mut out = std::io::stderr().lock();
    for note in answer["coverage"].as_array().into_iter().flatten() {
        writeln!(out, "note: {}", harmless(note["message"].as_str().unwrap_or_default()))?;
    }
    Ok(out.flush()?)
}

fn print_citations(answer: &Value) -> anyhow::Result<()> {
    let mut out = std::io::stderr().lock();
    for citation in answer["citations"].as_array().into_iter().flatten() {
        let part = |name: &str| harmless(citation[name].as_str().unwrap_or_default()).replace('\n', " ");
        let line = |name: &str| citation[name].as_u64().unwrap_or_default();
        writeln!(out, "{}:{}-{}  {}", part("path"), line("startLine"), line("endLine"), part("url"))?;
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_commands() {
        assert_eq!(harmless("a\tb\x1b[2J\r\nc\n"), "a\tb [2J \nc\n");
    }
}
