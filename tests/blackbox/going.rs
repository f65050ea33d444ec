//! The page that finds items by name, which the command palette calls (docs/CONSOLE.md).

use crate::support::http::{id, items};
use crate::support::people;
use crate::support::prelude::*;
use crate::support::tables::{Table, page};

scenarios![
    things_are_found_by_their_names,
    names_of_others_are_not_found,
    names_behind_a_thousand_others_are_found,
    names_are_found_over_the_api,
];

/// More than one page of a list holds.
const MANY: usize = 1_001;
const CONCURRENCY: usize = 16;

async fn things_are_found_by_their_names(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let go = format!("/w/{}/go", workspace.id);
    let folder = workspace.folder("Walrus plans", None).await;
    let file = workspace.file_id("walrus-council.md", Some(&folder), "x").await;
    let table = Table::make(&workspace).await;
    let title = table.fields.first().map(|(_, field)| field.clone()).unwrap();
    let records = format!("/api/v1/databases/{}/records", table.id);
    let values = json!({"values": {title.as_str(): "Feed the <b>walrus</b>"}});
    let record = id(&workspace.token.post(&records).json(values).await.expect(201).json());
    let body = json!({"name": "What a walrus needs"});
    let memory = id(&workspace.token.post("/api/v1/memories").json(body).await.expect(201).json());

    let found = page(&workspace, &format!("{go}?q=WALRUS")).await;
    for address in [
        format!("/w/{}/files?folder={folder}", workspace.id),
        format!("/file/{file}"),
        format!("/databases/{}?record={record}", table.id),
        format!("/memories/{memory}"),
    ] {
        assert!(found.contains(&format!("href=\"{address}\"")), "{address}: {found}");
    }
    assert!(found.contains("Feed the &lt;b&gt;walrus&lt;/b&gt;"), "{found}");
    let places = page(&workspace, &format!("{go}?q=trash")).await;
    assert!(places.contains(&format!("<li><a href=\"/w/{}/trash\">", workspace.id)), "{places}");
    for odd in ["q=%00", "q=%F0%9F%90%8B", "q=%25_%5C", &format!("q={}", "x".repeat(3_000)), "q=&q=", "x=%ff"]
    {
        let reply = workspace.session.get(&format!("{go}?{odd}")).await;
        assert!(matches!(reply.status, 200 | 400), "{odd}: {}", reply.text());
    }
}

async fn names_of_others_are_not_found(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file("narwhal.md", None, "x").await.expect(201);
    let other = deployment.workspace().await;
    let stranger = people::join(&other, "editor").await.session;
    let own = stranger.get(&format!("/w/{}/go?q=narwhal", other.id)).await.expect(200).text();
    assert!(!own.contains("narwhal.md") && own.contains("0 places"), "{own}");
    stranger.get(&format!("/w/{}/go?q=narwhal", workspace.id)).await.expect(404);
    let viewer = people::join(&workspace, "viewer").await.session;
    let found = viewer.get(&format!("/w/{}/go?q=narwhal", workspace.id)).await.expect(200).text();
    assert!(found.contains("narwhal.md"), "{found}");
}

/// Sends the same request with many names, several at once.
async fn make_many(workspace: &Workspace, path: &str) {
    let numbers: Vec<usize> = (0..MANY).collect();
    for part in numbers.chunks(CONCURRENCY) {
        let each = part.iter().map(|number| async move {
            let body = json!({"name": format!("a{number:04}")});
            workspace.token.post(path).json(body).await.expect(201);
        });
        futures::future::join_all(each).await;
    }
}

/// Only memories, since each takes a request: databases are found by the same call, and the content service's own tests
/// cover as many folders.
async fn names_behind_a_thousand_others_are_found(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = "/api/v1/memories";
    make_many(&workspace, path).await;
    let last = id(&workspace.token.post(path).json(json!({"name": "zorilla"})).await.expect(201).json());
    let found = page(&workspace, &format!("/w/{}/go?q=zorilla", workspace.id)).await;
    assert!(found.contains(&format!("href=\"/memories/{last}\"")), "{found}");
}

async fn names_are_found_over_the_api(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let names = format!("/api/workspaces/{}/names", workspace.id);
    let outer = workspace.folder("Quokka", None).await;
    let inner = workspace.folder("quokkas inside", Some(&outer)).await;
    let memory = workspace.token.post("/api/v1/memories").json(json!({"name": "Of a quokka"})).await;
    let memory = id(&memory.expect(201).json());
    let found = workspace.session.get(&format!("{names}?query=QUOKKA")).await.expect(200).json();
    let expected = json!({"items": [
        {"kind": "folder", "id": outer, "name": "Quokka", "path": "/Quokka"},
        {"kind": "folder", "id": inner, "name": "quokkas inside", "path": "/Quokka/quokkas inside"},
        {"kind": "memory", "id": memory, "name": "Of a quokka"},
    ], "isPart": false});
    assert_eq!(found, expected);
    let first = workspace.session.get(&format!("{names}?query=quokka&limit=1")).await.expect(200).json();
    assert_eq!(items(&first["items"]).len(), 2, "one of each kind: {first}");
    for wrong in ["", "?query=", "?query=x&limit=0", "?query=x&limit=101"] {
        workspace.session.get(&format!("{names}{wrong}")).await.expect(400);
    }
    workspace.token.delete(&format!("/api/v1/folders/{outer}")).await.expect(204);
    let left = workspace.session.get(&format!("{names}?query=quokka")).await.expect(200).json();
    assert_eq!(items(&left["items"]).len(), 1, "what is in trash is not found: {left}");
    let stranger = people::join(&deployment.workspace().await, "editor").await.session;
    stranger.get(&format!("{names}?query=quokka")).await.expect(404);
}
