//! Storage quotas of plans (contract, "Limits"). The plan `starter` allows 1 MB and 4 files here.

use cairn_proto::content::v1::batch_item::Write;
use cairn_proto::content::v1::batch_service_client::BatchServiceClient;
use cairn_proto::content::v1::file_service_client::FileServiceClient;
use cairn_proto::content::v1::{BatchItem, BatchWriteRequest, CreateFileRequest, FileType};
use tonic::Code;

use crate::grpc::{as_caller, connect, exchange, refused};
use crate::support::http::{Reply, id, items, text};
use crate::support::prelude::*;
use crate::support::{mcp, people};

scenarios![
    storage_is_one_number_for_what_is_written_and_what_is_sent,
    a_full_workspace_takes_no_more_bytes,
    a_full_workspace_takes_no_more_files,
    a_limit_holds_at_every_door,
    writers_at_the_limit_do_not_pass_together,
    usage_is_told_to_people_and_tokens,
    health_is_told_to_members,
];

const MB: usize = 1024 * 1024;

/// A workspace on the plan `starter`, once its tokens know the plan.
async fn starter_workspace(deployment: &Deployment) -> Workspace {
    let workspace = deployment.workspace().await;
    let path = format!("/api/workspaces/{}", workspace.id);
    workspace.session.patch(&path).json(json!({"plan": "starter"})).await.expect(200);
    eventually("the token is of the new plan", async || {
        let seen = workspace.token.get("/api/v1/workspace").await.expect(200).json();
        (seen["files"]["limit"] == 4).then_some(())
    })
    .await;
    workspace
}

async fn write(workspace: &Workspace, name: &str, content: &str) -> Reply {
    let body = json!({"name": name, "content": content, "fileType": "text"});
    workspace.token.post("/api/v1/files").json(body).await
}

async fn rewrite(workspace: &Workspace, file: &str, content: &str) -> Reply {
    workspace.token.patch(&format!("/api/v1/files/{file}")).json(json!({"content": content})).await
}

async fn used(workspace: &Workspace, what: &str) -> u64 {
    let seen = workspace.token.get("/api/v1/workspace").await.expect(200).json();
    seen[what]["used"].as_u64().unwrap_or_else(|| panic!("{what} in {seen}"))
}

/// The error names the usage and the plan's limit.
#[track_caller]
fn quota_exceeded(reply: Reply, path: &str, used: &str, limit: &str) {
    let body = reply.expect_error(403, "LIMIT_EXCEEDED");
    let [one] = items(&body["errors"]) else { panic!("{body}") };
    assert_eq!((text(one, "path"), text(one, "code")), (path.into(), "limit_exceeded".into()));
    let message = text(one, "message");
    assert!(message.contains(used) && message.contains(limit), "{message}");
}

async fn a_full_workspace_takes_no_more_bytes(deployment: &Deployment) {
    let workspace = starter_workspace(deployment).await;
    let (half, other) = ("a".repeat(MB / 2), "b".repeat(MB / 2));
    let file = id(&write(&workspace, "one", &half).await.expect(201).json());
    write(&workspace, "same", &half).await.expect(201);
    assert_eq!(used(&workspace, "storageBytes").await, MB as u64 / 2, "equal contents count once");
    rewrite(&workspace, &file, &other).await.expect(200);
    // The previous version is kept, and counts.
    quota_exceeded(rewrite(&workspace, &file, "more").await, "storageBytes", "1048576", "1048576");
    quota_exceeded(write(&workspace, "two", "more").await, "storageBytes", "1048576", "1048576");
    // Writes that add no bytes pass: another name, and existing content.
    rewrite(&workspace, &file, &half).await.expect(200);
    let renamed = workspace.token.patch(&format!("/api/v1/files/{file}")).json(json!({"name": "new"})).await;
    renamed.expect(200);

    // Trash does not free space, emptying it does.
    workspace.token.delete(&format!("/api/v1/files/{file}")).await.expect(204);
    quota_exceeded(write(&workspace, "two", "more").await, "storageBytes", "1048576", "1048576");
    let gone = format!("/api/workspaces/{}/trash/file/{file}", workspace.id);
    workspace.session.delete(&gone).await.expect(204);
    assert_eq!(used(&workspace, "storageBytes").await, MB as u64 / 2);
    write(&workspace, "two", "more").await.expect(201);
}

async fn a_full_workspace_takes_no_more_files(deployment: &Deployment) {
    let workspace = starter_workspace(deployment).await;
    let mut last = String::new();
    for name in ["1", "2", "3", "4"] {
        last = id(&write(&workspace, name, name).await.expect(201).json());
    }
    quota_exceeded(write(&workspace, "5", "5").await, "files", "4 of 4", "add 1");
    workspace.token.delete(&format!("/api/v1/files/{last}")).await.expect(204);
    quota_exceeded(write(&workspace, "5", "5").await, "files", "4 of 4", "add 1");
    // A restore from trash succeeds however full the workspace is.
    let path = format!("/api/workspaces/{}/trash/file/{last}", workspace.id);
    workspace.session.post(&format!("{path}/restore")).await.expect(200);
    workspace.token.delete(&format!("/api/v1/files/{last}")).await.expect(204);
    workspace.session.delete(&path).await.expect(204);
    write(&workspace, "5", "5").await.expect(201);
    assert_eq!(used(&workspace, "files").await, 4);
}

async fn a_limit_holds_at_every_door(deployment: &Deployment) {
    let workspace = starter_workspace(deployment).await;
    for name in ["1", "2", "3"] {
        write(&workspace, name, name).await.expect(201);
    }
    let identity = exchange(deployment, &workspace.token).await;
    let channel = connect(deployment, "content").await;
    let create = |name: &str| CreateFileRequest {
        name: name.to_owned(),
        file_type: FileType::Text.into(),
        ..Default::default()
    };
    let two = ["4", "5"]
        .map(|name| BatchItem { write: Some(Write::CreateFile(create(name))), ..Default::default() });
    let batch = BatchWriteRequest { writes: two.into() };
    let written = BatchServiceClient::new(channel.clone()).batch_write(as_caller(&identity, batch)).await;
    refused(written.unwrap_err(), Code::PermissionDenied, "LIMIT_EXCEEDED");
    assert_eq!(used(&workspace, "files").await, 3, "all of a batch or nothing");

    write(&workspace, "4", "4").await.expect(201);
    let made = FileServiceClient::new(channel).create_file(as_caller(&identity, create("5"))).await;
    refused(made.unwrap_err(), Code::PermissionDenied, "LIMIT_EXCEEDED");
    let arguments = json!({"name": "5.md", "content": "5", "fileType": "markdown"});
    let error = mcp::call_error(&workspace.token, "create_file", arguments).await;
    assert!(error.contains("4 of 4"), "{error}");
}

async fn writers_at_the_limit_do_not_pass_together(deployment: &Deployment) {
    let workspace = starter_workspace(deployment).await;
    for name in ["1", "2", "3"] {
        write(&workspace, name, name).await.expect(201);
    }
    let names: Vec<String> = (0..6).map(|number| format!("at once {number}")).collect();
    let replies = futures::future::join_all(names.iter().map(|name| write(&workspace, name, name))).await;
    let mut statuses: Vec<_> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 403, 403, 403, 403, 403]);
    assert_eq!(used(&workspace, "files").await, 4);
}

async fn usage_is_told_to_people_and_tokens(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = format!("/api/workspaces/{}/usage", workspace.id);
    let empty = workspace.session.get(&path).await.expect(200).json();
    assert_eq!(empty["files"], json!({"used": 0, "limit": null}), "no limit is null");
    assert_eq!(empty["storageBytes"], json!({"used": 0, "limit": null}));
    assert_eq!(empty["documents"]["used"], 0);
    write(&workspace, "a", "12345").await.expect(201);
    let told = workspace.session.get(&path).await.expect(200).json();
    assert_eq!((&told["files"]["used"], &told["storageBytes"]["used"]), (&json!(1), &json!(5)));
    let seen = workspace.token.get("/api/v1/workspace").await.expect(200).json();
    for what in ["files", "storageBytes", "documents", "tokens"] {
        assert_eq!(seen[what], told[what]);
    }
    assert_eq!(told["tokens"], json!({"used": 1, "limit": 100}));
    workspace.token_with(&["read"]).await;
    let more = workspace.session.get(&path).await.expect(200).json();
    assert_eq!(more["tokens"]["used"], 2);
    deployment.anonymous().get(&path).await.expect_error(401, "UNAUTHORIZED");
}

async fn storage_is_one_number_for_what_is_written_and_what_is_sent(deployment: &Deployment) {
    let workspace = starter_workspace(deployment).await;
    let before = used(&workspace, "storageBytes").await as usize;
    write(&workspace, "one", &"x".repeat(MB / 2)).await.expect(201);
    let send = async |key: &str, size: usize| {
        let content = key.repeat(size);
        let body = json!({"idempotencyKey": key, "title": key, "content": content});
        workspace.token.post("/api/v1/ingest").json(body).await
    };
    let kept = format!("{}", before + MB / 2);
    quota_exceeded(send("a", MB / 2 + 1).await, "storageBytes", &kept, "1048576");
    let sent = send("b", MB / 4).await.expect(202).json();
    quota_exceeded(write(&workspace, "two", &"y".repeat(MB / 2)).await, "storageBytes", "786432", "1048576");
    workspace.token.delete(&format!("/api/v1/ingest/{}", id(&sent))).await.expect(204);
    write(&workspace, "two", &"y".repeat(MB / 2)).await.expect(201);
    assert_eq!(used(&workspace, "storageBytes").await as usize, before + MB);
}

async fn health_is_told_to_members(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = format!("/api/workspaces/{}/health", workspace.id);
    write(&workspace, "one.txt", "a text of twenty-four by").await.expect(201);
    let body = json!({"idempotencyKey": "one", "title": "One", "content": "a text from outside"});
    workspace.token.post("/api/v1/ingest").json(body).await.expect(202);
    let health = eventually("both are in the index", async || {
        let health = workspace.session.get(&path).await.expect(200).json();
        let is_done = items(&health["index"]["feeds"])
            .iter()
            .all(|feed| feed["behind"] == 0 && feed["position"].as_u64() > Some(0));
        // The parts of the answer are read one after the other, while the index goes on.
        let is_counted = health["index"]["documents"] == 2;
        (is_done && is_counted && health["documents"]["ingested"]["indexed"] == 1).then_some(health)
    })
    .await;
    let services = items(&health["services"]);
    assert_eq!(services.len(), 5, "{health}");
    assert!(services.iter().all(|service| service["answers"] == true), "{health}");
    let mut feeds: Vec<_> = items(&health["index"]["feeds"]).iter().map(|feed| text(feed, "feed")).collect();
    feeds.sort();
    assert_eq!(feeds, ["content", "ingest"], "{health}");
    let none = json!({"pending": 0, "indexing": 0, "indexed": 0, "catalog": 0, "failed": 0});
    assert_eq!(health["documents"]["ofSources"], none, "{health}");
    let kinds = items(&health["storage"]["kinds"]);
    let bytes = |kind: &str| kinds.iter().find(|one| one["kind"] == kind).unwrap()["bytes"].as_u64().unwrap();
    assert!(bytes("files") == 24 && bytes("outside") > 0, "{health}");
    let sum: u64 = kinds.iter().map(|one| one["bytes"].as_u64().unwrap()).sum();
    assert_eq!(health["storage"]["bytes"]["used"], sum, "{health}");

    let viewer = people::join(&workspace, "viewer").await.session;
    viewer.get(&path).await.expect(200);
    let page = viewer.get(&format!("/w/{}/health", workspace.id)).await.expect(200).text();
    for part in ["Applied up to", "Waiting to be read", "Documents from outside", "with versions and trash"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let stranger = people::join(&deployment.workspace().await, "owner").await.session;
    stranger.get(&path).await.expect_error(404, "NOT_FOUND");
    deployment.anonymous().get(&path).await.expect_error(401, "UNAUTHORIZED");
}
