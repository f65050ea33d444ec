//! A workspace that belongs to one scenario, and the operations that most scenarios need.

use std::time::Duration;

use cairn_chassis::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::callers::{ApiToken, Caller, Session};
use super::deployment::Deployment;
use super::http::{Reply, id, text};
use super::wait::eventually;

/// A new workspace with a token that has every permission.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) id: String,
    pub(crate) session: Session,
    pub(crate) token: ApiToken,
}

impl Workspace {
    pub(crate) async fn create(deployment: &Deployment) -> Self {
        let session = deployment.session().await;
        let created =
            session.post("/api/workspaces").json(json!({"name": "A scenario's own"})).await.expect(201);
        let id = id(&created.json());
        let token =
            make_token(&session, &id, json!({"name": "all", "permissions": ["read", "write", "delete"]}))
                .await;
        Self { id, token, session }
    }

    /// A token created with this body of the Console API.
    pub(crate) async fn token(&self, body: Value) -> ApiToken {
        make_token(&self.session, &self.id, body).await
    }

    /// A workspace-wide token with these permissions.
    pub(crate) async fn token_with(&self, permissions: &[&str]) -> ApiToken {
        self.token(json!({"name": "some", "permissions": permissions})).await
    }

    /// A token with every permission that is about to expire. Retried on a machine that takes longer than its lifetime
    /// to create it.
    pub(crate) async fn brief_token(&self) -> ApiToken {
        let path = format!("/api/workspaces/{}/tokens", self.id);
        let made = eventually("a token is made before it ends", async || {
            let soon = SystemClock.now().plus(Duration::from_secs(2)).to_rfc3339();
            let body =
                json!({"name": "brief", "permissions": ["read", "write", "delete"], "expiresAt": soon});
            let reply = self.session.post(&path).json(body).await;
            (reply.status == 201).then(|| reply.json())
        });
        ApiToken { http: self.session.http.clone(), secret: text(&made.await, "token") }
    }

    /// A token with every permission, scoped to these folders.
    pub(crate) async fn token_for(&self, folders: &[&str]) -> ApiToken {
        let scope = json!({"type": "folders", "folderIds": folders});
        self.token(json!({"name": "scoped", "permissions": ["read", "write", "delete"], "scope": scope}))
            .await
    }

    /// A new folder's id.
    pub(crate) async fn folder(&self, name: &str, parent: Option<&str>) -> String {
        let body = json!({"name": name, "parentId": parent});
        id(&self.token.post("/api/v1/folders").json(body).await.expect(201).json())
    }

    /// A new Markdown file.
    pub(crate) async fn file(&self, name: &str, folder: Option<&str>, content: &str) -> Reply {
        self.typed_file(name, "markdown", folder, content).await
    }

    /// A new file of that type.
    pub(crate) async fn typed_file(
        &self,
        name: &str,
        kind: &str,
        folder: Option<&str>,
        content: &str,
    ) -> Reply {
        let body = json!({"name": name, "content": content, "fileType": kind, "folderId": folder});
        self.token.post("/api/v1/files").json(body).await.expect(201)
    }

    /// A new Markdown file's id.
    pub(crate) async fn file_id(&self, name: &str, folder: Option<&str>, content: &str) -> String {
        id(&self.file(name, folder, content).await.json())
    }

    /// A search that reflects the write at this position.
    pub(crate) async fn search_after(&self, change: &str, body: Value) -> Value {
        self.token.post("/api/v1/search_context").after(change).json(body).await.expect(200).json()
    }
}

pub(crate) async fn make_token(session: &Session, workspace: &str, body: Value) -> ApiToken {
    let path = format!("/api/workspaces/{workspace}/tokens");
    let created = session.post(&path).json(body).await.expect(201).json();
    ApiToken { http: session.http.clone(), secret: text(&created, "token") }
}

/// A file as `GET /api/v1/files/{id}` shows it.
pub(crate) async fn read_file(caller: &impl Caller, file: &str) -> Value {
    caller.get(&format!("/api/v1/files/{file}")).await.expect(200).json()
}
