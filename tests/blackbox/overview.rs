//! `get_workspace_overview` (spec 4.12): the workspace at a glance.

use crate::support::callers::Caller;
use crate::support::http::{each, id, items, text};
use crate::support::mcp;
use crate::support::prelude::*;

scenarios![everything_is_there_at_a_glance, a_scope_sees_its_own_only, a_new_workspace_is_empty];

async fn overview(caller: &impl Caller) -> Value {
    mcp::call(caller, "get_workspace_overview", json!({})).await["structuredContent"].clone()
}

async fn everything_is_there_at_a_glance(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let before = overview(&workspace.token).await;
    let ops = workspace.folder("ops", None).await;
    let runbooks = workspace.folder("runbooks", Some(&ops)).await;
    let first = workspace.file_id("first.md", Some(&runbooks), "# First\n\nThe dugong grazes.\n").await;
    let second = workspace.file_id("second.md", None, "# Second\n\nThe manatee floats.\n").await;
    let memory = json!({"name": "On call", "useWhen": "an alarm rings", "members": [{"kind": "file", "fileId": first}]});
    workspace.token.post("/api/v1/memories").json(memory).await.expect(201);
    let made =
        workspace.token.post("/api/v1/databases").json(json!({"name": "Alarms"})).await.expect(201).json();
    let primary = text(&made["properties"][0], "id");
    let path = format!("/api/v1/databases/{}/records", id(&made));
    let record =
        workspace.token.post(&path).json(json!({"values": {primary: "Disk full"}})).await.expect(201);
    let patch = json!({"content": "# First\n\nThe dugong sleeps.\n"});
    let last = workspace.token.patch(&format!("/api/v1/files/{first}")).json(patch).await.expect(200);
    workspace.search_after(&last.change(), json!({"query": "dugong"})).await;

    let now = overview(&workspace.token).await;
    let grown = |pointer: &str| {
        now.pointer(pointer).and_then(Value::as_u64).unwrap()
            - before.pointer(pointer).and_then(Value::as_u64).unwrap()
    };
    assert_eq!((grown("/files/total"), grown("/folders/total")), (2, 2), "{now}");
    assert_eq!((grown("/memories/total"), grown("/databases/total")), (1, 1), "{now}");
    let named = |list: &str, name: &str| {
        let found = items(now.pointer(list).unwrap()).iter().find(|one| one["name"] == json!(name));
        found.unwrap_or_else(|| panic!("no {name} in {list}: {now}")).clone()
    };
    let top = named("/folders/top", "ops");
    assert_eq!((&top["folderCount"], &top["fileCount"]), (&json!(1), &json!(1)), "{now}");
    let memory = named("/memories/items", "On call");
    assert_eq!((&memory["useWhen"], &memory["memberCount"]), (&json!("an alarm rings"), &json!(1)), "{now}");
    assert_eq!(named("/databases/items", "Alarms")["recordCount"], 1, "{now}");
    assert_eq!(each(&now["recentChanges"], "id")[..3], [first, id(&record.json()), second], "{now}");
    let newest = &now["recentChanges"][0];
    assert_eq!(
        (&newest["kind"], &newest["path"]),
        (&json!("file"), &json!("/ops/runbooks/first.md")),
        "{now}"
    );
    assert_eq!(newest["changedBy"]["kind"], "token", "{now}");
    assert!(!text(newest, "changedAt").is_empty() && !text(&newest["changedBy"], "name").is_empty(), "{now}");
    assert_eq!(now["recentChanges"][1]["title"], "Disk full", "{now}");
    assert_eq!(now["indexing"]["state"], "current", "{now}");
    assert!(now["indexing"]["documents"].as_u64().is_some_and(|documents| documents >= 3), "{now}");
    assert!(!text(&now["indexing"], "embedder").is_empty(), "{now}");
    assert_eq!(now["connectedSources"], json!([]), "{now}");
}

async fn a_scope_sees_its_own_only(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let inside = workspace.folder("inside", None).await;
    let below = workspace.folder("below", Some(&inside)).await;
    let outside = workspace.folder("outside", None).await;
    workspace.file("secret-root.md", None, "x").await;
    workspace.file("secret-outside.md", Some(&outside), "x").await;
    let mine = workspace.file_id("mine.md", Some(&below), "x").await;
    workspace.file("secret-again.md", Some(&outside), "x").await;
    let secret = json!({"name": "secret database"});
    workspace.token.post("/api/v1/databases").json(secret).await.expect(201);
    let scoped = workspace.token_for(&[&inside]).await;

    let now = overview(&scoped).await;
    assert_eq!((&now["files"]["total"], &now["folders"]["total"]), (&json!(1), &json!(2)), "{now}");
    assert_eq!(each(&now["folders"]["top"], "id"), [inside.as_str()], "{now}");
    assert_eq!(each(&now["recentChanges"], "id"), [mine.as_str()], "{now}");
    assert_eq!(now["databases"]["total"], 0, "{now}");
    assert!(!now.to_string().contains("secret"), "{now}");
    assert!(now["indexing"].get("documents").is_none(), "the index does not count by folder: {now}");
    // For this token the nested folder is the top level.
    let deep = workspace.token_for(&[&below]).await;
    let now = overview(&deep).await;
    assert_eq!(each(&now["folders"]["top"], "id"), [below.as_str()], "{now}");
}

async fn a_new_workspace_is_empty(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let now = overview(&workspace.token).await;
    assert!(items(&now["recentChanges"]).len() as u64 <= now["files"]["total"].as_u64().unwrap(), "{now}");
    assert_eq!((&now["databases"]["total"], &now["connectedSources"]), (&json!(0), &json!([])), "{now}");
}
