//! `POST /api/v1/vfs/exec` (spec 4.5): the tree, its commands, and that it shows the current state of the workspace.

use crate::support::browse::{error_output, exec, exec_with, output};
use crate::support::http::{id, items, text};
use crate::support::prelude::*;
use crate::support::workspace::read_file;

scenarios![
    the_tree_has_five_roots,
    files_and_folders_are_walked_and_read,
    commands_are_piped_and_chained,
    a_script_begins_and_ends_in_a_folder,
    memories_are_folders,
    records_are_files,
    every_write_is_seen_by_the_next_script,
    a_script_answers_the_same_however_it_is_run,
    names_that_clash_or_are_odd_are_reached,
    what_stat_tells,
    workspaces_are_apart,
];

async fn handbook(deployment: &Deployment) -> Workspace {
    let workspace = deployment.workspace().await;
    let guides = workspace.folder("guides", None).await;
    let deep = workspace.folder("deep", Some(&guides)).await;
    workspace.file("deploy.md", Some(&guides), "# Deploying\n\nRoll out one server after the other.\n").await;
    workspace.file("rollback.md", Some(&deep), "# Rolling back\n\nEvery release can be ROLLED back.\n").await;
    workspace.typed_file("limits.yaml", "yaml", None, "rate: 600\nburst: 20\n").await;
    workspace
}

async fn the_tree_has_five_roots(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let roots = output(&workspace.token, "ls /").await;
    let listed: Vec<&str> = roots.lines().collect();
    assert_eq!(listed, ["README.md", "databases", "files", "memories", "sources"]);
    let guide = output(&workspace.token, "cat /README.md").await;
    for word in ["/files", "/memories", "/databases", "0 sources", "grep", "search_context"] {
        assert!(guide.contains(word), "{word} is not in {guide}");
    }
    for empty in ["/files", "/memories", "/databases"] {
        let answer = exec(&workspace.token, &format!("ls {empty} | wc -l")).await;
        assert_eq!((text(&answer, "output").trim(), &answer["failed"]), ("0", &json!(false)), "{empty}");
    }
}

async fn files_and_folders_are_walked_and_read(deployment: &Deployment) {
    let workspace = handbook(deployment).await;
    let token = &workspace.token;
    assert_eq!(output(token, "ls /files").await, "guides\nlimits.yaml\n");
    assert_eq!(
        output(token, "find /files -name '*.md' | sort").await,
        "/files/guides/deep/rollback.md\n/files/guides/deploy.md\n"
    );
    assert_eq!(output(token, "find /files -type d -maxdepth 1 -mindepth 1").await, "/files/guides\n");
    assert_eq!(output(token, "cat /files/limits.yaml").await, "rate: 600\nburst: 20\n");
    let numbered = output(token, "cat -n /files/guides/deploy.md").await;
    assert!(numbered.contains("     3\tRoll out one server after the other."), "{numbered}");
    assert_eq!(output(token, "head -n 1 /files/guides/deploy.md").await, "# Deploying\n");
    assert_eq!(output(token, "tail -n 1 /files/limits.yaml").await, "burst: 20\n");
    assert_eq!(output(token, "wc -l /files/limits.yaml").await, "2 /files/limits.yaml\n");
    assert_eq!(
        output(token, "grep -rn 'ROLLED' /files").await,
        "/files/guides/deep/rollback.md:3:Every release can be ROLLED back.\n"
    );
    assert_eq!(
        output(token, "grep -rliE 'rolled|deploying' /files").await,
        "/files/guides/deep/rollback.md\n/files/guides/deploy.md\n"
    );
    assert_eq!(output(token, "rg -c rate /files/limits.yaml").await, "1\n");
    let tree = output(token, "tree -L 2 /files").await;
    assert!(tree.contains("deploy.md") && !tree.contains("rollback.md"), "{tree}");
    let long = output(token, "ls -l /files").await;
    assert!(long.contains(" 20 ") && long.contains("limits.yaml"), "{long}");
    assert!(error_output(token, "cat /files/nothing.md").await.contains("No such file or directory"));
    assert!(error_output(token, "cat /files/guides").await.contains("Is a directory"));
    let none = exec(token, "grep -r pangolin /files").await;
    assert_eq!((text(&none, "output").as_str(), &none["failed"]), ("", &json!(true)), "as grep has it");
}

async fn commands_are_piped_and_chained(deployment: &Deployment) {
    let workspace = handbook(deployment).await;
    let token = &workspace.token;
    assert_eq!(output(token, "find /files -type f | wc -l").await.trim(), "3");
    assert_eq!(output(token, "cat /files/limits.yaml | grep -v rate | cut -d: -f1").await, "burst\n");
    assert_eq!(output(token, "cd /files/guides && ls; pwd").await, "deep\ndeploy.md\n/files/guides\n");
    assert_eq!(output(token, "cat /nowhere || echo 'as it should be' # a comment").await.lines().count(), 2);
    assert_eq!(output(token, "echo /files/*/*.md").await, "/files/guides/deploy.md\n");
    assert!(!exec(token, "cat /nowhere; true").await["failed"].as_bool().unwrap());
    assert!(exec(token, "true; false").await["failed"].as_bool().unwrap());
}

async fn a_script_begins_and_ends_in_a_folder(deployment: &Deployment) {
    let workspace = handbook(deployment).await;
    let token = &workspace.token;
    let answer = exec_with(token, json!({"script": "pwd; cd deep", "cwd": "/files/guides"})).await;
    assert_eq!(
        (text(&answer, "output"), text(&answer, "cwd")),
        ("/files/guides\n".into(), "/files/guides/deep".into())
    );
    let above = exec_with(token, json!({"script": "cd ../../../../..; pwd", "cwd": "/files"})).await;
    assert_eq!((text(&above, "output"), text(&above, "cwd")), ("/\n".into(), "/".into()));
    let gone = exec_with(token, json!({"script": "ls", "cwd": "/files/nowhere"})).await;
    assert_eq!(gone["failed"], json!(true), "{gone}");
    assert!(text(&gone, "output").contains("/files/nowhere"), "{gone}");
}

async fn memories_are_folders(deployment: &Deployment) {
    let workspace = handbook(deployment).await;
    let file = workspace.file_id("steps.md", None, "1. Tag it.\n").await;
    let body = json!({
        "name": "Release process", "useWhen": "preparing a release",
        "members": [{"kind": "file", "fileId": file}],
    });
    workspace.token.post("/api/v1/memories").json(body).await.expect(201);
    let token = &workspace.token;
    assert_eq!(output(token, "ls /memories").await, "release-process\n");
    let guidance = output(token, "cat /memories/release-process/README.md").await;
    assert!(guidance.contains("preparing a release"), "{guidance}");
    assert!(output(token, "ls /memories/release-process").await.lines().any(|name| name == "steps.md"));
    assert_eq!(output(token, "cat /memories/release-process/steps.md").await, "1. Tag it.\n");
    let answer = exec(token, "cat /memories/release-process/steps.md").await;
    assert_eq!(items(&answer["citations"])[0]["id"], json!(file), "a member is cited as itself: {answer}");
}

async fn records_are_files(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let made = token.post("/api/v1/databases").json(json!({"name": "Tasks"})).await.expect(201).json();
    let name = id(&items(&made["properties"])[0]);
    let page = workspace.file_id("page.md", None, "The body of the task.\n").await;
    let records = format!("/api/v1/databases/{}/records", id(&made));
    let body = json!({"values": {&name: "Water the plants"}, "contentFileId": page});
    let record = token.post(&records).json(body).await.expect(201).json();
    let listed = output(token, "ls /databases/Tasks").await;
    assert!(listed.lines().any(|name| name == "_schema.md"), "{listed}");
    let path = output(token, "find /databases -name '*plants*'").await;
    let path = path.trim();
    let shown = output(token, &format!("cat '{path}'")).await;
    assert!(shown.starts_with("---\n") && shown.contains("Water the plants"), "{shown}");
    assert!(shown.ends_with("The body of the task.\n"), "{shown}");
    let answer = exec(token, "grep -rn 'body of the task' /databases").await;
    let citation = &items(&answer["citations"])[0];
    assert_eq!((&citation["kind"], &citation["id"]), (&json!("record"), &record["id"]), "{answer}");
    let place = citation["startLine"].as_u64().and_then(|line| usize::try_from(line).ok()).unwrap();
    assert_eq!(shown.lines().nth(place - 1), Some("The body of the task."), "{answer}");
    let url = text(citation, "url");
    assert!(url.ends_with(&format!("/databases/{}?record={}", id(&made), id(&record))), "{url}");
    assert!(output(token, "cat /databases/Tasks/_schema.md").await.contains("Name"));
}

async fn every_write_is_seen_by_the_next_script(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let folder = workspace.folder("notes", None).await;
    let other = workspace.folder("other", None).await;
    let note = workspace.file_id("note.md", Some(&folder), "first words\n").await;
    let path = format!("/api/v1/files/{note}");
    assert_eq!(output(token, "grep -rl first /files").await, "/files/notes/note.md\n");
    for round in 0..5 {
        let content = format!("words of round {round}\n");
        token.patch(&path).json(json!({"content": content})).await.expect(200);
        assert_eq!(output(token, "cat /files/notes/note.md").await, content);
        let found = output(token, &format!("grep -rn 'round {round}' /files")).await;
        assert_eq!(found, format!("/files/notes/note.md:1:{content}"));
        assert!(error_output(token, "grep -rn 'first words' /files").await.is_empty());
        assert_eq!(
            output(token, "wc -c /files/notes/note.md").await,
            format!("{} /files/notes/note.md\n", content.len())
        );
    }
    token.patch(&path).json(json!({"name": "renamed.md"})).await.expect(200);
    assert_eq!(output(token, "ls /files/notes").await, "renamed.md\n");
    token.patch(&path).json(json!({"folderId": other})).await.expect(200);
    assert_eq!(output(token, "find /files -type f").await, "/files/other/renamed.md\n");
    token.patch(&format!("/api/v1/folders/{other}")).json(json!({"parentId": folder})).await.expect(200);
    assert_eq!(output(token, "find /files -type f").await, "/files/notes/other/renamed.md\n");
    token.delete(&path).await.expect(204);
    assert_eq!(output(token, "find /files -type f").await, "");
    assert!(error_output(token, "cat /files/notes/other/renamed.md").await.contains("No such file"));
    let trash = format!("/api/workspaces/{}/trash/file/{note}/restore", workspace.id);
    workspace.session.post(&trash).await.expect(200);
    assert_eq!(output(token, "cat /files/notes/other/renamed.md").await, "words of round 4\n");
    token.delete(&format!("/api/v1/folders/{folder}")).await.expect(204);
    assert_eq!(output(token, "ls /files").await, "");
    let memory = json!({"name": "Fresh", "useWhen": "now"});
    token.post("/api/v1/memories").json(memory).await.expect(201);
    assert!(output(token, "cat /memories/fresh/README.md").await.contains("now"));
}

/// A script on cached data runs inline, a script that reads or computes much runs on another thread: the answer is the
/// same.
async fn a_script_answers_the_same_however_it_is_run(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let line = "one of very many lines\n";
    let (small, large) = (line.repeat(3), line.repeat(6_000));
    workspace.file("small.md", None, &small).await;
    workspace.file("large.md", None, &large).await;
    let told = |answer: &Value| {
        let mut told = answer.clone();
        told["stats"]["elapsedMs"] = Value::Null;
        told
    };
    let scripts = [
        "cat /files/small.md",
        "head -n 2 /files/small.md | wc -l; pwd",
        "tail -n 1 /files/large.md",
        "wc /files/*.md",
        "cd /files && ls -l",
        "cat /files/small.md /files/none.md",
    ];
    for script in scripts {
        let first = exec(token, script).await;
        for _ in 0..3 {
            assert_eq!(told(&exec(token, script).await), told(&first), "{script}");
        }
        // `true | sort` has no effect but to prevent the inline run.
        let elsewhere = exec(token, &format!("true | sort; {script}")).await;
        for field in ["output", "citations", "failed", "cwd"] {
            assert_eq!(elsewhere[field], first[field], "{script}");
        }
    }
    assert_eq!(output(token, "cat /files/small.md").await, small);
    assert_eq!(output(token, "wc -l /files/large.md").await, "6000 /files/large.md\n");
}

async fn names_that_clash_or_are_odd_are_reached(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let contents = ["one\n", "two\n", "three\n"];
    for content in contents {
        workspace.file("same.md", None, content).await;
    }
    for name in ["a b.md", "it's.md", "\"quoted\".md", "emoji 🚀.md", "-n", "*.md", "back\\slash.md"] {
        workspace.file(name, None, &format!("named {name}\n")).await;
    }
    let listed = output(token, "ls -1 /files").await;
    assert_eq!(listed.lines().count(), 10, "{listed}");
    assert_eq!(output(token, "ls -1 /files").await, listed, "spellings are stable");
    let mut same = String::new();
    for name in listed.lines().filter(|name| name.starts_with("same")) {
        same.push_str(&output(token, &format!("cat '/files/{name}'")).await);
    }
    let mut found: Vec<&str> = same.lines().collect();
    found.sort_unstable();
    assert_eq!(found, ["one", "three", "two"]);
    assert_eq!(output(token, "cat '/files/a b.md'").await, "named a b.md\n");
    assert_eq!(output(token, "cat /files/a\\ b.md").await, "named a b.md\n");
    assert_eq!(output(token, "cat \"/files/it's.md\"").await, "named it's.md\n");
    assert_eq!(output(token, "cat '/files/emoji 🚀.md'").await, "named emoji 🚀.md\n");
    assert_eq!(output(token, "cd /files && cat -- -n").await, "named -n\n");
    assert_eq!(output(token, "grep -rh named /files | wc -l").await.trim(), "7");
}

async fn what_stat_tells(deployment: &Deployment) {
    let workspace = handbook(deployment).await;
    let file = workspace.file_id("plain.md", None, "x\n").await;
    let told = output(&workspace.token, "stat /files/plain.md").await;
    // As in citations: an absolute URL where the deployment knows its address.
    let cited = exec(&workspace.token, "cat /files/plain.md").await;
    let url = text(&cited["citations"][0], "url");
    let address = url.split('#').next().unwrap();
    assert!(address.ends_with(&format!("/file/{file}")), "{cited}");
    assert!(told.contains(&format!("link: {address}\n")), "{told}");
    let stored = read_file(&workspace.token, &file).await;
    let day = text(&stored, "updatedAt");
    assert!(told.contains(day.get(..10).unwrap()), "{told}");
    workspace
        .token
        .post("/api/v1/memories")
        .json(json!({"name": "M", "useWhen": "it rains"}))
        .await
        .expect(201);
    assert!(output(&workspace.token, "stat /memories/m").await.contains("it rains"));
}

async fn workspaces_are_apart(deployment: &Deployment) {
    let one = handbook(deployment).await;
    let other = deployment.workspace().await;
    assert_eq!(output(&other.token, "find /files -type f | wc -l").await.trim(), "0");
    assert_eq!(output(&one.token, "find /files -type f | wc -l").await.trim(), "3");
}
