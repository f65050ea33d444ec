//! The page that finds things by their names, which the command palette asks (docs/CONSOLE.md).

use crate::support::http::id;
use crate::support::people;
use crate::support::prelude::*;
use crate::support::tables::{Table, page};

scenarios![things_are_found_by_their_names, names_of_others_are_not_found];

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
