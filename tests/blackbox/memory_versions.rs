//! Versions of memories: by the API, on the console's pages, and in the activity list (docs/API.md).

use crate::support::http::{each, id, items, text};
use crate::support::people::join;
use crate::support::prelude::*;
use crate::support::tables::{location, page, send};

scenarios![
    versions_are_listed_read_and_restored,
    a_restore_takes_what_its_changes_take,
    versions_are_shown_with_what_they_changed,
    a_restore_is_undone_as_any_change,
];

/// A memory with two files, and its path in the API.
async fn memory(workspace: &Workspace) -> (Value, String) {
    let mut members = Vec::new();
    for name in ["one.md", "two.md"] {
        let file = id(&workspace.file(name, None, "text").await.expect(201).json());
        members.push(json!({"kind": "file", "fileId": file}));
    }
    let body = json!({"name": "How we <b>release", "useWhen": "always", "members": members});
    let made = workspace.token.post("/api/v1/memories").json(body).await.expect(201).json();
    let path = format!("/api/v1/memories/{}", id(&made));
    (made, path)
}

async fn read(workspace: &Workspace, path: &str) -> Value {
    workspace.token.get(path).await.expect(200).json()
}

async fn versions_are_listed_read_and_restored(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (made, path) = memory(&workspace).await;
    let changes = json!({"name": "Releases", "slug": "releases", "useWhen": null, "description": "new"});
    workspace.token.patch(&path).json(changes).await.expect(200);
    let first = id(&items(&made["members"])[0]);
    workspace.token.delete(&format!("{path}/members/{first}")).await.expect(204);
    let listed = workspace.token.get(&format!("{path}/versions?limit=2")).await.expect(200);
    assert_eq!(listed.header("x-total-count"), Some("3"));
    let listed = listed.json();
    let numbers: Vec<_> = items(&listed).iter().map(|one| one["version"].clone()).collect();
    assert_eq!(numbers, [json!(3), json!(2)], "{listed}");
    assert_eq!((&listed[0]["memberCount"], &listed[1]["memberCount"]), (&json!(1), &json!(2)), "{listed}");
    assert_eq!(listed[0]["createdBy"]["kind"], json!("token"), "{listed}");
    let version = read(&workspace, &format!("{path}/versions/1")).await;
    let was = &version["memory"];
    assert_eq!((text(was, "name"), text(was, "useWhen")), ("How we <b>release".into(), "always".into()));
    assert_eq!(each(&was["members"], "title"), ["one.md", "two.md"], "{version}");
    for odd in ["0", "4", "99999999999999999999", "x"] {
        let reply = workspace.token.get(&format!("{path}/versions/{odd}")).await;
        assert!(matches!(reply.status, 400 | 404), "{odd}: {}", reply.text());
    }
    let restored = workspace.token.post(&format!("{path}/versions/1/restore")).await.expect(200);
    restored.change();
    let now = restored.json();
    assert_eq!(
        (&now["version"], text(&now, "name"), text(&now, "slug")),
        (&json!(4), "How we <b>release".into(), "releases".into())
    );
    assert_eq!(now["description"], json!(null), "{now}");
    assert_eq!(each(&now["members"], "title"), ["one.md", "two.md"], "{now}");
    let again = workspace.token.post(&format!("{path}/versions/1/restore")).await.expect(200).json();
    assert_eq!(again["version"], json!(4), "what is so already changes nothing");
    workspace.token.delete(&path).await.expect(204);
    workspace.token.get(&format!("{path}/versions")).await.expect_error(404, "NOT_FOUND");
}

async fn a_restore_takes_what_its_changes_take(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (_, path) = memory(&workspace).await;
    let more = id(&workspace.file("three.md", None, "text").await.expect(201).json());
    let body = json!({"members": [{"kind": "file", "fileId": more}]});
    workspace.token.post(&format!("{path}/members")).json(body).await.expect(201);
    let restore = |version: u64| format!("{path}/versions/{version}/restore");
    let writer = workspace.token_with(&["write"]).await;
    writer.post(&restore(1)).await.expect_error(403, "FORBIDDEN");
    let both = workspace.token_with(&["write", "delete"]).await;
    both.post(&restore(1)).await.expect(200);
    // This one removes nothing.
    writer.post(&restore(2)).await.expect(200);
    let reader = workspace.token_with(&["read"]).await;
    reader.post(&restore(1)).await.expect_error(403, "FORBIDDEN");
    let stranger = deployment.workspace().await.token;
    stranger.get(&format!("{path}/versions")).await.expect_error(404, "NOT_FOUND");
    stranger.post(&restore(1)).await.expect_error(404, "NOT_FOUND");
}

async fn versions_are_shown_with_what_they_changed(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (made, path) = memory(&workspace).await;
    workspace.token.patch(&path).json(json!({"useWhen": "at the end of a <week>"})).await.expect(200);
    let own = format!("/memories/{}", id(&made));
    assert!(page(&workspace, &own).await.contains(&format!("href=\"{own}/versions\"")));
    let listed = page(&workspace, &format!("{own}/versions")).await;
    for part in
        [format!("href=\"{own}/versions/2\""), "How we &lt;b&gt;release".to_owned(), "2 members".to_owned()]
    {
        assert!(listed.contains(&part), "{part}: {listed}");
    }
    let shown = page(&workspace, &format!("{own}/versions/2")).await;
    assert!(shown.contains("&lt;week&gt;") && shown.contains("always"), "{shown}");
    assert!(!shown.contains("Restore this version") && !shown.contains("<week>"), "{shown}");
    let first = format!("{own}/versions/1");
    for show in ["", "?show=now", "?show=text", "?show=nothing"] {
        assert!(page(&workspace, &format!("{first}{show}")).await.contains("Restore this version"));
    }
    workspace.session.get(&format!("{own}/versions/9")).await.expect(404);
    let viewer = join(&workspace, "viewer").await.seat(&workspace);
    assert!(!page(&viewer, &first).await.contains("Restore this version"));
    send(&viewer, &format!("{first}/restore"), &[]).await.expect(403);
    assert_eq!(location(&send(&workspace, &format!("{first}/restore"), &[]).await.expect(303)), own);
    assert_eq!(read(&workspace, &path).await["useWhen"], json!("always"));
    let stranger = join(&deployment.workspace().await, "owner").await.session;
    stranger.get(&first).await.expect(404);
}

async fn a_restore_is_undone_as_any_change(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (_, path) = memory(&workspace).await;
    workspace.token.patch(&path).json(json!({"name": "Another"})).await.expect(200);
    workspace.token.post(&format!("{path}/versions/1/restore")).await.expect(200);
    let activity = format!("/api/workspaces/{}/activity", workspace.id);
    let listed = workspace.session.get(&format!("{activity}?kind=memory")).await.expect(200).json();
    let entry = items(&listed)[0].clone();
    assert_eq!((&entry["versionBefore"], &entry["versionAfter"]), (&json!(2), &json!(3)), "{entry}");
    let undone =
        workspace.session.post(&format!("{activity}/undo")).json(json!({"entries": [id(&entry)]})).await;
    assert!(items(&undone.expect(200).json()["leftAlone"]).is_empty());
    let now = read(&workspace, &path).await;
    assert_eq!((text(&now, "name"), &now["version"]), ("Another".to_owned(), &json!(4)), "{now}");
    let was = read(&workspace, &format!("{path}/versions/4")).await;
    assert_eq!(text(&was["memory"], "name"), "Another", "{was}");
}
