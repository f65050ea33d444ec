//! Versions of files (beyond the spec): every earlier content stays readable and can be restored.

use crate::support::http::{each, items, text};
use crate::support::prelude::*;

scenarios![
    every_content_is_listed_read_and_restored,
    versions_obey_permissions_and_scope,
    a_restored_version_is_found,
];

async fn every_content_is_listed_read_and_restored(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let file = workspace.file_id("a.md", None, "first").await;
    let path = format!("/api/v1/files/{file}");
    let second = token.patch(&path).json(json!({"content": "second"})).await.expect(200);
    token.patch(&path).json(json!({"name": "b.md"})).await.expect(200);
    token.patch(&path).json(json!({"content": "fourth"})).await.expect(200);

    let listed = token.get(&format!("{path}/versions")).await.expect(200);
    assert_eq!(listed.header("x-total-count"), Some("3"));
    let versions: Vec<u64> =
        items(&listed.json()).iter().map(|one| one["version"].as_u64().unwrap()).collect();
    assert_eq!(versions, [4, 2, 1], "a rename has no content of its own");
    let entry = items(&listed.json())[1].clone();
    assert_eq!((text(&entry, "fileId"), entry["sizeBytes"].as_u64()), (file.clone(), Some(6)));
    assert_eq!(entry["contentHash"], second.json()["contentHash"]);
    assert_eq!(
        (text(&entry["createdBy"], "kind"), text(&entry["createdBy"], "name")),
        ("token".into(), "all".into())
    );
    assert!(entry.get("content").is_none());
    let read = token.get(&format!("{path}/versions/2")).await.expect(200).json();
    assert_eq!(text(&read, "content"), "second");
    for none in ["3", "99", "0", "-1", "x"] {
        token.get(&format!("{path}/versions/{none}")).await.expect_error(404, "NOT_FOUND");
        token.post(&format!("{path}/versions/{none}/restore")).await.expect_error(404, "NOT_FOUND");
    }

    let restore = format!("{path}/versions/1/restore");
    let stale = second.header("etag").unwrap();
    token.post(&restore).header("if-match", stale).await.expect_error(409, "VERSION_CONFLICT");
    let restored = token.post(&restore).await.expect(200);
    assert!(restored.header("etag").is_some() && !restored.change().is_empty());
    assert_eq!(
        (restored.json()["version"].as_u64(), text(&restored.json(), "name")),
        (Some(5), "b.md".into())
    );
    assert_eq!(text(&token.get(&path).await.expect(200).json(), "content"), "first");
    let page = token.get(&format!("{path}/versions?limit=2")).await.expect(200);
    assert!(page.header("link").is_some_and(|link| link.contains("cursor=")));
    assert_eq!(each(&page.json(), "fileId").len(), 2);
}

async fn versions_obey_permissions_and_scope(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("own", None).await;
    let inside = workspace.file_id("in.md", Some(&folder), "x").await;
    let outside = workspace.file_id("out.md", None, "x").await;
    let reader = workspace.token_with(&["read"]).await;
    let versions = |file: &str| format!("/api/v1/files/{file}/versions");
    reader.get(&versions(&inside)).await.expect(200);
    reader.post(&format!("{}/1/restore", versions(&inside))).await.expect_error(403, "FORBIDDEN");
    let scoped = workspace.token_for(&[&folder]).await;
    scoped.get(&format!("{}/1", versions(&inside))).await.expect(200);
    scoped.get(&versions(&outside)).await.expect_error(403, "OUT_OF_SCOPE");
    scoped.get(&format!("{}/1", versions(&outside))).await.expect_error(403, "OUT_OF_SCOPE");
    scoped.post(&format!("{}/1/restore", versions(&outside))).await.expect_error(403, "OUT_OF_SCOPE");
    let elsewhere = deployment.workspace().await;
    elsewhere.token.get(&versions(&inside)).await.expect_error(404, "NOT_FOUND");
    deployment.anonymous().get(&versions(&inside)).await.expect_error(401, "UNAUTHORIZED");
    workspace.token.delete(&format!("/api/v1/files/{inside}")).await.expect(204);
    workspace.token.get(&versions(&inside)).await.expect_error(404, "NOT_FOUND");
}

async fn a_restored_version_is_found(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "zqformer words").await;
    let path = format!("/api/v1/files/{file}");
    let changed =
        workspace.token.patch(&path).json(json!({"content": "other words"})).await.expect(200).change();
    let search = json!({"query": "zqformer", "strategy": "keyword"});
    assert_eq!(workspace.search_after(&changed, search.clone()).await["results"], json!([]));
    let restored = workspace.token.post(&format!("{path}/versions/1/restore")).await.expect(200).change();
    let found = workspace.search_after(&restored, search).await;
    assert_eq!(each(&found["results"], "fileId"), [file.as_str()]);
}
