//! An agent is told when a document has changed since its session last saw it (`_meta` of a result).

use crate::support::callers::ApiToken;
use crate::support::http::{id, items, text};
use crate::support::mcp::{self, call_json};
use crate::support::prelude::*;

scenarios![
    what_was_found_before_and_changed_since_is_told_once,
    what_was_read_before_and_changed_since_is_told,
    what_an_agent_changed_itself_is_not_told,
];

/// The only result of a search over MCP, and the answer's text.
async fn found(token: &ApiToken, query: &str) -> (Value, String) {
    let found = eventually("the search finds it", async || {
        let arguments = json!({"query": query, "strategy": "keyword"});
        let answer = mcp::call(token, "search_context", arguments).await;
        let result = items(&answer["structuredContent"]["results"]).first()?.clone();
        Some((result, mcp::text_of(&answer)))
    });
    found.await
}

async fn rewrite(workspace: &Workspace, file: &str, content: &str) -> Value {
    let body = json!({"content": content});
    workspace.token.patch(&format!("/api/v1/files/{file}")).json(body).await.expect(200).json()
}

async fn what_was_found_before_and_changed_since_is_told_once(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (agent, other) = (workspace.token_with(&["read"]).await, workspace.token_with(&["read"]).await);
    let made = workspace.file("a.md", None, "The quokka sleeps by day.\n").await.json();
    let file = id(&made);
    assert_eq!(found(&agent, "quokka").await.0["_meta"], json!(null));
    rewrite(&workspace, &file, "The wallaby sleeps by day.\n").await;

    let (result, told) = found(&agent, "wallaby").await;
    let changed = &result["_meta"]["cairn/changed"];
    assert_eq!(changed["shownHash"], made["contentHash"], "{result}");
    assert!(changed["shownAt"].is_string() && told.contains("Changed since you were shown it"), "{told}");
    // The earlier content is one call away.
    let then = json!({"id": file, "hash": changed["shownHash"]});
    assert_eq!(mcp::text_of(&mcp::call(&agent, "get_file", then).await), "The quokka sleeps by day.\n");

    assert_eq!(found(&agent, "wallaby").await.0["_meta"], json!(null), "it was shown this one now");
    assert_eq!(
        found(&other, "wallaby").await.0["_meta"],
        json!(null),
        "another agent was shown nothing before"
    );
    // Programs over REST keep track of what they have read themselves.
    let answer = workspace.token.post("/api/v1/search_context").json(json!({"query": "wallaby"})).await;
    assert_eq!(items(&answer.expect(200).json()["results"])[0]["_meta"], json!(null));
}

async fn what_was_read_before_and_changed_since_is_told(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    for (place, tool) in ["get_file", "get_files", "browse_context"].into_iter().enumerate() {
        let (old, new) = (format!("ze{place}q7k"), format!("zf{place}q7k"));
        let made = workspace.file(&format!("{place}.md"), None, &format!("It says {old}.\n")).await.json();
        let agent = workspace.token_with(&["read"]).await;
        let arguments = match tool {
            "get_file" => json!({"id": id(&made)}),
            "get_files" => json!({"ids": [id(&made)]}),
            _ => json!({"script": format!("cat /files/{place}.md")}),
        };
        let read = mcp::text_of(&mcp::call(&agent, tool, arguments).await);
        assert!(read.contains(&old), "{tool}: {read}");
        rewrite(&workspace, &id(&made), &format!("It says {new}.\n")).await;
        let (result, _) = found(&agent, &new).await;
        let before = text(&result["_meta"]["cairn/changed"], "shownHash");
        assert_eq!(before, text(&made, "contentHash"), "{tool}: {result}");
    }
}

async fn what_an_agent_changed_itself_is_not_told(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let agent = &workspace.token;
    let body = json!({"name": "a.md", "content": "It says quokka.\n", "fileType": "markdown"});
    let file = id(&call_json(agent, "create_file", body).await);
    found(agent, "quokka").await;
    call_json(agent, "update_file", json!({"id": file, "content": "It says wallaby.\n"})).await;
    assert_eq!(found(agent, "wallaby").await.0["_meta"], json!(null));
    rewrite(&workspace, &file, "It says numbat.\n").await;
    assert!(found(agent, "numbat").await.0["_meta"]["cairn/changed"].is_object());
}
