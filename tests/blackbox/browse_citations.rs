//! Citations of what a script returned (spec 2.10, 4.5), over REST, over MCP and on the command line.

use crate::support::browse::exec;
use crate::support::http::{id, items, text};
use crate::support::mcp;
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::workspace::read_file;

scenarios![
    every_returned_line_is_cited,
    what_is_not_returned_is_not_cited,
    many_ranges_are_bounded,
    the_tool_appends_citations,
    the_tool_tells_what_is_wrong,
    the_command_line_prints_and_fails_as_a_shell,
];

/// (id, first line, last line) of each citation.
fn ranges(answer: &Value) -> Vec<(String, u64, u64)> {
    let line = |citation: &Value, name: &str| citation[name].as_u64().unwrap();
    let citations = items(&answer["citations"]).iter();
    citations.map(|cited| (id(cited), line(cited, "startLine"), line(cited, "endLine"))).collect()
}

fn lines(count: usize) -> String {
    (1..=count).map(|number| format!("line {number}\n")).collect()
}

async fn every_returned_line_is_cited(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let one = workspace.file_id("one.md", None, &lines(40)).await;
    let two = workspace.file_id("two.md", None, "needle\nhay\nneedle\nneedle\n").await;
    for (script, expected) in [
        ("cat /files/one.md", vec![(&one, 1, 40)]),
        ("head -n 5 /files/one.md", vec![(&one, 1, 5)]),
        ("tail -n 2 /files/one.md", vec![(&one, 39, 40)]),
        ("tail -n +38 /files/one.md", vec![(&one, 38, 40)]),
        ("cat /files/one.md | head -n 3", vec![(&one, 1, 3)]),
        ("grep -n needle /files/two.md", vec![(&two, 1, 1), (&two, 3, 4)]),
        ("grep -rn needle /files", vec![(&two, 1, 1), (&two, 3, 4)]),
        ("grep -A1 '^line 7$' /files/one.md", vec![(&one, 7, 8)]),
        ("cat -n /files/two.md", vec![(&two, 1, 4)]),
        (
            "grep -h needle /files/two.md; head -1 /files/one.md",
            vec![(&two, 1, 1), (&two, 3, 4), (&one, 1, 1)],
        ),
    ] {
        let answer = exec(token, script).await;
        let expected: Vec<(String, u64, u64)> =
            expected.into_iter().map(|(id, start, end)| (id.clone(), start, end)).collect();
        assert_eq!(ranges(&answer), expected, "{script}: {answer}");
    }
    let answer = exec(token, "cat /files/two.md").await;
    let (citation, stored) = (&answer["citations"][0], read_file(token, &two).await);
    assert_eq!(citation["contentHash"], stored["contentHash"]);
    assert_eq!((&citation["kind"], &citation["path"]), (&json!("file"), &stored["path"]));
    assert_eq!((&citation["syncMode"], &citation["updatedAt"]), (&json!("indexed"), &stored["updatedAt"]));
    assert!(
        text(citation, "url").ends_with(&format!("/file/{two}"))
            && text(citation, "label").contains("two.md")
    );
    let stats = &answer["stats"];
    assert_eq!((&stats["filesOpened"], &stats["bytesRead"]), (&json!(1), &json!(25)), "{answer}");
    assert!(stats["nodesVisited"].is_u64() && stats["elapsedMs"].is_u64(), "{answer}");
}

async fn what_is_not_returned_is_not_cited(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file("one.md", None, &lines(3)).await;
    for script in [
        "ls -l /files",
        "find /files",
        "grep -rl line /files",
        "grep -rc line /files",
        "wc /files/one.md",
        "cat /files/one.md | wc -l",
        "stat /files/one.md",
        "cat /README.md",
        "grep -rn absent /files",
    ] {
        let answer = exec(&workspace.token, script).await;
        assert_eq!(answer["citations"], json!([]), "{script}: {answer}");
    }
}

async fn many_ranges_are_bounded(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file("long.md", None, &"odd\neven\n".repeat(500)).await;
    let answer = exec(&workspace.token, "grep -n odd /files/long.md").await;
    assert_eq!((items(&answer["citations"]).len(), &answer["uncited"]), (200, &json!(300)));
    let few = exec(&workspace.token, "grep -n odd /files/long.md | head -3").await;
    assert!(few.get("uncited").is_none(), "{few}");
}

async fn the_tool_appends_citations(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("one.md", None, &lines(9)).await;
    let answer =
        mcp::call(&workspace.token, "browse_context", json!({"script": "cd /files; head -2 one.md"})).await;
    assert!(answer.get("structuredContent").is_none(), "{answer}");
    let parts = items(&answer["content"]);
    assert_eq!(parts.len(), 1, "{answer}");
    let message = text(&parts[0], "text");
    let (output, about) = message.split_once("\n\n").unwrap_or_default();
    assert_eq!(output, "line 1\nline 2");
    assert!(about.starts_with("[exit: ok]\nCitations:\n- /one.md, lines 1-2 (file "), "{about}");
    assert!(about.contains(&file), "{about}");
    let begun = json!({"script": "pwd", "cwd": "/files"});
    assert!(
        mcp::text_of(&mcp::call(&workspace.token, "browse_context", begun).await).starts_with("/files\n")
    );
    let failed = mcp::call(&workspace.token, "browse_context", json!({"script": "cat /nowhere"})).await;
    let message = mcp::text_of(&failed);
    assert!(message.contains("No such file") && message.contains("[exit: failed]"), "{message}");
}

async fn the_tool_tells_what_is_wrong(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let message = mcp::call_error(&workspace.token, "browse_context", json!({})).await;
    assert!(message.contains("script"), "{message}");
    let message =
        mcp::call_error(&workspace.token, "browse_context", json!({"script": "ls", "cwd": "files"})).await;
    assert!(message.contains("cwd"), "{message}");
    let writer = workspace.token_with(&["write"]).await;
    let message = mcp::call_error(&writer, "browse_context", json!({"script": "ls"})).await;
    assert!(message.starts_with("Forbidden"), "{message}");
}

async fn the_command_line_prints_and_fails_as_a_shell(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file("one.md", None, &lines(3)).await;
    let run = async |arguments: &[&str]| {
        let all: Vec<String> = ["exec"].iter().chain(arguments).map(|text| (*text).to_owned()).collect();
        let url = deployment.base_url();
        let environment = [("CAIRN_URL", url.as_str()), ("CAIRN_TOKEN", workspace.token.secret.as_str())];
        let mut process = Process::start("cairn exec", &all, &environment);
        let status = process.exit().await;
        (status.code(), process.stdout(), process.stderr())
    };
    let (code, printed, told) = run(&["cat one.md | tail -n 2", "--cwd", "/files", "--citations"]).await;
    assert_eq!((code, printed.as_str()), (Some(0), "line 2\nline 3\n"), "{told}");
    assert!(told.contains("/one.md:2-3"), "{told}");
    let (code, printed, _) = run(&["cat /nowhere"]).await;
    assert!(code == Some(1) && printed.contains("No such file"), "{code:?} {printed}");
    let (code, printed, _) = run(&["ls /", "--json"]).await;
    let answer: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, &answer["failed"]), (Some(0), &json!(false)));
    let (code, _, told) = run(&["ls", "--max-output-bytes", "5"]).await;
    assert!(code == Some(1) && told.contains("maxOutputBytes"), "{told}");
}
