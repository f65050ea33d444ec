//! The MCP endpoint as clients of both eras use it.

use axum::body::Body;
use http::Request;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::testing::{Answer, Bench, FILE, bench};

const MODERN: &str = "2026-07-28";

fn rpc(id: u32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

async fn post(bench: &Bench, message: &Value) -> Answer {
    bench.post("/mcp", message.to_string()).await
}

async fn call(bench: &Bench, tool: &str, arguments: Value) -> Value {
    let answer = post(bench, &rpc(1, "tools/call", json!({"name": tool, "arguments": arguments}))).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["result"].clone()
}

async fn modern(bench: &Bench, method: &str, mut params: Value, name: Option<&str>) -> Answer {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut request =
        Request::post("/mcp").header("mcp-protocol-version", MODERN).header("mcp-method", method);
    if let Some(name) = name {
        request = request.header("mcp-name", name);
    }
    bench.send(request.body(Body::from(rpc(1, method, params).to_string())).unwrap()).await
}

#[tokio::test]
async fn a_legacy_client_can_open_list_and_call() {
    let bench = bench().await;
    let opened = post(&bench, &rpc(1, "initialize", json!({"protocolVersion": "2025-06-18"}))).await.json();
    assert_eq!(opened["result"]["protocolVersion"], "2025-06-18");
    assert!(opened["result"]["instructions"].as_str().unwrap().contains("search_context"));
    let notified = post(&bench, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    assert_eq!((notified.status.as_u16(), notified.text.as_str()), (202, ""));
    assert_eq!(post(&bench, &rpc(2, "ping", json!({}))).await.json()["result"], json!({}));
    let listed = post(&bench, &rpc(3, "tools/list", json!({}))).await;
    assert!(listed.json()["result"]["tools"].as_array().unwrap().len() >= 14);
    assert_eq!(listed.text, post(&bench, &rpc(3, "tools/list", json!({}))).await.text);
    let odd = post(&bench, &rpc(4, "roots/list", json!({}))).await;
    assert_eq!((odd.status.as_u16(), &odd.json()["error"]["code"]), (200, &json!(-32601)));
}

#[tokio::test]
async fn a_modern_client_gets_stamps_and_cache_hints() {
    let bench = bench().await;
    let discovered = modern(&bench, "server/discover", json!({}), None).await.json();
    let result = &discovered["result"];
    assert_eq!(result["supportedVersions"][0], MODERN);
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["cacheScope"], "public");
    assert!(result["ttlMs"].is_u64());
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "cairn");
    let params = json!({"name": "get_file", "arguments": {"id": FILE}});
    let called = modern(&bench, "tools/call", params, Some("get_file")).await;
    assert_eq!(called.json()["result"]["resultType"], "complete");
    for removed in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such"] {
        let answer = modern(&bench, removed, json!({"protocolVersion": "2025-11-25"}), None).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]["code"]),
            (404, &json!(-32601)),
            "{removed}"
        );
    }
    let unknown = modern(&bench, "tools/call", json!({"name": "x"}), Some("x")).await;
    assert_eq!((unknown.status.as_u16(), &unknown.json()["error"]["code"]), (200, &json!(-32602)));
    let unnamed = modern(&bench, "tools/call", json!({"name": "get_file"}), None).await;
    assert_eq!((unnamed.status.as_u16(), &unnamed.json()["error"]["code"]), (400, &json!(-32020)));
}

#[tokio::test]
async fn a_batch_is_answered_member_by_member() {
    let bench = bench().await;
    let batch = json!([
        rpc(1, "ping", json!({})),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        rpc(2, "initialize", json!({"protocolVersion": "2025-03-26"})),
        5,
        rpc(3, "tools/call", json!({"name": "get_file", "arguments": {"id": FILE}})),
    ]);
    let answers = post(&bench, &batch).await.json();
    let ids: Vec<_> = answers.as_array().unwrap().iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(1), json!(2), json!(null), json!(3)]);
    assert_eq!(answers[1]["error"]["code"], -32600);
    assert_eq!(answers[2]["error"]["code"], -32600);
    assert_eq!(post(&bench, &json!([{"jsonrpc": "2.0", "method": "notifications/x"}])).await.status, 202);
    let empty = post(&bench, &json!([])).await;
    assert_eq!((empty.status.as_u16(), &empty.json()["error"]["code"]), (400, &json!(-32600)));
    let request =
        Request::post("/mcp").header("mcp-protocol-version", MODERN).body(Body::from(batch.to_string()));
    assert_eq!(bench.send(request.unwrap()).await.status, 400);
}

#[tokio::test]
async fn transport_rules_hold() {
    let bench = bench().await;
    for method in ["GET", "DELETE", "PUT"] {
        let answer =
            bench.send(Request::builder().method(method).uri("/mcp").body(Body::empty()).unwrap()).await;
        assert_eq!((answer.status.as_u16(), answer.headers["allow"].to_str().unwrap()), (405, "POST"));
        assert_eq!(answer.json()["error"], "METHOD_NOT_ALLOWED");
    }
    for path in ["/mcp/sse", "/mcp/message"] {
        let answer = bench.get(path).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]), (410, &json!("GONE")));
        assert!(answer.json()["message"].as_str().unwrap().contains("POST /mcp"));
    }
    let foreign =
        Request::post("/mcp").header("origin", "http://evil.example").body(Body::from("{}")).unwrap();
    let answer = bench.send(foreign).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["error"]), (403, &json!("ORIGIN_NOT_ALLOWED")));
    let anonymous = bench.send_as_is(Request::post("/mcp").body(Body::from("{}")).unwrap()).await;
    assert_eq!(anonymous.status, 401);
    let way = "http://127.0.0.1:8700/.well-known/oauth-protected-resource/mcp";
    let challenge = format!(r#"Bearer resource_metadata="{way}", scope="read write delete""#);
    assert_eq!(anonymous.headers["www-authenticate"], challenge.as_str());
    let broken = bench.post("/mcp", "{").await;
    assert_eq!((broken.status.as_u16(), &broken.json()["error"]["code"]), (400, &json!(-32700)));
    assert_eq!(bench.post("/mcp", "x".repeat(65 * 1024)).await.status, 413);
    let form = Request::post("/mcp").header("content-type", "application/x-www-form-urlencoded");
    let answer = bench.send(form.body(Body::from("{}")).unwrap()).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["error"]), (415, &json!("UNSUPPORTED_MEDIA_TYPE")));
    let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    let answer = bench.post("/mcp", deep).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (400, &json!(-32700)));
}

#[tokio::test]
async fn the_files_and_memories_of_the_workspace_are_resources() {
    let bench = bench().await;
    let listed = post(&bench, &rpc(1, "resources/list", json!({}))).await.json()["result"].clone();
    assert_eq!((&listed["cacheScope"], &listed["ttlMs"]), (&json!("private"), &json!(0)));
    let uris: Vec<_> = listed["resources"].as_array().unwrap().iter().map(|entry| &entry["uri"]).collect();
    let (file, memory) = (format!("cairn://file/{FILE}"), "cairn://memory/guide");
    assert!(uris.contains(&&json!(file)) && uris.contains(&&json!(memory)), "{uris:?}");
    for (uri, mime_type) in [(file.as_str(), "text/markdown"), (memory, "text/markdown")] {
        let read = modern(&bench, "resources/read", json!({"uri": uri}), Some(uri)).await.json();
        let contents = &read["result"]["contents"][0];
        assert_eq!((&contents["uri"], &contents["mimeType"]), (&json!(uri), &json!(mime_type)), "{read}");
        assert!(!contents["text"].as_str().unwrap().is_empty());
        assert_eq!(read["result"]["cacheScope"], "private");
    }
    for uri in
        ["cairn://file/0199c0de-0000-7000-8000-000000000001", "cairn://memory/none", "x", "skill://cairn/x/y"]
    {
        let old = post(&bench, &rpc(1, "resources/read", json!({"uri": uri}))).await.json();
        assert_eq!((&old["error"]["code"], &old["error"]["data"]["uri"]), (&json!(-32002), &json!(uri)));
        let new = modern(&bench, "resources/read", json!({"uri": uri}), Some(uri)).await;
        let error = &new.json()["error"];
        assert_eq!(
            (new.status.as_u16(), &error["code"], &error["data"]["uri"]),
            (200, &json!(-32602), &json!(uri))
        );
    }
    for (method, params) in [
        ("resources/list", json!({"cursor": "nonsense"})),
        ("resources/list", json!({"cursor": 5})),
        ("resources/templates/list", json!({"cursor": "x"})),
        ("resources/read", json!({})),
        ("skills/list", json!({"cursor": "x"})),
        ("skills/get", json!({"uri": "skill://cairn/none/SKILL.md"})),
        ("resources/directory/read", json!({"uri": file})),
    ] {
        let answer = post(&bench, &rpc(1, method, params)).await.json();
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
    }
}

#[tokio::test]
async fn memories_are_prompts() {
    let bench = bench().await;
    let listed = post(&bench, &rpc(1, "prompts/list", json!({}))).await.json()["result"].clone();
    assert_eq!(listed["prompts"], json!([{"name": "guide", "title": "Guide"}]));
    assert_eq!(listed["cacheScope"], "private");
    let got = modern(&bench, "prompts/get", json!({"name": "guide"}), Some("guide")).await.json();
    let loaded = call(&bench, "get_memory", json!({"slug": "guide"})).await;
    let message = &got["result"]["messages"][0];
    assert_eq!(
        (&message["role"], &message["content"]["text"]),
        (&json!("user"), &loaded["content"][0]["text"])
    );
    for params in [json!({"name": "none"}), json!({}), json!({"name": "guide", "arguments": 5})] {
        let refused = post(&bench, &rpc(1, "prompts/get", params)).await.json();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

#[tokio::test]
async fn arguments_are_completed_with_what_there_is() {
    let bench = bench().await;
    let complete = async |reference: Value, name: &str, value: &str| {
        let params = json!({"ref": reference, "argument": {"name": name, "value": value}});
        post(&bench, &rpc(1, "completion/complete", params)).await.json()
    };
    let memory = json!({"type": "ref/resource", "uri": "cairn://memory/{slug}"});
    let found = complete(memory.clone(), "slug", "GUI").await;
    assert_eq!(found["result"]["completion"], json!({"values": ["guide"], "total": 1, "hasMore": false}));
    assert_eq!(found["result"]["_meta"]["cairn/titles"], json!({"guide": "Guide"}));
    assert_eq!(complete(memory.clone(), "slug", "x").await["result"]["completion"]["values"], json!([]));
    assert_eq!(complete(memory, "other", "").await["result"]["completion"]["values"], json!([]));
    let skill = json!({"type": "ref/resource", "uri": "skill://cairn/{name}/{+path}"});
    assert!(
        !complete(skill, "name", "").await["result"]["completion"]["values"].as_array().unwrap().is_empty()
    );
    for odd in [
        json!({}),
        json!({"type": "ref/resource", "uri": "x://{y}"}),
        json!({"type": "ref/else", "name": "x"}),
    ] {
        assert_eq!(complete(odd, "slug", "").await["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn a_file_tool_takes_near_names_and_answers_lines() {
    let bench = bench().await;
    let whole = call(&bench, "get_file", json!({"fileId": FILE})).await;
    assert_eq!(whole["content"][0]["text"], "one\ntwo\nthree\n");
    assert!(whole.get("structuredContent").is_none());
    let part = call(&bench, "get_file", json!({"file_id": FILE, "from_line": "2", "maxLines": 1})).await;
    assert_eq!(part["content"][0]["text"], "[lines 2-2 of 3]\ntwo");
}

#[tokio::test]
async fn lists_and_writes_are_text_structure_and_change() {
    let bench = bench().await;
    let listed = call(&bench, "list_files", json!({})).await;
    let (array, note) = listed["content"][0]["text"].as_str().unwrap().split_once('\n').unwrap();
    let array: Value = serde_json::from_str(array).unwrap();
    assert_eq!(array, listed["structuredContent"]["files"]);
    assert!(note.starts_with("Showing 1 of 2; call list_files again with {\"cursor\":"), "{note}");
    assert_eq!(*note, listed["structuredContent"]["note"]);
    let made = call(&bench, "create_file", json!({"name": "b.md", "content": "x", "type": "markdown"})).await;
    assert_eq!(made["structuredContent"]["folderId"], Value::Null);
    assert_eq!(made["_meta"]["cairn/change"], "c1-7");
    let schema = post(&bench, &rpc(1, "tools/list", json!({}))).await.json();
    let tools = schema["result"]["tools"].as_array().unwrap().clone();
    for (name, result) in [("list_files", &listed), ("create_file", &made)] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let validator = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
        assert!(validator.is_valid(&result["structuredContent"]), "{name}");
    }
    let deleted = call(&bench, "delete_file", json!({"id": FILE})).await;
    assert_eq!(deleted["structuredContent"]["success"], true);
}

#[tokio::test]
async fn refusals_name_their_cause_and_the_next_call() {
    let bench = bench().await;
    let wrong =
        call(&bench, "create_file", json!({"name": 5, "fileType": "markdwn", "folderIdd": "x"})).await;
    assert_eq!(wrong["isError"], true);
    let text = wrong["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("Validation error: 4 problems in the call of create_file."), "{text}");
    for part in [
        "- name: must be a string",
        "did you mean `markdown`?",
        "did you mean `folderId`?",
        "- content: is required",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let missing = call(&bench, "get_file", json!({"id": "0199c0de-0000-7000-8000-000000000001"})).await;
    let text = missing["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("Not found: ") && text.contains("Next: call search_files"), "{text}");
    let rule = call(&bench, "create_file", json!({"name": "a/b", "content": "", "fileType": "text"})).await;
    assert!(rule["content"][0]["text"].as_str().unwrap().contains("- name: may not hold `/`"));
    let down = call(&bench, "search_context", json!({"q": "x"})).await;
    assert!(down["content"][0]["text"].as_str().unwrap().starts_with("Unavailable: "), "{down}");
}

fn odd_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "2\\.0|ping|tools/call|get_file|[a-z/]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let key = "jsonrpc|id|method|params|name|arguments|_meta|result|error|[a-z]{0,4}";
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_bytes_get_a_json_answer(bytes in prop::collection::vec(any::<u8>(), 0..64), value in odd_json()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let bench = bench().await;
            for body in [bytes, value.to_string().into_bytes()] {
                let answer = bench.post("/mcp", body).await;
                let is_json = serde_json::from_str::<Value>(&answer.text).is_ok();
                assert!(answer.status == 202 && answer.text.is_empty() || is_json, "{}: {}", answer.status, answer.text);
                assert_ne!(answer.status, 500);
            }
        });
    }
}
