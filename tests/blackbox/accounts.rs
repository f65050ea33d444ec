//! Ownership of accounts (contract, "Accounts and membership"): an email belongs to whoever proves it, and gives nobody
//! else access.

use crate::support::callers::Session;
use crate::support::http::{Http, Reply, each, id, items, text};
use crate::support::oauth::Agent;
use crate::support::oidc::{Persona, Provider};
use crate::support::people::{self, PASSWORD, session_cookie, unused_email};
use crate::support::prelude::*;

scenarios![
    who_was_shown_a_link_loses_the_account_to_the_owner_of_its_email,
    what_was_accepted_in_somebodys_name_is_asked_anew,
    a_mailed_link_proves_the_email_and_a_shown_one_does_not,
    a_mailed_link_takes_an_account_back,
    pending_invitations_are_declined,
    invitations_flood_no_mailbox,
];

const ACCEPT: &str = "/api/invitations/accept";
const OTHER: &str = "what its owner chooses";

/// Signs in at the provider as the owner of that email.
async fn sign_in_by_provider(deployment: &Deployment, email: &str) -> Session {
    let (http, provider) = (deployment.http(), deployment.provider());
    let subject = uuid::Uuid::new_v4().to_string();
    let claims = json!({"email": email, "email_verified": true});
    provider.add_account(&subject, Persona { claims, ..Persona::default() });
    let started = http.request(reqwest::Method::GET, "/oauth/oidc/start?return_to=%2F").await.expect(303);
    let back = consent(provider, started.header("location").unwrap(), &subject).await;
    let ticket = session_cookie(&started);
    let opened = http.request(reqwest::Method::GET, &back).header("cookie", ticket).await.expect(303);
    let all = opened.headers.get_all("set-cookie").iter().map(|one| one.to_str().unwrap());
    let cookie = all.filter_map(|one| one.split(';').next()).find(|one| one.starts_with("cairn_session="));
    Session { http, cookie: cookie.unwrap().to_owned() }
}

async fn consent(provider: &Provider, onward: &str, subject: &str) -> String {
    let path = onward.strip_prefix(&provider.issuer()).unwrap();
    let at_provider = Http::new(&provider.issuer());
    let back = at_provider.request(reqwest::Method::GET, &format!("{path}&as={subject}")).await.expect(303);
    let back = reqwest::Url::parse(back.header("location").unwrap()).unwrap();
    format!("{}?{}", back.path(), back.query().unwrap())
}

async fn sign_in(deployment: &Deployment, email: &str, password: &str) -> Reply {
    deployment.anonymous().post("/api/session").json(json!({"email": email, "password": password})).await
}

/// Waits until the request is refused with 401, and checks that it stays refused.
async fn stays_unauthorized(what: &str, probe: impl AsyncFn() -> Reply) {
    eventually(what, async || (probe().await.status == 401).then_some(())).await;
    for _ in 0..4 {
        probe().await.expect_error(401, "UNAUTHORIZED");
    }
}

async fn who_was_shown_a_link_loses_the_account_to_the_owner_of_its_email(deployment: &Deployment) {
    // Somebody invites an email that is not theirs, and accepts with the link shown to them.
    let theirs = deployment.workspace().await;
    let email = unused_email();
    let squatter = people::join_as(&theirs, &email, "editor").await;
    let token = squatter.token(&theirs, &["read", "write"]).await;
    let agent = Agent::register(deployment).await;
    let tokens = agent.tokens(&squatter.session, &theirs.id, &["read"]).await;
    token.get("/api/v1/files").await.expect(200);

    // Others invite the email: the account sees none of that.
    let company = deployment.workspace().await;
    let secret = people::invite(&company, &email, "admin").await;
    let seen = squatter.session.get("/api/session").await.expect(200).json();
    assert_eq!(
        (each(&seen["workspaces"], "id"), &seen["pendingInvitations"]),
        (vec![theirs.id.as_str()], &json!([]))
    );
    let company_path = format!("/api/workspaces/{}", company.id);
    squatter.session.get(&company_path).await.expect_error(404, "NOT_FOUND");

    // The owner of the email signs in.
    let owner = sign_in_by_provider(deployment, &email).await;
    stays_unauthorized("the session has ended", async || squatter.session.get("/api/session").await).await;
    stays_unauthorized("the token has ended", async || token.get("/api/v1/files").await).await;
    sign_in(deployment, &email, PASSWORD).await.expect_error(401, "UNAUTHORIZED");
    agent.refresh(&text(&tokens, "refresh_token")).await.expect(400);
    let who = owner.get("/api/session").await.expect(200).json();
    assert_eq!((&who["user"]["emailVerified"], &who["workspaces"]), (&json!(true), &json!([])), "{who}");

    // Only they see the pending invitations.
    let waiting =
        items(&who["pendingInvitations"]).iter().find(|one| one["workspaceId"] == company.id.as_str());
    let path = format!("/api/invitations/{}/accept", id(waiting.unwrap()));
    let joined = owner.post(&path).await.expect(200).json();
    assert_eq!(each(&joined["workspaces"], "id"), [company.id.as_str()]);
    owner.get(&company_path).await.expect(200);
    people::accept(&deployment.anonymous(), &secret).await.expect_error(404, "NOT_FOUND");

    // A verified account cannot be taken over with another link.
    let again = people::invite(&theirs, &email, "viewer").await;
    people::accept(&deployment.anonymous(), &again).await.expect_error(401, "UNAUTHORIZED");
    owner.get(&company_path).await.expect(200);
}

async fn what_was_accepted_in_somebodys_name_is_asked_anew(deployment: &Deployment) {
    let (theirs, email) = (deployment.workspace().await, unused_email());
    let squatter = people::join_as(&theirs, &email, "editor").await;
    let own = squatter.session.post("/api/workspaces").json(json!({"name": "own"})).await.expect(201).json();
    let owner = sign_in_by_provider(deployment, &email).await;
    let who = owner.get("/api/session").await.expect(200).json();
    assert_eq!(id(&who["user"]), squatter.id);
    assert_eq!(each(&who["workspaces"], "id"), [id(&own).as_str()], "nobody else owns it: {who}");
    let [offered] = items(&who["pendingInvitations"]) else { panic!("one: {who}") };
    assert_eq!((text(offered, "workspaceId"), text(offered, "role")), (theirs.id.clone(), "editor".into()));
    let joined = owner.post(&format!("/api/invitations/{}/accept", id(offered))).await.expect(200).json();
    assert_eq!(items(&joined["workspaces"]).len(), 2);
}

/// The secret in the mail that an invitation has sent.
async fn mailed_secret(deployment: &Deployment, email: &str) -> String {
    let mine = |mail: &&crate::support::smtp::Mail| mail.to == [email];
    let found = async || deployment.mail().mails_with("/invite#").iter().rfind(mine).map(|mail| mail.body());
    let message = eventually("the invitation was mailed", found).await;
    assert!(message.contains("A scenario's own"), "{message}");
    let (address, rest) = message.split_once("/invite#").unwrap();
    assert!(address.ends_with(&deployment.base_url()), "the link leads here: {message}");
    rest.split_whitespace().next().unwrap().to_owned()
}

/// Invites as a separate admin, because mail limits count per inviter; returns both secrets.
async fn invite_by_mail(deployment: &Deployment, workspace: &Workspace, email: &str) -> (String, String) {
    let admin = people::join(workspace, "admin").await;
    let shown = people::invite(&admin.seat(workspace), email, "viewer").await;
    let mailed = mailed_secret(deployment, email).await;
    assert_ne!(shown, mailed, "who is shown a link must not have the one that proves the email");
    (shown, mailed)
}

async fn a_mailed_link_proves_the_email_and_a_shown_one_does_not(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (shown, _) = invite_by_mail(deployment, &workspace, &unused_email()).await;
    let made = people::accept(&deployment.anonymous(), &shown).await.expect(201).json();
    assert_eq!(made["user"]["emailVerified"], json!(false), "{made}");
    let (shown, mailed) = invite_by_mail(deployment, &workspace, &unused_email()).await;
    let made = people::accept(&deployment.anonymous(), &mailed).await.expect(201).json();
    assert_eq!(made["user"]["emailVerified"], json!(true), "{made}");
    people::accept(&deployment.anonymous(), &shown).await.expect_error(404, "NOT_FOUND");
}

async fn a_mailed_link_takes_an_account_back(deployment: &Deployment) {
    let (theirs, company) = (deployment.workspace().await, deployment.workspace().await);
    let email = unused_email();
    let squatter = people::join_as(&theirs, &email, "editor").await;
    let token = squatter.token(&theirs, &["read"]).await;
    let (shown, mailed) = invite_by_mail(deployment, &company, &email).await;
    let choice = |secret: &str| json!({"secret": secret, "name": "Chief", "password": OTHER});
    let anonymous = deployment.anonymous();
    anonymous.post(ACCEPT).json(choice(&shown)).await.expect_error(401, "UNAUTHORIZED");
    let accepted = anonymous.post(ACCEPT).json(choice(&mailed)).await.expect(201).json();
    assert_eq!(
        (id(&accepted["user"]), text(&accepted["user"], "name")),
        (squatter.id.clone(), "Chief".into())
    );
    assert_eq!(each(&accepted["workspaces"], "id"), [company.id.as_str()], "{accepted}");
    stays_unauthorized("the session has ended", async || squatter.session.get("/api/session").await).await;
    stays_unauthorized("the token has ended", async || token.get("/api/v1/files").await).await;
    sign_in(deployment, &email, PASSWORD).await.expect_error(401, "UNAUTHORIZED");
    sign_in(deployment, &email, OTHER).await.expect(200);
}

async fn pending_invitations_are_declined(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let email = unused_email();
    let secret = people::invite(&workspace, &email, "viewer").await;
    let owner = sign_in_by_provider(deployment, &email).await;
    let who = owner.get("/api/session").await.expect(200).json();
    let waits = id(&items(&who["pendingInvitations"])[0]);
    let other = people::join(&workspace, "viewer").await;
    for path in [format!("/api/invitations/{waits}/accept"), format!("/api/invitations/{waits}/decline")] {
        other.session.post(&path).await.expect_error(404, "NOT_FOUND");
        deployment.anonymous().post(&path).await.expect_error(401, "UNAUTHORIZED");
        let astray = owner.post(&path).header("origin", "https://evil.example").await;
        astray.expect_error(403, "ORIGIN_NOT_ALLOWED");
    }
    owner.post(&format!("/api/invitations/{waits}/decline")).await.expect(204);
    let who = owner.get("/api/session").await.expect(200).json();
    assert_eq!((&who["pendingInvitations"], &who["workspaces"]), (&json!([]), &json!([])));
    people::accept(&deployment.anonymous(), &secret).await.expect_error(404, "NOT_FOUND");
    for odd in ["x", "0199c0de-0000-7000-8000-000000000009"] {
        owner.post(&format!("/api/invitations/{odd}/decline")).await.expect_error(404, "NOT_FOUND");
    }
}

async fn invitations_flood_no_mailbox(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let email = unused_email();
    let mut mailed = Vec::new();
    for _ in 0..2 {
        let admin = people::join(&workspace, "admin").await;
        let body = json!({"email": email, "role": "viewer"});
        for _ in 0..2 {
            let path = format!("/api/workspaces/{}/members", workspace.id);
            let made = admin.session.post(&path).json(&body).await.expect(201).json();
            assert!(made["invitation"]["link"].is_string(), "the link is shown all the same: {made}");
            mailed.push(made["invitation"]["mailed"] == json!(true));
        }
    }
    assert_eq!(mailed, [true, true, true, false]);
    let sent =
        deployment.mail().mails_with("/invite#").iter().filter(|mail| mail.to == [email.as_str()]).count();
    assert_eq!(sent, 3);
}
