//! Directory sync (spec 4.7; import.md, "Directory sync"), from the API and from a terminal.

use crate::support::callers::ApiToken;
use crate::support::http::{each, id, text};
use crate::support::people::join;
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::scratch::Scratch;
use crate::support::wait::eventually;
use crate::support::workspace::read_file;

scenarios![
    a_directory_is_previewed_synced_and_rolled_back,
    what_a_sync_wrote_is_searched,
    a_hash_stands_for_what_the_last_run_left,
    every_bad_manifest_says_what_is_wrong,
    states_and_rights_are_told_apart,
    a_directory_is_synced_from_a_terminal,
];

fn manifest(documents: &[(&str, &str)]) -> Value {
    let document = |(path, content): &(&str, &str)| json!({"path": path, "content": content});
    let documents: Vec<Value> = documents.iter().map(document).collect();
    json!({"manifest": {"name": "docs", "documents": documents}})
}

async fn preview(token: &ApiToken, body: Value) -> Value {
    token.post("/api/v1/sync/preview").json(body).await.expect(201).json()
}

async fn wait_until_finished(token: &ApiToken, run: &str) -> Value {
    eventually("the run is over", async || {
        let run = token.get(&format!("/api/v1/sync/{run}")).await.expect(200).json();
        (!matches!(text(&run, "status").as_str(), "queued" | "running")).then_some(run)
    })
    .await
}

async fn sync(token: &ApiToken, body: Value) -> Value {
    let run = id(&preview(token, body).await);
    token.post(&format!("/api/v1/sync/{run}/start")).await.expect(202);
    wait_until_finished(token, &run).await
}

async fn paths(token: &ApiToken) -> Vec<String> {
    let listed = token.get("/api/v1/files").await.expect(200).json();
    each(&listed, "path").into_iter().map(str::to_owned).collect()
}

async fn a_directory_is_previewed_synced_and_rolled_back(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let first = preview(token, manifest(&[("guide.md", "# Guide"), ("a/data.json", "{")])).await;
    assert_eq!((text(&first, "status"), &first["wouldCreate"]), ("ready".into(), &json!(2)), "{first}");
    assert_eq!(first["warnings"][0]["code"], "invalid_json");
    assert_eq!(paths(token).await, Vec::<String>::new());
    let run = id(&first);
    let started = token.post(&format!("/api/v1/sync/{run}/start")).await.expect(202).json();
    assert_eq!(text(&started, "status"), "queued");
    let done = wait_until_finished(token, &run).await;
    assert_eq!(text(&done, "status"), "completed_with_warnings");
    assert_eq!(
        done["counters"],
        json!({"created": 2, "updated": 0, "skipped": 0, "conflicts": 0, "pruned": 0})
    );
    assert_eq!(each(&done["results"], "action"), ["created", "created"]);
    assert_eq!(paths(token).await.len(), 2);

    let mut next = manifest(&[("guide.md", "# Guide, again")]);
    next["prune"] = json!(true);
    let done = sync(token, next).await;
    assert_eq!((&done["counters"]["updated"], &done["counters"]["pruned"]), (&json!(1), &json!(1)), "{done}");
    let rollback = format!("/api/workspaces/{}/sync/{}/rollback", workspace.id, id(&done));
    let running = workspace.session.post(&rollback).await.expect(202).json();
    assert_eq!(text(&running, "status"), "running");
    assert_eq!(text(&wait_until_finished(token, &id(&done)).await, "status"), "rolled_back");
    assert_eq!(paths(token).await.len(), 2);
    workspace.session.post(&rollback).await.expect_error(409, "RUN_NOT_REVERTIBLE");
    let listed = workspace.session.get(&format!("/api/workspaces/{}/sync", workspace.id)).await.expect(200);
    assert_eq!(each(&listed.json(), "status"), ["rolled_back", "completed_with_warnings"]);
}

async fn what_a_sync_wrote_is_searched(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let done = sync(&workspace.token, manifest(&[("lamps.md", "# Lamps\n\nzqsynced lamps burn")])).await;
    let file = text(&done["results"][0], "fileId");
    eventually("the file is found", async || {
        let body = json!({"query": "zqsynced", "strategy": "keyword"});
        let found = workspace.token.post("/api/v1/search_context").json(body).await.expect(200).json();
        (found["results"][0]["fileId"] == json!(file)).then_some(())
    })
    .await;
    let versions = workspace.token.get(&format!("/api/v1/files/{file}/versions")).await.expect(200).json();
    assert_eq!(versions[0]["createdBy"]["kind"], "sync", "{versions}");
}

async fn a_hash_stands_for_what_the_last_run_left(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let done = sync(token, manifest(&[("a.md", "# A"), ("b.md", "# B"), ("c.md", "# C")])).await;
    let file = text(&done["results"][0], "fileId");
    let hash = text(&read_file(token, &file).await, "contentHash");
    let of = |documents: Value| json!({"manifest": {"name": "docs", "documents": documents}, "prune": true});
    let changed =
        of(json!([{"path": "a.md", "contentHash": hash}, {"path": "b.md", "content": "# B, again"}]));
    let done = sync(token, changed).await;
    assert_eq!(text(&done, "status"), "completed", "{done}");
    assert_eq!(
        done["counters"],
        json!({"created": 0, "updated": 1, "skipped": 1, "conflicts": 0, "pruned": 1})
    );
    assert_eq!(read_file(token, &file).await["content"], json!("# A"));
    let refused = async |documents: Value, expected: &[(&str, &str)]| {
        let reply = token.post("/api/v1/sync/preview").json(of(documents)).await;
        let error = reply.expect_error(400, "VALIDATION_ERROR");
        let found: Vec<_> =
            each(&error["errors"], "path").into_iter().zip(each(&error["errors"], "code")).collect();
        assert_eq!(found, expected, "{error}");
    };
    let other = format!("blake3:{}", "0".repeat(64));
    refused(
        json!([{"path": "a.md", "contentHash": other}, {"path": "b.md", "contentHash": hash},
            {"path": "new.md", "contentHash": hash}]),
        &[
            ("manifest.documents[0].content", "required"),
            ("manifest.documents[1].content", "required"),
            ("manifest.documents[2].content", "required"),
        ],
    )
    .await;
    refused(json!([{"path": "a.md"}]), &[("manifest.documents[0].content", "required")]).await;
    refused(
        json!([{"path": "a.md", "content": "x", "contentHash": hash}]),
        &[("manifest.documents[0].contentHash", "invalid")],
    )
    .await;
}

async fn every_bad_manifest_says_what_is_wrong(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let refused = async |body: Value, path: &str| {
        let reply = workspace.token.post("/api/v1/sync/preview").json(body).await;
        let error = reply.expect_error(400, "VALIDATION_ERROR");
        let found = each(&error["errors"], "path");
        assert_eq!(found, [path], "{error}");
    };
    for odd in ["/a", "C:\\a", "\\\\a", "../a", "a/../b", "a\u{7}", "", "a//b"] {
        refused(manifest(&[("fine", ""), (odd, "")]), "manifest.documents[1].path").await;
    }
    refused(manifest(&[("caf\u{e9}", ""), ("cafe\u{301}", "")]), "manifest.documents[1].path").await;
    refused(manifest(&[("a", "\0")]), "manifest.documents[0].content").await;
    refused(json!({"manifest": {"name": "", "documents": []}}), "manifest.name").await;
    let documents: Vec<Value> =
        (0..5_001).map(|number| json!({"path": number.to_string(), "content": ""})).collect();
    refused(json!({"manifest": {"name": "docs", "documents": documents}}), "manifest.documents").await;
    let mut odd = manifest(&[]);
    odd["conflictPolicy"] = json!("overwrite");
    refused(odd, "conflictPolicy").await;
}

async fn states_and_rights_are_told_apart(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let run = id(&preview(token, manifest(&[("a", "1")])).await);
    let path = format!("/api/v1/sync/{run}");
    let contributor = join(&workspace, "contributor").await;
    let rollback = format!("/api/workspaces/{}/sync/{run}/rollback", workspace.id);
    contributor.session.post(&rollback).await.expect_error(403, "FORBIDDEN");
    workspace.session.post(&rollback).await.expect_error(409, "RUN_NOT_REVERTIBLE");
    token.post(&format!("{path}/start")).await.expect(202);
    assert_eq!(text(&wait_until_finished(token, &run).await, "status"), "completed");
    token.post(&format!("{path}/start")).await.expect_error(409, "RUN_NOT_STARTABLE");
    token.delete(&path).await.expect(204);
    token.get(&path).await.expect_error(404, "NOT_FOUND");
    workspace.session.post(&rollback).await.expect_error(404, "NOT_FOUND");
    let other = deployment.workspace().await;
    let foreign = id(&preview(&other.token, manifest(&[])).await);
    token.get(&format!("/api/v1/sync/{foreign}")).await.expect_error(404, "NOT_FOUND");
    let writer = workspace.token_with(&["write"]).await;
    let by_writer = id(&preview(&writer, manifest(&[("a", "2")])).await);
    writer.post(&format!("/api/v1/sync/{by_writer}/start")).await.expect(202);
    assert_eq!(wait_until_finished(token, &by_writer).await["counters"]["updated"], json!(1));
}

async fn a_directory_is_synced_from_a_terminal(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = Scratch::new();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("a.md"), "# A").unwrap();
    std::fs::write(path("b.md"), "# B").unwrap();
    let place = folder.path().display().to_string();
    let run = async |more: &[&str]| {
        let mut arguments = vec!["sync".to_owned(), place.clone(), "--name".to_owned(), "docs".to_owned()];
        arguments.extend(more.iter().map(|text| (*text).to_owned()));
        let (url, token) = (deployment.base_url(), workspace.token.secret.clone());
        let variables = [("CAIRN_URL", url.as_str()), ("CAIRN_TOKEN", token.as_str())];
        let mut process = Process::start("cairn", &arguments, &variables);
        let status = process.exit().await;
        (status.code(), process.stdout(), process.stderr())
    };
    let (code, message, log) = run(&["--dry-run"]).await;
    assert_eq!((code, paths(&workspace.token).await.len()), (Some(0), 0), "{message}{log}");
    assert!(message.contains("2 new") && message.contains("+ a.md"), "{message}");
    let (code, _, log) = run(&[]).await;
    assert!(code == Some(1) && log.contains("--yes"), "nobody is there to ask: {log}");
    let (code, message, log) = run(&["--yes"]).await;
    assert_eq!((code, paths(&workspace.token).await.len()), (Some(0), 2), "{message}{log}");
    std::fs::remove_file(path("b.md")).unwrap();
    let (code, message, _) = run(&["--yes", "--prune", "--json"]).await;
    let done: Value = serde_json::from_str(&message).unwrap();
    assert_eq!((code, &done["counters"]["pruned"]), (Some(0), &json!(1)), "{message}");
    let file = text(&workspace.token.get("/api/v1/files").await.expect(200).json()[0], "id");
    let edit = json!({"content": "edited"});
    workspace.token.patch(&format!("/api/v1/files/{file}")).json(edit).await.expect(200);
    std::fs::write(path("a.md"), "# A, again").unwrap();
    let (code, message, _) = run(&["--yes"]).await;
    assert!(code == Some(3) && message.contains("1 in conflict"), "{message}");
}
