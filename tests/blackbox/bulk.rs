//! Bulk operations on items: over REST, and from the console's list.

use crate::support::http::{Reply, each, id, items, text};
use crate::support::oauth::encoded;
use crate::support::prelude::*;

scenarios![
    many_are_moved_tagged_trashed_and_restored_in_one_write,
    what_cannot_be_done_to_one_hinders_no_other,
    one_undo_takes_all_of_it_back,
    all_that_match_are_those_of_the_list,
    a_request_says_which_items_and_no_more,
    the_console_shows_all_that_match_before_it_changes_them,
];

const FORM: &str = "application/x-www-form-urlencoded";

fn files(ids: &[&str]) -> Value {
    ids.iter().map(|id| json!({"kind": "file", "id": id})).collect()
}

async fn bulk(workspace: &Workspace, what: &str, body: Value) -> Reply {
    workspace.token.post(&format!("/api/v1/bulk/{what}")).json(body).await
}

async fn path_of(workspace: &Workspace, file: &str) -> String {
    text(&workspace.token.get(&format!("/api/v1/files/{file}")).await.expect(200).json(), "path")
}

fn counts(done: &Value) -> [u64; 4] {
    ["selectedCount", "changedCount", "unchangedCount", "itemCount"].map(|name| done[name].as_u64().unwrap())
}

async fn many_are_moved_tagged_trashed_and_restored_in_one_write(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (from, to) = (workspace.folder("from", None).await, workspace.folder("to", None).await);
    let a = workspace.file_id("a.md", Some(&from), "one").await;
    let b = workspace.file_id("b.md", None, "two").await;
    let mut chosen = items(&files(&[&a, &b])).to_vec();
    chosen.push(json!({"kind": "folder", "id": from}));
    let moved = bulk(&workspace, "move", json!({"items": chosen, "folderId": to})).await.expect(200);
    assert!(!moved.change().is_empty());
    let moved = moved.json();
    assert_eq!((counts(&moved), items(&moved["skipped"]).len()), ([3, 3, 0, 3], 0), "{moved}");
    assert_eq!(path_of(&workspace, &a).await, "/to/a.md");
    let again = bulk(&workspace, "move", json!({"items": chosen, "folderId": to})).await.expect(200).json();
    assert_eq!(counts(&again), [3, 0, 3, 0], "{again}");
    assert!(again["writeId"].is_null(), "{again}");

    let tags = json!({"items": files(&[&a, &b]), "add": ["x", "y"]});
    bulk(&workspace, "tag", tags).await.expect(200);
    let tags = json!({"items": files(&[&a]), "add": ["z"], "remove": ["x"]});
    bulk(&workspace, "tag", tags).await.expect(200);
    let read = workspace.token.get(&format!("/api/v1/files/{a}")).await.expect(200).json();
    assert_eq!(read["tags"], json!(["y", "z"]));

    let chosen = json!([{"kind": "file", "id": a}, {"kind": "folder", "id": to}]);
    let planned = json!({"items": chosen, "dryRun": true});
    let planned = bulk(&workspace, "trash", planned).await.expect(200).json();
    assert_eq!((counts(&planned), &planned["dryRun"]), ([2, 2, 0, 4], &json!(true)), "{planned}");
    assert_eq!(path_of(&workspace, &a).await, "/to/a.md");
    let trashed = bulk(&workspace, "trash", json!({"items": chosen})).await.expect(200).json();
    assert_eq!(counts(&trashed), [2, 2, 0, 4], "{trashed}");
    workspace.token.get(&format!("/api/v1/files/{a}")).await.expect(404);
    let back = json!({"items": [{"kind": "folder", "id": to}]});
    let back = bulk(&workspace, "restore", back).await.expect(200).json();
    assert_eq!(counts(&back), [1, 1, 0, 4], "{back}");
    assert_eq!(path_of(&workspace, &a).await, "/to/a.md");
}

async fn what_cannot_be_done_to_one_hinders_no_other(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (mine, other) = (workspace.folder("mine", None).await, workspace.folder("other", None).await);
    let a = workspace.file_id("a.md", Some(&mine), "one").await;
    let b = workspace.file_id("b.md", Some(&other), "two").await;
    let nothing = "0199c0de-0000-7000-8000-000000000001";
    let scoped = workspace.token_for(&[&mine]).await;
    let body = json!({"items": files(&[&b, nothing, &a]), "add": ["x"]});
    let done = scoped.post("/api/v1/bulk/tag").json(body).await.expect(200).json();
    assert_eq!(counts(&done), [3, 1, 0, 1], "{done}");
    assert_eq!(each(&done["skipped"], "code"), ["OUT_OF_SCOPE", "NOT_FOUND"]);
    assert_eq!(each(&done["skipped"], "id"), [b.as_str(), nothing]);
    let body = json!({"items": files(&[&a]), "folderId": other});
    scoped.post("/api/v1/bulk/move").json(body).await.expect(403);
    let body =
        json!({"items": [{"kind": "folder", "id": mine}, {"kind": "file", "id": a}], "folderId": mine});
    let done = bulk(&workspace, "move", body).await.expect(200).json();
    assert_eq!(counts(&done), [2, 0, 1, 0], "{done}");
    assert_eq!(each(&done["skipped"], "code"), ["VALIDATION_ERROR"]);
}

async fn one_undo_takes_all_of_it_back(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("there", None).await;
    let mut ids = Vec::new();
    for name in ["a.md", "b.md", "c.md"] {
        ids.push(workspace.file_id(name, None, name).await);
    }
    let chosen: Vec<&str> = ids.iter().map(String::as_str).collect();
    let moved = json!({"items": files(&chosen), "folderId": folder});
    let moved = bulk(&workspace, "move", moved).await.expect(200).json();
    let activity = format!("/api/workspaces/{}/activity", workspace.id);
    let listed = workspace.session.get(&activity).await.expect(200).json();
    let entries = &items(&listed)[..3];
    assert!(entries.iter().all(|entry| entry["writeId"] == moved["writeId"]), "{listed}");
    assert_ne!(items(&listed)[3]["writeId"], moved["writeId"]);
    let page = workspace.session.get(&format!("/w/{}/activity", workspace.id)).await.expect(200).text();
    let link = format!("/activity/undo?write={}", text(&moved, "writeId"));
    assert!(page.contains(&link), "{page}");

    // A later edit by a person stays.
    let path = format!("/api/v1/files/{}", ids[1]);
    workspace.token.patch(&path).json(json!({"content": "newer"})).await.expect(200);
    let other = workspace.token(json!({"name": "other", "permissions": ["read", "write"]})).await;
    other.patch(&path).json(json!({"tags": ["x"]})).await.expect(200);
    let body = json!({"write": moved["writeId"]});
    let undone = workspace.session.post(&format!("{activity}/undo")).json(body).await.expect(200).json();
    assert_eq!((items(&undone["steps"]).len(), items(&undone["leftAlone"]).len()), (2, 1), "{undone}");
    assert_eq!(path_of(&workspace, &ids[0]).await, "/a.md");
    assert_eq!(path_of(&workspace, &ids[1]).await, "/there/b.md");
    let odd = workspace.session.post(&format!("{activity}/undo")).json(json!({"write": "1.2"})).await;
    odd.expect(400);
}

async fn all_that_match_are_those_of_the_list(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (top, inner) = (workspace.folder("top", None).await, workspace.folder("aside", None).await);
    let below = workspace.folder("below", Some(&top)).await;
    let a = workspace.file_id("Plan a.md", Some(&top), "x").await;
    let b = workspace.file_id("plan b.md", Some(&below), "x").await;
    workspace.file_id("note.md", Some(&top), "x").await;
    for (matching, expected) in [
        (json!({"folderId": top}), 2),
        (json!({"folderId": top, "recursive": true}), 3),
        (json!({"query": "PLAN"}), 2),
        (json!({"query": "plan", "folderId": below}), 1),
        (json!({"folderId": "root"}), 0),
        (json!({"tags": ["nothing"]}), 0),
    ] {
        let body = json!({"files": matching, "add": ["t"], "dryRun": true});
        let planned = bulk(&workspace, "tag", body).await.expect(200).json();
        assert_eq!(counts(&planned), [expected, expected, 0, expected], "{matching}");
    }
    let stale = json!({"files": {"query": "plan", "expectedCount": 3}, "folderId": inner});
    bulk(&workspace, "move", stale).await.expect(400);
    let seen = json!({"files": {"query": "plan", "expectedCount": 2}, "folderId": inner});
    let moved = bulk(&workspace, "move", seen).await.expect(200).json();
    assert_eq!(counts(&moved), [2, 2, 0, 2], "{moved}");
    assert_eq!(
        (path_of(&workspace, &a).await, path_of(&workspace, &b).await),
        ("/aside/Plan a.md".into(), "/aside/plan b.md".into())
    );
}

async fn a_request_says_which_items_and_no_more(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "x").await;
    let many: Vec<Value> = (0..1_001).map(|_| json!({"kind": "file", "id": file})).collect();
    for (what, body) in [
        ("trash", json!({})),
        ("trash", json!({"items": []})),
        ("trash", json!({"items": many})),
        ("trash", json!({"items": files(&[&file]), "files": {}})),
        ("trash", json!({"items": [{"kind": "thing", "id": file}]})),
        ("move", json!({"items": files(&[&file])})),
        ("tag", json!({"items": files(&[&file])})),
        ("tag", json!({"items": files(&[&file]), "add": ["x"], "remove": ["x"]})),
        ("restore", json!({"files": {}})),
    ] {
        bulk(&workspace, what, body).await.expect(400);
    }
    let nowhere = json!({"items": files(&[&file]), "folderId": "0199c0de-0000-7000-8000-000000000001"});
    bulk(&workspace, "move", nowhere).await.expect(404);
    let reader = workspace.token(json!({"name": "reader", "permissions": ["read"]})).await;
    reader.post("/api/v1/bulk/trash").json(json!({"items": files(&[&file])})).await.expect(403);
    assert_eq!(path_of(&workspace, &file).await, "/a.md");
}

async fn the_console_shows_all_that_match_before_it_changes_them(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("Shelf", None).await;
    for number in 0..60 {
        workspace.file_id(&format!("{number:02}.md"), None, "x").await;
    }
    let base = format!("/w/{}/files", workspace.id);
    let page = async |path: &str| workspace.session.get(path).await.expect(200).text();
    let send = async |fields: &[(&str, &str)]| {
        let body = encoded(fields.iter().copied());
        let request = workspace.session.post(&format!("{base}/many"));
        request.header("sec-fetch-site", "same-origin").body(FORM, body).await
    };
    assert!(page(&base).await.contains("All 60 files that match"));
    assert!(page(&format!("{base}?q=1.md")).await.contains("All 6 files that match"));

    let asked = send(&[("do", "move"), ("to", &folder), ("q", "1.md"), ("all", "yes")]).await.expect(303);
    let plan = asked.header("location").unwrap().to_owned();
    assert!(plan.starts_with(&format!("{base}/all?")), "{plan}");
    let planned = page(&plan).await;
    for part in
        ["6 files match", "6 files would stand in", "Move 6 files", "name=\"expect\" value=\"6\"", "/01.md"]
    {
        assert!(planned.contains(part), "{part}: {planned}");
    }
    let listed = workspace.token.get("/api/v1/files?folderId=root").await.expect(200).json();
    assert_eq!(items(&listed).len(), 60, "showing changes nothing");
    let sure = [("do", "move"), ("to", folder.as_str()), ("q", "1.md"), ("all", "yes"), ("sure", "yes")];
    // The number must match what the page showed, or the plan is shown again.
    let stale = send(&[&sure[..], &[("expect", "7")]].concat()).await.expect(303);
    assert_eq!(stale.header("location").unwrap(), plan);
    let done = send(&[&sure[..], &[("expect", "6")]].concat()).await.expect(303);
    let cookie = done.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let list = done.header("location").unwrap().to_owned();
    assert_eq!(list, format!("{base}?q=1.md"));
    let with_notice = format!("{}; {cookie}", workspace.session.cookie);
    let told = deployment.anonymous().get(&list).header("cookie", with_notice).await.expect(200).text();
    assert!(told.contains("6 items moved.") && told.contains("/activity/undo"), "{told}");
    let listed = workspace.token.get(&format!("/api/v1/folders/{folder}/files")).await.expect(200).json();
    assert_eq!(items(&listed).len(), 6);
    let first = id(&items(&listed)[0]);
    assert!(path_of(&workspace, &first).await.starts_with("/Shelf/"));
    for odd in ["", "?do=nothing", "?do=restore", "?do=tag&all=yes"] {
        let reply = workspace.session.get(&format!("{base}/all{odd}")).await;
        assert!(matches!(reply.status, 200 | 400), "{odd}: {}", reply.status);
    }
    let none = page(&format!("{base}/all?do=trash&q=zqnothing&all=yes")).await;
    assert!(none.contains("None of them would change."), "{none}");
}
