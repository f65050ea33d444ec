//! Input that no SDK sends to `/mcp`: malformed envelopes, deep nesting, unusual headers, bodies in pieces or cut off.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::http::{items, text};
use crate::support::mcp::{self, LEGACY, MODERN, error_code, legacy, message, post};
use crate::support::prelude::*;
use crate::support::windows::window;

scenarios![
    an_id_is_a_text_or_a_whole_number,
    a_batch_of_a_thousand_runs_nothing,
    an_id_stands_once_in_a_batch,
    nesting_ends_somewhere,
    huge_arguments_are_taken_or_refused,
    a_body_is_json_and_says_so,
    any_accept_header_will_do,
    a_notification_wants_no_answer,
    strange_parameters_of_every_method_are_refused,
    a_body_may_come_in_pieces_and_may_break_off,
];

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;

async fn an_id_is_a_text_or_a_whole_number(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let ping = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let long = "x".repeat(10_000);
    for id in [json!(0), json!(-7), json!(u64::MAX), json!(""), json!("1"), json!("\u{1f980}\n"), json!(long)]
    {
        assert_eq!(post(&token).json(ping(id.clone())).await.expect(200).json()["id"], id);
    }
    for id in [json!(null), json!(1.5), json!(1e300), json!(true), json!([1]), json!({"id": 1})] {
        let body = post(&token).json(ping(id.clone())).await.expect(400).json();
        assert_eq!((error_code(&body), &body["id"]), (INVALID_REQUEST, &Value::Null), "{id}");
        assert!(text(&body["error"], "message").contains("`id`"), "{body}");
    }
}

async fn a_batch_of_a_thousand_runs_nothing(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = |number: u64| {
        message(
            number,
            "tools/call",
            &json!({"name": "create_folder", "arguments": {"name": format!("f{number}")}}),
        )
    };
    let thousand: Vec<Value> = (1..=1_000).map(folder).collect();
    let body = post(&workspace.token).json(thousand).await.expect(400).json();
    assert_eq!((error_code(&body), &body["id"]), (INVALID_REQUEST, &Value::Null));
    assert!(text(&body["error"], "message").contains("50"), "the limit is named: {body}");
    assert_eq!(workspace.token.get("/api/v1/folders").await.expect(200).json(), json!([]));
    let fifty: Vec<Value> = (1..=50).map(|number| message(number, "ping", &json!({}))).collect();
    assert_eq!(items(&post(&workspace.token).json(fifty).await.expect(200).json()).len(), 50);
}

async fn an_id_stands_once_in_a_batch(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let call = |id: Value, name: &str| {
        let params = json!({"name": "create_folder", "arguments": {"name": name}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let twice = json!([call(json!("a"), "one"), call(json!(1), "two"), call(json!("a"), "three")]);
    let body = post(&workspace.token).json(twice).await.expect(400).json();
    assert_eq!(error_code(&body), INVALID_REQUEST);
    assert!(text(&body["error"], "message").contains("id"), "{body}");
    assert_eq!(workspace.token.get("/api/v1/folders").await.expect(200).json(), json!([]), "nothing was run");
    let alike = json!([call(json!(1), "one"), call(json!("1"), "two")]);
    assert_eq!(items(&post(&workspace.token).json(alike).await.expect(200).json()).len(), 2);
}

async fn nesting_ends_somewhere(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for depth in [200, 90_000] {
            let nested = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let call = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"list_files\",\
                 \"arguments\":{{\"folderId\":{nested}}}}}}}"
            );
            for body in [nested, call] {
                let reply = post(&token).body("application/json", body).await.expect(400);
                assert_eq!(error_code(&reply.json()), PARSE_ERROR, "{depth}");
            }
        }
    }
    let nested = (0..100).fold(json!(1), |inside, _| json!([inside]));
    let answer_text = mcp::call_error(&token, "list_files", json!({"folderId": nested})).await;
    assert!(answer_text.starts_with("Validation error"), "{answer_text}");
    mcp::result(legacy(&token, "ping", json!({})).await);
}

async fn huge_arguments_are_taken_or_refused(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let large = "x".repeat(4_900_000);
    let file = |content: &str| json!({"name": "large.txt", "content": content, "fileType": "text"});
    let made = mcp::call_json(&token, "create_file", file(&large)).await;
    assert_eq!(made["sizeBytes"], json!(large.len()));
    let answer_text = mcp::call_error(&token, "create_file", file(&"x".repeat(6_000_000))).await;
    assert!(
        answer_text.starts_with("Validation error") && answer_text.len() < 2_000,
        "{} bytes: {answer_text:.200}",
        answer_text.len()
    );
    let answer_text =
        mcp::call_error(&token, "search_context", json!({"query": "x".repeat(1_000_000)})).await;
    assert!(answer_text.len() < 2_000, "an error repeats what was sent: {} bytes", answer_text.len());
    let many: Value = (0..20_000).map(|number| (format!("k{number}"), json!(1))).collect();
    let answer_text = mcp::call_error(&token, "list_files", many).await;
    assert!(
        answer_text.len() < 20_000,
        "an error names more than anybody reads: {} bytes",
        answer_text.len()
    );
    let mut long = json!({});
    long["x".repeat(1_000_000)] = json!(1);
    let answer_text = mcp::call_error(&token, "list_files", long).await;
    assert!(answer_text.len() < 2_000, "an error repeats a name of any length: {} bytes", answer_text.len());
    let name = "x".repeat(100_000);
    let reply = legacy(&token, "tools/call", json!({"name": name, "arguments": {}})).await.expect(200);
    assert!(error_code(&reply.json()) == INVALID_PARAMS && reply.body.len() < 2_000);
    let reply = legacy(&token, &name, json!({})).await.expect(200);
    assert!(reply.body.len() < 2_000, "{} bytes", reply.body.len());
}

async fn a_body_is_json_and_says_so(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let ping = message(1, "ping", &json!({})).to_string();
    for right in ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON"] {
        mcp::result(post(&token).body(right, ping.clone()).await);
    }
    for wrong in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x", ""]
    {
        let reply = post(&token).body(wrong, ping.clone()).await;
        window(&reply);
        let error = reply.expect_error(415, "UNSUPPORTED_MEDIA_TYPE");
        assert!(text(&error, "message").contains("application/json"), "{error}");
    }
    let utf16: Vec<u8> = ping.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bom = [&b"\xef\xbb\xbf"[..], ping.as_bytes()].concat();
    for raw in [utf16, bom, vec![0; 64], b"\x1f\x8b\x08\x00".to_vec()] {
        let reply = post(&token).body("application/json", raw).await.expect(400);
        assert_eq!(error_code(&reply.json()), PARSE_ERROR);
    }
}

async fn any_accept_header_will_do(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for accept in ["*/*", "application/json", "text/event-stream", "text/html", ""] {
        let reply = token.post("/mcp").header("accept", accept).json(message(1, "ping", &json!({}))).await;
        assert_eq!(reply.header("content-type"), Some("application/json"), "{accept}");
        mcp::result(reply);
    }
}

async fn a_notification_wants_no_answer(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    for body in [
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        json!({"jsonrpc": "2.0", "method": "no/such/notification"}),
        json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "create_folder", "arguments": {"name": "f"}}}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}),
    ] {
        assert!(post(&workspace.token).json(&body).await.expect(202).body.is_empty(), "{body}");
    }
    let quiet = post(&workspace.token)
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", "notifications/cancelled");
    quiet.json(json!({"jsonrpc": "2.0", "method": "notifications/cancelled"})).await.expect(202);
    assert_eq!(
        workspace.token.get("/api/v1/folders").await.expect(200).json(),
        json!([]),
        "no notification acts"
    );
}

async fn strange_parameters_of_every_method_are_refused(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for (method, params) in [
        ("initialize", json!({})),
        ("initialize", json!({"protocolVersion": 5})),
        ("tools/list", json!({"cursor": "x"})),
        ("tools/list", json!({"cursor": {}})),
        ("tools/call", json!({"name": null})),
        ("tools/call", json!({"name": "list_files", "arguments": 5})),
        ("resources/list", json!({"cursor": []})),
        ("resources/read", json!({"uri": []})),
        ("resources/read", json!({})),
        ("resources/templates/list", json!({"cursor": "x"})),
        ("resources/directory/read", json!({"uri": null})),
        ("skills/list", json!({"cursor": 1})),
        ("skills/get", json!({"uri": {}})),
    ] {
        let body = legacy(&token, method, params).await.expect(200).json();
        assert_eq!(error_code(&body), INVALID_PARAMS, "{method}: {body}");
    }
    for params in [json!([]), json!("x"), json!(5), json!(true)] {
        let wrong = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": params});
        let body = post(&token).json(wrong).await.expect(400).json();
        assert_eq!((error_code(&body), &body["id"]), (INVALID_PARAMS, &json!(1)), "{body}");
    }
    let odd_meta = json!({"name": "list_files", "arguments": {}, "_meta": {"cairn/change": "nonsense"}});
    mcp::result(legacy(&token, "tools/call", odd_meta).await);
    let unread = post(&token).header("mcp-protocol-version", LEGACY[0]);
    mcp::result(unread.json(message(1, "ping", &json!({"_meta": 5}))).await);
}

async fn a_body_may_come_in_pieces_and_may_break_off(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let address = deployment.base_url().trim_start_matches("http://").to_owned();
    let ping = message(1, "ping", &json!({})).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        token.secret,
        ping.len()
    );
    let mut whole = TcpStream::connect(&address).await.unwrap();
    let mut broken = TcpStream::connect(&address).await.unwrap();
    for stream in [&mut whole, &mut broken] {
        stream.write_all(head.as_bytes()).await.unwrap();
    }
    broken.write_all(&ping.as_bytes()[..5]).await.unwrap();
    for byte in ping.as_bytes() {
        whole.write_all(&[*byte]).await.unwrap();
        whole.flush().await.unwrap();
    }
    let mut answer = String::new();
    tokio::time::timeout(LIMIT, whole.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"result\""), "{answer}");
    drop(broken);
    mcp::result(legacy(&token, "ping", json!({})).await);
}
