//! `/api/v1/folders` (spec 2.2, 4.2).

use std::collections::BTreeSet;

use crate::support::http::{each, id, text};
use crate::support::prelude::*;
use crate::support::workspace::read_file;

scenarios![
    a_new_folder_has_every_field_of_the_contract,
    folders_are_listed_by_parent,
    files_of_a_folder_come_with_those_below_it,
    a_renamed_folder_renames_every_path_below,
    a_moved_folder_takes_everything_along,
    a_move_into_itself_is_refused,
    a_deleted_folder_takes_everything_along,
    a_parent_must_be_there,
    a_name_has_its_limits,
];

async fn a_new_folder_has_every_field_of_the_contract(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let created =
        workspace.token.post("/api/v1/folders").json(json!({"name": "Übersicht"})).await.expect(201);
    assert!(!created.change().is_empty());
    let top = created.json();
    assert_eq!((top["workspaceId"].clone(), top["parentId"].clone()), (json!(workspace.id), Value::Null));
    assert_eq!((text(&top, "name"), text(&top, "path")), ("Übersicht".into(), "/Übersicht".into()));
    assert!(text(&top, "createdAt").ends_with('Z') && text(&top, "updatedAt").ends_with('Z'));

    let body = json!({"name": "inner", "parentId": id(&top)});
    let inner = workspace.token.post("/api/v1/folders").json(body).await.expect(201).json();
    assert_eq!((text(&inner, "parentId"), text(&inner, "path")), (id(&top), "/Übersicht/inner".into()));
    let read = workspace.token.get(&format!("/api/v1/folders/{}", id(&inner))).await.expect(200).json();
    assert_eq!(read, inner);
}

async fn folders_are_listed_by_parent(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (a, b) = (workspace.folder("a", None).await, workspace.folder("b", None).await);
    let inner = workspace.folder("inner", Some(&a)).await;
    let deep = workspace.folder("deep", Some(&inner)).await;
    let ids = async |path: &str| -> BTreeSet<String> {
        let list = workspace.token.get(path).await.expect(200).json();
        each(&list, "id").into_iter().map(str::to_owned).collect()
    };
    assert_eq!(ids(&format!("/api/v1/folders?parentId={a}")).await, BTreeSet::from([inner.clone()]));
    assert_eq!(ids(&format!("/api/v1/folders/{a}/subfolders")).await, BTreeSet::from([inner.clone()]));
    assert_eq!(ids(&format!("/api/v1/folders/{b}/subfolders")).await, BTreeSet::new());
    let all = ids("/api/v1/folders").await;
    assert!([&a, &b].into_iter().all(|folder| all.contains(folder)), "{all:?}");
    assert_eq!(ids(&format!("/api/v1/folders/{inner}/subfolders")).await, BTreeSet::from([deep]));
}

async fn files_of_a_folder_come_with_those_below_it(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let top = workspace.folder("top", None).await;
    let inner = workspace.folder("inner", Some(&top)).await;
    let direct = workspace.file_id("direct.md", Some(&top), "d").await;
    let below = workspace.file_id("below.md", Some(&inner), "b").await;
    workspace.file_id("beside.md", None, "x").await;
    let ids = async |query: &str| -> BTreeSet<String> {
        let path = format!("/api/v1/folders/{top}/files{query}");
        let list = workspace.token.get(&path).await.expect(200).json();
        each(&list, "id").into_iter().map(str::to_owned).collect()
    };
    let both = BTreeSet::from([direct.clone(), below]);
    assert_eq!(ids("").await, both, "recursive is the default");
    assert_eq!(ids("?recursive=true").await, both);
    assert_eq!(ids("?recursive=false").await, BTreeSet::from([direct]));
    let odd = workspace.token.get(&format!("/api/v1/folders/{top}/files?recursive=maybe")).await;
    assert_eq!(each(&odd.expect_error(400, "VALIDATION_ERROR")["errors"], "path"), ["recursive"]);
}

async fn a_renamed_folder_renames_every_path_below(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let top = workspace.folder("old", None).await;
    let inner = workspace.folder("inner", Some(&top)).await;
    let file = workspace.file_id("a.md", Some(&inner), "x").await;
    let path = format!("/api/v1/folders/{top}");
    let renamed = workspace.token.patch(&path).json(json!({"name": "new"})).await.expect(200);
    assert!(!renamed.change().is_empty());
    assert_eq!(text(&renamed.json(), "path"), "/new");
    assert_eq!(text(&read_file(&workspace.token, &file).await, "path"), "/new/inner/a.md");
    let inner_now = workspace.token.get(&format!("/api/v1/folders/{inner}")).await.expect(200).json();
    assert_eq!(text(&inner_now, "path"), "/new/inner");
}

async fn a_moved_folder_takes_everything_along(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (from, to) = (workspace.folder("from", None).await, workspace.folder("to", None).await);
    let moving = workspace.folder("moving", Some(&from)).await;
    let file = workspace.file_id("a.md", Some(&moving), "x").await;
    let path = format!("/api/v1/folders/{moving}");
    let moved = workspace.token.patch(&path).json(json!({"parentId": to})).await.expect(200).json();
    assert_eq!((text(&moved, "parentId"), text(&moved, "path")), (to, "/to/moving".into()));
    assert_eq!(text(&read_file(&workspace.token, &file).await, "path"), "/to/moving/a.md");
    let left = workspace.token.get(&format!("/api/v1/folders/{from}/files")).await.expect(200).json();
    assert_eq!(left, json!([]));
    let rooted = workspace.token.patch(&path).json(json!({"parentId": null})).await.expect(200).json();
    assert_eq!((rooted["parentId"].clone(), text(&rooted, "path")), (Value::Null, "/moving".into()));
    assert_eq!(text(&read_file(&workspace.token, &file).await, "path"), "/moving/a.md");
}

async fn a_move_into_itself_is_refused(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let top = workspace.folder("top", None).await;
    let inner = workspace.folder("inner", Some(&top)).await;
    let deep = workspace.folder("deep", Some(&inner)).await;
    for target in [&top, &inner, &deep] {
        let moved =
            workspace.token.patch(&format!("/api/v1/folders/{top}")).json(json!({"parentId": target})).await;
        let error = moved.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(each(&error["errors"], "path"), ["parentId"], "{error}");
    }
    let path_of = async |folder: &str| {
        text(&workspace.token.get(&format!("/api/v1/folders/{folder}")).await.expect(200).json(), "path")
    };
    assert_eq!((path_of(&top).await, path_of(&deep).await), ("/top".into(), "/top/inner/deep".into()));
}

async fn a_deleted_folder_takes_everything_along(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let top = workspace.folder("top", None).await;
    let inner = workspace.folder("inner", Some(&top)).await;
    let file = workspace.file_id("a.md", Some(&inner), "x").await;
    let kept = workspace.file_id("kept.md", None, "x").await;
    let deleted = workspace.token.delete(&format!("/api/v1/folders/{top}")).await.expect(204);
    assert!(deleted.body.is_empty() && !deleted.change().is_empty());
    for path in [
        format!("/api/v1/folders/{top}"),
        format!("/api/v1/folders/{top}/files"),
        format!("/api/v1/folders/{top}/subfolders"),
        format!("/api/v1/folders/{inner}"),
        format!("/api/v1/files/{file}"),
        format!("/api/v1/files/{file}/raw"),
    ] {
        workspace.token.get(&path).await.expect_error(404, "NOT_FOUND");
    }
    workspace.token.delete(&format!("/api/v1/folders/{top}")).await.expect_error(404, "NOT_FOUND");
    assert_eq!(workspace.token.get("/api/v1/folders").await.expect(200).json(), json!([]));
    let files = workspace.token.get("/api/v1/files").await.expect(200).json();
    assert_eq!(each(&files, "id"), [kept]);
}

async fn a_parent_must_be_there(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let foreign = deployment.workspace().await.folder("theirs", None).await;
    let own = workspace.folder("own", None).await;
    let unknown = uuid::Uuid::from_u128(7).to_string();
    let mut answers = BTreeSet::new();
    for parent in [&foreign, &unknown] {
        let made =
            workspace.token.post("/api/v1/folders").json(json!({"name": "x", "parentId": parent})).await;
        let moved =
            workspace.token.patch(&format!("/api/v1/folders/{own}")).json(json!({"parentId": parent})).await;
        for refused in [made, moved] {
            assert!(matches!(refused.status, 400 | 404), "{}: {}", refused.status, refused.text());
            answers.insert((refused.status, text(&refused.json(), "error")));
        }
    }
    assert_eq!(answers.len(), 1, "a foreign folder must look like one that never was: {answers:?}");
}

async fn a_name_has_its_limits(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder(&"ä".repeat(255), None).await;
    for name in ["", "a/b", "a\tb", "a\u{0}b", &"ä".repeat(256)] {
        let made = workspace.token.post("/api/v1/folders").json(json!({"name": name})).await;
        assert_eq!(each(&made.expect_error(400, "VALIDATION_ERROR")["errors"], "path"), ["name"], "{name:?}");
        let path = format!("/api/v1/folders/{folder}");
        workspace.token.patch(&path).json(json!({"name": name})).await.expect_error(400, "VALIDATION_ERROR");
    }
}
