//! People with accounts of their own, who joined by invitation.

use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::token_format;
use serde_json::json;

use super::callers::{Anonymous, ApiToken, Caller, Session};
use super::http::{Reply, id, text};
use super::workspace::{Workspace, make_token};

/// The password of everybody.
pub(crate) const PASSWORD: &str = "a battery for everybody";

/// A member of a workspace.
#[derive(Debug)]
pub(crate) struct Person {
    pub(crate) id: String,
    pub(crate) email: String,
    pub(crate) session: Session,
}

/// An email address without an account.
pub(crate) fn unused_email() -> String {
    let random = token_format::generate(&OsEntropy).to_lowercase();
    format!("{}@example.com", random.trim_start_matches("cairn_"))
}

/// The secret of a new invitation.
pub(crate) async fn invite(workspace: &Workspace, email: &str, role: &str) -> String {
    let path = format!("/api/workspaces/{}/members", workspace.id);
    let body = json!({"email": email, "role": role});
    let added = workspace.session.post(&path).json(body).await.expect(201).json();
    let link = text(&added["invitation"], "link");
    let (page, secret) = link.split_once('#').unwrap_or_else(|| panic!("no secret in {added}"));
    assert!(page.ends_with("/invite"), "{added}");
    secret.to_owned()
}

/// Accepts an invitation with a new account.
pub(crate) async fn accept(anonymous: &Anonymous, secret: &str) -> Reply {
    let body = json!({"secret": secret, "name": "Somebody", "password": PASSWORD});
    anonymous.post("/api/invitations/accept").json(body).await
}

/// A new member of the workspace.
pub(crate) async fn join(workspace: &Workspace, role: &str) -> Person {
    join_as(workspace, &unused_email(), role).await
}

/// A new member of the workspace, with an account of that email, which is not verified.
pub(crate) async fn join_as(workspace: &Workspace, email: &str, role: &str) -> Person {
    let anonymous = Anonymous { http: workspace.session.http.clone() };
    let secret = invite(workspace, email, role).await;
    let accepted = accept(&anonymous, &secret).await.expect(201);
    let session = Session { http: anonymous.http, cookie: session_cookie(&accepted) };
    Person { id: id(&accepted.json()["user"]), email: email.to_owned(), session }
}

/// The session cookie that a response sets, as a request carries it.
pub(crate) fn session_cookie(reply: &Reply) -> String {
    reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

impl Person {
    /// Accepts an invitation to another workspace.
    pub(crate) async fn join(&self, workspace: &Workspace, role: &str) {
        let secret = invite(workspace, &self.email, role).await;
        self.session.post("/api/invitations/accept").json(json!({"secret": secret})).await.expect(200);
    }

    /// The workspace as this person's session sees it.
    pub(crate) fn seat(&self, workspace: &Workspace) -> Workspace {
        Workspace { id: workspace.id.clone(), session: self.session.clone(), token: workspace.token.clone() }
    }

    /// A token that this person creates in the workspace.
    pub(crate) async fn token(&self, workspace: &Workspace, permissions: &[&str]) -> ApiToken {
        make_token(&self.session, &workspace.id, json!({"name": "mine", "permissions": permissions})).await
    }

    /// This person's path among the members of the workspace.
    pub(crate) fn path(&self, workspace: &Workspace) -> String {
        format!("/api/workspaces/{}/members/{}", workspace.id, self.id)
    }
}
