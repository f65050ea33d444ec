//! The REST surface over fake services: statuses, headers and bodies that the gateway decides.

use std::sync::atomic::Ordering;

use axum::body::Body;
use http::{Method, Request};
use serde_json::{Value, json};

use crate::testing::{Answer, Bench, FILE, bench, refused_token};

async fn patch(bench: &Bench, body: &Value, if_match: Option<&str>) -> Answer {
    let mut request =
        Request::patch(format!("/api/v1/files/{FILE}")).header("content-type", "application/json");
    if let Some(tag) = if_match {
        request = request.header("if-match", tag);
    }
    bench.send(request.body(Body::from(body.to_string())).unwrap()).await
}

#[tokio::test]
async fn a_file_is_made_with_its_change_and_tag() {
    let bench = bench().await;
    let body = json!({"name": "a.md", "content": "x", "fileType": "markdown", "folderId": null});
    let made = bench.post("/api/v1/files", body.to_string()).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!(made.headers["x-cairn-change"], "c1-7");
    assert_eq!(made.headers["etag"], "\"blake3:00ff\"");
    let file = made.json();
    assert_eq!(file["fileType"], "markdown");
    assert_eq!(file["folderId"], Value::Null);
    assert_eq!(file["createdAt"], "2027-01-15T08:00:00.000Z");
    assert!(file.get("content").is_none() && file["workspaceId"].is_string());
}

#[tokio::test]
async fn what_is_wrong_with_a_request_has_one_body() {
    let bench = bench().await;
    let typo = bench
        .post(
            "/api/v1/files",
            json!({"name": "a", "content": "", "fileType": "text", "folderid": "x"}).to_string(),
        )
        .await;
    assert_eq!(typo.status, 400);
    assert_eq!(typo.json()["error"], "VALIDATION_ERROR");
    assert_eq!(typo.json()["errors"][0]["path"], "folderid");
    assert!(typo.json()["errors"][0]["message"].as_str().unwrap().contains("`folderId`"));
    assert_eq!(typo.json()["requestId"], typo.headers["x-request-id"].to_str().unwrap());
    for (answer, status, code) in [
        (bench.post("/api/v1/files", "{").await, 400, "VALIDATION_ERROR"),
        (bench.post("/api/v1/files", "").await, 400, "VALIDATION_ERROR"),
        (bench.post("/api/v1/files", "x".repeat(65 * 1024)).await, 413, "PAYLOAD_TOO_LARGE"),
        (bench.get("/api/v1/nothing").await, 404, "NOT_FOUND"),
        (bench.get("/api/v1/files/not-an-id").await, 404, "NOT_FOUND"),
        (bench.get("/api/v1/files/0199c0de-0000-7000-8000-000000000001").await, 404, "NOT_FOUND"),
        (bench.get("/api/v1/files?limit=0").await, 400, "VALIDATION_ERROR"),
        (bench.get("/api/v1/files?folderId=nope").await, 400, "VALIDATION_ERROR"),
        (bench.get("/api/v1/search_context").await, 405, "METHOD_NOT_ALLOWED"),
        (bench.post("/api/v1/search_context", "{\"query\":\"x\"}").await, 503, "UNAVAILABLE"),
    ] {
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]),
            (status, &json!(code)),
            "{}",
            answer.text
        );
    }
    let form =
        Request::post("/api/v1/files").header("content-type", "text/plain").body(Body::from("{}")).unwrap();
    assert_eq!(bench.send(form).await.status, 415);
}

#[tokio::test]
async fn a_change_tells_null_from_absent_and_honours_the_tag() {
    let bench = bench().await;
    assert_eq!(
        patch(&bench, &json!({"folderId": null, "tags": []}), None).await.json()["name"],
        "folder_id,tags"
    );
    assert_eq!(
        patch(&bench, &json!({"content": "x"}), Some("\"blake3:00ff\"")).await.json()["name"],
        "content"
    );
    assert_eq!(patch(&bench, &json!({"content": "x"}), Some("*")).await.status, 200);
    let conflict = patch(&bench, &json!({"content": "x"}), Some("\"blake3:other\"")).await;
    assert_eq!((conflict.status.as_u16(), &conflict.json()["error"]), (409, &json!("VERSION_CONFLICT")));
    assert_eq!(patch(&bench, &json!({"name": null}), None).await.json()["errors"][0]["code"], "wrong_type");
    assert_eq!(patch(&bench, &json!({}), None).await.status, 400);
}

#[tokio::test]
async fn a_file_is_read_whole_raw_and_not_again() {
    let bench = bench().await;
    let path = format!("/api/v1/files/{FILE}");
    assert_eq!(bench.get(&path).await.json()["content"], "one\ntwo\nthree\n");
    let again = Request::get(&path).header("if-none-match", "\"blake3:00ff\"").body(Body::empty()).unwrap();
    let again = bench.send(again).await;
    assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
    let raw = bench.get(&format!("{path}/raw")).await;
    assert_eq!(raw.text, "one\ntwo\nthree\n");
    assert_eq!(raw.headers["content-type"], "text/markdown; charset=utf-8");
    assert_eq!(raw.headers["x-content-type-options"], "nosniff");
    assert!(raw.headers["content-disposition"].to_str().unwrap().contains("filename=\"a.md\""));
    let deleted = bench.send(Request::delete(&path).body(Body::empty()).unwrap()).await;
    assert_eq!((deleted.status.as_u16(), deleted.headers["x-cairn-change"].to_str().unwrap()), (204, "c1-9"));
}

#[tokio::test]
async fn a_list_says_how_many_and_where_it_goes_on() {
    let bench = bench().await;
    let first = bench.get("/api/v1/files?folderId=root&limit=1&unknown=x").await;
    assert!(first.json().is_array());
    assert_eq!(first.headers["x-total-count"], "2");
    let link = first.headers["link"].to_str().unwrap();
    assert_eq!(
        link,
        "<http://127.0.0.1:8700/api/v1/files?folderId=root&limit=1&unknown=x&cursor=p%2B2>; rel=\"next\""
    );
    let last = bench.get("/api/v1/files?cursor=p%2B2").await;
    assert!(last.headers.get("link").is_none());
}

#[tokio::test]
async fn a_token_is_asked_about_once_a_second_and_a_typo_never() {
    let bench = bench().await;
    for _ in 0..5 {
        bench.get("/api/v1/files").await;
    }
    // Five requests may span two seconds.
    assert!((1..=2).contains(&bench.exchanges.load(Ordering::SeqCst)));
    let before = bench.exchanges.load(Ordering::SeqCst);
    let with = |value: &str| {
        Request::get("/api/v1/files").header("authorization", value).body(Body::empty()).unwrap()
    };
    let typo = bench.send(with(&format!("Bearer {}x", refused_token()))).await;
    assert_eq!((typo.status.as_u16(), typo.headers["www-authenticate"].to_str().unwrap()), (401, "Bearer"));
    assert_eq!(bench.exchanges.load(Ordering::SeqCst), before);
    let refused = bench.send(with(&format!("Bearer {}", refused_token()))).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["error"]), (401, &json!("UNAUTHORIZED")));
}

#[tokio::test]
async fn a_token_sees_its_workspace_and_rights() {
    let bench = bench().await;
    let seen = bench.get("/api/v1/workspace").await.json();
    assert_eq!((&seen["name"], &seen["plan"]), (&json!("Home"), &json!("selfhosted")));
    assert_eq!(seen["permissions"], json!(["read", "write", "delete"]));
    assert_eq!(seen["scope"], json!({"type": "all"}));
}

#[tokio::test]
async fn a_caller_finds_its_request_id_again() {
    let bench = bench().await;
    let with = |id: &str| Request::get("/healthz").header("x-request-id", id).body(Body::empty()).unwrap();
    assert_eq!(bench.send_as_is(with("my-id.1")).await.headers["x-request-id"], "my-id.1");
    assert_ne!(bench.send_as_is(with("not ok")).await.headers["x-request-id"], "not ok");
    let ready = bench.send_as_is(Request::get("/readyz").body(Body::empty()).unwrap()).await;
    assert_eq!((ready.status.as_u16(), &ready.json()["down"]), (503, &json!(["retrieval"])));
}

#[tokio::test]
async fn the_console_refuses_other_sites_and_strangers() {
    let bench = bench().await;
    let foreign =
        Request::builder().method(Method::POST).uri("/api/session").header("sec-fetch-site", "cross-site");
    let answer = bench.send_as_is(foreign.body(Body::from("{}")).unwrap()).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["error"]), (403, &json!("ORIGIN_NOT_ALLOWED")));
    let stranger = bench.send_as_is(Request::get("/api/workspaces").body(Body::empty()).unwrap()).await;
    assert_eq!((stranger.status.as_u16(), &stranger.json()["error"]), (401, &json!("UNAUTHORIZED")));
    let out = bench.send_as_is(Request::delete("/api/session").body(Body::empty()).unwrap()).await;
    assert_eq!(out.status, 204);
    assert_eq!(out.headers["set-cookie"], "cairn_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
}

#[tokio::test]
async fn the_document_describes_every_operation() {
    let bench = bench().await;
    let document = bench.get("/api/docs/openapi.json").await.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    assert_eq!(document["info"]["version"], "1.0.0");
    let mut ids = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        assert!(path.starts_with("/api/v1/"), "{path}");
        for (method, operation) in item.as_object().unwrap() {
            ids.push(
                operation["operationId"].as_str().unwrap_or_else(|| panic!("{method} {path}")).to_owned(),
            );
            for code in ["401", "403", "429", "500", "503"] {
                assert!(operation["responses"].get(code).is_some(), "{method} {path}: {code}");
            }
            if operation.get("requestBody").is_some() || operation.get("parameters").is_some() {
                assert!(operation["responses"].get("400").is_some(), "{method} {path}");
            }
            assert!(operation["summary"].is_string(), "{method} {path}");
        }
    }
    let described = ids.len();
    assert!(described >= 23);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), described, "two operations share an id");
    for reference in
        document.to_string().split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next())
    {
        assert!(document.pointer(reference).is_some(), "{reference}");
    }
    let yaml = bench.get("/api/docs/openapi.yaml").await;
    assert!(yaml.text.starts_with("openapi: "));
    for (path, part) in
        [("", "<base href="), ("/", "<base href="), ("/swagger-initializer.js", "/api/docs/openapi.json")]
    {
        let page = bench.get(&format!("/api/docs/swagger{path}")).await;
        assert!(page.status == 200 && page.text.contains(part), "{path}: {}", page.text);
    }
    assert_eq!(bench.get("/api/docs/swagger/nothing.js").await.json()["error"], "NOT_FOUND");
}
