//! `/api/v1/files` (spec 2.1, 4.1).

use std::collections::BTreeSet;

use crate::support::http::{each, id, items, text};
use crate::support::prelude::*;
use crate::support::workspace::read_file;

scenarios![
    a_new_file_has_every_field_of_the_contract,
    a_file_is_read_with_its_content,
    content_comes_back_byte_for_byte,
    a_list_has_no_content_and_may_be_narrowed_to_a_folder,
    a_long_list_comes_in_pages,
    only_the_fields_of_a_patch_change,
    a_description_is_shown_in_lists,
    null_moves_a_file_to_the_root,
    a_stale_if_match_changes_nothing,
    a_deleted_file_is_gone_everywhere,
    raw_content_has_the_type_of_the_file,
    siblings_may_share_a_name,
    a_name_has_its_limits,
    content_has_its_limit,
    content_is_text,
    a_file_cannot_stand_in_a_folder_that_is_not_there,
];

async fn a_new_file_has_every_field_of_the_contract(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let content = "# Grüße\n\nöffentlich\n";
    let body = json!({"name": "a.md", "content": content, "fileType": "markdown"});
    let created = workspace.token.post("/api/v1/files").json(body).await.expect(201);
    assert!(!created.change().is_empty());
    let file = created.json();
    let version = uuid::Uuid::parse_str(&id(&file)).unwrap().get_version_num();
    assert_eq!(version, 7, "{file}");
    assert_eq!(id(&file), id(&file).to_lowercase());
    assert_eq!(file["workspaceId"], json!(workspace.id));
    assert_eq!(file["folderId"], Value::Null);
    assert_eq!((text(&file, "name"), text(&file, "path")), ("a.md".into(), "/a.md".into()));
    assert_eq!(file["fileType"], "markdown");
    assert_eq!(file["tags"], json!([]));
    assert_eq!(file["sizeBytes"], json!(content.len()));
    assert_eq!(text(&file, "contentHash"), hash_of(content));
    assert_eq!(file["version"], 1);
    for field in ["createdAt", "updatedAt"] {
        let time = text(&file, field);
        assert!(time.len() == "2026-11-20T12:00:00.000Z".len() && time.ends_with('Z'), "{field}: {time}");
    }
}

async fn a_file_is_read_with_its_content(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("handbook", None).await;
    let file = workspace.file_id("a.md", Some(&folder), "hello").await;
    let read = workspace.token.get(&format!("/api/v1/files/{file}")).await.expect(200);
    let record = read.json();
    assert_eq!(record["content"], "hello");
    assert_eq!((text(&record, "folderId"), text(&record, "path")), (folder, "/handbook/a.md".into()));
    assert_eq!(read.header("etag"), Some(format!("\"{}\"", hash_of("hello")).as_str()));
    let listed = workspace.token.get("/api/v1/files").await.expect(200).json();
    let mut without_content = record;
    without_content.as_object_mut().unwrap().remove("content");
    assert_eq!(listed, json!([without_content]), "the list shows the same record");
}

async fn content_comes_back_byte_for_byte(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let long = "0123456789abcdef\n".repeat(60_000);
    for content in
        ["", "\n", "\r\n\ta\r\n", "no newline at the end", "\u{feff}bom 🦀 \u{1F468}\u{200D}\u{1F469}", &long]
    {
        let created = workspace.typed_file("a.txt", "text", None, content).await.json();
        let read = read_file(&workspace.token, &id(&created)).await;
        assert!(read["content"] == content, "{} bytes came back otherwise", content.len());
        assert_eq!(text(&read, "contentHash"), hash_of(content));
        let raw = workspace.token.get(&format!("/api/v1/files/{}/raw", id(&created))).await.expect(200);
        assert!(raw.body == content.as_bytes(), "{} raw bytes came back otherwise", content.len());
    }
}

async fn a_list_has_no_content_and_may_be_narrowed_to_a_folder(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("docs", None).await;
    let root_file = workspace.file_id("root.md", None, "r").await;
    let inner_file = workspace.file_id("inner.md", Some(&folder), "i").await;
    let all = workspace.token.get("/api/v1/files").await.expect(200).json();
    let ids: BTreeSet<_> = each(&all, "id").into_iter().map(str::to_owned).collect();
    assert_eq!(ids, BTreeSet::from([root_file, inner_file.clone()]));
    assert!(items(&all).iter().all(|file| file.get("content").is_none()), "{all}");
    let narrowed = workspace.token.get(&format!("/api/v1/files?folderId={folder}")).await.expect(200).json();
    assert_eq!(each(&narrowed, "id"), [inner_file]);
}

async fn a_long_list_comes_in_pages(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let mut made = BTreeSet::new();
    for number in 0..5 {
        made.insert(workspace.file_id(&format!("{number}.md"), None, "x").await);
    }
    let mut seen = Vec::new();
    let mut next = Some("/api/v1/files?limit=2".to_owned());
    while let Some(path) = next {
        let page = workspace.token.get(&path).await.expect(200);
        assert_eq!(page.header("x-total-count"), Some("5"));
        assert!((1..=2).contains(&items(&page.json()).len()), "{}", page.text());
        seen.extend(each(&page.json(), "id").into_iter().map(str::to_owned));
        next = page.header("link").map(next_page);
        assert!(seen.len() <= made.len(), "a page came twice: {seen:?}");
    }
    assert_eq!(seen.iter().cloned().collect::<BTreeSet<_>>(), made);
    assert_eq!(seen.len(), made.len());
}

async fn only_the_fields_of_a_patch_change(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "one").await;
    let path = format!("/api/v1/files/{file}");
    let patch = async |body: Value| workspace.token.patch(&path).json(body).await.expect(200);

    let renamed = patch(json!({"name": "b.md"})).await;
    assert!(!renamed.change().is_empty());
    let record = renamed.json();
    assert_eq!((text(&record, "name"), text(&record, "path")), ("b.md".into(), "/b.md".into()));
    assert_eq!((record["version"].clone(), text(&record, "contentHash")), (json!(2), hash_of("one")));

    let tagged = patch(json!({"tags": ["x", "y"]})).await.json();
    assert_eq!((tagged["tags"].clone(), tagged["version"].clone()), (json!(["x", "y"]), json!(3)));

    let rewritten = patch(json!({"content": "two"})).await.json();
    assert_eq!((text(&rewritten, "contentHash"), rewritten["sizeBytes"].clone()), (hash_of("two"), json!(3)));
    let read = read_file(&workspace.token, &file).await;
    assert_eq!((read["content"].clone(), read["tags"].clone()), (json!("two"), json!(["x", "y"])));
    assert_eq!((text(&read, "name"), read["fileType"].clone()), ("b.md".into(), json!("markdown")));

    assert_eq!(patch(json!({"tags": []})).await.json()["tags"], json!([]));
}

async fn a_description_is_shown_in_lists(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let body =
        json!({"name": "a.md", "content": "one", "fileType": "markdown", "description": "What it is for"});
    let made = workspace.token.post("/api/v1/files").json(body).await.expect(201).json();
    assert_eq!(text(&made, "description"), "What it is for");
    let path = format!("/api/v1/files/{}", id(&made));
    let told = json!({"description": "What it was for"});
    let changed = workspace.token.patch(&path).json(told).await.expect(200).json();
    assert_eq!((changed["version"].clone(), text(&changed, "contentHash")), (json!(2), hash_of("one")));
    let listed = workspace.token.get("/api/v1/files").await.expect(200).json();
    assert_eq!(text(&listed[0], "description"), "What it was for");
    let versions = workspace.token.get(&format!("{path}/versions")).await.expect(200).json();
    assert_eq!(versions.as_array().map(Vec::len), Some(1), "the content is the same: {versions}");
    let long = json!({"description": "é".repeat(1_001)});
    workspace.token.patch(&path).json(long).await.expect(400);
    let cleared = workspace.token.patch(&path).json(json!({"description": null})).await.expect(200).json();
    assert_eq!(cleared.get("description"), None, "{cleared}");
}

async fn null_moves_a_file_to_the_root(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("f", None).await;
    let file = workspace.file_id("a.md", Some(&folder), "x").await;
    let path = format!("/api/v1/files/{file}");
    let moved = workspace.token.patch(&path).json(json!({"folderId": null})).await.expect(200).json();
    assert_eq!((moved["folderId"].clone(), text(&moved, "path")), (Value::Null, "/a.md".into()));
    let back = workspace.token.patch(&path).json(json!({"folderId": folder})).await.expect(200).json();
    assert_eq!((text(&back, "folderId"), text(&back, "path")), (folder, "/f/a.md".into()));
}

async fn a_stale_if_match_changes_nothing(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "one").await;
    let path = format!("/api/v1/files/{file}");
    let first = workspace.token.get(&path).await.expect(200).header("etag").unwrap().to_owned();
    workspace.token.patch(&path).header("if-match", &first).json(json!({"content": "two"})).await.expect(200);
    let stale =
        workspace.token.patch(&path).header("if-match", &first).json(json!({"content": "three"})).await;
    stale.expect_error(409, "VERSION_CONFLICT");
    assert_eq!(read_file(&workspace.token, &file).await["content"], "two");
    workspace.token.patch(&path).header("if-match", "*").json(json!({"content": "four"})).await.expect(200);
}

async fn a_deleted_file_is_gone_everywhere(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "x").await;
    let path = format!("/api/v1/files/{file}");
    let deleted = workspace.token.delete(&path).await.expect(204);
    assert!(deleted.body.is_empty() && !deleted.change().is_empty());
    workspace.token.get(&path).await.expect_error(404, "NOT_FOUND");
    workspace.token.get(&format!("{path}/raw")).await.expect_error(404, "NOT_FOUND");
    workspace.token.patch(&path).json(json!({"name": "b"})).await.expect_error(404, "NOT_FOUND");
    workspace.token.delete(&path).await.expect_error(404, "NOT_FOUND");
    assert_eq!(workspace.token.get("/api/v1/files").await.expect(200).json(), json!([]));
}

async fn raw_content_has_the_type_of_the_file(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let kinds = [
        ("markdown", "text/markdown", "# a\n"),
        ("json", "application/json", "{\"a\": 1}"),
        ("yaml", "text/yaml", "a: 1\n"),
        ("text", "text/plain", "a\n"),
    ];
    for (kind, content_type, content) in kinds {
        let created = workspace.typed_file("a", kind, None, content).await.json();
        assert_eq!(created["fileType"], kind);
        let raw = workspace.token.get(&format!("/api/v1/files/{}/raw", id(&created))).await.expect(200);
        let sent = raw.header("content-type").unwrap_or_default();
        assert_eq!(sent.split(';').next(), Some(content_type), "{sent}");
        assert_eq!(raw.text(), content);
    }
}

async fn siblings_may_share_a_name(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let one = workspace.file_id("same.md", None, "1").await;
    let other = workspace.file_id("same.md", None, "2").await;
    assert_eq!(read_file(&workspace.token, &one).await["content"], "1");
    assert_eq!(read_file(&workspace.token, &other).await["content"], "2");
}

async fn a_name_has_its_limits(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let longest = "ä".repeat(255);
    let file = workspace.file_id(&longest, None, "x").await;
    assert_eq!(read_file(&workspace.token, &file).await["name"], json!(longest));
    for name in ["", "a/b", "a\nb", "a\u{0}b", "a\u{7f}b", &"ä".repeat(256)] {
        let body = json!({"name": name, "content": "x", "fileType": "text"});
        let error =
            workspace.token.post("/api/v1/files").json(body).await.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(each(&error["errors"], "path"), ["name"], "{error}");
        let path = format!("/api/v1/files/{file}");
        workspace.token.patch(&path).json(json!({"name": name})).await.expect_error(400, "VALIDATION_ERROR");
    }
    assert_eq!(
        items(&workspace.token.get("/api/v1/files").await.expect(200).json()).len(),
        1,
        "nothing was made"
    );
}

async fn content_has_its_limit(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.typed_file("a.txt", "text", None, &"x".repeat(5_000_000)).await.json();
    assert_eq!(file["sizeBytes"], 5_000_000);
    let body = json!({"name": "b.txt", "content": "x".repeat(5 * 1024 * 1024 + 1), "fileType": "text"});
    let error = workspace.token.post("/api/v1/files").json(body).await.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(each(&error["errors"], "path"), ["content"]);
    assert!(error.to_string().len() < 10_000, "an error must not repeat the content");
}

async fn content_is_text(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let body = json!({"name": "a.txt", "content": "before\u{0}after", "fileType": "text"});
    let error = workspace.token.post("/api/v1/files").json(body).await.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(each(&error["errors"], "path"), ["content"], "{error}");
    let file = workspace.file_id("a.txt", None, "whole").await;
    let path = format!("/api/v1/files/{file}");
    workspace
        .token
        .patch(&path)
        .json(json!({"content": "\u{0}"}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(read_file(&workspace.token, &file).await["content"], "whole");
}

async fn a_file_cannot_stand_in_a_folder_that_is_not_there(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let stranger = deployment.workspace().await;
    let foreign = stranger.folder("theirs", None).await;
    let trashed = workspace.folder("trashed", None).await;
    workspace.token.delete(&format!("/api/v1/folders/{trashed}")).await.expect(204);
    let file = workspace.file_id("a.md", None, "x").await;
    let unknown = uuid::Uuid::from_u128(7).to_string();
    let mut answers = BTreeSet::new();
    for folder in [&foreign, &trashed, &unknown] {
        let body = json!({"name": "a", "content": "x", "fileType": "text", "folderId": folder});
        let created = workspace.token.post("/api/v1/files").json(body).await;
        let moved =
            workspace.token.patch(&format!("/api/v1/files/{file}")).json(json!({"folderId": folder})).await;
        for refused in [created, moved] {
            assert!(matches!(refused.status, 400 | 404), "{}: {}", refused.status, refused.text());
            answers.insert((refused.status, text(&refused.json(), "error")));
        }
    }
    assert_eq!(answers.len(), 1, "a foreign folder must look like one that never was: {answers:?}");
    assert_eq!(read_file(&workspace.token, &file).await["folderId"], Value::Null);
}

fn hash_of(content: &str) -> String {
    format!("blake3:{}", blake3::hash(content.as_bytes()).to_hex())
}

/// The path of `<…>; rel="next"`, without the deployment's own base URL.
pub(crate) fn next_page(link: &str) -> String {
    let (target, relation) = link.strip_prefix('<').and_then(|rest| rest.split_once('>')).unwrap();
    assert!(relation.contains("rel=\"next\""), "{link}");
    let path = target.find("/api/").map(|start| &target[start..]);
    path.unwrap_or_else(|| panic!("no path in {link}")).to_owned()
}
