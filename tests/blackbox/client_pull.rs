//! `cairn pull`: copies a workspace into a directory.

use std::collections::BTreeSet;
use std::path::Path;

use crate::assets::upload;
use crate::support::http::{each, id, text};
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::scratch::Scratch;
use crate::support::workspace::Workspace;

scenarios![
    a_workspace_comes_out_as_it_is,
    a_second_pull_writes_what_changed_and_keeps_what_was_edited_here,
    no_name_and_no_link_leads_out_of_the_directory,
];

/// The exit status, the report, and stderr.
async fn pull(
    deployment: &Deployment,
    workspace: &Workspace,
    folder: &Path,
    more: &[&str],
) -> (Option<i32>, Value, String) {
    let mut arguments = vec!["pull".to_owned(), folder.display().to_string(), "--json".to_owned()];
    arguments.extend(more.iter().map(|text| (*text).to_owned()));
    let (url, token) = (deployment.base_url(), workspace.token.secret.clone());
    let variables = [("CAIRN_URL", url.as_str()), ("CAIRN_TOKEN", token.as_str())];
    let mut process = Process::start("cairn", &arguments, &variables);
    let status = process.exit().await;
    let (output, log) = (process.stdout(), process.stderr());
    let report = serde_json::from_str(&output).unwrap_or_else(|_| panic!("no report: {output}{log}"));
    (status.code(), report, log)
}

/// The paths of all files below a folder, without the pull's own state.
fn paths(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(here) = waiting.pop() {
        for entry in std::fs::read_dir(here).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    found.retain(|path| !path.starts_with(".cairn/"));
    found
}

fn read(folder: &Path, path: &str) -> String {
    std::fs::read_to_string(folder.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

async fn a_workspace_comes_out_as_it_is(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let guides = workspace.folder("guides", None).await;
    let odd = "# Ä\r\n\r\nline\u{2028}end";
    let file = workspace.file_id("a b.md", Some(&guides), odd).await;
    workspace.typed_file("data.json", "json", None, "{\"a\": 1}").await;
    let body = json!({"name": "Tasks", "folderId": guides});
    let database = token.post("/api/v1/databases").json(body).await.expect(201).json();
    let (database, name) = (id(&database), text(&database["properties"][0], "id"));
    let values = json!({"values": {name: "Mow, the lawn"}, "contentFileId": file});
    token.post(&format!("/api/v1/databases/{database}/records")).json(values).await.expect(201);
    let memory = json!({"name": "Release process", "useWhen": "Before a release", "members": [
        {"kind": "file", "fileId": file}, {"kind": "database", "databaseId": database}]});
    token.post("/api/v1/memories").json(memory).await.expect(201);

    for bytes in [[0_u8, 255, 1], [0, 255, 2]] {
        upload(deployment, token, "plan.png", "image/png", &bytes).await;
    }

    let target = Scratch::new();
    let folder = target.path().join("out");
    let (code, report, log) = pull(deployment, &workspace, &folder, &[]).await;
    assert_eq!(code, Some(0), "{report}{log}");
    assert_eq!(read(&folder, "files/guides/a b.md"), odd, "byte by byte");
    assert_eq!(read(&folder, "files/data.json"), "{\"a\": 1}");
    let bytes = |path: &str| std::fs::read(folder.join(path)).unwrap();
    assert_eq!((bytes("assets/plan.png"), bytes("assets/plan (2).png")), (vec![0, 255, 1], vec![0, 255, 2]));
    assert_eq!(read(&folder, "databases/guides/Tasks.csv"), "Name\n\"Mow, the lawn\"\n");
    let whole: Value = serde_json::from_str(&read(&folder, "databases/guides/Tasks.json")).unwrap();
    assert_eq!(whole["records"][0]["contentPath"], "files/guides/a b.md");
    let page = read(&folder, "memories/release-process/README.md");
    assert!(page.contains("Use when: Before a release") && page.contains("(<a b.md>)"), "{page}");
    assert!(page.contains("(<../../databases/guides/Tasks.csv>)"), "{page}");
    assert_eq!(read(&folder, "memories/release-process/a b.md"), odd);
    let definition: Value =
        serde_json::from_str(&read(&folder, "memories/release-process/memory.json")).unwrap();
    assert_eq!(definition["slug"], "release-process");
    let (code, again, _) = pull(deployment, &workspace, &folder, &[]).await;
    assert_eq!((code, &again["written"]), (Some(0), &json!(0)), "{again}");
    assert_eq!(again["unchanged"], report["written"], "{again}");
}

async fn a_second_pull_writes_what_changed_and_keeps_what_was_edited_here(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let mut ids = Vec::new();
    for name in ["changed.md", "edited.md", "both.md", "moved.md", "deleted.md"] {
        ids.push(workspace.file_id(name, None, "first").await);
    }
    let target = Scratch::new();
    let folder = target.path();
    std::fs::create_dir(folder.join("files")).unwrap();
    std::fs::write(folder.join("files/deleted.md"), "mine").unwrap();
    let (code, report, _) = pull(deployment, &workspace, folder, &[]).await;
    assert_eq!(code, Some(3), "a file of somebody's is in the way: {report}");
    assert_eq!(each(&report["conflicts"], "path"), ["files/deleted.md"]);
    assert_eq!(read(folder, "files/deleted.md"), "mine");
    std::fs::remove_file(folder.join("files/deleted.md")).unwrap();
    assert_eq!(pull(deployment, &workspace, folder, &[]).await.0, Some(0));

    let patch = async |index: usize, body: Value| {
        workspace.token.patch(&format!("/api/v1/files/{}", ids[index])).json(body).await.expect(200);
    };
    patch(0, json!({"content": "second"})).await;
    patch(2, json!({"content": "second"})).await;
    patch(3, json!({"name": "renamed.md"})).await;
    workspace.token.delete(&format!("/api/v1/files/{}", ids[4])).await.expect(204);
    for name in ["edited.md", "both.md"] {
        std::fs::write(folder.join("files").join(name), "mine").unwrap();
    }
    let (code, report, _) = pull(deployment, &workspace, folder, &[]).await;
    assert_eq!(code, Some(3), "{report}");
    assert_eq!(each(&report["conflicts"], "path"), ["files/both.md"]);
    assert_eq!(report["edited"], json!(["files/edited.md"]));
    assert_eq!(report["gone"], json!(["files/deleted.md"]));
    let here = ["both.md", "changed.md", "deleted.md", "edited.md", "renamed.md"];
    assert_eq!(paths(folder), here.iter().map(|name| format!("files/{name}")).collect());
    assert_eq!(
        (read(folder, "files/changed.md").as_str(), read(folder, "files/both.md").as_str()),
        ("second", "mine")
    );

    let (code, report, _) = pull(deployment, &workspace, folder, &["--prune", "--overwrite"]).await;
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(
        (read(folder, "files/both.md"), read(folder, "files/edited.md")),
        ("second".into(), "first".into())
    );
    assert!(!folder.join("files/deleted.md").exists());
    let other = deployment.workspace().await;
    let arguments = ["pull".to_owned(), folder.display().to_string()];
    let (url, token) = (deployment.base_url(), other.token.secret.clone());
    let mut process = Process::start("cairn", &arguments, &[("CAIRN_URL", &url), ("CAIRN_TOKEN", &token)]);
    assert!(!process.exit().await.success() && process.stderr().contains("another workspace"));
}

async fn no_name_and_no_link_leads_out_of_the_directory(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let hooks = workspace.folder(".git", None).await;
    workspace.file("config", Some(&hooks), "[core]").await;
    let linked = workspace.folder("linked", None).await;
    workspace.file("a.md", Some(&linked), "from Cairn").await;
    for content in ["one", "two"] {
        workspace.file("same.md", None, content).await;
    }
    let (target, outside) = (Scratch::new(), Scratch::new());
    let folder = target.path();
    std::fs::create_dir(folder.join("files")).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.join("files/linked")).unwrap();
    let (code, report, _) = pull(deployment, &workspace, folder, &["--overwrite"]).await;
    assert_eq!(code, Some(3), "{report}");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0, "a link was followed");
    assert_eq!(each(&report["conflicts"], "path"), ["files/linked", "files/linked/a.md"]);
    assert_eq!(read(folder, "files/_.git/config"), "[core]");
    assert!(!folder.join("files/.git").exists());
    assert_eq!(
        (read(folder, "files/same.md"), read(folder, "files/same (2).md")),
        ("one".into(), "two".into())
    );
    assert_eq!(each(&report["renamed"], "to").len(), 2, "{report}");
}
