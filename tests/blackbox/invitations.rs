//! Invitations by one-time link (contract, "Console API").

use crate::support::callers::Session;
use crate::support::http::{Reply, each, id, items, text};
use crate::support::people::{self, PASSWORD};
use crate::support::prelude::*;

scenarios![
    a_link_makes_an_account_once,
    a_link_says_what_it_is_for,
    an_invitation_that_was_taken_back_opens_nothing,
    an_invitation_ends_with_the_role_of_its_maker,
    a_signed_in_person_joins_with_the_email_that_was_invited,
    the_password_of_an_account_accepts_with_it,
    guesses_by_an_invitation_are_limited,
    an_account_must_be_well_described,
    another_site_cannot_accept,
    a_person_accepts_on_the_page_of_the_link,
];

const ACCEPT: &str = "/api/invitations/accept";
const LOOK_UP: &str = "/api/invitations/look-up";

fn invitations_of(workspace: &Workspace) -> String {
    format!("/api/workspaces/{}/invitations", workspace.id)
}

async fn is_closed(deployment: &Deployment, secret: &str) {
    let anonymous = deployment.anonymous();
    let looked = anonymous.post(LOOK_UP).json(json!({"secret": secret})).await;
    looked.expect_error(404, "NOT_FOUND");
    people::accept(&anonymous, secret).await.expect_error(404, "NOT_FOUND");
}

async fn a_link_makes_an_account_once(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let email = people::unused_email();
    let secret = people::invite(&workspace, &email.to_uppercase(), "contributor").await;
    assert!(secret.len() >= 43, "a short secret");
    let listed = workspace.session.get(&invitations_of(&workspace)).await.expect(200);
    assert!(!listed.text().contains(&secret), "the list shows the secret");
    assert_eq!(each(&listed.json(), "email"), [email.as_str()]);

    let accepted = people::accept(&deployment.anonymous(), &secret).await.expect(201);
    let cookie = accepted.header("set-cookie").unwrap();
    assert!(cookie.starts_with("cairn_session=") && cookie.contains("HttpOnly"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let who = accepted.json();
    assert_eq!(text(&who["user"], "email"), email);
    assert_eq!(each(&who["workspaces"], "role"), ["contributor"]);
    assert_eq!(id(&who["workspaces"][0]), workspace.id);
    let session = Session { http: deployment.http(), cookie };
    assert_eq!(session.get("/api/session").await.expect(200).json(), who);
    let sign_in = json!({"email": email, "password": PASSWORD});
    deployment.anonymous().post("/api/session").json(sign_in).await.expect(200);

    is_closed(deployment, &secret).await;
    let listed = workspace.session.get(&invitations_of(&workspace)).await.expect(200).json();
    assert_eq!(listed, json!([]));
}

async fn a_link_says_what_it_is_for(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let email = people::unused_email();
    let secret = people::invite(&workspace, &email, "editor").await;
    let found = deployment.anonymous().post(LOOK_UP).json(json!({"secret": secret})).await.expect(200);
    assert_eq!(found.header("cache-control"), Some("no-store"));
    let offer = found.json();
    assert_eq!((text(&offer, "workspaceId"), text(&offer, "email")), (workspace.id.clone(), email.clone()));
    assert_eq!((text(&offer, "role"), offer.get("hasAccount")), ("editor".into(), None));
    assert_eq!(text(&offer["invitedBy"], "email"), deployment.owner().email);
    assert!(!text(&offer, "workspaceName").is_empty() && !text(&offer, "expiresAt").is_empty());

    let again = people::invite(&workspace, &email, "viewer").await;
    is_closed(deployment, &secret).await;
    let offer = deployment.anonymous().post(LOOK_UP).json(json!({"secret": again})).await.expect(200).json();
    assert_eq!(text(&offer, "role"), "viewer", "a new invitation replaces the lost one");
    is_closed(deployment, "no such secret").await;
}

async fn an_invitation_that_was_taken_back_opens_nothing(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let editor = people::join(&workspace, "editor").await;
    let secret = people::invite(&workspace, &people::unused_email(), "viewer").await;
    let path = invitations_of(&workspace);
    let listed = workspace.session.get(&path).await.expect(200).json();
    let one = format!("{path}/{}", id(&items(&listed)[0]));
    editor.session.get(&path).await.expect_error(403, "FORBIDDEN");
    editor.session.delete(&one).await.expect_error(403, "FORBIDDEN");
    let elsewhere = deployment.workspace().await;
    let astray = format!("{}/{}", invitations_of(&elsewhere), id(&items(&listed)[0]));
    elsewhere.session.delete(&astray).await.expect_error(404, "NOT_FOUND");
    workspace.session.delete(&one).await.expect(204);
    workspace.session.delete(&one).await.expect_error(404, "NOT_FOUND");
    is_closed(deployment, &secret).await;
}

async fn an_invitation_ends_with_the_role_of_its_maker(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let admin = people::join(&workspace, "admin").await;
    let secret = people::invite(&admin.seat(&workspace), &people::unused_email(), "admin").await;
    workspace.session.delete(&admin.path(&workspace)).await.expect(204);
    is_closed(deployment, &secret).await;
}

async fn a_signed_in_person_joins_with_the_email_that_was_invited(deployment: &Deployment) {
    let (here, there) = (deployment.workspace().await, deployment.workspace().await);
    let email = people::unused_email();
    let (to_here, to_there) =
        (people::invite(&here, &email, "editor").await, people::invite(&there, &email, "viewer").await);
    let accepted = people::accept(&deployment.anonymous(), &to_here).await.expect(201);
    let cookie = accepted.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let session = Session { http: deployment.http(), cookie };

    let guess = json!({"secret": to_there, "name": "x", "password": "not the one of the account"});
    deployment.anonymous().post(ACCEPT).json(guess).await.expect_error(401, "UNAUTHORIZED");
    let body = json!({"secret": to_there});
    deployment.anonymous().post(ACCEPT).json(&body).await.expect_error(401, "UNAUTHORIZED");
    let other = people::join(&here, "viewer").await;
    other.session.post(ACCEPT).json(&body).await.expect_error(403, "FORBIDDEN");
    let joined = session.post(ACCEPT).json(&body).await.expect(200).json();
    let role_there = items(&joined["workspaces"]).iter().find(|one| id(one) == there.id).unwrap();
    assert_eq!(text(role_there, "role"), "viewer");
    is_closed(deployment, &to_there).await;
}

async fn the_password_of_an_account_accepts_with_it(deployment: &Deployment) {
    let (here, there) = (deployment.workspace().await, deployment.workspace().await);
    let person = people::join(&here, "viewer").await;
    let secret = people::invite(&there, &person.email, "editor").await;
    let accepted = people::accept(&deployment.anonymous(), &secret).await.expect(201).json();
    assert_eq!(id(&accepted["user"]), person.id);
    assert_eq!(items(&accepted["workspaces"]).len(), 2);
}

async fn guesses_by_an_invitation_are_limited(deployment: &Deployment) {
    let (here, there) = (deployment.workspace().await, deployment.workspace().await);
    let person = people::join(&here, "viewer").await;
    let secret = people::invite(&there, &person.email, "editor").await;
    let anonymous = deployment.anonymous();
    let body = json!({"secret": secret, "name": "x", "password": "a guess of the password"});
    let refused = eventually("there were too many guesses", async || {
        let reply = anonymous.post(ACCEPT).json(&body).await;
        (reply.status != 401).then_some(reply)
    })
    .await;
    refused.expect_error(429, "RATE_LIMITED");
}

async fn an_account_must_be_well_described(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let secret = people::invite(&workspace, &people::unused_email(), "viewer").await;
    for body in [
        json!({}),
        json!({"secret": secret, "name": "x"}),
        json!({"secret": secret, "password": PASSWORD}),
        json!({"secret": secret, "name": " ", "password": PASSWORD}),
        json!({"secret": secret, "name": "x", "password": "short"}),
        json!({"secret": secret, "name": "x", "password": PASSWORD, "email": "a@b.example"}),
    ] {
        let refused = deployment.anonymous().post(ACCEPT).json(body).await;
        assert!(refused.header("set-cookie").is_none());
        let error = refused.expect_error(400, "VALIDATION_ERROR");
        assert!(!error.to_string().contains(&secret), "{error}");
    }
    people::accept(&deployment.anonymous(), &secret).await.expect(201);
}

async fn another_site_cannot_accept(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let secret = people::invite(&workspace, &people::unused_email(), "viewer").await;
    let body = json!({"secret": secret, "name": "x", "password": PASSWORD});
    for (header, value) in [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")] {
        for path in [ACCEPT, LOOK_UP] {
            let refused = deployment.anonymous().post(path).header(header, value).json(&body).await;
            refused.expect_error(403, "ORIGIN_NOT_ALLOWED");
        }
    }
    people::accept(&deployment.anonymous(), &secret).await.expect(201);
}

/// Submits a form as a browser does. None of the values needs escaping.
async fn submit(caller: &impl Caller, fields: &[(&str, &str)]) -> Reply {
    let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    caller.post("/invite").body("application/x-www-form-urlencoded", pairs.join("&")).await
}

async fn a_person_accepts_on_the_page_of_the_link(deployment: &Deployment) {
    let anonymous = deployment.anonymous();
    let page = anonymous.get("/invite").await.expect(200);
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    let html = page.text();
    let script = html.split("<script type=\"module\" src=\"").nth(1).unwrap();
    let script = anonymous.get(script.split('"').next().unwrap()).await.expect(200);
    assert!(script.text().contains("location.hash"));

    let workspace = deployment.workspace().await;
    let email = people::unused_email();
    let secret = people::invite(&workspace, &email, "editor").await;
    submit(&anonymous, &[("secret", "nonsense")]).await.expect(404);
    let offer = submit(&anonymous, &[("secret", &secret)]).await.expect(200).text();
    assert!(offer.contains(&email) && offer.contains("Your password"), "{offer}");
    let decided = [("secret", secret.as_str()), ("decided", "yes"), ("name", "New")];
    let short = submit(&anonymous, &[&decided[..], &[("password", "short")]].concat()).await.expect(400);
    assert!(short.header("set-cookie").is_none() && short.text().contains("at least 8"), "{}", short.text());
    let done = submit(&anonymous, &[&decided[..], &[("password", "long-enough-for-all")]].concat()).await;
    let cookie = done.expect(200).header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let session = Session { http: deployment.http(), cookie };
    let who = session.get("/api/session").await.expect(200).json();
    assert_eq!(text(&who["user"], "email"), email);

    submit(&anonymous, &decided[..1]).await.expect(404);
}
