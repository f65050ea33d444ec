//! Request bodies crafted to exhaust memory, measured by the process's own peak memory.

use std::fmt::Write as _;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::callers::Anonymous;
use crate::support::http::{id, items};
use crate::support::mcp;
use crate::support::prelude::*;
use crate::support::runner::{announce_skip, run_alone};
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

const MIB: u64 = 1024 * 1024;
/// What all attacks together may add to the peak of startup and legitimate calls.
const MAX_ADDED: u64 = 256 * MIB;
const SEARCH: &str = "/api/v1/search_context";
/// The errors of one response: fifty, and a note that there are more.
const MAX_ERRORS: usize = 51;

/// `{"k0":0,"k1":0,…}`, of about that many bytes.
fn unknown_keys(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes);
    for number in 0..bytes / 13 {
        write!(text, ",\"k{number:07}\":0").unwrap();
    }
    format!("{{{}}}", text.trim_start_matches(','))
}

/// `[0,0,…]`, of that many bytes.
fn zeros(bytes: usize) -> String {
    format!("[{}0]", "0,".repeat(bytes / 2 - 2))
}

/// Keeps sending a body though the server has refused it, until there is a response; returns the status line.
async fn send_refused_body(up: &SingleProcess, path: &str, more: &str, body: &str) -> String {
    let address = up.base_url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n{more}\r\n\r\n"
    );
    let (mut incoming, mut outgoing) = stream.split();
    let sending = async {
        outgoing.write_all(head.as_bytes()).await.unwrap();
        // The refusal may arrive, and the connection close, before everything is sent.
        let _ = outgoing.write_all(body.as_bytes()).await;
        std::future::pending::<()>().await;
    };
    let mut answer = vec![0; 4096];
    let reading = tokio::time::timeout(LIMIT, incoming.read(&mut answer));
    let read = tokio::select! {
        read = reading => read.unwrap().unwrap(),
        () = sending => 0,
    };
    String::from_utf8_lossy(&answer[..read]).lines().next().unwrap_or_default().to_owned()
}

/// Attacks without a token.
async fn attack_as_nobody(up: &SingleProcess) {
    let keys = unknown_keys(27_000_000);
    for path in ["/api/session", "/api/invitations/accept", "/api/invitations/look-up", "/invite"] {
        let announced = send_refused_body(up, path, &format!("content-length: {}", keys.len()), &keys).await;
        assert!(announced.starts_with("HTTP/1.1 413"), "{path}: {announced}");
        let chunk = format!("{:x}\r\n{keys}\r\n", keys.len());
        let chunked = send_refused_body(up, path, "transfer-encoding: chunked", &chunk).await;
        assert!(chunked.starts_with("HTTP/1.1 413"), "{path}: {chunked}");
    }
    let length = format!("content-length: {}", keys.len());
    assert!(
        send_refused_body(up, SEARCH, &length, &keys).await.starts_with("HTTP/1.1 401"),
        "nobody reads it"
    );
    assert!(
        send_refused_body(up, "/mcp", &length, &keys).await.starts_with("HTTP/1.1 401"),
        "nobody reads it"
    );
    let small = Anonymous { http: up.token().http };
    let reply = small.post("/api/session").body("application/json", unknown_keys(16_000)).await;
    assert!(items(&reply.expect_error(400, "VALIDATION_ERROR")["errors"]).len() <= MAX_ERRORS);
}

async fn attack_over_rest(up: &SingleProcess) {
    let token = up.token();
    let database = id(&token.post("/api/v1/databases").json(json!({"name": "d"})).await.expect(201).json());
    let records = format!("/api/v1/databases/{database}/records");
    let fields = format!("/api/v1/databases/{database}/fields");
    let beyond = |path: &str, body: String| token.post(path).body("application/json", body);
    for (path, body) in [
        (SEARCH, format!("{{\"query\":\"x\",\"sourceIds\":{}}}", zeros(1_000_000))),
        (records.as_str(), format!("{{\"values\":{{\"a\":{}}}}}", zeros(1_000_000))),
        ("/api/v1/feedback", format!("{{\"message\":\"x\",\"context\":{{\"a\":{}}}}}", zeros(1_000_000))),
        ("/api/v1/files", unknown_keys(15_000_000)),
    ] {
        beyond(path, body).await.expect_error(413, "PAYLOAD_TOO_LARGE");
    }
    let options: Vec<Value> = (0..20_000).map(|_| json!({"nam": 1})).collect();
    for (path, body) in [
        (SEARCH, format!("{{\"query\":\"x\",\"sourceIds\":{}}}", zeros(150_000))),
        (SEARCH, unknown_keys(1_000_000)),
        (records.as_str(), format!("{{\"values\":{}}}", unknown_keys(1_000_000))),
        (records.as_str(), format!("{{\"values\":{}}}", zeros(150_000))),
        (fields.as_str(), json!({"name": "f", "type": "select", "config": {"options": options}}).to_string()),
        ("/api/v1/feedback", format!("{{\"message\":\"x\",\"context\":{}}}", unknown_keys(1_000_000))),
    ] {
        let error = beyond(path, body).await.expect_error(400, "VALIDATION_ERROR");
        let errors = items(&error["errors"]).len();
        assert!((1..=MAX_ERRORS).contains(&errors), "{path}: {errors} errors");
    }
}

async fn attack_over_mcp(up: &SingleProcess) {
    let token = up.token();
    let call = |name: &str, arguments: &str| {
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"{name}\",\"arguments\":{arguments}}}}}"
        );
        mcp::post(&token).body("application/json", body)
    };
    let (list, keys) = (zeros(31_000_000), unknown_keys(31_000_000));
    for (tool, arguments) in [
        ("search_context", format!("{{\"query\":\"x\",\"sourceIds\":{list}}}")),
        ("search_context", keys.clone()),
        ("create_database_record", format!("{{\"databaseId\":\"x\",\"values\":{keys}}}")),
        ("query_database", format!("{{\"databaseId\":\"x\",\"filter\":{{\"and\":{list}}}}}")),
        ("submit_feedback", format!("{{\"message\":\"x\",\"context\":{keys}}}")),
    ] {
        call(tool, &arguments).await.expect_error(413, "PAYLOAD_TOO_LARGE");
    }
    mcp::post(&token).body("application/json", list.clone()).await.expect_error(413, "PAYLOAD_TOO_LARGE");
    // A list sent as a string is one value until it is parsed.
    let as_text = format!("{{\"query\":\"x\",\"sourceIds\":\"{list}\"}}");
    let few = format!("{{\"query\":\"x\",\"sourceIds\":{}}}", zeros(150_000));
    for arguments in [as_text, few] {
        let result = mcp::result(call("search_context", &arguments).await);
        assert_eq!(result["isError"], true);
        let message = mcp::text_of(&result);
        assert!(message.starts_with("Validation error") && message.len() < 20_000, "{}", message.len());
    }
}

#[test]
fn hostile_bodies_take_little_memory() {
    run_alone(async {
        let data = Scratch::new();
        let up = SingleProcess::start_on(data.path(), &[]).await;
        up.token().post(SEARCH).json(json!({"query": "how do I begin"})).await.expect(200);
        mcp::result(mcp::legacy(&up.token(), "tools/list", json!({})).await);
        let Some(before) = up.process().peak_memory() else {
            return announce_skip("nothing tells here how much memory a process took");
        };
        attack_as_nobody(&up).await;
        attack_over_rest(&up).await;
        attack_over_mcp(&up).await;
        let peak = up.process().peak_memory().unwrap();
        let added = peak - before;
        assert!(added < MAX_ADDED, "{} MiB, {} MiB more than before", peak / MIB, added / MIB);
        up.token().get("/api/v1/files").await.expect(200);
    });
}
