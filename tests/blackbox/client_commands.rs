//! `cairn search`, `cairn feedback`, `cairn health`: the binary as a client of a running deployment.

use crate::support::prelude::*;
use crate::support::process::Process;

scenarios![people_search_from_a_terminal, people_report_from_a_terminal, a_command_says_what_went_wrong];

/// Whether the command succeeded, its stdout and its stderr.
async fn run(arguments: &[&str], url: &str, token: &str) -> (bool, String, String) {
    let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
    let mut process = Process::start("cairn", &arguments, &[("CAIRN_URL", url), ("CAIRN_TOKEN", token)]);
    let status = process.exit().await;
    (status.success(), process.stdout(), process.stderr())
}

async fn people_search_from_a_terminal(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let made = workspace.file("lamps.md", None, "# Lamps\n\nTurn the zanzibar lamp.\u{1b}[31m\n").await;
    workspace.search_after(&made.change(), json!({"query": "zanzibar"})).await;
    let (url, token) = (deployment.base_url(), &workspace.token.secret);
    let (succeeded, output, _) =
        run(&["search", "zanzibar lamp", "--strategy", "keyword"], &url, token).await;
    assert!(
        succeeded && output.starts_with("[1] /lamps.md:") && output.contains("Turn the zanzibar lamp."),
        "{output}"
    );
    assert!(!output.contains('\u{1b}'), "no commands to the terminal: {output:?}");
    let (_, output, _) = run(&["search", "zanzibar", "--json"], &url, token).await;
    let answer: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(answer["results"][0]["citation"]["path"], "/lamps.md");
    let narrowed = ["search", "zanzibar", "--tag", "planning", "--kind", "file", "--detail", "lines"];
    let (succeeded, output, log) = run(&narrowed, &url, token).await;
    assert!(succeeded && output.starts_with("No results.\n"), "no file has that tag: {output}{log}");
    let (succeeded, output, _) = run(&["health"], &url, "").await;
    assert!(succeeded && !output.is_empty(), "{output}");
}

async fn people_report_from_a_terminal(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let arguments =
        ["feedback", "the guide is old", "--category", "stale_content", "--context", "{\"a\": 1}"];
    let (succeeded, output, log) = run(&arguments, &deployment.base_url(), &workspace.token.secret).await;
    assert!(succeeded && !output.trim().is_empty(), "{output}{log}");
}

async fn a_command_says_what_went_wrong(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (url, token) = (deployment.base_url(), &workspace.token.secret);
    let (succeeded, _, log) = run(&["search", "x", "--limit", "51"], &url, token).await;
    assert!(!succeeded && log.contains("VALIDATION_ERROR") && log.contains("at most 50"), "{log}");
    let (succeeded, _, log) = run(&["search", "x"], &url, "cairn_no-such-token").await;
    assert!(!succeeded && log.contains("UNAUTHORIZED") && !log.contains("no-such-token"), "{log}");
    // Nothing listens there.
    for arguments in [["search", "x"].as_slice(), &["health"]] {
        let (succeeded, _, log) = run(arguments, "http://[::1]:1", token).await;
        assert!(!succeeded && log.contains("does not answer") && !log.contains(token.as_str()), "{log}");
    }
}
