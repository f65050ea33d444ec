//! The OpenAPI document (spec 1; contract): served from the binary, and accurate.

use reqwest::Method;

use crate::support::http::{items, text};
use crate::support::prelude::*;

scenarios![
    the_document_is_served_in_both_forms,
    every_operation_of_the_spec_is_described,
    every_described_operation_is_served,
    every_reference_leads_somewhere,
    the_ui_is_served_from_the_binary,
    the_console_is_described_and_guarded,
];

const DOCUMENT: &str = "/api/docs/openapi.json";
/// The API that the console's pages call.
const CONSOLE: &str = "/api/docs/console.json";

async fn the_document_is_served_in_both_forms(deployment: &Deployment) {
    let anonymous = deployment.anonymous();
    let as_json = anonymous.get(DOCUMENT).await.expect(200);
    assert!(as_json.header("content-type").unwrap().starts_with("application/json"));
    let document = as_json.json();
    assert!(text(&document, "openapi").starts_with("3.1"), "{}", document["openapi"]);
    assert_eq!(document["info"]["version"], "1.0.0");
    let as_yaml = anonymous.get("/api/docs/openapi.yaml").await.expect(200);
    assert!(as_yaml.header("content-type").unwrap().contains("yaml"));
    let parsed: Value = serde_norway::from_slice(&as_yaml.body).unwrap();
    assert_eq!(parsed, document, "the two forms say different things");
}

async fn every_operation_of_the_spec_is_described(deployment: &Deployment) {
    let document = read(deployment).await;
    for (method, path) in [
        ("get", "/api/v1/files"),
        ("post", "/api/v1/files"),
        ("get", "/api/v1/files/{id}"),
        ("patch", "/api/v1/files/{id}"),
        ("delete", "/api/v1/files/{id}"),
        ("get", "/api/v1/files/{id}/raw"),
        ("get", "/api/v1/folders"),
        ("post", "/api/v1/folders"),
        ("get", "/api/v1/folders/{id}"),
        ("patch", "/api/v1/folders/{id}"),
        ("delete", "/api/v1/folders/{id}"),
        ("get", "/api/v1/folders/{id}/files"),
        ("get", "/api/v1/folders/{id}/subfolders"),
        ("get", "/api/v1/memories"),
        ("post", "/api/v1/memories"),
        ("get", "/api/v1/memories/{id}"),
        ("patch", "/api/v1/memories/{id}"),
        ("delete", "/api/v1/memories/{id}"),
        ("post", "/api/v1/memories/{id}/members"),
        ("delete", "/api/v1/memories/{id}/members/{memberId}"),
        ("get", "/api/v1/memories/{slug}/export"),
        ("post", "/api/v1/sync/preview"),
        ("get", "/api/v1/sync/{runId}"),
        ("post", "/api/v1/sync/{runId}/start"),
        ("delete", "/api/v1/sync/{runId}"),
        ("post", "/api/v1/feedback"),
        ("post", "/api/v1/search_context"),
        ("post", "/api/v1/search_context/absence"),
        ("get", "/api/v1/workspace"),
    ] {
        let operation = &document["paths"][path][method];
        assert!(operation.is_object(), "{method} {path} is missing");
        for status in ["401", "403", "429"] {
            assert!(
                operation["responses"][status].is_object(),
                "{method} {path} can answer {status} (spec 4)"
            );
        }
        let takes = operation.get("requestBody").is_some() || items_or_none(&operation["parameters"]);
        assert!(
            !takes || operation["responses"]["400"].is_object(),
            "{method} {path} can answer 400 (spec 4)"
        );
        assert!(
            !path.contains('{') || operation["responses"]["404"].is_object(),
            "{method} {path} can answer 404"
        );
        let described = ["summary", "description"].into_iter().any(|part| operation[part].is_string());
        assert!(described, "{method} {path} is not described");
    }
    let schemes = &document["components"]["securitySchemes"];
    assert!(
        schemes.as_object().is_some_and(|schemes| !schemes.is_empty()),
        "how to authenticate is not described"
    );
}

async fn every_described_operation_is_served(deployment: &Deployment) {
    let document = read(deployment).await;
    let anonymous = deployment.anonymous();
    let mut seen = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let Ok(verb) = method.to_uppercase().parse::<Method>() else {
                continue;
            };
            if !["get", "post", "patch", "delete", "put"].contains(&method.as_str()) {
                continue;
            }
            let concrete = path.replace(['{', '}'], "");
            let reply = anonymous.request(verb, &concrete).await;
            assert!(path.starts_with("/api/v1/"), "the document describes /api/v1 (spec 1), not {path}");
            assert_eq!(reply.status, 401, "{method} {path} without a token: {}", reply.text());
            seen += 1;
        }
    }
    assert!(seen >= 15, "only {seen} operations");
}

async fn every_reference_leads_somewhere(deployment: &Deployment) {
    let document = read(deployment).await;
    let mut open = vec![&document];
    let mut references = 0;
    while let Some(value) = open.pop() {
        if let Some(target) = value.get("$ref").and_then(Value::as_str) {
            let pointer =
                target.strip_prefix('#').unwrap_or_else(|| panic!("{target} leads out of the document"));
            assert!(document.pointer(pointer).is_some(), "{target} leads nowhere");
            references += 1;
        }
        match value {
            Value::Object(fields) => open.extend(fields.values()),
            Value::Array(entries) => open.extend(entries),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    assert!(references > 0, "no schema is shared");
}

async fn the_ui_is_served_from_the_binary(deployment: &Deployment) {
    let anonymous = deployment.anonymous();
    let mut page = anonymous.get("/api/docs/swagger").await;
    if let Some(target) = page.header("location").map(ToOwned::to_owned) {
        let path = target.find("/api/").map(|start| target[start..].to_owned());
        page = anonymous.get(&path.unwrap_or_else(|| panic!("leads away: {target}"))).await;
    }
    let page = page.expect(200);
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
    let html = page.text();
    assert!(html.to_lowercase().contains("swagger"), "{html}");
    for outside in ["src=\"http", "src=\"//", "href=\"http", "href=\"//"] {
        assert!(!html.contains(outside), "the page wants the internet: {html}");
    }
}

async fn read(deployment: &Deployment) -> Value {
    deployment.anonymous().get(DOCUMENT).await.expect(200).json()
}

fn items_or_none(value: &Value) -> bool {
    !value.is_null() && !items(value).is_empty()
}

/// Every operation of the console requires a session, unless the document says otherwise.
async fn the_console_is_described_and_guarded(deployment: &Deployment) {
    let anonymous = deployment.anonymous();
    let document = anonymous.get(CONSOLE).await.expect(200).json();
    let mut seen = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let verb = method.to_uppercase().parse::<Method>().unwrap();
            assert!(operation["summary"].is_string(), "{method} {path} is not described");
            let reply = anonymous.request(verb, &path.replace(['{', '}'], "")).await;
            if operation["security"] == json!([{}]) {
                assert!(![401, 404, 405].contains(&reply.status), "{method} {path}: {}", reply.text());
            } else {
                assert_eq!(reply.status, 401, "{method} {path} without a session: {}", reply.text());
            }
            seen += 1;
        }
    }
    assert!(seen > 30, "only {seen} operations");
}
