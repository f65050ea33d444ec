//! Runs operator commands to completion.

use super::process::Process;

/// Starts `cairn` with these arguments.
pub(crate) fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Process {
    let all: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
    Process::start("cairn", &all, environment)
}

/// Whether the command succeeded, its stdout and its stderr.
async fn run(arguments: &[&str], environment: &[(&str, &str)]) -> (bool, String, String) {
    let mut process = start(arguments, environment);
    let succeeded = process.exit().await.success();
    (succeeded, process.stdout(), process.stderr())
}

/// The stdout of a command that must succeed.
pub(crate) async fn run_ok(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let (succeeded, stdout, stderr) = run(arguments, environment).await;
    assert!(succeeded, "{arguments:?}: {stdout}{stderr}");
    stdout
}

/// The output of a command that must fail.
pub(crate) async fn run_err(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let (succeeded, stdout, stderr) = run(arguments, environment).await;
    assert!(!succeeded, "{arguments:?}: {stdout}{stderr}");
    format!("{stdout}{stderr}")
}
