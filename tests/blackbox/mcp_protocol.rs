//! The transport of `/mcp`: two eras of the protocol on one endpoint, and every malformed envelope.

use reqwest::Method;

use crate::support::http::{Reply, items, text};
use crate::support::mcp::{
    self, LEGACY, MODERN, error_code, legacy, message, modern, post, with_modern_meta,
};
use crate::support::prelude::*;

scenarios![
    a_legacy_client_shakes_hands,
    legacy_housekeeping_is_answered,
    a_modern_client_discovers,
    a_modern_answer_says_how_long_it_holds,
    modern_headers_must_match_the_body,
    a_modern_version_must_be_supported,
    what_the_modern_era_removed_is_not_found,
    a_batch_is_answered_as_one,
    a_batch_has_its_rules,
    a_malformed_envelope_is_named,
    an_unknown_method_or_tool_is_named,
    only_post_is_taken,
    the_old_transport_is_gone,
    every_request_is_authenticated,
    a_foreign_origin_is_refused,
];

const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const PARSE_ERROR: i64 = -32700;
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;

async fn a_legacy_client_shakes_hands(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let hello = |version: &str| {
        message(
            1,
            "initialize",
            &json!({"protocolVersion": version, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}),
        )
    };
    for (asked, answered) in [
        (LEGACY[0], LEGACY[0]),
        (LEGACY[1], LEGACY[1]),
        (LEGACY[2], LEGACY[2]),
        ("2024-11-05", LEGACY[0]),
        ("1999-01-01", LEGACY[0]),
        (MODERN, LEGACY[0]),
    ] {
        let reply = post(&token).json(hello(asked)).await;
        assert!(reply.header("mcp-session-id").is_none(), "no sessions in either era");
        let result = mcp::result(reply);
        assert_eq!(text(&result, "protocolVersion"), answered, "asked for {asked}");
        assert!(result["capabilities"]["tools"].is_object(), "{result}");
        assert!(
            !text(&result["serverInfo"], "name").is_empty()
                && !text(&result["serverInfo"], "version").is_empty()
        );
    }
    let started =
        post(&token).json(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await.expect(202);
    assert!(started.body.is_empty());
}

async fn legacy_housekeeping_is_answered(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    assert_eq!(mcp::result(legacy(&token, "ping", json!({})).await), json!({}));
    let without_header = post(&token).json(message(1, "tools/list", &json!({}))).await;
    assert!(!items(&mcp::result(without_header)["tools"]).is_empty());
    let wanted = token.post("/mcp").header("accept", "*/*").json(message(1, "ping", &json!({}))).await;
    mcp::result(wanted);
    let text_id = json!({"jsonrpc": "2.0", "id": "a-1", "method": "ping"});
    assert_eq!(post(&token).json(text_id).await.expect(200).json()["id"], "a-1");
    let session =
        post(&token).header("mcp-session-id", "whatever").json(message(1, "ping", &json!({}))).await;
    mcp::result(session);
    let odd =
        post(&token).header("mcp-protocol-version", "1999-01-01").json(message(1, "ping", &json!({}))).await;
    assert_eq!(odd.status, 400, "{}", odd.text());
}

async fn a_modern_client_discovers(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let result = mcp::result(modern(&token, "server/discover", json!({})).await);
    let versions: Vec<&str> = items(&result["supportedVersions"]).iter().filter_map(Value::as_str).collect();
    assert!(versions.contains(&MODERN), "{versions:?}");
    assert!(result["capabilities"]["tools"].is_object(), "{result}");
    assert_eq!(result["resultType"], "complete");
}

async fn a_modern_answer_says_how_long_it_holds(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for method in ["server/discover", "tools/list"] {
        let result = mcp::result(modern(&token, method, json!({})).await);
        assert!(result["ttlMs"].as_u64().is_some(), "{method}: {result}");
        assert!(["public", "private"].contains(&text(&result, "cacheScope").as_str()), "{method}: {result}");
        assert_eq!(result["resultType"], "complete", "{method}");
    }
    let called = modern(&token, "tools/call", json!({"name": "list_files", "arguments": {}})).await;
    assert_eq!(mcp::result(called)["resultType"], "complete");
}

async fn modern_headers_must_match_the_body(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let call = with_modern_meta(json!({"name": "list_files", "arguments": {}}));
    let body = message(1, "tools/call", &call);
    let send = async |headers: &[(&str, &str)]| {
        let mut request = post(&token);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.json(&body).await
    };
    let version = ("mcp-protocol-version", MODERN);
    let method = ("mcp-method", "tools/call");
    let name = ("mcp-name", "list_files");
    for headers in [
        vec![method, name],
        vec![version, name],
        vec![version, method],
        vec![version, ("mcp-method", "tools/list"), name],
        vec![version, ("mcp-method", "TOOLS/CALL"), name],
        vec![version, method, ("mcp-name", "get_file")],
        vec![("mcp-protocol-version", LEGACY[0]), method, name],
    ] {
        refused(send(&headers).await, 400, HEADER_MISMATCH);
    }
    mcp::result(send(&[version, method, name]).await);
    mcp::result(send(&[version, method, ("mcp-name", " list_files ")]).await);
    mcp::result(send(&[version, method, ("mcp-name", "=?base64?bGlzdF9maWxlcw==?=")]).await);
}

async fn a_modern_version_must_be_supported(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let mut params = with_modern_meta(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    let request =
        post(&token).header("mcp-protocol-version", "2031-01-01").header("mcp-method", "tools/list");
    let body = refused(request.json(message(1, "tools/list", &params)).await, 400, UNSUPPORTED_VERSION);
    let data = &body["error"]["data"];
    assert_eq!(data["requested"], "2031-01-01");
    assert!(items(&data["supported"]).contains(&json!(MODERN)), "{body}");

    let mut params = with_modern_meta(json!({}));
    params["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    let request = post(&token).header("mcp-protocol-version", MODERN).header("mcp-method", "tools/list");
    refused(request.json(message(1, "tools/list", &params)).await, 400, INVALID_PARAMS);
}

async fn what_the_modern_era_removed_is_not_found(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such/method"] {
        refused(modern(&token, method, json!({})).await, 404, METHOD_NOT_FOUND);
    }
}

async fn a_batch_is_answered_as_one(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let arguments = json!({"name": "list_files", "arguments": {}});
    let batch = json!([
        message(1, "ping", &json!({})),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        message(2, "tools/call", &arguments),
        message(3, "no/such/method", &json!({})),
        7,
    ]);
    let answers = post(&token).json(batch).await.expect(200).json();
    assert_eq!(items(&answers).len(), 4, "one for each but the notification: {answers}");
    let answer = |id: Value| items(&answers).iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(answer(json!(1))["result"], json!({}));
    assert!(answer(json!(2))["result"]["content"].is_array());
    assert_eq!(error_code(answer(json!(3))), METHOD_NOT_FOUND);
    assert_eq!(error_code(answer(Value::Null)), INVALID_REQUEST);
    let quiet = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]);
    assert!(post(&token).json(quiet).await.expect(202).body.is_empty());
}

async fn a_batch_has_its_rules(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let empty = post(&token).json(json!([])).await;
    assert_eq!(error_code(&empty.json()), INVALID_REQUEST);
    let ping = message(1, "ping", &json!({}));
    let modern = post(&token)
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", "ping")
        .json(json!([ping]))
        .await;
    assert_eq!(modern.status, 400);
    assert!([INVALID_REQUEST, HEADER_MISMATCH].contains(&error_code(&modern.json())), "{}", modern.text());
    let hello = json!({"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let shaken =
        post(&token).json(json!([message(1, "initialize", &hello), message(2, "ping", &json!({}))])).await;
    let body = shaken.json();
    let first = if body.is_array() { body[0].clone() } else { body };
    assert_eq!(error_code(&first), INVALID_REQUEST, "initialize must not be in a batch");
    let huge: Vec<Value> = (0..5000).map(|number| message(number, "ping", &json!({}))).collect();
    let capped = post(&token).json(huge).await;
    let body = capped.json();
    assert!(body.is_object(), "a batch of 5000 was run: {} bytes of answers", capped.body.len());
    assert_eq!(error_code(&body), INVALID_REQUEST);
}

async fn a_malformed_envelope_is_named(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for raw in [&b"{"[..], b"", b"nonsense", b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"\xff\xfe\"}"] {
        let reply = post(&token).body("application/json", raw.to_vec()).await;
        assert_eq!(reply.status, 400, "{}", reply.text());
        assert_eq!(error_code(&reply.json()), PARSE_ERROR);
        assert_eq!(reply.json()["id"], Value::Null);
    }
    for envelope in [
        json!(5),
        json!("ping"),
        json!({}),
        json!({"id": 1, "method": "ping"}),
        json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 1}),
        json!({"jsonrpc": "2.0", "id": 1, "method": 5}),
        json!({"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": null, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": 5}),
    ] {
        let reply = post(&token).json(&envelope).await;
        let code = error_code(&reply.json());
        assert!([INVALID_REQUEST, INVALID_PARAMS].contains(&code), "{envelope}: {}", reply.text());
        assert!(matches!(reply.status, 200 | 400), "{envelope}: {}", reply.status);
    }
}

async fn an_unknown_method_or_tool_is_named(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    refused(legacy(&token, "no/such/method", json!({})).await, 200, METHOD_NOT_FOUND);
    for params in [
        json!({"name": "no_such_tool", "arguments": {}}),
        json!({"arguments": {}}),
        json!({"name": 5}),
        json!({"name": "list_files", "arguments": "text"}),
        json!({"name": "list_files", "arguments": []}),
    ] {
        refused(legacy(&token, "tools/call", params).await, 200, INVALID_PARAMS);
    }
    let unknown = modern(&token, "tools/call", json!({"name": "no_such_tool", "arguments": {}})).await;
    refused(unknown, 200, INVALID_PARAMS);
    let near = legacy(&token, "tools/call", json!({"name": "list_file", "arguments": {}})).await;
    assert!(near.text().contains("list_files"), "names the nearest tool: {}", near.text());
}

async fn only_post_is_taken(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let reply = token.request(method, "/mcp").await;
        assert_eq!(reply.header("allow"), Some("POST"), "{}", reply.text());
        reply.expect(405);
    }
}

async fn the_old_transport_is_gone(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for path in ["/mcp/sse", "/mcp/message"] {
        for method in [Method::GET, Method::POST] {
            let gone = token.request(method, path).await.expect_error(410, "GONE");
            assert!(text(&gone, "message").contains("/mcp"), "{gone}");
        }
    }
}

async fn every_request_is_authenticated(deployment: &Deployment) {
    let anonymous = deployment.anonymous();
    for method in ["initialize", "tools/list", "tools/call", "ping"] {
        let reply = post(&anonymous).json(message(1, method, &json!({}))).await;
        let challenge = reply.header("www-authenticate").unwrap_or_default().to_owned();
        assert!(challenge.starts_with("Bearer"), "{method}: {challenge}");
        reply.expect(401);
    }
    let forged = deployment.token("cairn_forged");
    post(&forged).json(message(1, "ping", &json!({}))).await.expect(401);
}

async fn a_foreign_origin_is_refused(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let ping = message(1, "ping", &json!({}));
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        post(&token).header("origin", origin).json(&ping).await.expect(403);
    }
    mcp::result(post(&token).header("origin", deployment.base_url()).json(&ping).await);
}

/// The body of a request that must fail with a protocol error.
#[track_caller]
fn refused(reply: Reply, status: u16, code: i64) -> Value {
    let body = reply.expect(status).json();
    assert_eq!(error_code(&body), code, "{body}");
    assert_eq!(body["id"], json!(1), "{body}");
    body
}
