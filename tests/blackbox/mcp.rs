//! The tools of `/mcp` (spec 4.12): each does what the spec says, and its errors let an agent continue.

use crate::support::callers::Caller as _;
use crate::support::citations;
use crate::support::http::{each, id, items, text};
use crate::support::mcp::{self, META_CHANGE, call, call_error, call_json, text_of};
use crate::support::prelude::*;
use crate::support::workspace::read_file;

scenarios![
    the_tools_are_listed_with_their_schemas,
    the_usage_guide_needs_no_permission,
    files_are_created_listed_and_read,
    a_file_is_read_by_lines,
    a_file_is_updated_and_deleted,
    folders_are_created_and_listed,
    files_are_found_by_name,
    search_answers_as_rest_does,
    a_write_is_seen_by_the_next_call,
    wrong_arguments_are_all_named_at_once,
    an_unknown_id_is_a_tool_error,
    a_missing_permission_is_a_tool_error,
];

const TOOLS: &[&str] = &[
    "create_file",
    "create_folder",
    "create_memory",
    "delete_file",
    "get_file",
    "get_memory",
    "get_usage_guide",
    "list_files",
    "list_folders",
    "list_memories",
    "search_context",
    "search_files",
    "submit_feedback",
    "update_file",
    "update_memory",
];

async fn the_tools_are_listed_with_their_schemas(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    for listed in [
        mcp::result(mcp::legacy(&workspace.token, "tools/list", json!({})).await),
        mcp::result(mcp::modern(&workspace.token, "tools/list", json!({})).await),
    ] {
        let names = each(&listed["tools"], "name");
        for tool in TOOLS {
            assert!(names.contains(tool), "{tool} is missing from {names:?}");
        }
        for tool in items(&listed["tools"]) {
            assert!(!text(tool, "description").is_empty(), "{tool}");
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert!(!tool.to_string().contains("$ref"), "a schema that an agent cannot read alone: {tool}");
        }
        let create = items(&listed["tools"]).iter().find(|tool| tool["name"] == "create_file").unwrap();
        let mut required: Vec<&str> =
            items(&create["inputSchema"]["required"]).iter().filter_map(Value::as_str).collect();
        required.sort_unstable();
        assert_eq!(required, ["content", "fileType", "name"]);
    }
}

async fn the_usage_guide_needs_no_permission(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let weakest = workspace.token_with(&["delete"]).await;
    let index = text_of(&call(&weakest, "get_usage_guide", json!({})).await);
    let index: Value =
        serde_json::from_str(&index).unwrap_or_else(|error| panic!("no JSON index ({error}): {index}"));
    let topic = first_topic(&index);
    let guide = text_of(&call(&weakest, "get_usage_guide", json!({"topic": topic})).await);
    assert!(guide.contains('#') && guide.len() > 100, "no markdown guide: {guide}");
    let message = call_error(&weakest, "get_usage_guide", json!({"topic": "no-such-topic"})).await;
    assert!(message.contains(&topic), "an unknown topic should name those there are: {message}");
}

async fn files_are_created_listed_and_read(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("notes", None).await;
    let arguments = json!({"name": "a.md", "content": "# Hi\n", "fileType": "markdown", "folderId": folder});
    let made = call_json(&workspace.token, "create_file", arguments).await;
    assert_eq!(
        (text(&made, "workspaceId"), text(&made, "path")),
        (workspace.id.clone(), "/notes/a.md".into())
    );
    assert_eq!(
        read_file(&workspace.token, &id(&made)).await["content"],
        "# Hi\n",
        "REST sees what MCP wrote"
    );

    let listed = call_json(&workspace.token, "list_files", json!({})).await;
    assert_eq!(each(&listed, "id"), [id(&made)]);
    assert!(
        listed[0].get("content").is_none() && listed[0]["workspaceId"] == json!(workspace.id),
        "{listed}"
    );
    let narrowed = call_json(&workspace.token, "list_files", json!({"folderId": folder})).await;
    assert_eq!(each(&narrowed, "id"), [id(&made)]);

    let read = call(&workspace.token, "get_file", json!({"id": id(&made)})).await;
    assert!(text_of(&read).contains("# Hi"), "{read}");
    let wrapped = call(&workspace.token, "list_files", json!({})).await;
    assert!(wrapped["structuredContent"].is_object(), "an array is wrapped in an object: {wrapped}");
}

async fn a_file_is_read_by_lines(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "one\ntwo\nthree\nfour\nfive\n").await;
    let read = async |arguments: Value| text_of(&call(&workspace.token, "get_file", arguments).await);
    let ranged = read(json!({"id": file, "fromLine": 2, "maxLines": 3})).await;
    assert!(ranged.starts_with("[lines 2-4 of 5]"), "{ranged}");
    assert!(
        ranged.contains("two\nthree\nfour") && !ranged.contains("one") && !ranged.contains("five"),
        "{ranged}"
    );
    let tail = read(json!({"id": file, "fromLine": 4})).await;
    assert!(tail.starts_with("[lines 4-5 of 5]"), "{tail}");
    let head = read(json!({"id": file, "maxLines": 1})).await;
    assert!(head.starts_with("[lines 1-1 of 5]"), "{head}");
    for odd in [json!({"id": file, "fromLine": 0}), json!({"id": file, "maxLines": 0})] {
        call_error(&workspace.token, "get_file", odd).await;
    }
}

async fn a_file_is_updated_and_deleted(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "one").await;
    let updated = call_json(&workspace.token, "update_file", json!({"id": file, "content": "two"})).await;
    assert_eq!((id(&updated), updated["version"].clone()), (file.clone(), json!(2)));
    assert_eq!(read_file(&workspace.token, &file).await["content"], "two");
    let deleted = call(&workspace.token, "delete_file", json!({"id": file})).await;
    assert!(!text_of(&deleted).is_empty());
    workspace.token.get(&format!("/api/v1/files/{file}")).await.expect_error(404, "NOT_FOUND");
    call_error(&workspace.token, "delete_file", json!({"id": file})).await;
}

async fn folders_are_created_and_listed(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let top = call_json(&workspace.token, "create_folder", json!({"name": "top"})).await;
    let inner =
        call_json(&workspace.token, "create_folder", json!({"name": "inner", "parentId": id(&top)})).await;
    assert_eq!(
        (text(&inner, "path"), text(&inner, "workspaceId")),
        ("/top/inner".into(), workspace.id.clone())
    );
    let below = call_json(&workspace.token, "list_folders", json!({"parentId": id(&top)})).await;
    assert_eq!(each(&below, "id"), [id(&inner)]);
    let all = call_json(&workspace.token, "list_folders", json!({})).await;
    assert!(each(&all, "id").contains(&id(&top).as_str()), "{all}");
}

async fn files_are_found_by_name(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("f", None).await;
    let exact = workspace.file_id("plan", None, "x").await;
    let prefix = workspace.file_id("Planning.md", Some(&folder), "x").await;
    let inner = workspace.file_id("the-PLAN-b.md", None, "x").await;
    workspace.file_id("100%_other.md", None, "plan").await;
    let found = call_json(&workspace.token, "search_files", json!({"query": "plan"})).await;
    assert_eq!(
        each(&found, "id"),
        [exact, prefix.clone(), inner],
        "exact names, then prefixes, then the rest"
    );
    assert_eq!(found[0]["workspaceId"], json!(workspace.id));
    let narrowed =
        call_json(&workspace.token, "search_files", json!({"query": "plan", "folderId": folder})).await;
    assert_eq!(each(&narrowed, "id"), [prefix]);
    let limited = call_json(&workspace.token, "search_files", json!({"query": "plan", "limit": 1})).await;
    assert_eq!(items(&limited).len(), 1);
    for wildcard in ["0%_o", "%"] {
        let found = call_json(&workspace.token, "search_files", json!({"query": wildcard})).await;
        assert_eq!(each(&found, "name"), ["100%_other.md"], "{wildcard} is a text, not a pattern");
    }
    assert_eq!(call_json(&workspace.token, "search_files", json!({"query": "p_an"})).await, json!([]));
}

async fn search_answers_as_rest_does(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let content = "# Guide\n\n## Cluster\n\nThe zanzibar cluster keeps three replicas.\n";
    let created = workspace.file("guide.md", None, content).await;
    for strategy in ["keyword", "semantic", "hybrid"] {
        let arguments = json!({"query": "zanzibar cluster", "strategy": strategy});
        let by_rest = workspace.search_after(&created.change(), arguments.clone()).await;
        let result = call(&workspace.token, "search_context", arguments).await;
        let by_mcp = &result["structuredContent"];
        assert_eq!(by_mcp["results"], by_rest["results"], "{strategy}");
        assert_eq!(
            (&by_mcp["mode"], &by_mcp["coverage"]),
            (&by_rest["mode"], &by_rest["coverage"]),
            "{strategy}"
        );
        assert!(!items(&by_mcp["results"]).is_empty(), "{strategy}: {result}");
        citations::check_all(&workspace.token, by_mcp).await;
        let message = text_of(&result);
        assert!(
            message.contains("zanzibar cluster keeps") && message.contains("guide.md"),
            "{strategy}: {message}"
        );
    }
}

async fn a_write_is_seen_by_the_next_call(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    for round in 0..15 {
        let word = format!("zq{round}m3x");
        let arguments = json!({"name": "a.txt", "content": format!("look: {word}\n"), "fileType": "text"});
        let made = call(&workspace.token, "create_file", arguments).await;
        let change = text(&made["_meta"], META_CHANGE);
        let arguments = json!({"query": word, "strategy": "keyword"});
        let params =
            json!({"name": "search_context", "arguments": arguments, "_meta": {META_CHANGE: change}});
        for reply in [
            mcp::legacy(&workspace.token, "tools/call", params.clone()).await,
            mcp::modern(&workspace.token, "tools/call", params).await,
        ] {
            let answer = mcp::result(reply);
            let found = items(&answer["structuredContent"]["results"]);
            assert_eq!(found.len(), 1, "round {round}: {answer}");
        }
    }
}

async fn wrong_arguments_are_all_named_at_once(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let arguments = json!({"name": 5, "fileType": "markdwn", "folderid": "x"});
    let message = call_error(&workspace.token, "create_file", arguments).await;
    for part in ["name", "content", "fileType", "markdown", "folderid", "folderId"] {
        assert!(message.contains(part), "{part} is not named: {message}");
    }
    for (tool, arguments) in [
        ("search_context", json!({"query": "x", "limit": 51})),
        ("search_context", json!({})),
        ("get_file", json!({"id": 7})),
        ("list_files", json!({"folderId": "not an id"})),
        ("create_folder", json!({"name": "a/b"})),
        ("search_files", json!({"query": ["x"]})),
    ] {
        let message = call_error(&workspace.token, tool, arguments).await;
        assert!(
            message.to_lowercase().contains("valid"),
            "{tool} does not say that it is a validation error: {message}"
        );
    }
    assert_eq!(call_json(&workspace.token, "list_files", json!({})).await, json!([]), "nothing was made");
}

async fn an_unknown_id_is_a_tool_error(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let foreign = deployment.workspace().await.file_id("theirs.md", None, "x").await;
    for file in [uuid::Uuid::from_u128(3).to_string(), foreign] {
        for (tool, arguments) in [
            ("get_file", json!({"id": file})),
            ("update_file", json!({"id": file, "content": "x"})),
            ("delete_file", json!({"id": file})),
        ] {
            let message = call_error(&workspace.token, tool, arguments).await;
            assert!(message.to_lowercase().contains("not found"), "{tool}: {message}");
        }
    }
}

async fn a_missing_permission_is_a_tool_error(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "x").await;
    let reader = workspace.token_with(&["read"]).await;
    let writer = workspace.token_with(&["write"]).await;
    let new_file = json!({"name": "n", "content": "x", "fileType": "text"});
    for (tool, arguments) in [
        ("create_file", new_file),
        ("update_file", json!({"id": file, "content": "y"})),
        ("delete_file", json!({"id": file})),
        ("create_folder", json!({"name": "n"})),
    ] {
        let message = call_error(&reader, tool, arguments).await;
        assert!(message.contains("Forbidden"), "{tool}: {message}");
    }
    for (tool, arguments) in [
        ("list_files", json!({})),
        ("get_file", json!({"id": file})),
        ("list_folders", json!({})),
        ("search_files", json!({"query": "a"})),
        ("search_context", json!({"query": "x"})),
    ] {
        let message = call_error(&writer, tool, arguments).await;
        assert!(message.contains("Forbidden"), "{tool}: {message}");
    }
    assert_eq!(read_file(&workspace.token, &file).await["content"], "x");
}

/// The first topic of the index, whether it is a list of names or of objects.
fn first_topic(index: &Value) -> String {
    let list = index.get("topics").unwrap_or(index);
    let first = &items(list)[0];
    let name = first.as_str().or_else(|| first["topic"].as_str()).or_else(|| first["name"].as_str());
    name.unwrap_or_else(|| panic!("no topic in {index}")).to_owned()
}
