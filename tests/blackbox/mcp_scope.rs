//! Folder-scoped tokens over MCP (spec 4.12, last paragraph).

use crate::support::http::{each, id, items};
use crate::support::mcp::{call, call_error, call_json};
use crate::support::prelude::*;

scenarios![a_scoped_token_sees_only_its_folders, a_scoped_token_writes_only_in_its_folders];

async fn a_scoped_token_sees_only_its_folders(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let inside = workspace.folder("inside", None).await;
    let outside = workspace.folder("outside", None).await;
    let mine = workspace.file_id("plan-in.md", Some(&inside), "The narwhal is inside.\n").await;
    let other = workspace.file_id("plan-out.md", Some(&outside), "The narwhal is outside.\n").await;
    let root = workspace.file("plan-root.md", None, "The narwhal is at the root.\n").await;
    let token = workspace.token_for(&[&inside]).await;

    assert_eq!(each(&call_json(&token, "list_files", json!({})).await, "id"), [mine.as_str()]);
    assert_eq!(each(&call_json(&token, "list_folders", json!({})).await, "id"), [inside.as_str()]);
    assert_eq!(
        each(&call_json(&token, "search_files", json!({"query": "plan"})).await, "id"),
        [mine.as_str()]
    );
    call(&token, "get_file", json!({"id": mine})).await;
    for file in [other, id(&root.json())] {
        let message = call_error(&token, "get_file", json!({"id": file})).await;
        assert!(message.contains("Forbidden"), "{message}");
    }
    workspace.search_after(&root.change(), json!({"query": "narwhal"})).await;
    for strategy in ["keyword", "semantic", "hybrid"] {
        let arguments = json!({"query": "narwhal", "strategy": strategy, "limit": 50});
        let answer = call(&token, "search_context", arguments).await;
        let found = items(&answer["structuredContent"]["results"]);
        assert_eq!(found.len(), 1, "{strategy}: {answer}");
        assert_eq!(found[0]["fileId"], json!(mine), "{strategy}");
    }
}

async fn a_scoped_token_writes_only_in_its_folders(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let inside = workspace.folder("inside", None).await;
    let outside = workspace.folder("outside", None).await;
    let other = workspace.file_id("out.md", Some(&outside), "x").await;
    let token = workspace.token_for(&[&inside]).await;
    let made = call_json(
        &token,
        "create_file",
        json!({"name": "n", "content": "x", "fileType": "text", "folderId": inside}),
    );
    assert_eq!(made.await["folderId"], json!(inside));
    for (tool, arguments) in [
        ("create_file", json!({"name": "n", "content": "x", "fileType": "text"})),
        ("create_file", json!({"name": "n", "content": "x", "fileType": "text", "folderId": outside})),
        ("create_folder", json!({"name": "n"})),
        ("create_folder", json!({"name": "n", "parentId": outside})),
        ("update_file", json!({"id": other, "content": "y"})),
        ("delete_file", json!({"id": other})),
        ("list_files", json!({"folderId": outside})),
    ] {
        let message = call_error(&token, tool, arguments).await;
        assert!(message.contains("Forbidden"), "{tool}: {message}");
    }
    assert_eq!(items(&call_json(&workspace.token, "list_files", json!({})).await).len(), 2);
}
