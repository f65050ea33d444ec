//! Malformed and hostile queries: each gets an answer or a 400 in the contract's shape, and none costs more than its
//! size.

use crate::support::http::{each, id, items};
use crate::support::mcp;
use crate::support::prelude::*;

scenarios![
    any_text_is_a_query,
    what_cannot_be_read_is_refused,
    numbers_out_of_range_are_refused,
    odd_tool_calls_are_answered_too,
    related_files_refuse_what_names_none,
];

const SEARCH: &str = "/api/v1/search_context";

async fn any_text_is_a_query(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let written = workspace
        .file(
            "odd.md",
            None,
            "# Odd\n\nA badger digs. \u{1f9a1} \u{5d0}\u{5d1}\u{5d2} \u{6f22}\u{5b57} C++ a-b.\n",
        )
        .await;
    workspace.search_after(&written.change(), json!({"query": "badger"})).await;
    let long = "badger digging ".repeat(666);
    let words: String = (0..1_600).map(|number| format!("w{number} ")).collect();
    let queries = [
        long.as_str(),
        words.as_str(),
        &"x".repeat(9_999),
        &"\"".repeat(1_000),
        &"-\"".repeat(1_000),
        &format!("{}badger", "-wombat ".repeat(64)),
        &"\"a b\" ".repeat(1_000),
        &"(".repeat(1_000),
        "\u{1}\u{2}\u{7f}\u{1b}[31m badger",
        "\u{1f9a1}\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
        "\u{202e}regdab\u{202c} \u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{645}\u{631}\u{62d}\u{628}\u{627}",
        "\u{feff}\u{200b}\u{ad}badger",
        "e\u{301}\u{301}\u{301}",
        "\u{fffd}\u{10ffff}\u{e000}",
        "badger AND OR NOT title:(x [1 TO 2] ~2 ^3 \\ / *",
        "'; DROP TABLE files; --",
        "{{7*7}} ${x} %s %n %00 ../../etc/passwd",
        "-",
        "--",
        "\"\"",
        "-badger",
        "\\\"badger\\\"",
        "\r\n\t badger \r\n",
    ];
    for query in queries {
        for strategy in ["keyword", "semantic", "hybrid"] {
            let reply =
                workspace.token.post(SEARCH).json(json!({"query": query, "strategy": strategy})).await;
            let answer = reply.expect(200).json();
            assert!(answer["results"].is_array() && answer["coverage"].is_array(), "{query:.40}: {answer}");
        }
        let kinds = ["lex", "vec", "hyde"].map(|kind| json!({"type": kind, "text": query}));
        let body = json!({"query": "badger", "searches": kinds, "explain": true});
        let answer = workspace.token.post(SEARCH).json(body).await.expect(200).json();
        assert!(
            !items(&answer["results"]).is_empty(),
            "{query:.40}: the query itself still counts: {answer}"
        );
    }
}

async fn what_cannot_be_read_is_refused(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let refused = async |body: String| {
        let reply = workspace.token.post(SEARCH).body("application/json", body.clone()).await;
        let error = reply.expect_error(400, "VALIDATION_ERROR");
        assert!(!items(&error["errors"]).is_empty(), "{body:.60}: {error}");
    };
    refused(json!({"query": "a\u{0}b"}).to_string()).await;
    refused(json!({"query": "x".repeat(10_001)}).to_string()).await;
    refused(json!({"query": "   \n\t "}).to_string()).await;
    refused(json!({"query": "-badger ".repeat(1_000)}).to_string()).await;
    refused(json!({"query": "x", "searches": [{"type": "lex", "text": "a\u{0}b"}]}).to_string()).await;
    refused(json!({"query": "x", "searches": [{"type": "lex", "text": " "}]}).to_string()).await;
    refused(json!({"query": "x", "searches": [{"type": "vec", "text": ""}]}).to_string()).await;
    // A lone surrogate is not valid text.
    refused("{\"query\": \"\\ud83e\"}".to_owned()).await;
    refused("{\"query\": \"\\udda1\\ud83e\"}".to_owned()).await;
    refused("{\"query\": \"x\"".to_owned()).await;
    refused("{\"query\": [\"x\"]}".to_owned()).await;
    refused("{\"query\": null}".to_owned()).await;
    refused("[]".to_owned()).await;
}

async fn numbers_out_of_range_are_refused(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let refused = async |body: &str, path: &str| {
        let reply = workspace.token.post(SEARCH).body("application/json", body.to_owned()).await;
        let error = reply.expect_error(400, "VALIDATION_ERROR");
        assert!(each(&error["errors"], "path").contains(&path), "{body}: {error}");
    };
    for limit in ["0", "-1", "51", "\"x\"", "1.5", "1e99", "18446744073709551616"] {
        refused(&format!("{{\"query\": \"x\", \"limit\": {limit}}}"), "limit").await;
    }
    for score in ["2", "-0.1", "\"high\"", "1e309"] {
        let body = format!("{{\"query\": \"x\", \"minScore\": {score}}}");
        let reply = workspace.token.post(SEARCH).body("application/json", body).await;
        reply.expect_error(400, "VALIDATION_ERROR");
    }
    let not_a_number = "{\"query\": \"x\", \"minScore\": NaN}".to_owned();
    workspace
        .token
        .post(SEARCH)
        .body("application/json", not_a_number)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    for budget in ["0", "-1", "\"much\""] {
        refused(&format!("{{\"query\": \"x\", \"tokenBudget\": {budget}}}"), "tokenBudget").await;
    }
    refused("{\"query\": \"x\", \"strategy\": \"magic\"}", "strategy").await;
    refused("{\"query\": \"x\", \"mode\": \"slow\"}", "mode").await;
    refused("{\"query\": \"x\", \"searches\": []}", "searches").await;
    let nine = ["{\"type\": \"lex\", \"text\": \"x\"}"; 9].join(",");
    refused(&format!("{{\"query\": \"x\", \"searches\": [{nine}]}}"), "searches").await;
    let many = ["\"s\""; 101].join(",");
    refused(&format!("{{\"query\": \"x\", \"sourceIds\": [{many}]}}"), "sourceIds").await;
}

async fn odd_tool_calls_are_answered_too(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    for arguments in [
        json!({"query": "a\u{0}b"}),
        json!({"query": "x", "limit": 51}),
        json!({"query": "x", "minScore": 2}),
        json!({"query": "x", "searches": [{"type": "lex", "text": ""}]}),
        json!({}),
    ] {
        let message = mcp::call_error(&workspace.token, "search_context", arguments.clone()).await;
        assert!(message.contains("Validation error"), "{arguments}: {message}");
    }
    let nowhere = "0199c0de-0000-7000-8000-000000000001";
    let message = mcp::call_error(&workspace.token, "get_related_files", json!({"id": nowhere})).await;
    assert!(message.contains("Not found"), "{message}");
    for arguments in [
        json!({}),
        json!({"id": "x"}),
        json!({"id": nowhere, "limit": 21}),
        json!({"id": nowhere, "limit": 0}),
    ] {
        let message = mcp::call_error(&workspace.token, "get_related_files", arguments.clone()).await;
        assert!(message.contains("Validation error"), "{arguments}: {message}");
    }
    let message = mcp::call_error(&workspace.token, "get_workspace_overview", json!({"verbose": true})).await;
    assert!(message.contains("Validation error"), "{message}");
}

async fn related_files_refuse_what_names_none(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = id(&workspace.file("a.md", None, "text").await.json());
    for wrong in ["x", "0199c0de-0000-7000-8000-000000000001", "%00", "..%2f"] {
        let reply = workspace.token.get(&format!("/api/v1/files/{wrong}/related")).await;
        reply.expect_error(404, "NOT_FOUND");
    }
    for limit in ["0", "-1", "21", "x", "1.5"] {
        let reply = workspace.token.get(&format!("/api/v1/files/{file}/related?limit={limit}")).await;
        reply.expect_error(400, "VALIDATION_ERROR");
    }
}
