//! Prompts, completion and subscriptions of `/mcp`.

use crate::support::callers::{ApiToken, Caller as _};
use crate::support::http::{Events, each, id, items, text};
use crate::support::mcp::{self, error_code, legacy, modern};
use crate::support::prelude::*;

scenarios![
    capabilities_say_what_each_era_has,
    memories_are_prompts_page_by_page,
    a_prompt_is_the_memory_as_the_tool_gives_it,
    arguments_are_completed_with_what_the_caller_sees,
    templates_are_read,
    a_subscription_tells_what_changed,
    a_subscription_is_of_the_modern_era,
];

const INVALID_PARAMS: i64 = -32602;
const METHOD_NOT_FOUND: i64 = -32601;

async fn memory(workspace: &Workspace, body: Value) -> Value {
    workspace.token.post("/api/v1/memories").json(body).await.expect(201).json()
}

async fn capabilities_say_what_each_era_has(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let hello = json!({"protocolVersion": mcp::LEGACY[0], "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    for (opened, is_told) in [
        (mcp::result(legacy(&token, "initialize", hello).await), false),
        (mcp::result(modern(&token, "server/discover", json!({})).await), true),
    ] {
        let capabilities = &opened["capabilities"];
        assert_eq!(capabilities["prompts"], json!({"listChanged": is_told}));
        assert_eq!(capabilities["resources"], json!({"listChanged": is_told, "subscribe": is_told}));
        assert_eq!(
            (&capabilities["completions"], &capabilities["tools"]),
            (&json!({}), &json!({"listChanged": false}))
        );
    }
}

async fn memories_are_prompts_page_by_page(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    for number in 0..101 {
        memory(&workspace, json!({"name": format!("Memory {number:03}"), "useWhen": "always"})).await;
    }
    for (first, is_modern) in [
        (legacy(&workspace.token, "prompts/list", json!({})).await, false),
        (modern(&workspace.token, "prompts/list", json!({})).await, true),
    ] {
        let first = mcp::result(first);
        let cursor = json!({"cursor": text(&first, "nextCursor")});
        let second = if is_modern {
            modern(&workspace.token, "prompts/list", cursor).await
        } else {
            legacy(&workspace.token, "prompts/list", cursor).await
        };
        let second = mcp::result(second);
        assert!(second.get("nextCursor").is_none(), "{second}");
        let mut names = each(&first["prompts"], "name");
        names.extend(each(&second["prompts"], "name"));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 101, "each once");
        let prompt = &items(&first["prompts"])[0];
        assert!(
            text(prompt, "title").starts_with("Memory ") && prompt["description"] == "always",
            "{prompt}"
        );
        assert_eq!((&first["cacheScope"], &first["ttlMs"]), (&json!("private"), &json!(0)));
    }
    let odd =
        legacy(&workspace.token, "prompts/list", json!({"cursor": "nonsense"})).await.expect(200).json();
    assert_eq!(error_code(&odd), INVALID_PARAMS);
    let blind = workspace.token_with(&["write"]).await;
    assert_eq!(mcp::result(legacy(&blind, "prompts/list", json!({})).await)["prompts"], json!([]));
}

async fn a_prompt_is_the_memory_as_the_tool_gives_it(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (inside, outside) = (workspace.folder("inside", None).await, workspace.folder("outside", None).await);
    let seen = workspace.file_id("seen.md", Some(&inside), "the narwhal").await;
    let hidden = workspace.file_id("hidden.md", Some(&outside), "the walrus").await;
    let members = json!([{"kind": "file", "fileId": seen}, {"kind": "file", "fileId": hidden}]);
    let made = memory(&workspace, json!({"name": "How", "useWhen": "now", "members": members})).await;
    let slug = text(&made, "slug");
    let scoped = workspace.token_for(&[&inside]).await;
    for (token, sees_all) in [(&workspace.token, true), (&scoped, false)] {
        let tool = mcp::text_of(&mcp::call(token, "get_memory", json!({"slug": slug})).await);
        for reply in [
            legacy(token, "prompts/get", json!({"name": slug, "arguments": {}})).await,
            modern(token, "prompts/get", json!({"name": slug})).await,
        ] {
            let got = mcp::result(reply);
            assert_eq!(got["description"], "now");
            let [message] = items(&got["messages"]) else { panic!("{got}") };
            assert_eq!((&message["role"], &message["content"]["type"]), (&json!("user"), &json!("text")));
            let error = text(&message["content"], "text");
            assert_eq!(error, tool);
            assert!(error.contains("narwhal") && error.contains("walrus") == sees_all, "{error}");
        }
    }
    workspace.token.delete(&format!("/api/v1/memories/{}", id(&made))).await.expect(204);
    let stranger = deployment.workspace().await.token;
    for token in [&workspace.token, &stranger] {
        for params in [json!({"name": slug}), json!({}), json!({"name": 5})] {
            let refused = legacy(token, "prompts/get", params).await.expect(200).json();
            assert_eq!(error_code(&refused), INVALID_PARAMS);
        }
    }
}

async fn complete(token: &ApiToken, reference: Value, name: &str, value: &str) -> Value {
    let params = json!({"ref": reference, "argument": {"name": name, "value": value}});
    let (old, new) = (
        mcp::result(legacy(token, "completion/complete", params.clone()).await),
        mcp::result(modern(token, "completion/complete", params).await),
    );
    assert_eq!(old["completion"], new["completion"]);
    old["completion"].clone()
}

async fn arguments_are_completed_with_what_the_caller_sees(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (inside, outside) =
        (workspace.folder("Narwhals", None).await, workspace.folder("Narrow", None).await);
    let database = json!({"name": "Narratives", "folderId": outside});
    let database = id(&workspace.token.post("/api/v1/databases").json(database).await.expect(201).json());
    memory(&workspace, json!({"name": "Narwhal lore"})).await;
    let scoped = workspace.token_for(&[&inside]).await;
    let template = |uri: &str| json!({"type": "ref/resource", "uri": uri});
    let (folder, records) =
        (template("cairn://folder/{folderId}"), template("cairn://database/{databaseId}"));
    let mut both = vec![inside.clone(), outside.clone()];
    both.sort_unstable();
    for (token, reference, name, value, expected) in [
        (&workspace.token, template("cairn://memory/{slug}"), "slug", "nar", vec!["narwhal-lore".to_owned()]),
        (
            &workspace.token,
            template("cairn://memory/{slug}"),
            "slug",
            "LORE",
            vec!["narwhal-lore".to_owned()],
        ),
        (&workspace.token, template("cairn://memory/{slug}"), "slug", "zebra", vec![]),
        (&workspace.token, folder.clone(), "folderId", "nar", both),
        (&scoped, folder.clone(), "folderId", "nar", vec![inside.clone()]),
        (&workspace.token, records.clone(), "databaseId", "nar", vec![database]),
        (&scoped, records, "databaseId", "nar", vec![]),
        (&scoped, template("cairn://source/{sourceId}"), "sourceId", "", vec![]),
        (
            &workspace.token,
            json!({"type": "ref/prompt", "name": "narwhal-lore"}),
            "folderId",
            "narw",
            vec![inside],
        ),
        (&workspace.token, json!({"type": "ref/prompt", "name": "narwhal-lore"}), "else", "", vec![]),
    ] {
        let found = complete(token, reference, name, value).await;
        let mut values: Vec<&str> = items(&found["values"]).iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        assert_eq!(values, expected, "{name} {value}");
        assert_eq!((&found["total"], &found["hasMore"]), (&json!(expected.len()), &json!(false)));
    }
    for params in [
        json!({}),
        json!({"ref": template("cairn://none/{x}"), "argument": {"name": "x", "value": ""}}),
        json!({"ref": {"type": "ref/tool"}, "argument": {"name": "x", "value": ""}}),
        json!({"ref": folder, "argument": {"name": "folderId"}}),
    ] {
        let refused = legacy(&workspace.token, "completion/complete", params).await.expect(200).json();
        assert_eq!(error_code(&refused), INVALID_PARAMS);
    }
    let blind = workspace.token_with(&["write"]).await;
    assert_eq!(complete(&blind, template("cairn://memory/{slug}"), "slug", "").await["values"], json!([]));
}

async fn templates_are_read(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (folder, other) = (workspace.folder("f", None).await, workspace.folder("g", None).await);
    let file = workspace.file_id("a.md", Some(&folder), "x").await;
    let database = json!({"name": "Tasks", "folderId": folder});
    let database = id(&workspace.token.post("/api/v1/databases").json(database).await.expect(201).json());
    let read =
        async |token: &ApiToken, uri: String| legacy(token, "resources/read", json!({"uri": uri})).await;
    let shown = mcp::result(read(&workspace.token, format!("cairn://folder/{folder}")).await);
    let contents = &shown["contents"][0];
    assert_eq!(contents["mimeType"], "application/json");
    let inside: Value = serde_json::from_str(&text(contents, "text")).unwrap();
    assert_eq!((each(&inside["files"], "id"), &inside["totalFolders"]), (vec![file.as_str()], &json!(0)));
    let shown = mcp::result(read(&workspace.token, format!("cairn://database/{database}")).await);
    assert!(text(&shown["contents"][0], "text").contains("Tasks"), "{shown}");
    let scoped = workspace.token_for(&[&other]).await;
    for uri in [
        format!("cairn://folder/{folder}"),
        format!("cairn://database/{database}"),
        format!("cairn://source/{file}"),
    ] {
        let refused = read(&scoped, uri.clone()).await.expect(200).json();
        assert_eq!(error_code(&refused), -32002, "{uri}");
    }
}

async fn listen(token: &ApiToken, notifications: Value) -> Events {
    let params = mcp::with_modern_meta(json!({"notifications": notifications}));
    let request = mcp::post(token).header("mcp-protocol-version", mcp::MODERN);
    let request = request.header("mcp-method", "subscriptions/listen");
    request.json(mcp::message(7, "subscriptions/listen", &params)).events().await
}

async fn a_subscription_tells_what_changed(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("f", None).await;
    let file = workspace.file_id("a.md", Some(&folder), "one").await;
    let outside = workspace.file_id("outside.md", None, "one").await;
    let members = json!([{"kind": "file", "fileId": file}]);
    let slug = text(&memory(&workspace, json!({"name": "How", "members": members})).await, "slug");
    let uris = [format!("cairn://file/{file}"), format!("cairn://memory/{slug}")];
    let asked = json!([uris[0], uris[1], format!("cairn://file/{outside}"), "x://y"]);
    let token = workspace.token_for(&[&folder]).await;
    let wanted =
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": asked});
    let mut stream = listen(&token, wanted).await;
    let first = stream.next_message().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    // Tools never change; files out of the token's scope do not exist for it.
    assert_eq!(
        first["params"]["notifications"],
        json!({"promptsListChanged": true, "resourceSubscriptions": uris})
    );
    assert_eq!(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);

    let path = format!("/api/v1/files/{outside}");
    workspace.token.patch(&path).json(json!({"content": "two"})).await.expect(200);
    let path = format!("/api/v1/files/{file}");
    workspace.token.patch(&path).json(json!({"content": "two"})).await.expect(200);
    // The file, and the memory that contains it.
    for uri in &uris {
        let told = stream.next_message().await.unwrap();
        assert_eq!(
            (&told["method"], &told["params"]["uri"]),
            (&json!("notifications/resources/updated"), &json!(uri))
        );
        assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    }
    memory(&workspace, json!({"name": "Another"})).await;
    let told = stream.next_message().await.unwrap();
    assert_eq!(told["method"], "notifications/prompts/list_changed");
}

async fn a_subscription_is_of_the_modern_era(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let refused = legacy(&token, "subscriptions/listen", json!({"notifications": {}})).await.json();
    assert_eq!(error_code(&refused), METHOD_NOT_FOUND);
    for params in [
        json!({}),
        json!({"notifications": 5}),
        json!({"notifications": {"resourceSubscriptions": [5]}}),
        json!({"notifications": {"resourceSubscriptions": "x"}}),
    ] {
        let refused = modern(&token, "subscriptions/listen", params).await.expect(200).json();
        assert_eq!(error_code(&refused), INVALID_PARAMS);
    }
}
