//! Memories over REST and MCP with fake services: what the gateway decides.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::testing::{Answer, Bench, FILE, MEMORY, bench, refused_token};

async fn send(bench: &Bench, method: &str, path: &str, body: &Value) -> Answer {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    bench.send(request.body(Body::from(body.to_string())).unwrap()).await
}

#[tokio::test]
async fn a_memory_is_made_read_changed_and_removed() {
    let bench = bench().await;
    let body = json!({"name": "Guide", "members": [{"kind": "file", "fileId": FILE}], "description": null});
    let made = bench.post("/api/v1/memories", body.to_string()).await;
    assert_eq!((made.status.as_u16(), &made.headers["x-cairn-change"]), (201, &"c1-7".parse().unwrap()));
    let memory = made.json();
    assert_eq!((&memory["isPublic"], &memory["useWhen"]), (&json!(false), &Value::Null));
    assert_eq!(memory["members"][0]["fileId"], FILE);
    assert!(memory["members"][0].get("folderId").is_none() && memory.get("coverage").is_none());
    let taken = bench.post("/api/v1/memories", json!({"name": "x", "slug": "guide"}).to_string()).await;
    assert_eq!((taken.status.as_u16(), &taken.json()["error"]), (409, &json!("SLUG_TAKEN")));

    for named in ["guide", MEMORY] {
        let read = bench.get(&format!("/api/v1/memories/{named}")).await.json();
        let entry = &read["members"][0]["entries"][0];
        assert_eq!((&entry["content"], &entry["fileType"]), (&json!("one\n"), &json!("markdown")), "{read}");
        assert_eq!(entry["citation"]["url"], format!("http://127.0.0.1:8700/file/{FILE}"));
        assert_eq!(read["members"][1]["folderId"], FILE);
        assert_eq!(read["members"][1]["title"], Value::Null);
        assert_eq!(read["coverage"][0]["code"], "target_deleted");
    }
    assert_eq!(bench.get("/api/v1/memories/other").await.status, 404);
    let listed = bench.get("/api/v1/memories").await;
    assert_eq!(
        (&listed.headers["x-total-count"], listed.json().as_array().unwrap().len()),
        (&"1".parse().unwrap(), 1)
    );

    let path = format!("/api/v1/memories/{MEMORY}");
    let changed = send(&bench, "PATCH", &path, &json!({"useWhen": null, "isPublic": true})).await;
    assert_eq!(changed.json()["name"], format!("{MEMORY} use_when,is_public +0 -0"));
    assert_eq!(send(&bench, "PATCH", &path, &json!({})).await.status, 400);
    assert_eq!(send(&bench, "PATCH", "/api/v1/memories/guide", &json!({"name": "x"})).await.status, 404);
    assert_eq!(send(&bench, "DELETE", "/api/v1/memories/guide", &json!({})).await.status, 404);
    assert_eq!(send(&bench, "DELETE", &path, &json!({})).await.status, 204);
}

#[tokio::test]
async fn members_are_added_and_removed() {
    let bench = bench().await;
    let path = format!("/api/v1/memories/{MEMORY}/members");
    let body = json!({"members": [{"kind": "file", "fileId": FILE}, {"kind": "folder", "folderId": FILE}]});
    let added = bench.post(&path, body.to_string()).await;
    assert_eq!(added.status, 201, "{}", added.text);
    assert_eq!(added.json()[1]["kind"], "folder");
    let odd =
        json!({"members": [{"kind": "fil", "fileId": "x"}, {"fileId": FILE}, {"kind": "file", "file": 1}]});
    let refused = bench.post(&path, odd.to_string()).await;
    let mut paths: Vec<String> = refused.json()["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|issue| issue["path"].as_str().unwrap().to_owned())
        .collect();
    paths.sort();
    assert_eq!(paths, ["members[0].fileId", "members[0].kind", "members[1].kind", "members[2].file"]);
    for (count, status) in [(0, 400), (1, 201), (100, 201), (101, 400)] {
        let members = vec![json!({"kind": "file", "fileId": FILE}); count];
        assert_eq!(
            bench.post(&path, json!({"members": members}).to_string()).await.status,
            status,
            "{count}"
        );
    }
    let moved = send(&bench, "PATCH", &format!("{path}/{FILE}"), &json!({"position": 3})).await;
    assert_eq!((moved.status.as_u16(), moved.json()["name"].as_str()), (200, Some("at 3")), "{}", moved.text);
    for odd in [json!({}), json!({"position": -1}), json!({"position": 1, "id": FILE})] {
        assert_eq!(send(&bench, "PATCH", &format!("{path}/{FILE}"), &odd).await.status, 400, "{odd}");
    }
    assert_eq!(send(&bench, "DELETE", &format!("{path}/{FILE}"), &json!({})).await.status, 204);
    assert_eq!(send(&bench, "DELETE", &format!("{path}/x"), &json!({})).await.status, 404);
}

#[tokio::test]
async fn an_export_needs_no_token_but_a_good_one_if_any() {
    let bench = bench().await;
    let anybody = async |path: &str| bench.send_as_is(Request::get(path).body(Body::empty()).unwrap()).await;
    let workspace = "0199c0de-0000-7000-8000-0000000000a1";
    let by_slug = anybody(&format!("/api/v1/memories/guide/export?workspaceId={workspace}")).await;
    assert_eq!(by_slug.json()["name"], format!("anybody guide {workspace}"));
    let by_id = anybody(&format!("/api/v1/memories/{MEMORY}/export")).await;
    assert_eq!(by_id.json()["name"], format!("anybody {MEMORY} "));
    let nowhere = anybody("/api/v1/memories/guide/export").await;
    assert_eq!((nowhere.status.as_u16(), &nowhere.json()["error"]), (401, &json!("UNAUTHORIZED")));
    assert_eq!(anybody("/api/v1/memories/guide/export?workspaceId=x").await.status, 400);
    assert_eq!(bench.get("/api/v1/memories/guide/export").await.json()["name"], "somebody guide ");
    let refused = Request::get(format!("/api/v1/memories/{MEMORY}/export"))
        .header("authorization", format!("Bearer {}", refused_token()));
    assert_eq!(bench.send_as_is(refused.body(Body::empty()).unwrap()).await.status, 401);
    assert_eq!(anybody(&format!("/api/v1/memories/{MEMORY}")).await.status, 401);
}

#[tokio::test]
async fn tools_take_slugs_and_change_members_at_once() {
    let bench = bench().await;
    let call = async |tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        bench.post("/mcp", message.to_string()).await.json()["result"].clone()
    };
    let tools = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let tools = bench.post("/mcp", tools.to_string()).await.json()["result"]["tools"].clone();
    let member = json!({"kind": "file", "fileId": FILE});
    for (tool, arguments) in [
        ("list_memories", json!({})),
        ("get_memory", json!({"id": MEMORY})),
        ("create_memory", json!({"name": "x", "members": [member]})),
        ("update_memory", json!({"memoryId": "guide", "useWhen": ""})),
    ] {
        let result = call(tool, arguments).await;
        assert_eq!(result["isError"], false, "{tool}: {result}");
        let described = tools.as_array().unwrap().iter().find(|one| one["name"] == tool).unwrap();
        // A text-only tool has no schema.
        let Some(schema) = described.get("outputSchema") else {
            assert!(result.get("structuredContent").is_none(), "{tool}: {result}");
            continue;
        };
        let validator = jsonschema::validator_for(schema).unwrap();
        assert!(validator.is_valid(&result["structuredContent"]), "{tool}: {result}");
    }
    let changed = call(
        "update_memory",
        json!({"id": "guide", "addMembers": [member, member], "removeMemberIds": [FILE]}),
    );
    assert_eq!(changed.await["structuredContent"]["name"], "guide  +2 -1");
    let nothing = call("update_memory", json!({"id": "guide"})).await;
    assert_eq!(nothing["isError"], true);
    let missing = call("get_memory", json!({"slug": "other"})).await;
    assert!(
        missing["content"][0]["text"].as_str().unwrap().contains("Next: call list_memories"),
        "{missing}"
    );
}
