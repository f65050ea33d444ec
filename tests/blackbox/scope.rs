//! Folder-scoped tokens over REST (spec 5.5, 5.6): the listed folders and their descendants, and nothing else.

use std::collections::BTreeSet;

use crate::support::callers::ApiToken;
use crate::support::http::{each, id, items, text};
use crate::support::prelude::*;

scenarios![
    only_what_is_in_scope_is_listed,
    what_is_out_of_scope_is_refused,
    nothing_is_moved_across_the_border,
    search_stays_in_scope,
    a_folder_that_moves_in_or_out_changes_the_scope,
    the_scope_ends_with_its_folder,
];

/// A tree with one half in scope.
struct Halves {
    workspace: Workspace,
    scoped: ApiToken,
    inside: String,
    below: String,
    outside: String,
    inside_file: String,
    below_file: String,
    outside_file: String,
    root_file: String,
}

async fn halves(deployment: &Deployment) -> Halves {
    let workspace = deployment.workspace().await;
    let inside = workspace.folder("inside", None).await;
    let below = workspace.folder("below", Some(&inside)).await;
    let outside = workspace.folder("outside", None).await;
    let inside_file = workspace.file_id("in.md", Some(&inside), "The pangolin sleeps inside.\n").await;
    let below_file = workspace.file_id("below.md", Some(&below), "The pangolin digs below.\n").await;
    let outside_file = workspace.file_id("out.md", Some(&outside), "The pangolin roams outside.\n").await;
    let root_file = workspace.file_id("root.md", None, "The pangolin starts at the root.\n").await;
    let scoped = workspace.token_for(&[&inside]).await;
    Halves { workspace, scoped, inside, below, outside, inside_file, below_file, outside_file, root_file }
}

async fn only_what_is_in_scope_is_listed(deployment: &Deployment) {
    let tree = halves(deployment).await;
    let ids = async |path: &str| -> BTreeSet<String> {
        let list = tree.scoped.get(path).await.expect(200).json();
        each(&list, "id").into_iter().map(str::to_owned).collect()
    };
    let files = BTreeSet::from([tree.inside_file.clone(), tree.below_file.clone()]);
    assert_eq!(ids("/api/v1/files").await, files);
    assert_eq!(ids("/api/v1/folders").await, BTreeSet::from([tree.inside.clone(), tree.below.clone()]));
    assert_eq!(ids(&format!("/api/v1/folders/{}/files", tree.inside)).await, files);
    assert_eq!(
        ids(&format!("/api/v1/folders/{}/subfolders", tree.inside)).await,
        BTreeSet::from([tree.below.clone()])
    );
    let total = tree.scoped.get("/api/v1/files?limit=1").await.expect(200);
    assert_eq!(total.header("x-total-count"), Some("2"), "the count must not tell of what is out of scope");
}

async fn what_is_out_of_scope_is_refused(deployment: &Deployment) {
    let tree = halves(deployment).await;
    let token = &tree.scoped;
    let renamed = json!({"name": "x"});
    for file in [&tree.outside_file, &tree.root_file] {
        let path = format!("/api/v1/files/{file}");
        token.get(&path).await.expect_error(403, "OUT_OF_SCOPE");
        token.get(&format!("{path}/raw")).await.expect_error(403, "OUT_OF_SCOPE");
        token.patch(&path).json(&renamed).await.expect_error(403, "OUT_OF_SCOPE");
        token.delete(&path).await.expect_error(403, "OUT_OF_SCOPE");
    }
    let path = format!("/api/v1/folders/{}", tree.outside);
    for reply in [
        token.get(&path).await,
        token.get(&format!("{path}/files")).await,
        token.get(&format!("{path}/subfolders")).await,
        token.get(&format!("/api/v1/files?folderId={}", tree.outside)).await,
        token.get(&format!("/api/v1/folders?parentId={}", tree.outside)).await,
        token.patch(&path).json(&renamed).await,
        token.delete(&path).await,
    ] {
        reply.expect_error(403, "OUT_OF_SCOPE");
    }
    for file in [&tree.inside_file, &tree.below_file] {
        token.get(&format!("/api/v1/files/{file}")).await.expect(200);
    }
    tree.workspace.token.get(&format!("/api/v1/files/{}", tree.outside_file)).await.expect(200);
}

async fn nothing_is_moved_across_the_border(deployment: &Deployment) {
    let tree = halves(deployment).await;
    let token = &tree.scoped;
    for folder in [json!(tree.outside), Value::Null] {
        let new_file = json!({"name": "n", "content": "x", "fileType": "text", "folderId": folder});
        token.post("/api/v1/files").json(new_file).await.expect_error(403, "OUT_OF_SCOPE");
        let new_folder = json!({"name": "n", "parentId": folder});
        token.post("/api/v1/folders").json(new_folder).await.expect_error(403, "OUT_OF_SCOPE");
        let path = format!("/api/v1/files/{}", tree.inside_file);
        token.patch(&path).json(json!({"folderId": folder})).await.expect_error(403, "OUT_OF_SCOPE");
        let path = format!("/api/v1/folders/{}", tree.below);
        token.patch(&path).json(json!({"parentId": folder})).await.expect_error(403, "OUT_OF_SCOPE");
    }
    let pulled =
        token.patch(&format!("/api/v1/files/{}", tree.outside_file)).json(json!({"folderId": tree.inside}));
    pulled.await.expect_error(403, "OUT_OF_SCOPE");
    let new_file = json!({"name": "n", "content": "x", "fileType": "text", "folderId": tree.below});
    token.post("/api/v1/files").json(new_file).await.expect(201);
    let path = format!("/api/v1/files/{}", tree.inside_file);
    token.patch(&path).json(json!({"folderId": tree.below})).await.expect(200);
}

async fn search_stays_in_scope(deployment: &Deployment) {
    let tree = halves(deployment).await;
    let marker = tree.workspace.file("marker.md", None, "nothing\n").await;
    let allowed = BTreeSet::from([tree.inside_file.clone(), tree.below_file.clone()]);
    for strategy in ["keyword", "semantic", "hybrid"] {
        let body = json!({"query": "pangolin", "strategy": strategy, "limit": 50});
        let reply = tree.scoped.post("/api/v1/search_context").after(&marker.change()).json(body.clone());
        let answer = reply.await.expect(200).json();
        assert_eq!(found(&answer), allowed, "{strategy}: {answer}");
        let whole = tree.workspace.search_after(&marker.change(), body).await;
        assert!(
            found(&whole).is_superset(&BTreeSet::from([tree.outside_file.clone(), tree.root_file.clone()]))
        );
    }
    // Out-of-scope hits that fill a page must not crowd out those in scope.
    let mut change = marker.change();
    for number in 0..60 {
        let content = "Pangolin pangolin pangolin.\n";
        change = tree.workspace.file(&format!("{number}.md"), Some(&tree.outside), content).await.change();
    }
    let body = json!({"query": "pangolin", "strategy": "keyword", "limit": 2});
    let reply = tree.scoped.post("/api/v1/search_context").after(&change).json(body);
    assert_eq!(
        found(&reply.await.expect(200).json()),
        allowed,
        "results out of scope crowded out those in scope"
    );
}

async fn a_folder_that_moves_in_or_out_changes_the_scope(deployment: &Deployment) {
    let tree = halves(deployment).await;
    let everything = &tree.workspace.token;
    let outside = format!("/api/v1/folders/{}", tree.outside);
    let outside_file = format!("/api/v1/files/{}", tree.outside_file);
    everything.patch(&outside).json(json!({"parentId": tree.inside})).await.expect(200);
    tree.scoped.get(&outside_file).await.expect(200);
    let moved_out = everything.patch(&outside).json(json!({"parentId": null})).await.expect(200);
    tree.scoped.get(&outside_file).await.expect_error(403, "OUT_OF_SCOPE");
    let request = tree.scoped.post("/api/v1/search_context").after(&moved_out.change());
    let answer = request.json(json!({"query": "pangolin", "limit": 50})).await.expect(200).json();
    assert!(!found(&answer).contains(&tree.outside_file), "{answer}");
}

async fn the_scope_ends_with_its_folder(deployment: &Deployment) {
    let tree = halves(deployment).await;
    tree.workspace.token.delete(&format!("/api/v1/folders/{}", tree.inside)).await.expect(204);
    assert_eq!(tree.scoped.get("/api/v1/files").await.expect(200).json(), json!([]));
    assert_eq!(tree.scoped.get("/api/v1/folders").await.expect(200).json(), json!([]));
    let answer = tree
        .scoped
        .post("/api/v1/search_context")
        .json(json!({"query": "pangolin"}))
        .await
        .expect(200)
        .json();
    assert_eq!(answer["results"], json!([]));
    let gone = tree.scoped.get(&format!("/api/v1/files/{}", tree.inside_file)).await;
    assert!(matches!(gone.status, 403 | 404), "{}", gone.text());
    let orphan = json!({"name": "n", "content": "x", "fileType": "text", "folderId": tree.inside});
    let refused = tree.scoped.post("/api/v1/files").json(orphan).await;
    assert!(matches!(refused.status, 400 | 403 | 404), "{}", refused.text());
    let made = id(&tree.workspace.file("after.md", None, "x").await.json());
    assert!(!made.is_empty(), "the rest of the workspace goes on");
}

fn found(answer: &Value) -> BTreeSet<String> {
    items(&answer["results"]).iter().map(|result| text(result, "fileId")).collect()
}
