//! Ingested documents (spec 2.7, 4.6; contract, "Ingest").

use futures::future::join_all;

use crate::doctor::assert_sound;
use crate::support::callers::ApiToken;
use crate::support::http::{Reply, each, id, items, text};
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

scenarios![
    a_text_is_kept_as_it_is,
    of_twenty_posts_with_one_key_one_is_new,
    a_file_becomes_markdown,
    a_file_without_a_text_fails_for_itself,
    bad_requests_name_their_fields,
    a_list_goes_on_where_it_stopped,
    what_is_removed_is_gone,
    a_token_of_some_folders_has_no_part_in_it,
    usage_counts_documents,
];

const BOUNDARY: &str = "cairn-form";
const HTML: &str = "<html><head><title>Plan</title><style>p{}</style></head><body><nav>menu</nav><main>\
    <h1>Plan</h1><p>Two <b>steps</b>, <a href=\"/next\">next</a>.</p></main></body></html>";

pub(crate) fn document(key: &str, content: &str) -> Value {
    json!({"idempotencyKey": key, "title": format!("Title of {key}"), "content": content})
}

pub(crate) async fn post(token: &ApiToken, body: Value) -> Reply {
    token.post("/api/v1/ingest").json(body).await
}

/// A form of these fields, followed by a file.
pub(crate) async fn send_form(
    token: &ApiToken,
    fields: &[(&str, &str)],
    file: Option<(&str, &[u8])>,
) -> Reply {
    let mut body = Vec::new();
    if let Some((name, bytes)) = file {
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    }
    for (name, value) in fields {
        let part =
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    token.post("/api/v1/ingest").body(&kind, body).await
}

/// The document once it has been processed.
pub(crate) async fn read(token: &ApiToken, id: &str) -> Value {
    eventually("the document is read", async || {
        let now = token.get(&format!("/api/v1/ingest/{id}")).await.expect(200).json();
        let is_done = now["status"] == "failed" || now["contentHash"].is_string();
        is_done.then_some(now)
    })
    .await
}

async fn content(token: &ApiToken, id: &str) -> Reply {
    token.get(&format!("/api/v1/ingest/{id}/content")).await
}

async fn a_text_is_kept_as_it_is(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let exact = "\u{feff}# T\u{ef}tle\r\n\u{200b}line  \n\n";
    for (kind, mime) in [
        ("markdown", "text/markdown"),
        ("text", "text/plain"),
        ("json", "application/json"),
        ("yaml", "text/yaml"),
    ] {
        let mut body = document(kind, exact);
        body["contentType"] = kind.into();
        body["url"] = "https://wiki.example/a".into();
        body["metadata"] = json!({"team": "sales"});
        body["occurredAt"] = "2026-01-02T03:04:05+01:00".into();
        let reply = post(&token, body).await.expect(202);
        assert!(reply.change().len() > 3, "a write has a change token");
        let sent = reply.json();
        assert_eq!(
            (sent["deduplicated"].as_bool(), text(&sent, "idempotencyKey")),
            (Some(false), kind.into())
        );
        let read = content(&token, &id(&sent)).await.expect(200);
        assert_eq!(
            (read.text(), read.header("content-type").unwrap().split(';').next()),
            (exact.into(), Some(mime))
        );
        let now = token.get(&format!("/api/v1/ingest/{}", id(&sent))).await.expect(200).json();
        let citation = &now["citation"];
        assert_eq!(
            (text(citation, "url"), text(citation, "kind")),
            ("https://wiki.example/a".into(), "ingested".into())
        );
        assert!(text(citation, "permalink").contains(&format!("/documents/{}", id(&sent))), "{citation}");
        assert!(text(citation, "path").starts_with("/sources/ingested/Title of "), "{citation}");
        assert_eq!(
            (&now["metadata"]["team"], text(&now, "occurredAt")),
            (&json!("sales"), "2026-01-02T02:04:05.000Z".into())
        );
    }
}

async fn of_twenty_posts_with_one_key_one_is_new(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let replies = join_all((0..20).map(|_| post(&token, document("k", "the same")))).await;
    let new = replies.iter().filter(|reply| reply.status == 202).count();
    assert_eq!(new, 1, "{replies:?}");
    let first = id(&replies[0].json());
    for reply in replies {
        let body = reply.json();
        assert_eq!((id(&body), body["deduplicated"].as_bool()), (first.clone(), Some(reply.status == 200)));
    }
    post(&token, document("k", "another")).await.expect_error(409, "IDEMPOTENCY_CONFLICT");
    let listed = token.get("/api/v1/ingest").await.expect(200);
    assert_eq!((items(&listed.json()).len(), listed.header("x-total-count")), (1, Some("1")));
}

async fn a_file_becomes_markdown(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let fields =
        [("idempotencyKey", "page"), ("url", "https://wiki.example/plan"), ("metadata", "{\"a\": 1}")];
    let sent = send_form(&token, &fields, Some(("plan.html", HTML.as_bytes()))).await.expect(202).json();
    assert_eq!(text(&sent, "title"), "plan.html");
    let now = read(&token, &id(&sent)).await;
    assert_ne!(now["status"], "failed", "{now}");
    let markdown = content(&token, &id(&sent)).await.expect(200).text();
    assert!(markdown.contains("# Plan") && markdown.contains("(https://wiki.example/next)"), "{markdown}");
    assert!(!markdown.contains("menu") && !markdown.contains("p{}"), "{markdown}");
    let again = send_form(&token, &fields, Some(("plan.html", HTML.as_bytes()))).await.expect(200).json();
    assert_eq!((id(&again), again["deduplicated"].as_bool()), (id(&sent), Some(true)));
    let mut as_json = document("json", HTML);
    as_json["contentType"] = "html".into();
    let sent = post(&token, as_json).await.expect(202).json();
    let now = read(&token, &id(&sent)).await;
    assert_ne!(now["status"], "failed", "{now}");
    assert!(content(&token, &id(&sent)).await.expect(200).text().contains("# Plan"));
}

async fn a_file_without_a_text_fails_for_itself(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let noise: Vec<u8> =
        (0..4_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let sent = send_form(&token, &[("idempotencyKey", "noise")], Some(("x.pdf", &noise))).await;
    let sent = sent.expect(202).json();
    let now = read(&token, &id(&sent)).await;
    assert_eq!(now["status"], "failed", "{now}");
    let why = text(&now, "error");
    assert!(!why.is_empty() && !why.contains('/') && !why.contains("panic"), "{why}");
    assert!(
        text(&content(&token, &id(&sent)).await.expect_error(404, "NOT_FOUND"), "message").contains(&why)
    );
    let failed = token.get("/api/v1/ingest?status=failed").await.expect(200).json();
    assert_eq!(each(&failed, "id"), [id(&sent).as_str()]);
    post(&token, document("good", "text")).await.expect(202);
}

async fn bad_requests_name_their_fields(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let with = |field: &str, value: Value| {
        let mut body = document("k", "text");
        body[field] = value;
        body
    };
    for (body, path) in [
        (json!({"title": "t", "content": "x"}), "idempotencyKey"),
        (with("idempotencyKey", "".into()), "idempotencyKey"),
        (with("title", "".into()), "title"),
        (with("content", "".into()), "content"),
        (with("url", "ftp://a.example/x".into()), "url"),
        (with("occurredAt", "yesterday".into()), "occurredAt"),
        (with("metadata", json!([1])), "metadata"),
        (with("metadata", json!({"a": "x".repeat(16_400)})), "metadata"),
        (with("contentType", "word".into()), "contentType"),
        (with("idempotentKey", "x".into()), "idempotentKey"),
    ] {
        let message = post(&token, body).await.expect_error(400, "VALIDATION_ERROR");
        assert!(each(&message["errors"], "path").contains(&path), "{path}: {message}");
    }
    post(&token, document("large", &"x".repeat(5 * 1024 * 1024 + 1)))
        .await
        .expect_error(413, "PAYLOAD_TOO_LARGE");
    let file = Some(("a.txt", "text".as_bytes()));
    for (fields, file, path) in [
        (vec![("idempotencyKey", "k")], None, "file"),
        (vec![("title", "t")], file, "idempotencyKey"),
        (vec![("idempotencyKey", "k"), ("content", "x")], file, "content"),
        (vec![("idempotencyKey", "k"), ("metadata", "[]")], file, "metadata"),
        (vec![("idempotencyKey", "k"), ("idempotencyKey", "k")], file, "idempotencyKey"),
        (vec![("idempotencyKey", "k")], Some(("a.txt", "".as_bytes())), "file"),
    ] {
        let message = send_form(&token, &fields, file).await.expect_error(400, "VALIDATION_ERROR");
        assert!(each(&message["errors"], "path").contains(&path), "{path}: {message}");
    }
    let cut = token.post("/api/v1/ingest").body("multipart/form-data; boundary=x", "--x\r\n").await;
    cut.expect_error(400, "VALIDATION_ERROR");
    assert!(items(&token.get("/api/v1/ingest").await.expect(200).json()).is_empty());
}

async fn a_list_goes_on_where_it_stopped(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for key in ["a", "b", "c"] {
        post(&token, document(key, key)).await.expect(202);
    }
    let first = token.get("/api/v1/ingest?limit=2").await.expect(200);
    let link = first.header("link").unwrap().to_owned();
    let next = link.split_once("/api/v1").unwrap().1.split_once('>').unwrap().0;
    post(&token, document("d", "d")).await.expect(202);
    let second = token.get(&format!("/api/v1{next}")).await.expect(200);
    assert_eq!(each(&first.json(), "idempotencyKey").len(), 2);
    assert_eq!(each(&second.json(), "idempotencyKey").len(), 1);
    assert_eq!((second.header("link"), second.header("x-total-count")), (None, Some("3")));
}

async fn what_is_removed_is_gone(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let sent = post(&token, document("k", "text")).await.expect(202).json();
    let path = format!("/api/v1/ingest/{}", id(&sent));
    token.delete(&path).await.expect(204);
    token.get(&path).await.expect_error(404, "NOT_FOUND");
    content(&token, &id(&sent)).await.expect_error(404, "NOT_FOUND");
    token.delete(&path).await.expect_error(404, "NOT_FOUND");
    let again = post(&token, document("k", "other text")).await.expect(202).json();
    assert_ne!(id(&again), id(&sent), "the key was free");
    let stranger = deployment.workspace().await.token;
    stranger.get(&format!("/api/v1/ingest/{}", id(&again))).await.expect_error(404, "NOT_FOUND");
}

async fn a_token_of_some_folders_has_no_part_in_it(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("inside", None).await;
    let bound = workspace.token_for(&[&folder]).await;
    let sent = post(&workspace.token, document("k", "text")).await.expect(202).json();
    post(&bound, document("l", "text")).await.expect_error(403, "OUT_OF_SCOPE");
    bound.get(&format!("/api/v1/ingest/{}", id(&sent))).await.expect_error(403, "OUT_OF_SCOPE");
    bound.get("/api/v1/ingest").await.expect_error(403, "OUT_OF_SCOPE");
}

async fn usage_counts_documents(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let used = async |what: &str| {
        let seen = token.get("/api/v1/workspace").await.expect(200).json();
        seen[what]["used"].as_u64().unwrap()
    };
    let before = used("storageBytes").await;
    for key in ["a", "b"] {
        post(&token, document(key, "the same text")).await.expect(202);
    }
    assert_eq!((used("documents").await, used("storageBytes").await), (2, before + 13));
}

/// An acknowledged document survives a kill right after the response, and the next process reads it.
#[test]
fn what_is_answered_survives_kill_nine() {
    run_alone(async {
        let data = Scratch::new();
        let mut kept = Vec::new();
        for round in 0..5 {
            let mut up = SingleProcess::start_on(data.path(), &[]).await;
            let token = up.token();
            let note = post(&token, document(&format!("text {round}"), "text")).await.expect(202).json();
            let key = format!("page {round}");
            let sent =
                send_form(&token, &[("idempotencyKey", &key)], Some(("plan.html", HTML.as_bytes()))).await;
            kept.extend([id(&note), id(&sent.expect(202).json())]);
            up.kill();
            drop(up);
            assert_sound(data.path()).await;
        }
        let up = SingleProcess::start_on(data.path(), &[]).await;
        let token = up.token();
        for document in &kept {
            let now = read(&token, document).await;
            assert_ne!(now["status"], "failed", "{now}");
            content(&token, document).await.expect(200);
        }
        drop(up);
        assert_sound(data.path()).await;
    });
}
