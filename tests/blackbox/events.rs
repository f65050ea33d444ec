//! The events of a workspace, as server-sent events (contract, "What agents did"; docs/API.md).

use crate::support::callers::Session;
use crate::support::http::Events;
use crate::support::mcp;
use crate::support::people;
use crate::support::prelude::*;

scenarios![
    changes_are_told_and_go_on_from_the_last_event,
    a_stream_ends_with_the_session,
    nothing_is_told_after_the_membership,
    events_are_for_members,
    calls_are_told_without_what_was_asked,
];

/// Both paths of a workspace's events.
fn paths(workspace: &Workspace) -> [String; 2] {
    [format!("/w/{}/events", workspace.id), format!("/api/workspaces/{}/events", workspace.id)]
}

async fn follow(session: &Session, path: &str, last: Option<&str>) -> Events {
    let mut request = session.get(path).header("accept", "text/event-stream");
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    request.events().await
}

async fn changes_are_told_and_go_on_from_the_last_event(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    // The owner follows in other scenarios too, and the number of streams per person is limited.
    let session = people::join(&workspace, "viewer").await.session;
    for path in paths(&workspace) {
        let mut stream = follow(&session, &path, None).await;
        stream.next("ready").await.unwrap();
        let file = workspace.file_id("told <secret-name>.md", None, "secret-text").await;
        let change = stream.next("change").await.unwrap();
        assert_eq!((change.data["id"].as_str(), &change.data["kind"]), (Some(file.as_str()), &json!("file")));
        assert!(!change.data.to_string().contains("secret"), "{}", change.data);
        let last = change.id.unwrap();
        drop(stream);
        workspace.token.delete(&format!("/api/v1/files/{file}")).await.expect(204);
        let mut again = follow(&session, &path, Some(&last)).await;
        let missed = again.next("change").await.unwrap();
        assert_eq!((missed.data["id"].as_str(), &missed.data["op"]), (Some(file.as_str()), &json!("delete")));
        again.next("ready").await.unwrap();
    }
}

async fn a_stream_ends_with_the_session(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    for path in paths(&workspace) {
        let session = people::join(&workspace, "editor").await.session;
        let mut stream = follow(&session, &path, None).await;
        stream.next("ready").await.unwrap();
        session.delete("/api/session").await.expect(204);
        assert_eq!(
            stream.next("nothing of that name").await.map(|event| event.data),
            None,
            "it ends by itself"
        );
        session.get(&paths(&workspace)[1]).await.expect(401);
    }
}

async fn nothing_is_told_after_the_membership(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let guest = people::join(&workspace, "viewer").await;
    let mut stream = follow(&guest.session, &paths(&workspace)[0], None).await;
    stream.next("ready").await.unwrap();
    workspace.session.delete(&guest.path(&workspace)).await.expect(204);
    workspace.file("written afterwards.md", None, "x").await.expect(201);
    assert_eq!(stream.next("change").await.map(|event| event.data), None);
    guest.session.get(&paths(&workspace)[1]).await.expect(404);
}

async fn events_are_for_members(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let stranger = people::join(&deployment.workspace().await, "owner").await.session;
    let [page, api] = paths(&workspace);
    stranger.get(&page).await.expect(404);
    stranger.get(&api).await.expect_error(404, "NOT_FOUND");
    deployment.anonymous().get(&page).await.expect(303);
    deployment.anonymous().get(&api).await.expect_error(401, "UNAUTHORIZED");
    for role in ["admin", "editor", "contributor", "viewer"] {
        let member = people::join(&workspace, role).await.session;
        follow(&member, &api, None).await.next("ready").await.unwrap();
    }
}

async fn calls_are_told_without_what_was_asked(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = workspace.token_with(&["read"]).await;
    let session = people::join(&workspace, "viewer").await.session;
    let mut stream = follow(&session, &paths(&workspace)[0], None).await;
    stream.next("ready").await.unwrap();
    mcp::call(&token, "search_context", json!({"query": "a secret-question"})).await;
    loop {
        let call = stream.next("call").await.unwrap();
        assert!(!call.data.to_string().contains("secret-question"), "{}", call.data);
        if call.data["tool"] == "search_context" {
            assert!(call.data["ms"].is_u64() && call.data["failed"] == false, "{}", call.data);
            break;
        }
    }
    let page = workspace.session.get(&format!("/w/{}", workspace.id)).await.expect(200).text();
    assert!(page.contains("search_context") && !page.contains("secret-question"), "{page}");
}
