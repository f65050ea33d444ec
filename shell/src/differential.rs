//! Differential tests against the GNU tools: the same scripts on the same random trees must have the same output and
//! status.
//!
//! The cases are deterministic. `CAIRN_SHELL_SEED=N` generates other ones, `PROPTEST_CASES` more of them.

mod scripts;

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use crate::testing::{MemoryTree, run_at_root};

/// Trees per command, and scripts per tree.
const TREES: u32 = 15;
const SCRIPTS: usize = 8;

type Files = Vec<(String, String)>;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(vec!["a", "b", "c", "a.md", "b.md", "B.md", "notes.txt", "x.csv", "a-b", "_z", "10", "9"]),
        2 => prop::sample::select(vec!["sp ace", "it's", "q\"q", "star*", "[x]", "back\\slash", ".dot", ".dot.md", "t\tab"]),
        1 => prop::sample::select(vec!["new\nline", "-n", "é", "🦀.md", "$v", "#c", "~"]),
    ]
    .prop_map(str::to_owned)
}

/// Plain ASCII: with `LC_ALL=C`, the tools know no other letters.
pub(crate) fn body() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "foo", "bar", "Foo", "FOO", "foobar", "bar.foo", "a", "b", "ab", "x", "10", "9", "-3", "0.5", "007",
        "1K", "1e3", "foo_bar", "a,b", "c,d,e", ",", ":", "x:y:z", "\t", "  ", "", "(foo)", "[a]", "a|b",
        "end.", "$", "^", "\\",
    ]);
    let line = prop::collection::vec(word, 0..5).prop_map(|words| words.join(" "));
    let lines = prop::collection::vec(line, 0..12);
    (lines, any::<bool>()).prop_map(|(lines, ended)| {
        let mut text = lines.join("\n");
        if ended && !text.is_empty() {
            text.push('\n');
        }
        text
    })
}

/// A few files at the top, whose names scripts know, and others in folders.
fn files() -> impl Strategy<Value = Files> {
    let top = (body(), body(), body(), body());
    let deep = prop::collection::vec((prop::collection::vec(name(), 1..4), body()), 0..12);
    (top, deep).prop_map(|(top, deep)| {
        let mut files: Files = vec![
            ("one".to_owned(), top.0),
            ("two.md".to_owned(), top.1),
            ("dir/three.md".to_owned(), top.2),
            ("dir/sub/four".to_owned(), top.3),
        ];
        for (segments, body) in deep {
            let path = format!("deep/{}", segments.join("/"));
            let clashes = files.iter().any(|(other, _)| {
                other == &path
                    || other.starts_with(&format!("{path}/"))
                    || path.starts_with(&format!("{other}/"))
            });
            if !clashes {
                files.push((path, body));
            }
        }
        files
    })
}

fn write(files: &Files, to: &Path) {
    for (path, body) in files {
        let path = to.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, body).unwrap();
    }
}

/// Output and status of a script in this machine's shell.
fn by_tools(script: &str, folder: &Path) -> (String, bool) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).current_dir(folder).env_clear().env("PATH", path).env("LC_ALL", "C");
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    (String::from_utf8_lossy(&output.stdout).into_owned(), !output.status.success())
}

/// Which of the tools is missing, or not GNU's.
fn missing(tools: &[&str]) -> Option<String> {
    tools.iter().find_map(|tool| {
        let output = Command::new(OsStr::new(tool)).arg("--version").output();
        let is_gnu = output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("GNU"));
        (!is_gnu).then(|| format!("GNU {tool} is not installed"))
    })
}

fn compare(tools: &[&str], scripts: impl Strategy<Value = String>) {
    if let Some(why) = missing(tools) {
        println!("skipped: {why}");
        return;
    }
    let seed: u64 =
        std::env::var("CAIRN_SHELL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_default();
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(TREES);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let result = runner.run(&(files(), prop::collection::vec(scripts, SCRIPTS)), |(files, scripts)| {
        let folder = tempfile::tempdir().unwrap();
        write(&files, folder.path());
        let tree = MemoryTree::new(files.iter().map(|(path, body)| (path.as_str(), body.as_bytes())));
        for script in scripts {
            let (expected, failed) = by_tools(&script, folder.path());
            let outcome = run_at_root(&tree, &script);
            if outcome.output != expected || outcome.failed != failed {
                return Err(TestCaseError::fail(format!(
                    "{script}\n--- expected, failed: {failed}\n{expected}--- got, failed: {}\n{}",
                    outcome.failed, outcome.output
                )));
            }
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn grep_in_files() {
    compare(&["grep"], scripts::grep());
}

#[test]
fn grep_in_folders() {
    compare(&["grep", "sort"], scripts::grep_in_folders());
}

#[test]
fn find() {
    compare(&["find", "sort"], scripts::find());
}

#[test]
fn sort() {
    compare(&["sort"], scripts::sort());
}

#[test]
fn uniq() {
    compare(&["uniq", "sort"], scripts::uniq());
}

#[test]
fn head() {
    compare(&["head"], scripts::head());
}

#[test]
fn tail() {
    compare(&["tail"], scripts::tail());
}

#[test]
fn wc() {
    compare(&["wc"], scripts::wc());
}

#[test]
fn cut() {
    compare(&["cut"], scripts::cut());
}

#[test]
fn cat() {
    compare(&["cat"], scripts::cat());
}

#[test]
fn ls() {
    compare(&["ls"], scripts::ls());
}

#[test]
fn names_of_paths() {
    compare(&["basename", "dirname"], scripts::names());
}

#[test]
fn pipes_and_lists() {
    compare(&["grep", "sort", "uniq", "head", "tail", "wc", "cut", "cat"], scripts::pipes());
}
