//! Rate limits of tokens (spec 8): windows, what counts, headers, and the body of a refusal.

use futures::future::join_all;
use reqwest::Method;

use crate::support::callers::ApiToken;
use crate::support::http::{items, text};
use crate::support::mcp::{self, LEGACY, message};
use crate::support::prelude::*;
use crate::support::windows::{in_one_window, set_plan, window};

scenarios![
    every_answer_tells_how_the_window_stands,
    two_hundred_clients_get_exactly_the_minute,
    a_full_window_refuses_until_it_ends,
    tokens_are_counted_apart,
    mcp_counts_what_reads_or_acts,
    a_batch_passes_whole_or_not_at_all,
    a_full_window_is_told_to_mcp_clients,
];

const WORKSPACE: &str = "/api/v1/workspace";
/// The daily limit of the plan `studio` in these deployments.
const STUDIO: u64 = 20;
const FREE: u64 = 600;

/// A workspace on the plan `studio` with a fresh token, and the number of requests that its window has left.
async fn studio(deployment: &Deployment) -> (Workspace, ApiToken) {
    let workspace = deployment.workspace().await;
    set_plan(&workspace, &workspace.token, "studio", STUDIO).await;
    let token = workspace.token_with(&["read", "write", "delete"]).await;
    (workspace, token)
}

async fn every_answer_tells_how_the_window_stands(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    assert_eq!(window(&token.get(WORKSPACE).await.expect(200)).limit, 1_000_000);
    set_plan(&workspace, token, "free", FREE).await;
    let answers = in_one_window(async || {
        let answers = [
            token.get(WORKSPACE).await.expect(200),
            token.get("/api/v1/files/not-an-id").await.expect(404),
            token.post("/api/v1/files").json(json!({"nam": 5})).await.expect(400),
            token.request(Method::PUT, WORKSPACE).await.expect(405),
            token.get("/api/v1/no/such/route").await.expect(404),
        ];
        let windows = answers.each_ref().map(window);
        (windows[0].clone(), windows[4].clone(), windows)
    })
    .await;
    for pair in answers.windows(2) {
        assert_eq!((pair[1].name.as_str(), pair[1].limit), ("minute", FREE));
        assert_eq!(pair[1].remaining, pair[0].remaining - 1, "every request counts: {answers:?}");
    }
    // An anonymous caller is limited by its address.
    let anonymous = deployment.anonymous();
    for reply in
        [anonymous.get(WORKSPACE).await.expect(401), mcp::post(&anonymous).json(json!({})).await.expect(401)]
    {
        assert_eq!(
            (window(&reply).limit, window(&reply).remaining),
            (30, 30),
            "no token is no invalid token"
        );
    }
}

async fn two_hundred_clients_get_exactly_the_minute(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    set_plan(&workspace, &workspace.token, "free", FREE).await;
    let passed = in_one_window(async || {
        let token = workspace.token_with(&["read"]).await;
        let before = window(&token.get(WORKSPACE).await.expect(200));
        let clients = (0..200).map(|_| async {
            let mut passed = 1;
            for _ in 0..4 {
                let reply = token.get(WORKSPACE).await;
                match reply.status {
                    200 => passed += 1,
                    429 => {}
                    odd => panic!("{odd}: {}", reply.text()),
                }
            }
            passed - 1
        });
        let passed: u64 = join_all(clients).await.into_iter().sum();
        (before, window(&token.get(WORKSPACE).await), passed + 1)
    })
    .await;
    assert_eq!(passed, FREE);
}

async fn a_full_window_refuses_until_it_ends(deployment: &Deployment) {
    let (_, token) = studio(deployment).await;
    for used in 1..=STUDIO {
        // Failed requests count like any other.
        let reply =
            if used % 2 == 0 { token.get("/api/v1/files/x").await } else { token.get(WORKSPACE).await };
        assert_ne!(reply.status, 429, "request {used}: {}", reply.text());
        assert_eq!(window(&reply).remaining, STUDIO - used, "request {used}");
    }
    let refused = token.get(WORKSPACE).await;
    let stands = window(&refused);
    assert_eq!((stands.name.as_str(), stands.limit, stands.remaining), ("day", STUDIO, 0));
    assert_eq!(refused.header("retry-after"), Some(stands.reset.to_string().as_str()));
    let answer_text = text(&refused.expect_error(429, "RATE_LIMITED"), "message");
    assert!(
        answer_text.contains("studio") && answer_text.contains("20") && answer_text.contains("retry after"),
        "{answer_text}"
    );
    let written =
        token.post("/api/v1/files").json(json!({"name": "a", "content": "x", "fileType": "text"})).await;
    written.expect_error(429, "RATE_LIMITED");
}

async fn tokens_are_counted_apart(deployment: &Deployment) {
    let (workspace, token) = studio(deployment).await;
    for _ in 0..STUDIO {
        token.get(WORKSPACE).await.expect(200);
    }
    token.get(WORKSPACE).await.expect_error(429, "RATE_LIMITED");
    let other = workspace.token_with(&["read"]).await;
    assert_eq!(window(&other.get(WORKSPACE).await.expect(200)).remaining, STUDIO - 1);
}

fn listing(id: u64) -> Value {
    message(id, "tools/call", &json!({"name": "list_folders", "arguments": {}}))
}

async fn mcp_counts_what_reads_or_acts(deployment: &Deployment) {
    let (_, token) = studio(deployment).await;
    let mut left = STUDIO;
    let free = [
        message(1, "initialize", &json!({"protocolVersion": LEGACY[0], "capabilities": {}})),
        message(1, "ping", &json!({})),
        message(1, "tools/list", &json!({})),
        message(1, "no/such/method", &json!({})),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "method": "tools/call"}),
        json!("no message"),
    ];
    for body in free {
        let reply = mcp::post(&token).json(&body).await;
        assert_eq!(window(&reply).remaining, left, "{body} is free");
    }
    let counted = [
        listing(1),
        message(1, "tools/call", &json!({"name": "no_such_tool"})),
        message(1, "resources/read", &json!({"uri": "cairn://nothing"})),
        message(1, "prompts/get", &json!({"name": "nothing"})),
        json!([listing(1)]),
    ];
    for body in counted {
        left -= 1;
        let reply = mcp::post(&token).json(&body).await;
        assert_eq!(window(&reply).remaining, left, "{body} counts");
    }
    let mixed = json!([listing(1), message(2, "ping", &json!({})), listing(3)]);
    assert_eq!(window(&mcp::post(&token).json(&mixed).await.expect(200)).remaining, left - 2);
    let not_json = mcp::post(&token).body("application/json", "{").await.expect(400);
    assert_eq!(window(&not_json).remaining, left - 2);
}

async fn a_batch_passes_whole_or_not_at_all(deployment: &Deployment) {
    let (_, token) = studio(deployment).await;
    let batch = |size: u64| Value::Array((1..=size).map(listing).collect());
    let all = mcp::post(&token).json(batch(15)).await.expect(200);
    assert_eq!((items(&all.json()).len(), window(&all).remaining), (15, STUDIO - 15));

    let refused = mcp::post(&token).json(batch(6)).await.expect(429);
    let stands = window(&refused);
    assert_eq!(stands.remaining, STUDIO - 15, "nothing of it was taken");
    assert_eq!(refused.header("retry-after"), Some(stands.reset.to_string().as_str()));
    let ids: Vec<u64> = items(&refused.json()).iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6]);
    mcp::post(&token).json(batch(5)).await.expect(200);

    let never = mcp::post(&token).json(batch(STUDIO + 1)).await.expect(400);
    let body = never.json();
    let first = &items(&body)[0]["error"];
    assert_eq!(first["code"], -32600);
    assert!(
        text(first, "message").contains("never pass") && never.header("retry-after").is_none(),
        "{first}"
    );
}

async fn a_full_window_is_told_to_mcp_clients(deployment: &Deployment) {
    let (_, token) = studio(deployment).await;
    for _ in 0..STUDIO {
        token.get(WORKSPACE).await.expect(200);
    }
    for reply in [
        mcp::legacy(&token, "tools/call", json!({"name": "list_folders", "arguments": {}})).await,
        mcp::modern(&token, "tools/call", json!({"name": "list_folders", "arguments": {}})).await,
    ] {
        let reply = reply.expect(429);
        let body = reply.json();
        assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!(1)), "{body}");
        let error = &body["error"];
        let code = error["code"].as_i64().unwrap();
        assert!(!(-32_768..=-32_000).contains(&code), "{code} is reserved");
        assert!(text(error, "message").contains("retry after"), "{error}");
        assert_eq!(
            reply.header("retry-after"),
            Some(error["data"]["retryAfterSeconds"].to_string().as_str())
        );
        assert_eq!(window(&reply).remaining, 0);
    }
    mcp::result(mcp::legacy(&token, "tools/list", json!({})).await);
    mcp::result(mcp::modern(&token, "server/discover", json!({})).await);
}
