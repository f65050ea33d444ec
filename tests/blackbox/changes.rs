//! The change feed for programs: `GET /api/v1/changes`, by polling, long polling and streaming.

use crate::support::callers::ApiToken;
use crate::support::http::{Events, items, text};
use crate::support::prelude::*;
use crate::support::wait::eventually;

scenarios![
    writes_are_told_in_their_order,
    a_wait_ends_with_the_next_change,
    a_stream_tells_and_goes_on_where_it_ended,
    a_stream_ends_with_its_token,
    a_scope_hides_what_is_outside_and_tells_what_left,
    what_was_ingested_is_told_to_whom_sees_the_whole_workspace,
    what_is_no_place_is_refused,
    a_token_waits_only_so_often,
];

async fn read(token: &ApiToken, query: &str) -> Value {
    token.get(&format!("/api/v1/changes{query}")).await.expect(200).json()
}

async fn head(token: &ApiToken) -> String {
    let head = read(token, "").await;
    assert_eq!((items(&head["changes"]).len(), &head["hasMore"]), (0, &json!(false)), "{head}");
    text(&head, "next")
}

async fn after(token: &ApiToken, place: &str) -> (Vec<(String, String)>, String) {
    let page = read(token, &format!("?after={place}")).await;
    let told =
        items(&page["changes"]).iter().map(|change| (text(change, "op"), text(change, "id"))).collect();
    (told, text(&page, "next"))
}

fn told(op: &str, id: &str) -> (String, String) {
    (op.to_owned(), id.to_owned())
}

async fn follow(token: &ApiToken, query: &str, last: Option<&str>) -> Events {
    let mut request = token.get(&format!("/api/v1/changes{query}")).header("accept", "text/event-stream");
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    request.events().await
}

async fn writes_are_told_in_their_order(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let begin = head(token).await;
    let made = workspace.file("a <secret-name>.md", None, "secret-text").await;
    let file = text(&made.json(), "id");
    let path = format!("/api/v1/files/{file}");
    let edited = token.patch(&path).json(json!({"content": "other"})).await.expect(200);
    token.delete(&path).await.expect(204);

    let page = read(token, &format!("?after={begin}")).await;
    let changes = items(&page["changes"]);
    assert_eq!(changes.len(), 3, "{page}");
    assert!(!page.to_string().contains("secret"), "{page}");
    for (change, op, version) in [
        (&changes[0], "upsert", json!(1)),
        (&changes[1], "upsert", json!(2)),
        (&changes[2], "delete", Value::Null),
    ] {
        assert_eq!((&change["kind"], &change["id"]), (&json!("file"), &json!(file)), "{page}");
        assert_eq!((&change["op"], &change["version"]), (&json!(op), &version), "{page}");
        assert_eq!(
            (&change["principal"]["kind"], &change["principal"]["name"]),
            (&json!("token"), &json!("all"))
        );
        assert!(change["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{page}");
    }
    assert_eq!(
        (&changes[0]["change"], &changes[1]["change"]),
        (&json!(made.change()), &json!(edited.change()))
    );

    let one = read(token, &format!("?after={begin}&limit=1")).await;
    assert_eq!((items(&one["changes"]).len(), &one["hasMore"]), (1, &json!(true)), "{one}");
    let rest = read(token, &format!("?after={}", text(&one, "next"))).await;
    assert_eq!(items(&rest["changes"]), &changes[1..]);
    // The change token of a write is a cursor, too.
    let behind = read(token, &format!("?after={}", made.change())).await;
    assert_eq!(items(&behind["changes"]), &changes[1..]);
    assert_eq!(after(token, &text(&page, "next")).await.0, []);
}

async fn a_wait_ends_with_the_next_change(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let place = head(&workspace.token).await;
    let waiting = {
        let (token, place) = (workspace.token.clone(), place.clone());
        tokio::spawn(async move { read(&token, &format!("?after={place}&wait=25")).await })
    };
    let file = workspace.file_id("a.md", None, "x").await;
    let page = waiting.await.unwrap();
    assert_eq!(items(&page["changes"])[0]["id"], json!(file), "{page}");
    let (token, next) = (&workspace.token, text(&page, "next"));
    let nothing = read(token, &format!("?after={next}&wait=1")).await;
    assert_eq!((items(&nothing["changes"]).len(), &nothing["next"]), (0, &json!(next)), "{nothing}");
}

async fn a_stream_tells_and_goes_on_where_it_ended(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let mut stream = follow(&workspace.token, "", None).await;
    stream.next("ready").await.unwrap();
    let file = workspace.file_id("a.md", None, "x").await;
    let change = stream.next("change").await.unwrap();
    assert_eq!((&change.data["id"], &change.data["op"]), (&json!(file), &json!("upsert")));
    drop(stream);
    workspace.token.delete(&format!("/api/v1/files/{file}")).await.expect(204);
    let mut again = follow(&workspace.token, "", change.id.as_deref()).await;
    let missed = again.next("change").await.unwrap();
    assert_eq!((&missed.data["id"], &missed.data["op"]), (&json!(file), &json!("delete")));
}

async fn a_stream_ends_with_its_token(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let tokens = format!("/api/workspaces/{}/tokens", workspace.id);
    let body = json!({"name": "ends", "permissions": ["read"]});
    let made = workspace.session.post(&tokens).json(body).await.expect(201).json();
    let token = ApiToken { http: workspace.token.http.clone(), secret: text(&made, "token") };
    let mut stream = follow(&token, "", None).await;
    stream.next("ready").await.unwrap();
    workspace.session.delete(&format!("{tokens}/{}", text(&made, "id"))).await.expect(204);
    // svc-auth's answer about it is cached for a second.
    eventually("the token opens nothing", async || {
        (token.get("/api/v1/changes").await.status == 401).then_some(())
    })
    .await;
    workspace.file("written afterwards.md", None, "x").await;
    assert_eq!(stream.next("change").await.map(|event| event.data), None);
}

async fn a_scope_hides_what_is_outside_and_tells_what_left(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (inside, outside) = (workspace.folder("inside", None).await, workspace.folder("outside", None).await);
    let below = workspace.folder("below", Some(&inside)).await;
    let token = workspace.token_for(&[&inside]).await;
    let place = head(&token).await;

    let mine = workspace.file_id("mine.md", Some(&below), "x").await;
    let other = workspace.file_id("other.md", Some(&outside), "x").await;
    let root = workspace.file_id("root.md", None, "x").await;
    let (seen, place) = after(&token, &place).await;
    assert_eq!(seen, [told("upsert", &mine)]);

    let moved = |file: &str, folder: Option<&str>| {
        let body = json!({"folderId": folder});
        workspace.token.patch(&format!("/api/v1/files/{file}")).json(body)
    };
    // Out of scope: reported as deleted, without the destination.
    moved(&mine, Some(&outside)).await.expect(200);
    let page = read(&token, &format!("?after={place}")).await;
    let change = &items(&page["changes"])[0];
    assert_eq!((text(change, "op"), text(change, "id")), told("delete", &mine));
    assert_eq!((change.get("version"), change.get("principal")), (None, None), "{page}");
    assert!(!page.to_string().contains(&outside), "{page}");
    let place = text(&page, "next");
    // Changes to it there are not reported; moved back into scope, it appears.
    workspace.token.patch(&format!("/api/v1/files/{mine}")).json(json!({"content": "y"})).await.expect(200);
    moved(&other, Some(&inside)).await.expect(200);
    moved(&root, Some(&outside)).await.expect(200);
    let (seen, place) = after(&token, &place).await;
    assert_eq!(seen, [told("upsert", &other)]);

    workspace.token.delete(&format!("/api/v1/files/{other}")).await.expect(204);
    workspace.token.delete(&format!("/api/v1/files/{root}")).await.expect(204);
    let (seen, place) = after(&token, &place).await;
    assert_eq!(seen, [told("delete", &other)]);

    // A folder that leaves the scope takes its contents along.
    let parent = json!({"parentId": outside});
    workspace.token.patch(&format!("/api/v1/folders/{below}")).json(parent).await.expect(200);
    workspace.file("in what left.md", Some(&below), "x").await;
    let (seen, place) = after(&token, &place).await;
    assert_eq!(seen, [told("delete", &below)]);

    // A long poll waits only for changes that the token may see.
    let waiting = {
        let token = token.clone();
        tokio::spawn(async move { read(&token, &format!("?after={place}&wait=25")).await })
    };
    workspace.file("still outside.md", Some(&outside), "x").await;
    let seen = workspace.file_id("seen.md", Some(&inside), "x").await;
    let page = waiting.await.unwrap();
    assert_eq!(items(&page["changes"]).iter().map(|one| text(one, "id")).collect::<Vec<_>>(), [seen]);
    token.get("/api/v1/changes?after=c1-0.i1-0&limit=1000").await.expect(200);
}

async fn what_was_ingested_is_told_to_whom_sees_the_whole_workspace(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("f", None).await;
    let scoped = workspace.token_for(&[&folder]).await;
    let (all, some) = (head(&workspace.token).await, head(&scoped).await);
    let body = json!({"idempotencyKey": "k", "title": "T", "content": "text"});
    let made = workspace.token.post("/api/v1/ingest").json(body).await;
    assert!(made.status < 300, "{}", made.text());
    let id = text(&made.json(), "id");
    let page = read(&workspace.token, &format!("?after={all}&wait=25")).await;
    let change = &items(&page["changes"])[0];
    assert_eq!((&change["kind"], &change["id"]), (&json!("ingested"), &json!(id)), "{page}");
    assert_eq!(after(&scoped, &some).await.0, []);
}

async fn what_is_no_place_is_refused(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for odd in ["nonsense", "c1-1.c1-2", "c1-", "1"] {
        token.get(&format!("/api/v1/changes?after={odd}")).await.expect_error(400, "VALIDATION_ERROR");
    }
    for odd in ["wait=26", "wait=-1", "wait=x", "limit=0", "limit=1001"] {
        token.get(&format!("/api/v1/changes?{odd}")).await.expect_error(400, "VALIDATION_ERROR");
    }
    // A position beyond the end of the feed, as after a restore from a backup: reading continues from the end of the
    // feed.
    let place = head(&token).await;
    let page = read(&token, "?after=c1-zzzzzz.i1-zzzzzz").await;
    assert_eq!((&page["next"], items(&page["changes"]).len()), (&json!(place), 0));
    let blind = deployment.workspace().await.token_with(&["write"]).await;
    blind.get("/api/v1/changes").await.expect_error(403, "FORBIDDEN");
}

async fn a_token_waits_only_so_often(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let mut streams = Vec::new();
    for _ in 0..16 {
        let mut stream = follow(&workspace.token, "", None).await;
        stream.next("ready").await.unwrap();
        streams.push(stream);
    }
    let request = workspace.token.get("/api/v1/changes").header("accept", "text/event-stream");
    request.await.expect_error(429, "RATE_LIMITED");
    drop(streams.pop());
    eventually("a place is free again", async || {
        let request = workspace.token.get("/api/v1/changes?after=c1-0.i1-0&wait=1");
        (request.await.status == 200).then_some(())
    })
    .await;
}
