//! Bad input (issue "Bad input"; contract, "Errors"): a clear error, the same everywhere, and no side effect.

use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::http::{each, id, items, text};
use crate::support::prelude::*;

scenarios![
    a_body_must_be_json,
    wrong_types_are_all_named_at_once,
    an_unknown_field_names_the_nearest,
    an_id_must_name_something,
    an_oversized_body_is_refused,
    bytes_that_are_no_text_are_refused,
    an_unknown_address_is_not_found,
    a_wrong_method_is_told_the_right_ones,
    every_answer_has_a_request_id,
    unknown_query_parameters_are_ignored,
    null_means_absent_on_create,
    a_query_must_be_well_formed,
    a_broken_request_does_not_harm_the_next,
];

const FILES: &str = "/api/v1/files";

async fn a_body_must_be_json(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for raw in ["", "{", "{\"name\": }", "nonsense", "{\"name\": \"a\"} trailing", "{'name': 'a'}"] {
        let reply = token.post(FILES).body("application/json", raw.as_bytes().to_vec()).await;
        reply.expect_error(400, "VALIDATION_ERROR");
    }
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    token.post(FILES).body("application/json", deep).await.expect_error(400, "VALIDATION_ERROR");
    for raw in ["[]", "null", "5", "\"text\""] {
        let reply = token.post(FILES).body("application/json", raw.as_bytes().to_vec()).await;
        reply.expect_error(400, "VALIDATION_ERROR");
    }
    let form = token.post(FILES).body("application/x-www-form-urlencoded", "name=a").await;
    assert!(matches!(form.status, 400 | 415), "{}", form.text());
    assert_eq!(token.get(FILES).await.expect(200).json(), json!([]), "nothing was made");
}

async fn wrong_types_are_all_named_at_once(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let body = json!({"name": 5, "content": ["x"], "fileType": "word", "folderId": true});
    let error = token.post(FILES).json(body).await.expect_error(400, "VALIDATION_ERROR");
    let mut paths = each(&error["errors"], "path");
    paths.sort_unstable();
    assert_eq!(paths, ["content", "fileType", "folderId", "name"], "{error}");
    for issue in items(&error["errors"]) {
        assert!(!text(issue, "code").is_empty() && !text(issue, "message").is_empty(), "{issue}");
    }
    let kinds = items(&error["errors"]).iter().find(|issue| issue["path"] == "fileType").unwrap();
    assert!(text(kinds, "message").contains("markdown"), "names what would be right: {kinds}");
    let empty = token.post(FILES).json(json!({})).await.expect_error(400, "VALIDATION_ERROR");
    let mut missing = each(&empty["errors"], "path");
    missing.sort_unstable();
    assert_eq!(missing, ["content", "fileType", "name"]);
}

async fn an_unknown_field_names_the_nearest(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("f", None).await;
    let body = json!({"name": "a", "content": "x", "fileType": "text", "folderid": folder, "zzz": 1});
    let error = workspace.token.post(FILES).json(body).await.expect_error(400, "VALIDATION_ERROR");
    let mut paths = each(&error["errors"], "path");
    paths.sort_unstable();
    assert_eq!(paths, ["folderid", "zzz"], "{error}");
    assert!(error.to_string().contains("folderId"), "{error}");
    let file = workspace.file_id("a", None, "x").await;
    let patched = workspace.token.patch(&format!("{FILES}/{file}")).json(json!({"contents": "y"})).await;
    assert!(text(&patched.expect_error(400, "VALIDATION_ERROR")["errors"][0], "message").contains("content"));
    let moved =
        workspace.token.patch(&format!("/api/v1/folders/{folder}")).json(json!({"parent": null})).await;
    assert!(moved.expect_error(400, "VALIDATION_ERROR").to_string().contains("parentId"));
    assert_eq!(items(&workspace.token.get(FILES).await.expect(200).json()).len(), 1, "the typo made nothing");
}

async fn an_id_must_name_something(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let unknown = uuid::Uuid::from_u128(11).to_string();
    let shout = workspace.file_id("a", None, "x").await.to_uppercase();
    for odd in
        [unknown.as_str(), "nonsense", "0", "%00", "a%2Fb", "%F0%9F%A6%80", "..%2F..", &"9".repeat(2000)]
    {
        for resource in ["files", "folders"] {
            let path = format!("/api/v1/{resource}/{odd}");
            workspace.token.get(&path).await.expect_error(404, "NOT_FOUND");
            workspace.token.delete(&path).await.expect_error(404, "NOT_FOUND");
            workspace.token.patch(&path).json(json!({"name": "b"})).await.expect_error(404, "NOT_FOUND");
        }
    }
    let by_shouting = workspace.token.get(&format!("{FILES}/{shout}")).await;
    assert!(matches!(by_shouting.status, 200 | 404), "{}", by_shouting.text());
    for query in ["folderId=nonsense", "folderId="] {
        let reply = workspace.token.get(&format!("{FILES}?{query}")).await;
        assert!(
            matches!(reply.status, 400 | 404),
            "{query} was taken for no filter at all: {}",
            reply.text()
        );
    }
}

async fn an_oversized_body_is_refused(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let address = deployment.base_url().trim_start_matches("http://").to_owned();
    for path in [FILES, "/api/v1/search_context", "/mcp"] {
        for length in ["content-length: 200000000", "transfer-encoding: chunked"] {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
                 content-type: application/json\r\n{length}\r\n\r\n",
                token.secret
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            let (mut incoming, mut outgoing) = stream.split();
            let sending = async {
                // Only announced: a server that had to read 200 MB before refusing them could be kept busy for free.
                if length.contains("chunked") {
                    let chunk = format!("100000\r\n{}\r\n", "x".repeat(0x0010_0000));
                    // The refusal may arrive, and the connection close, before everything is sent.
                    while outgoing.write_all(chunk.as_bytes()).await.is_ok() {}
                }
                std::future::pending::<()>().await;
            };
            let mut answer = vec![0; 4096];
            let reading = tokio::time::timeout(LIMIT, incoming.read(&mut answer));
            let read = tokio::select! {
                read = reading => read.unwrap().unwrap(),
                () = sending => 0,
            };
            let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
            assert!(answer.starts_with("HTTP/1.1 413"), "{path}, {length}: {answer}");
        }
    }
    token.get(FILES).await.expect(200);
}

async fn bytes_that_are_no_text_are_refused(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for name in [&b"\xff\xfe"[..], b"\xc3\x28", b"\xed\xa0\x80"] {
        let body = [b"{\"content\": \"x\", \"fileType\": \"text\", \"name\": \"", name, b"\"}"].concat();
        token.post(FILES).body("application/json", body).await.expect_error(400, "VALIDATION_ERROR");
    }
    let surrogate = b"{\"content\": \"\\ud800\", \"fileType\": \"text\", \"name\": \"a\"}".to_vec();
    token.post(FILES).body("application/json", surrogate).await.expect_error(400, "VALIDATION_ERROR");
    token.get(&format!("{FILES}?folderId=%ff%fe")).await.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(token.get(FILES).await.expect(200).json(), json!([]));
}

async fn an_unknown_address_is_not_found(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for path in
        ["/api/v1/nonsense", "/api/v1", "/api/v2/files", "/api/v1/files/x/y/z", "/nonsense", "/api/v1/files/"]
    {
        token.get(path).await.expect_error(404, "NOT_FOUND");
    }
}

async fn a_wrong_method_is_told_the_right_ones(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for (method, path, right) in [
        (Method::PUT, FILES, "POST"),
        (Method::DELETE, FILES, "GET"),
        (Method::POST, "/api/v1/folders/x/files", "GET"),
        (Method::GET, "/api/v1/search_context", "POST"),
    ] {
        let reply = token.request(method, path).await;
        let allowed = reply.header("allow").unwrap_or_default().to_owned();
        assert!(allowed.contains(right), "{path}: {allowed}");
        reply.expect_error(405, "METHOD_NOT_ALLOWED");
    }
}

async fn every_answer_has_a_request_id(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let mine = "my-request.1_2";
    assert_eq!(token.get(FILES).header("x-request-id", mine).await.header("x-request-id"), Some(mine));
    let error =
        token.get("/api/v1/files/x").header("x-request-id", mine).await.expect_error(404, "NOT_FOUND");
    assert_eq!(error["requestId"], mine);
    let mut made = Vec::new();
    for odd in ["", " ", "a b", "a\"b", &"x".repeat(5000)] {
        let reply = token.get(FILES).header("x-request-id", odd).await.expect(200);
        let given = reply.header("x-request-id").unwrap().to_owned();
        assert!(given != odd && !given.is_empty(), "{odd:?} is not well formed");
        made.push(given);
    }
    made.sort();
    made.dedup();
    assert_eq!(made.len(), 5, "each request has its own: {made:?}");
    for path in ["/healthz", "/api/docs/openapi.json", "/nowhere"] {
        assert!(deployment.anonymous().get(path).await.header("x-request-id").is_some(), "{path}");
    }
    assert!(crate::support::mcp::legacy(&token, "ping", json!({})).await.header("x-request-id").is_some());
}

async fn unknown_query_parameters_are_ignored(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a", None, "x").await;
    let listed = workspace.token.get(&format!("{FILES}?utm_source=x&foldrId=y&")).await.expect(200).json();
    assert_eq!(each(&listed, "id"), [file]);
}

async fn null_means_absent_on_create(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let body = json!({"name": "a", "content": "x", "fileType": "text", "folderId": null});
    token.post(FILES).json(body).await.expect(201);
    let body = json!({"name": null, "content": null, "fileType": null});
    let error = token.post(FILES).json(body).await.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(items(&error["errors"]).len(), 3, "{error}");
    let file = id(&token.get(FILES).await.json()[0]);
    let cleared = token.patch(&format!("{FILES}/{file}")).json(json!({"name": null})).await;
    cleared.expect_error(400, "VALIDATION_ERROR");
}

async fn a_query_must_be_well_formed(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for query in ["limit=0", "limit=1001", "limit=-1", "limit=ten", "limit=2.5", "cursor=nonsense"] {
        let reply = token.get(&format!("{FILES}?{query}")).await;
        assert_eq!(reply.status, 400, "{query}: {}", reply.text());
        reply.expect_error(400, "VALIDATION_ERROR");
    }
}

async fn a_broken_request_does_not_harm_the_next(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let address = deployment.base_url().trim_start_matches("http://").to_owned();
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(garbage).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let ended = tokio::time::timeout(LIMIT, stream.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "the connection hangs after {garbage:?}");
    }
    token.get(FILES).await.expect(200);
}
