//! API tokens (spec 5; contract, "Names", "Console API"): their permissions, and their lifetime.

use std::time::Duration;

use cairn_chassis::clock::{Clock as _, SystemClock};
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::token_format;

use crate::support::callers::ApiToken;
use crate::support::http::{each, id, items, text};
use crate::support::prelude::*;

scenarios![
    a_token_is_shown_once,
    each_permission_allows_what_it_says_and_no_more,
    an_invalid_token_opens_nothing,
    an_expired_token_opens_nothing,
    a_deactivated_token_opens_nothing_until_it_is_active_again,
    a_deleted_token_opens_nothing,
    a_token_never_leaves_its_workspace,
    a_token_says_what_it_is,
    a_token_must_be_well_described,
    a_scope_names_folders_that_are_there,
];

async fn a_token_is_shown_once(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = format!("/api/workspaces/{}/tokens", workspace.id);
    let body = json!({"name": "agent", "permissions": ["read"], "scope": {"type": "all"}});
    let created = workspace.session.post(&path).json(body).await.expect(201).json();
    let secret = text(&created, "token");
    assert!(token_format::is_well_formed(&secret), "not the contract's format: {} characters", secret.len());
    assert_eq!((text(&created, "name"), created["active"].clone()), ("agent".into(), json!(true)));
    assert_eq!(created["permissions"], json!(["read"]));
    assert_eq!(created["scope"]["type"], "all");

    let listed = workspace.session.get(&path).await.expect(200);
    assert!(!listed.text().contains(&secret), "the list shows the secret");
    let list = listed.json();
    let known = items(&list).iter().find(|token| token["id"] == created["id"]).unwrap();
    assert_eq!(text(known, "lastFour"), &secret[secret.len() - 4..]);
}

async fn each_permission_allows_what_it_says_and_no_more(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("f", None).await;
    for granted in
        [vec!["read"], vec!["write"], vec!["delete"], vec!["read", "write"], vec!["read", "delete"]]
    {
        let token = workspace.token_with(&granted).await;
        let file = workspace.file_id("a.md", None, "x").await;
        let doomed = workspace.folder("doomed", None).await;
        let new_file = json!({"name": "n", "content": "x", "fileType": "text"});
        let attempts = [
            ("read", token.get("/api/v1/files").await),
            ("read", token.get(&format!("/api/v1/files/{file}")).await),
            ("read", token.get(&format!("/api/v1/files/{file}/raw")).await),
            ("read", token.get("/api/v1/folders").await),
            ("read", token.get(&format!("/api/v1/folders/{folder}")).await),
            ("read", token.get(&format!("/api/v1/folders/{folder}/files")).await),
            ("read", token.get(&format!("/api/v1/folders/{folder}/subfolders")).await),
            ("read", token.post("/api/v1/search_context").json(json!({"query": "x"})).await),
            ("write", token.post("/api/v1/files").json(new_file).await),
            ("write", token.patch(&format!("/api/v1/files/{file}")).json(json!({"name": "m"})).await),
            ("write", token.post("/api/v1/folders").json(json!({"name": "n"})).await),
            ("write", token.patch(&format!("/api/v1/folders/{folder}")).json(json!({"name": "m"})).await),
            ("delete", token.delete(&format!("/api/v1/files/{file}")).await),
            ("delete", token.delete(&format!("/api/v1/folders/{doomed}")).await),
        ];
        for (needed, reply) in attempts {
            if granted.contains(&needed) {
                assert_eq!(reply.status / 100, 2, "{granted:?} has {needed}: {}", reply.text());
            } else {
                reply.expect_error(403, "FORBIDDEN");
            }
        }
    }
}

async fn an_invalid_token_opens_nothing(deployment: &Deployment) {
    let never_issued = token_format::generate(&OsEntropy);
    let typo = never_issued.replace("cairn_", "cairn-");
    for secret in [never_issued.as_str(), &typo, "x", "cairn_"] {
        let refused = deployment.token(secret).get("/api/v1/files").await;
        assert!(
            refused.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer")),
            "{secret}"
        );
        refused.expect_error(401, "UNAUTHORIZED");
    }
    let anonymous = deployment.anonymous();
    anonymous.get("/api/v1/files").await.expect_error(401, "UNAUTHORIZED");
    let basic = anonymous.get("/api/v1/files").header("authorization", "Basic dTpw");
    basic.await.expect_error(401, "UNAUTHORIZED");
    let workspace = deployment.workspace().await;
    let in_query = format!("/api/v1/files?access_token={}", workspace.token.secret);
    anonymous.get(&in_query).await.expect_error(401, "UNAUTHORIZED");
    let session = workspace.session.get("/api/v1/files").await;
    session.expect_error(401, "UNAUTHORIZED");
}

async fn an_expired_token_opens_nothing(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = workspace.brief_token().await;
    let later = SystemClock.now().plus(Duration::from_secs(3600)).to_rfc3339();
    let lasting = workspace.token(json!({"name": "long", "permissions": ["read"], "expiresAt": later})).await;
    wait_for_refusal(&token).await;
    lasting.get("/api/v1/files").await.expect(200);
}

async fn a_deactivated_token_opens_nothing_until_it_is_active_again(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (token, path) = named_token(&workspace).await;
    token.get("/api/v1/files").await.expect(200);
    let off = workspace.session.patch(&path).json(json!({"active": false})).await.expect(200).json();
    assert_eq!(off["active"], false);
    wait_for_refusal(&token).await;
    workspace.session.patch(&path).json(json!({"active": true})).await.expect(200);
    let works = async || (token.get("/api/v1/files").await.status == 200).then_some(());
    eventually("an activated token works", works).await;
}

async fn a_deleted_token_opens_nothing(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (token, path) = named_token(&workspace).await;
    token.get("/api/v1/files").await.expect(200);
    workspace.session.delete(&path).await.expect(204);
    wait_for_refusal(&token).await;
    workspace.session.patch(&path).json(json!({"active": true})).await.expect_error(404, "NOT_FOUND");
    let listed =
        workspace.session.get(&format!("/api/workspaces/{}/tokens", workspace.id)).await.expect(200).json();
    assert!(!each(&listed, "name").contains(&"named"), "{listed}");
}

async fn a_token_never_leaves_its_workspace(deployment: &Deployment) {
    let (ours, theirs) = (deployment.workspace().await, deployment.workspace().await);
    let folder = theirs.folder("f", None).await;
    let file = theirs.file_id("a.md", Some(&folder), "x").await;
    let unknown = uuid::Uuid::from_u128(9).to_string();
    for (foreign, known) in [(&file, "files"), (&folder, "folders")] {
        let path = format!("/api/v1/{known}/{foreign}");
        let get = ours.token.get(&path).await.expect_error(404, "NOT_FOUND");
        ours.token.patch(&path).json(json!({"name": "x"})).await.expect_error(404, "NOT_FOUND");
        ours.token.delete(&path).await.expect_error(404, "NOT_FOUND");
        let missing =
            ours.token.get(&format!("/api/v1/{known}/{unknown}")).await.expect_error(404, "NOT_FOUND");
        assert_eq!(
            text(&get, "message").replace(foreign, "ID"),
            text(&missing, "message").replace(&unknown, "ID"),
            "a 404 must not tell whether the id exists elsewhere"
        );
    }
    assert_eq!(theirs.token.get("/api/v1/files").await.expect(200).json()[0]["id"], json!(file), "untouched");
}

async fn a_token_says_what_it_is(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("f", None).await;
    let scoped = workspace.token_for(&[&folder]).await;
    let whole = workspace.token.get("/api/v1/workspace").await.expect(200).json();
    assert_eq!((id(&whole), whole["scope"]["type"].clone()), (workspace.id.clone(), json!("all")));
    let narrow = scoped.get("/api/v1/workspace").await.expect(200).json();
    assert_eq!(narrow["scope"], json!({"type": "folders", "folderIds": [folder]}));
    assert_eq!(narrow["permissions"], json!(["read", "write", "delete"]));
    assert!(!text(&narrow, "plan").is_empty());
}

async fn a_token_must_be_well_described(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = format!("/api/workspaces/{}/tokens", workspace.id);
    let bodies = [
        json!({}),
        json!({"name": "x", "permissions": []}),
        json!({"name": "x", "permissions": ["admin"]}),
        json!({"name": "", "permissions": ["read"]}),
        json!({"name": "x".repeat(1000), "permissions": ["read"]}),
        json!({"name": "x", "permissions": ["read"], "scope": {"type": "folders"}}),
        json!({"name": "x", "permissions": ["read"], "scope": {"type": "folders", "folderIds": []}}),
        json!({"name": "x", "permissions": ["read"], "scope": {"type": "some"}}),
        json!({"name": "x", "permissions": ["read"], "scope": {"type": "folders", "folderIds": ["nope"]}}),
        json!({"name": "x", "permissions": ["read"], "expiresAt": "2001-01-01T00:00:00Z"}),
        json!({"name": "x", "permissions": ["read"], "expiresAt": "tomorrow"}),
        json!({"name": "x", "permissions": ["read"], "expires_at": "2101-01-01T00:00:00Z"}),
    ];
    for body in bodies {
        let reply = workspace.session.post(&path).json(&body).await;
        assert_eq!(reply.status, 400, "{body} was answered: {}", reply.text());
        reply.expect_error(400, "VALIDATION_ERROR");
    }
}

async fn a_scope_names_folders_that_are_there(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = format!("/api/workspaces/{}/tokens", workspace.id);
    let live = workspace.folder("live", None).await;
    let below = workspace.folder("below", Some(&live)).await;
    let trashed = workspace.folder("trashed", None).await;
    workspace.token.delete(&format!("/api/v1/folders/{trashed}")).await.expect(204);
    let file = workspace.file_id("a.md", None, "x").await;
    let foreign = deployment.workspace().await.folder("theirs", None).await;
    let unknown = uuid::Uuid::from_u128(9).to_string();
    for gone in [&trashed, &file, &foreign, &unknown] {
        let scope = json!({"type": "folders", "folderIds": [live, gone, below]});
        let body = json!({"name": "x", "permissions": ["read"], "scope": scope});
        let error = workspace.session.post(&path).json(body).await.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(each(&error["errors"], "path"), ["scope.folderIds[1]"], "{error}");
        assert_eq!(each(&error["errors"], "code"), ["unknown_folder"]);
    }
    let token = workspace.token_for(&[&below, &live, &below]).await;
    assert_eq!(token.get("/api/v1/workspace").await.expect(200).json()["scope"]["folderIds"], {
        let mut both = [live, below];
        both.sort();
        json!(both)
    });
}

/// A token and its path in the Console API.
async fn named_token(workspace: &Workspace) -> (ApiToken, String) {
    let path = format!("/api/workspaces/{}/tokens", workspace.id);
    let body = json!({"name": "named", "permissions": ["read"]});
    let created = workspace.session.post(&path).json(body).await.expect(201).json();
    let token = ApiToken { http: workspace.session.http.clone(), secret: text(&created, "token") };
    (token, format!("{path}/{}", id(&created)))
}

async fn wait_for_refusal(token: &ApiToken) {
    let refused = eventually("the token is refused", async || {
        let reply = token.get("/api/v1/files").await;
        (reply.status != 200).then_some(reply)
    })
    .await;
    refused.expect_error(401, "UNAUTHORIZED");
}
