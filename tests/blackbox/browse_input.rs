//! Scripts that are refused, aborted or hostile (spec 4.5.1 to 4.5.4): nothing escapes the tree, breaks the service or
//! exceeds its budget.

use std::fmt::Write as _;

use crate::support::browse::{error_output, exec, exec_with, output};
use crate::support::http::{each, text};
use crate::support::prelude::*;

scenarios![
    a_body_is_checked,
    what_a_shell_would_do_beyond_reading_is_refused,
    wrong_patterns_are_explained,
    output_is_cut_at_a_line,
    hostile_scripts_end,
    work_that_nobody_needs_is_refused,
    a_script_that_only_computes_ends_with_its_time,
    no_path_leads_out,
    bodies_are_passed_through_as_they_are,
];

async fn a_body_is_checked(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let refused = async |body: Value| {
        let reply = token.post("/api/v1/vfs/exec").json(body).await;
        let error = reply.expect_error(400, "VALIDATION_ERROR");
        each(&error["errors"], "path").join(",")
    };
    assert_eq!(refused(json!({})).await, "script");
    assert_eq!(refused(json!({"script": ""})).await, "script");
    assert_eq!(refused(json!({"script": " \n\t"})).await, "script");
    assert_eq!(refused(json!({"script": 5})).await, "script");
    assert_eq!(refused(json!({"script": "#".repeat(16_385)})).await, "script");
    // Fewer characters than bytes: the limit counts bytes.
    assert_eq!(refused(json!({"script": format!("#{}", "é".repeat(8_192))})).await, "script");
    assert_eq!(refused(json!({"script": "ls", "cwd": "files"})).await, "cwd");
    assert_eq!(refused(json!({"script": "ls", "maxOutputBytes": 1_023})).await, "maxOutputBytes");
    assert_eq!(refused(json!({"script": "ls", "maxOutputBytes": 204_801})).await, "maxOutputBytes");
    assert_eq!(refused(json!({"script": "ls", "maxOutput": 5})).await, "maxOutput");
    for body in [
        json!({"script": format!("#{}", "x".repeat(16_383))}),
        json!({"script": "ls", "cwd": null, "maxOutputBytes": null}),
        json!({"script": "ls", "maxOutputBytes": 1_024}),
        json!({"script": "ls", "maxOutputBytes": 204_800}),
    ] {
        exec_with(&token, body).await;
    }
    token.post("/api/v1/vfs/exec").body("application/json", "{").await.expect_error(400, "VALIDATION_ERROR");
}

async fn what_a_shell_would_do_beyond_reading_is_refused(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file("a.md", None, "kept\n").await;
    let token = &workspace.token;
    for script in [
        "echo x > /files/a.md",
        "cat < /files/a.md",
        "cat /files/a.md >> b",
        "echo $(ls)",
        "echo `ls`",
        "echo $HOME",
        "for f in *; do cat $f; done",
        "while true; do ls; done",
        "if true; then ls; fi",
        "(cd /files; ls)",
        "ls &",
        "x=1; ls",
        "f() { ls; }",
        "cat <<END\nx\nEND",
    ] {
        let printed = error_output(token, script).await;
        assert!(!printed.trim().is_empty() && !printed.contains("kept"), "{script}: {printed}");
    }
    for write in ["rm /files/a.md", "mv a b", "touch x", "mkdir x", "sed -i s/a/b/ /files/a.md", "tee x"] {
        assert!(!error_output(token, write).await.trim().is_empty(), "{write}");
    }
    assert!(error_output(token, "gerp x /files").await.contains("grep"), "the nearest command is named");
    assert_eq!(output(token, "cat /files/a.md").await, "kept\n");
}

async fn wrong_patterns_are_explained(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for (pattern, word) in [
        ("(?=x)", "look"),
        ("(?<!x)y", "look"),
        ("(x)\\1", "backreference"),
        ("x++", "possessive"),
        ("(?R)", "recursion"),
        ("\\<x", "\\b"),
        ("\\u0041", "\\x{e9}"),
    ] {
        let printed = error_output(&token, &format!("grep -E '{pattern}' /README.md")).await.to_lowercase();
        assert!(printed.contains(word), "{pattern}: {printed}");
    }
    assert!(!error_output(&token, "grep -E '(' /README.md").await.is_empty());
    assert_eq!(
        output(&token, "echo 'A1' | grep -o '\\101'").await,
        "A\n",
        "an octal number is no backreference"
    );
}

async fn output_is_cut_at_a_line(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let lines: String = (0..20_000).fold(String::new(), |mut lines, number| {
        let _ = writeln!(lines, "line {number} of many");
        lines
    });
    workspace.file("long.md", None, &lines).await;
    let token = &workspace.token;
    for (asked, most) in [(Some(1_024), 1_024), (Some(204_800), 204_800), (None, 61_440)] {
        let answer = exec_with(token, json!({"script": "cat /files/long.md", "maxOutputBytes": asked})).await;
        assert_eq!((&answer["truncated"], &answer["failed"]), (&json!(true), &json!(false)), "{asked:?}");
        let shown = text(&answer, "output");
        assert!(shown.len() <= most && shown.len() * 10 >= most * 9, "{} of {most}", shown.len());
        let whole =
            shown.lines().take_while(|line| line.starts_with("line ") && line.ends_with(" of many")).count();
        assert_eq!(whole + 1, shown.lines().count(), "whole lines, and one that tells: {shown}");
        let cited = &answer["citations"][0];
        assert_eq!(
            (&cited["startLine"], &cited["endLine"]),
            (&json!(1), &json!(whole)),
            "only what is shown"
        );
    }
    let small = exec_with(token, json!({"script": "head -3 /files/long.md", "maxOutputBytes": 1_024})).await;
    assert_eq!(small["truncated"], json!(false), "{small}");
}

async fn hostile_scripts_end(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file("a.md", None, &"a".repeat(30_000)).await;
    let token = &workspace.token;
    let pipes = format!("ls{}", "|cat".repeat(4_000));
    let lists = "ls;".repeat(5_000);
    let quotes = "'".repeat(16_383);
    let stars = format!("echo {}", "*/".repeat(8_000));
    let brackets = format!("grep '{}' /README.md", "[".repeat(8_000));
    let options = format!("ls {}", "-l ".repeat(5_000));
    for script in [
        pipes.as_str(),
        &lists,
        &quotes,
        &stars,
        &brackets,
        &options,
        "grep -E '(a*)*b' /files/a.md",
        "grep -E '((((a{1,100}){1,100}){1,100}){1,100})' /files/a.md",
        "grep -E '(a|aa)+$' /files/a.md",
        "head -n 99999999999999999999 /README.md",
        "head -c -1 /README.md",
        "tail -n +0 /README.md",
        "find / -size +99999999999999999999c",
        "cat /README.md /README.md /README.md | sort | uniq -c | sort -rn | head -n 0",
        "\u{0}ls",
        "ls \u{1b}[2J",
        "echo \u{202e}evil",
    ] {
        let reply = token.post("/api/v1/vfs/exec").json(json!({"script": script})).await;
        let shown: String = script.chars().take(40).collect();
        assert!(matches!(reply.status, 200 | 400), "{shown}: {} {}", reply.status, reply.text());
    }
    assert_eq!(output(token, "pwd").await, "/\n", "the service goes on");
}

async fn work_that_nobody_needs_is_refused(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let keys = "-k1,1 ".repeat(17);
    let glob = "?".repeat(257);
    for (script, why) in [
        (format!("sort {keys} /README.md"), "more than 16 keys"),
        (format!("find / -path '{glob}'"), "257 parts is too long"),
        (format!("ls /{glob}"), "257 parts is too long"),
        (format!("cat /README.md{}", " | grep a".repeat(33)), "more than 32 searches"),
    ] {
        let printed = error_output(&token, &script).await;
        assert!(printed.contains(why), "{printed}");
    }
}

/// It would run for minutes, reads little, and prints nothing before its end.
async fn a_script_that_only_computes_ends_with_its_time(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let lines = (0..7_200).fold(String::new(), |mut lines, number| {
        let _ = writeln!(lines, "{:06}{}", number * 7_919 % 7_200, " x".repeat(60));
        lines
    });
    workspace.file("lines.md", None, &lines).await.expect(201);
    let script = format!("sort {} {} | wc -l", "-k 60,60 ".repeat(16), "/files/lines.md ".repeat(25));
    let printed = error_output(&workspace.token, &script).await;
    assert!(printed.starts_with("shell: stopped: 10 s of time used"), "{printed}");
    assert_eq!(output(&workspace.token, "wc -l /files/lines.md").await, "7200 /files/lines.md\n");
}

async fn no_path_leads_out(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for path in [
        "/etc/passwd",
        "/../../etc/passwd",
        "../../../../etc/passwd",
        "/files/../../etc/passwd",
        "//etc//passwd",
        "/proc/self/environ",
    ] {
        let printed = error_output(&token, &format!("cat {path}")).await;
        assert!(printed.contains("No such file") && !printed.contains("root:"), "{path}: {printed}");
    }
    assert_eq!(output(&token, "cd /../..; pwd").await, "/\n");
    let deep = format!("/{}", "files/../".repeat(1_500));
    assert!(output(&token, &format!("ls {deep}")).await.contains("README.md"));
    let down = format!("cat /{}", "a/".repeat(7_000));
    assert!(error_output(&token, &down).await.contains("No such file"));
}

async fn bodies_are_passed_through_as_they_are(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let odd = "tab\there\r\nno break space\u{a0}\u{1}\u{7f}\nemoji 🚀 and ÅÄÖ\n\nlast line without an end";
    workspace.typed_file("odd.txt", "text", None, odd).await;
    assert_eq!(output(&workspace.token, "cat /files/odd.txt").await.trim_end_matches('\n'), odd);
    assert_eq!(output(&workspace.token, "grep -i 'åäö' /files/odd.txt").await, "emoji 🚀 and ÅÄÖ\n");
    assert_eq!(output(&workspace.token, "head -c 3 /files/odd.txt").await, "tab");
    let cut = exec(&workspace.token, "grep -o 'emoji .' /files/odd.txt | head -c 8").await;
    assert!(text(&cut, "output").starts_with("emoji "), "{cut}");
    workspace.file("empty.md", None, "").await;
    assert_eq!(
        output(&workspace.token, "cat /files/empty.md; wc -c /files/empty.md").await,
        "0 /files/empty.md\n"
    );
}
