//! Commands of an operator, run to their end.

use super::process::Process;

/// Starts `cairn` with these arguments.
pub(crate) fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Process {
    let all: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
    Process::start("cairn", &all, environment)
}

/// Whether the command was content, and what it said on both ways out.
async fn said(arguments: &[&str], environment: &[(&str, &str)]) -> (bool, String, String) {
    let mut process = start(arguments, environment);
    let is_content = process.exit().await.success();
    (is_content, process.stdout(), process.stderr())
}

/// What a command said on stdout, which must be content.
pub(crate) async fn done(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let (is_content, stdout, stderr) = said(arguments, environment).await;
    assert!(is_content, "{arguments:?}: {stdout}{stderr}");
    stdout
}

/// What a command said that must fail.
pub(crate) async fn refused(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let (is_content, stdout, stderr) = said(arguments, environment).await;
    assert!(!is_content, "{arguments:?}: {stdout}{stderr}");
    format!("{stdout}{stderr}")
}
