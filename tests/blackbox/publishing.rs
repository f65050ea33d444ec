//! Who may make memories public: `publishers` of a workspace.

use cairn_proto::content::v1::memory_service_client::MemoryServiceClient;
use cairn_proto::content::v1::{AddMembersRequest, CreateMemoryRequest, UpdateMemoryRequest};
use tonic::Code;

use crate::grpc::{as_caller, connect, exchange};
use crate::support::callers::ApiToken;
use crate::support::http::{id, text};
use crate::support::mcp::call_error;
use crate::support::people::join;
use crate::support::prelude::*;

scenarios![
    owners_and_admins_publish_as_long_as_nothing_else_is_said,
    the_workspace_lets_more_roles_publish_and_takes_it_back,
    the_services_refuse_by_themselves,
];

const ALL: &[&str] = &["read", "write", "delete"];

async fn publish(caller: &ApiToken) -> u16 {
    caller.post("/api/v1/memories").json(json!({"name": "Open", "isPublic": true})).await.status
}

async fn may_publish(caller: &ApiToken) -> bool {
    caller.get("/api/v1/workspace").await.expect(200).json()["mayPublish"] == true
}

async fn owners_and_admins_publish_as_long_as_nothing_else_is_said(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (editor, admin) = (join(&workspace, "editor").await, join(&workspace, "admin").await);
    let (editor, admin) = (editor.token(&workspace, ALL).await, admin.token(&workspace, ALL).await);
    assert!(may_publish(&admin).await && !may_publish(&editor).await);

    let refused = editor.post("/api/v1/memories").json(json!({"name": "Open", "isPublic": true})).await;
    refused.expect_error(403, "FORBIDDEN");
    let made = editor.post("/api/v1/memories").json(json!({"name": "Ours"})).await.expect(201).json();
    let path = format!("/api/v1/memories/{}", id(&made));
    editor.patch(&path).json(json!({"isPublic": true})).await.expect_error(403, "FORBIDDEN");
    let message = call_error(&editor, "create_memory", json!({"name": "Open", "isPublic": true})).await;
    assert!(message.starts_with("Forbidden") && message.contains("publishers"), "{message}");
    let change = json!({"id": id(&made), "isPublic": true});
    assert!(call_error(&editor, "update_memory", change).await.starts_with("Forbidden"));

    admin.patch(&path).json(json!({"isPublic": true})).await.expect(200);
    // Adding to a public memory publishes the item, too.
    let file = json!({"kind": "file", "fileId": workspace.file_id("a.md", None, "x").await});
    let more = editor.post(&format!("{path}/members")).json(json!({"members": [file]})).await;
    more.expect_error(403, "FORBIDDEN");
    let more = json!({"id": id(&made), "addMembers": [file]});
    assert!(call_error(&editor, "update_memory", more).await.starts_with("Forbidden"));
    editor.patch(&path).json(json!({"description": "changed"})).await.expect(200);
    editor.patch(&path).json(json!({"isPublic": false})).await.expect(200);
    admin.post(&format!("{path}/members")).json(json!({"members": [file]})).await.expect(201);
}

async fn the_workspace_lets_more_roles_publish_and_takes_it_back(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let editor = join(&workspace, "editor").await;
    let path = format!("/api/workspaces/{}", workspace.id);
    let read = workspace.session.get(&path).await.expect(200).json();
    assert_eq!(text(&read, "publishers"), "admins");
    editor.session.patch(&path).json(json!({"publishers": "writers"})).await.expect_error(403, "FORBIDDEN");
    let wrong = workspace.session.patch(&path).json(json!({"publishers": "everybody"})).await;
    wrong.expect_error(400, "VALIDATION_ERROR");

    let token = editor.token(&workspace, ALL).await;
    let reader = editor.token(&workspace, &["read"]).await;
    let contributor = join(&workspace, "contributor").await.token(&workspace, &["read", "write"]).await;
    for (publishers, expected) in [("editors", [201, 403]), ("writers", [201, 201]), ("admins", [403, 403])] {
        let changed =
            workspace.session.patch(&path).json(json!({"publishers": publishers})).await.expect(200).json();
        assert_eq!(text(&changed, "publishers"), publishers);
        let holds = async || {
            let answered = [publish(&token).await, publish(&contributor).await];
            (answered == expected).then_some(())
        };
        eventually("the setting holds for tokens that there are", holds).await;
    }
    workspace.session.patch(&path).json(json!({"publishers": "writers"})).await.expect(200);
    assert_eq!(publish(&reader).await, 403, "a token has at most what it was given");
    assert!(!may_publish(&reader).await);
}

async fn the_services_refuse_by_themselves(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let editor = join(&workspace, "editor").await.token(&workspace, ALL).await;
    let identity = exchange(deployment, &editor).await;
    let mut memories = MemoryServiceClient::new(connect(deployment, "content").await);
    let create = CreateMemoryRequest { name: "Open".into(), is_public: true, ..Default::default() };
    let refused = memories.create_memory(as_caller(&identity, create)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");

    let body = json!({"name": "Open", "isPublic": true});
    let made = workspace.token.post("/api/v1/memories").json(body).await.expect(201).json();
    let member = cairn_proto::content::v1::MemberInput {
        kind: cairn_proto::content::v1::MemberKind::File.into(),
        file_id: Some(workspace.file_id("a.md", None, "x").await),
        ..Default::default()
    };
    let add = AddMembersRequest { memory: id(&made), members: vec![member.clone()] };
    let refused = memories.add_members(as_caller(&identity, add)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
    let add = UpdateMemoryRequest { memory: id(&made), add_members: vec![member], ..Default::default() };
    let refused = memories.update_memory(as_caller(&identity, add)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
}
