//! `/api/workspaces` (contract, "Console API").

use crate::support::http::{each, id, items, text};
use crate::support::prelude::*;

scenarios![
    a_workspace_is_made_listed_and_read,
    a_workspace_is_renamed,
    a_deleted_workspace_takes_its_tokens_along,
    an_unknown_workspace_is_not_found,
    a_workspace_must_be_well_described,
];

async fn a_workspace_is_made_listed_and_read(deployment: &Deployment) {
    let session = deployment.session().await;
    let made = session.post("/api/workspaces").json(json!({"name": "Ärzte & Co"})).await.expect(201).json();
    assert_eq!((text(&made, "name"), text(&made, "role")), ("Ärzte & Co".into(), "owner".into()));
    assert_eq!(made["plan"], "selfhosted", "a self-hosted deployment's workspaces start there");
    assert_eq!(uuid::Uuid::parse_str(&id(&made)).unwrap().get_version_num(), 7);
    let read = session.get(&format!("/api/workspaces/{}", id(&made))).await.expect(200).json();
    assert_eq!(read, made);
    let listed = session.get("/api/workspaces").await.expect(200).json();
    assert!(items(&listed).contains(&made), "{listed}");
}

async fn a_workspace_is_renamed(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = format!("/api/workspaces/{}", workspace.id);
    let renamed = workspace.session.patch(&path).json(json!({"name": "new name"})).await.expect(200).json();
    assert_eq!(text(&renamed, "name"), "new name");
    assert_eq!(text(&workspace.session.get(&path).await.expect(200).json(), "name"), "new name");
    let planned = workspace.session.patch(&path).json(json!({"plan": "team"})).await.expect(200).json();
    assert_eq!((text(&planned, "plan"), text(&planned, "name")), ("team".into(), "new name".into()));
    for body in
        [json!({"plan": "gold"}), json!({"name": ""}), json!({"nmae": "x"}), json!({"id": workspace.id})]
    {
        workspace.session.patch(&path).json(body).await.expect_error(400, "VALIDATION_ERROR");
    }
}

async fn a_deleted_workspace_takes_its_tokens_along(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file("a.md", None, "x").await;
    let path = format!("/api/workspaces/{}", workspace.id);
    workspace.session.delete(&path).await.expect(204);
    let refused = async || (workspace.token.get("/api/v1/files").await.status == 401).then_some(());
    eventually("the token is refused", refused).await;
    workspace.session.get(&path).await.expect_error(404, "NOT_FOUND");
    let listed = workspace.session.get("/api/workspaces").await.expect(200).json();
    assert!(!each(&listed, "id").contains(&workspace.id.as_str()), "{listed}");
}

async fn an_unknown_workspace_is_not_found(deployment: &Deployment) {
    let session = deployment.session().await;
    let path = format!("/api/workspaces/{}", uuid::Uuid::from_u128(5));
    session.get(&path).await.expect_error(404, "NOT_FOUND");
    session.patch(&path).json(json!({"name": "x"})).await.expect_error(404, "NOT_FOUND");
    session.delete(&path).await.expect_error(404, "NOT_FOUND");
    session.get(&format!("{path}/tokens")).await.expect_error(404, "NOT_FOUND");
    let token = json!({"name": "x", "permissions": ["read"]});
    session.post(&format!("{path}/tokens")).json(token).await.expect_error(404, "NOT_FOUND");
}

async fn a_workspace_must_be_well_described(deployment: &Deployment) {
    let session = deployment.session().await;
    for body in
        [json!({}), json!({"name": 5}), json!({"name": "   "}), json!({"name": "x".repeat(300)}), json!("x")]
    {
        let reply = session.post("/api/workspaces").json(&body).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text());
        reply.expect_error(400, "VALIDATION_ERROR");
    }
}
