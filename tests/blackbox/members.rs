//! Members and roles (contract, "Identity", "Console API"): who may manage whom, and that a change takes effect
//! everywhere.

use crate::support::callers::ApiToken;
use crate::support::http::{Reply, each, id, items, text};
use crate::support::mcp;
use crate::support::oauth::Agent;
use crate::support::people::{self, Person};
use crate::support::prelude::*;

scenarios![
    a_role_is_judged_before_what_the_body_says,
    members_are_listed_with_their_roles,
    known_and_unknown_emails_are_invited_alike,
    an_unproven_email_is_shown_as_such,
    a_lower_role_cuts_tokens_and_sessions,
    a_higher_role_gives_a_token_back_what_it_was_granted,
    a_grant_follows_the_role_and_ends_with_the_membership,
    a_removed_member_is_out_and_stays_out,
    a_deleted_workspace_is_closed_to_its_members,
    who_may_manage_whom,
    a_workspace_keeps_an_owner,
    everybody_may_leave,
    a_member_must_be_well_described,
];

const FILES: &str = "/api/v1/files";
/// How often a refusal is repeated: it must be stable. More would be too many invalid tokens from one address.
const REPEATS: usize = 8;

fn members_of(workspace: &Workspace) -> String {
    format!("/api/workspaces/{}/members", workspace.id)
}

fn new_file() -> Value {
    json!({"name": "n.md", "content": "x", "fileType": "markdown"})
}

/// Waits until a request is refused with this error, then checks that it stays refused.
async fn stays_refused(what: &str, status: u16, code: &str, probe: impl AsyncFn() -> Reply) {
    eventually(what, async || (probe().await.status == status).then_some(())).await;
    for _ in 0..REPEATS {
        probe().await.expect_error(status, code);
    }
}

/// The token is invalid from here on, both over REST and over MCP.
async fn stays_unauthorized(token: &ApiToken) {
    stays_refused("the token is refused", 401, "UNAUTHORIZED", async || token.get(FILES).await).await;
    // A service may refuse before the gateway's cache entry for the token expires: that takes a second.
    let refused = async || (mcp::legacy(token, "tools/list", json!({})).await.status == 401).then_some(());
    eventually("MCP refuses the token, too", refused).await;
}

async fn set_role(workspace: &Workspace, person: &Person, role: &str) -> Value {
    let path = person.path(workspace);
    workspace.session.patch(&path).json(json!({"role": role})).await.expect(200).json()
}

async fn members_are_listed_with_their_roles(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let viewer = people::join(&workspace, "viewer").await;
    let listed = viewer.session.get(&members_of(&workspace)).await.expect(200).json();
    assert_eq!(each(&listed, "role"), ["owner", "viewer"], "the longest-standing first: {listed}");
    assert_eq!(each(&listed, "email"), [deployment.owner().email.as_str(), &viewer.email]);
    let last = &items(&listed)[1];
    assert_eq!((text(last, "userId"), text(last, "name")), (viewer.id, "Somebody".to_owned()));
    assert!(!text(last, "createdAt").is_empty());
    let stranger = people::join(&deployment.workspace().await, "owner").await;
    stranger.session.get(&members_of(&workspace)).await.expect_error(404, "NOT_FOUND");
}

/// The shape of a JSON value: the same keys, without the values.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), shape(field))).collect(),
        Value::String(_) => json!("text"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => value.clone(),
    }
}

async fn known_and_unknown_emails_are_invited_alike(deployment: &Deployment) {
    let (here, there) = (deployment.workspace().await, deployment.workspace().await);
    let known = people::join(&there, "viewer").await;
    let member = people::join(&here, "viewer").await;
    // Mail limits count per inviter.
    let admin = people::join(&here, "admin").await;
    let mut answers = Vec::new();
    for email in [known.email.to_uppercase(), people::unused_email(), member.email.clone()] {
        let body = json!({"email": email, "role": "editor"});
        let added = admin.session.post(&members_of(&here)).json(&body).await.expect(201).json();
        assert_eq!((added.get("member"), &added["invitation"]["mailed"]), (None, &json!(true)), "{added}");
        answers.push(shape(&added));
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
    let who = known.session.get("/api/session").await.expect(200).json();
    assert_eq!(each(&who["workspaces"], "id"), [there.id.as_str()], "nobody is a member before they accept");
    known.session.get(&members_of(&here)).await.expect_error(404, "NOT_FOUND");
    let listed = here.session.get(&members_of(&here)).await.expect(200).json();
    assert_eq!(each(&listed, "role"), ["owner", "viewer", "admin"]);

    known.join(&here, "editor").await;
    known.token(&here, &["read", "write", "delete"]).await.post(FILES).json(new_file()).await.expect(201);
}

async fn an_unproven_email_is_shown_as_such(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let person = people::join(&workspace, "viewer").await;
    let listed = workspace.session.get(&members_of(&workspace)).await.expect(200).json();
    assert_eq!(items(&listed)[1]["emailVerified"], json!(false), "{listed}");
    let who = person.session.get("/api/session").await.expect(200).json();
    assert_eq!(who["user"]["emailVerified"], json!(false), "{who}");
}

async fn a_lower_role_cuts_tokens_and_sessions(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let person = people::join(&workspace, "editor").await;
    let token = person.token(&workspace, &["read", "write", "delete"]).await;
    let made = id(&token.post(FILES).json(new_file()).await.expect(201).json());

    assert_eq!(set_role(&workspace, &person, "contributor").await["role"], "contributor");
    let file = format!("{FILES}/{}", uuid::Uuid::from_u128(1));
    stays_refused("deleting is refused", 403, "FORBIDDEN", async || token.delete(&file).await).await;
    token.post(FILES).json(new_file()).await.expect(201);

    set_role(&workspace, &person, "viewer").await;
    let write = async || token.post(FILES).json(new_file()).await;
    stays_refused("writing is refused", 403, "FORBIDDEN", write).await;
    token.get(&format!("{FILES}/{made}")).await.expect(200);
    let message = mcp::call_error(&token, "update_file", json!({"id": made, "content": "y"})).await;
    assert!(message.starts_with("Forbidden"), "{message}");
    let held = token.get("/api/v1/workspace").await.expect(200).json();
    assert_eq!(held["permissions"], json!(["read"]));
    workspace.token.delete(&format!("{FILES}/{made}")).await.expect(204);
    let restore = format!("/api/workspaces/{}/trash/file/{made}/restore", workspace.id);
    person.session.post(&restore).await.expect_error(403, "FORBIDDEN");
}

async fn a_higher_role_gives_a_token_back_what_it_was_granted(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let person = people::join(&workspace, "contributor").await;
    let token = person.token(&workspace, &["read", "write"]).await;
    set_role(&workspace, &person, "viewer").await;
    let write = async || token.post(FILES).json(new_file()).await;
    stays_refused("writing is refused", 403, "FORBIDDEN", write).await;
    set_role(&workspace, &person, "editor").await;
    eventually("writing works again", async || (write().await.status == 201).then_some(())).await;
    let file = format!("{FILES}/{}", workspace.file_id("a.md", None, "x").await);
    token.delete(&file).await.expect_error(403, "FORBIDDEN");
}

async fn a_grant_follows_the_role_and_ends_with_the_membership(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let person = people::join(&workspace, "editor").await;
    let agent = Agent::register(deployment).await;
    let tokens = agent.tokens(&person.session, &workspace.id, &["read", "write"]).await;
    let caller = agent.caller(&tokens);
    mcp::call(&caller, "create_file", new_file()).await;

    set_role(&workspace, &person, "viewer").await;
    let create = json!({"name": "create_file", "arguments": new_file()});
    let refused = async || {
        let answer = mcp::result(mcp::legacy(&caller, "tools/call", create.clone()).await);
        (answer["isError"] == json!(true)).then(|| mcp::text_of(&answer))
    };
    assert!(eventually("writing is refused", refused).await.starts_with("Forbidden"));
    for _ in 0..REPEATS {
        assert!(refused().await.is_some_and(|message| message.starts_with("Forbidden")));
    }
    mcp::call(&caller, "list_files", json!({})).await;

    workspace.session.delete(&person.path(&workspace)).await.expect(204);
    let is_closed = async || mcp::legacy(&caller, "tools/list", json!({})).await.status == 401;
    eventually("the grant has ended", async || is_closed().await.then_some(())).await;
    person.join(&workspace, "owner").await;
    for _ in 0..REPEATS {
        assert!(is_closed().await, "nothing comes back to life");
    }
    let refreshed = agent.refresh(&text(&tokens, "refresh_token")).await.expect(400).json();
    assert_eq!(refreshed["error"], "invalid_grant");
}

async fn a_removed_member_is_out_and_stays_out(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let person = people::join(&workspace, "editor").await;
    let token = person.token(&workspace, &["read"]).await;
    token.get(FILES).await.expect(200);
    workspace.session.delete(&person.path(&workspace)).await.expect(204);
    stays_unauthorized(&token).await;
    let tokens = format!("/api/workspaces/{}/tokens", workspace.id);
    person.session.get(&tokens).await.expect_error(404, "NOT_FOUND");
    let who = person.session.get("/api/session").await.expect(200).json();
    assert_eq!(who["workspaces"], json!([]), "the account stays");
    workspace.session.delete(&person.path(&workspace)).await.expect_error(404, "NOT_FOUND");

    person.join(&workspace, "owner").await;
    person.session.get(&tokens).await.expect(200);
    for _ in 0..REPEATS {
        token.get(FILES).await.expect_error(401, "UNAUTHORIZED");
    }
    let listed = workspace.session.get(&tokens).await.expect(200).json();
    assert!(!each(&listed, "name").contains(&"mine"), "the token went with the membership: {listed}");
}

async fn a_deleted_workspace_is_closed_to_its_members(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let person = people::join(&workspace, "admin").await;
    let token = person.token(&workspace, &["read"]).await;
    token.get(FILES).await.expect(200);
    let path = format!("/api/workspaces/{}", workspace.id);
    person.session.delete(&path).await.expect_error(403, "FORBIDDEN");
    workspace.session.delete(&path).await.expect(204);
    stays_unauthorized(&token).await;
    stays_unauthorized(&workspace.token).await;
    person.session.get(&members_of(&workspace)).await.expect_error(404, "NOT_FOUND");
}

async fn who_may_manage_whom(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = members_of(&workspace);
    let owner = people::join(&workspace, "owner").await;
    let admin = people::join(&workspace, "admin").await;
    let editor = people::join(&workspace, "editor").await;
    let (of_owner, of_editor) = (owner.path(&workspace), editor.path(&workspace));
    let somebody = json!({"email": people::unused_email(), "role": "viewer"});
    let an_owner = json!({"email": people::unused_email(), "role": "owner"});
    let lower = json!({"role": "viewer"});

    editor.session.post(&path).json(&somebody).await.expect_error(403, "FORBIDDEN");
    editor.session.patch(&of_editor).json(json!({"role": "owner"})).await.expect_error(403, "FORBIDDEN");
    editor.session.delete(&admin.path(&workspace)).await.expect_error(403, "FORBIDDEN");

    admin.session.post(&path).json(&an_owner).await.expect_error(403, "FORBIDDEN");
    admin.session.patch(&of_editor).json(json!({"role": "owner"})).await.expect_error(403, "FORBIDDEN");
    admin.session.patch(&of_owner).json(&lower).await.expect_error(403, "FORBIDDEN");
    admin.session.delete(&of_owner).await.expect_error(403, "FORBIDDEN");
    admin.session.patch(&of_editor).json(json!({"role": "admin"})).await.expect(200);
    admin.session.post(&path).json(&somebody).await.expect(201);
    admin.session.delete(&of_editor).await.expect(204);

    owner.session.post(&path).json(&an_owner).await.expect(201);
    owner.session.patch(&of_owner).json(&lower).await.expect(200);
}

async fn a_workspace_keeps_an_owner(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let second = people::join(&workspace, "owner").await;
    let first = text(&workspace.session.get("/api/session").await.expect(200).json()["user"], "id");
    let of_first = format!("{}/{first}", members_of(&workspace));
    second.session.delete(&of_first).await.expect(204);
    let of_second = second.path(&workspace);
    let last = second.session.delete(&of_second).await.expect_error(403, "FORBIDDEN");
    assert!(text(&last, "message").contains("last owner"), "{last}");
    let demoted = second.session.patch(&of_second).json(json!({"role": "admin"})).await;
    demoted.expect_error(403, "FORBIDDEN");
    let listed = second.session.get(&members_of(&workspace)).await.expect(200).json();
    assert_eq!(each(&listed, "role"), ["owner"]);
}

async fn everybody_may_leave(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let viewer = people::join(&workspace, "viewer").await;
    let token = viewer.token(&workspace, &["read"]).await;
    viewer.session.delete(&viewer.path(&workspace)).await.expect(204);
    stays_unauthorized(&token).await;
    viewer.session.get(&members_of(&workspace)).await.expect_error(404, "NOT_FOUND");
}

async fn a_member_must_be_well_described(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = members_of(&workspace);
    for body in [
        json!({}),
        json!({"email": "a@b.example"}),
        json!({"email": "nobody", "role": "viewer"}),
        json!({"email": "a@b.example", "role": "boss"}),
        json!({"email": "a@b.example", "role": "viewer", "rolle": "x"}),
    ] {
        workspace.session.post(&path).json(body).await.expect_error(400, "VALIDATION_ERROR");
    }
    let viewer = people::join(&workspace, "viewer").await;
    for body in [json!({}), json!({"role": "boss"}), json!({"role": null})] {
        let path = viewer.path(&workspace);
        workspace.session.patch(&path).json(body).await.expect_error(400, "VALIDATION_ERROR");
    }
    for odd in ["x", "0199c0de-0000-7000-8000-000000000009"] {
        let path = format!("{path}/{odd}");
        workspace.session.delete(&path).await.expect_error(404, "NOT_FOUND");
        workspace.session.patch(&path).json(json!({"role": "admin"})).await.expect_error(404, "NOT_FOUND");
    }
}

/// An unauthorized caller learns that, and nothing about the request's validation.
async fn a_role_is_judged_before_what_the_body_says(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let viewer = people::join(&workspace, "viewer").await;
    let stranger = deployment.workspace().await;
    let person = people::join(&stranger, "viewer").await;
    let base = format!("/api/workspaces/{}", workspace.id);
    let members = members_of(&workspace);
    let somebody = format!("{members}/{}", viewer.id);
    for body in [json!({}), json!({"nonsense": [1]}), json!("x")] {
        viewer.session.post(&members).json(body.clone()).await.expect_error(403, "FORBIDDEN");
        viewer.session.patch(&somebody).json(body.clone()).await.expect_error(403, "FORBIDDEN");
        viewer.session.patch(&base).json(body.clone()).await.expect_error(403, "FORBIDDEN");
        let tokens = format!("{base}/tokens");
        person.session.post(&tokens).json(body.clone()).await.expect_error(404, "NOT_FOUND");
        person.session.post(&members).json(body).await.expect_error(404, "NOT_FOUND");
    }
    let analytics = format!("/api/analytics/retrieval?workspaceId={}&days=1000", workspace.id);
    viewer.session.get(&analytics).await.expect_error(403, "FORBIDDEN");
    workspace.session.post(&members).json(json!({})).await.expect_error(400, "VALIDATION_ERROR");
    workspace.session.get(&analytics).await.expect_error(400, "VALIDATION_ERROR");
}
