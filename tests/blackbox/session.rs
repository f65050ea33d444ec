//! `/api/session` (contract, "Identity", "Console API"): cookies, and the origins that may use them.

use reqwest::Method;

use crate::support::callers::Session;
use crate::support::http::{each, id, items, text};
use crate::support::people::{self, PASSWORD, Person};
use crate::support::prelude::*;

scenarios![
    signing_in_sets_a_guarded_cookie,
    a_session_says_who_is_signed_in,
    signing_out_ends_the_session,
    a_wrong_sign_in_tells_nothing,
    another_site_cannot_use_the_session,
    the_console_api_wants_a_session,
    a_new_password_ends_the_other_sessions,
    guesses_at_the_old_password_are_limited,
    signing_out_everywhere_ends_every_session,
    every_answer_has_its_security_headers,
];

async fn signing_in_sets_a_guarded_cookie(deployment: &Deployment) {
    let owner = deployment.owner();
    let body = json!({"email": owner.email, "password": owner.password});
    let reply = deployment.anonymous().post("/api/session").json(body).await;
    assert_eq!(reply.status / 100, 2, "{}", reply.text());
    let cookie = reply.header("set-cookie").unwrap().to_owned();
    let parts: Vec<&str> = cookie.split(';').map(str::trim).collect();
    assert!(parts[0].starts_with("cairn_session=") && parts[0].len() > 40, "a short secret: {cookie}");
    let has = |attribute: &str| parts.iter().any(|part| part.eq_ignore_ascii_case(attribute));
    assert!(has("HttpOnly") && has("SameSite=Lax") && has("Path=/"), "{cookie}");
    assert!(
        !has("Secure"),
        "on loopback there is no TLS, so a Secure cookie would never come back: {cookie}"
    );
    let secret = parts[0].trim_start_matches("cairn_session=");
    assert!(!reply.text().contains(secret), "the body repeats the secret that HttpOnly hides from scripts");
    assert!(!reply.text().contains(&owner.password));
}

async fn a_session_says_who_is_signed_in(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let who = workspace.session.get("/api/session").await.expect(200).json();
    assert_eq!(who["user"]["email"], json!(deployment.owner().email));
    let own = items(&who["workspaces"]).iter().find(|one| id(one) == workspace.id);
    assert_eq!(text(own.unwrap(), "role"), "owner");
    assert!(!each(&who["workspaces"], "name").is_empty());
}

async fn signing_out_ends_the_session(deployment: &Deployment) {
    let session = deployment.sign_in().await;
    session.get("/api/session").await.expect(200);
    let out = session.delete("/api/session").await.expect(204);
    let cleared = out.header("set-cookie").unwrap_or_default().to_owned();
    assert!(cleared.starts_with("cairn_session=;"), "the browser must forget the cookie: {cleared}");
    let ended = async || (session.get("/api/session").await.status == 401).then_some(());
    eventually("the session has ended", ended).await;
    session.post("/api/workspaces").json(json!({"name": "x"})).await.expect_error(401, "UNAUTHORIZED");
    deployment.session().await.get("/api/session").await.expect(200);
}

async fn a_wrong_sign_in_tells_nothing(deployment: &Deployment) {
    let owner = deployment.owner();
    let attempts = [
        json!({"email": owner.email, "password": "wrong password"}),
        json!({"email": "nobody@example.com", "password": "wrong password"}),
        json!({"email": "nobody@example.com", "password": owner.password}),
    ];
    let mut messages = Vec::new();
    for body in attempts {
        let reply = deployment.anonymous().post("/api/session").json(body).await;
        assert!(reply.header("set-cookie").is_none());
        messages.push(text(&reply.expect_error(401, "UNAUTHORIZED"), "message"));
    }
    assert!(messages.windows(2).all(|pair| pair[0] == pair[1]), "tells which emails exist: {messages:?}");
    for body in [json!({}), json!({"email": owner.email}), json!({"email": 5, "password": true}), json!([])] {
        deployment.anonymous().post("/api/session").json(body).await.expect_error(400, "VALIDATION_ERROR");
    }
}

async fn another_site_cannot_use_the_session(deployment: &Deployment) {
    let session = deployment.session().await;
    let body = json!({"name": "made by another site"});
    let own = deployment.base_url();
    for (header, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
    ] {
        let refused = session.post("/api/workspaces").header(header, value).json(&body).await;
        refused.expect_error(403, "ORIGIN_NOT_ALLOWED");
        for (method, path) in [
            (Method::DELETE, "/api/session"),
            (Method::DELETE, "/api/account/sessions"),
            (Method::POST, "/api/account/password"),
            (Method::PATCH, "/api/workspaces/0199c0de-0000-7000-8000-000000000009"),
        ] {
            let refused = session.request(method, path).header(header, value).json(&body).await;
            refused.expect_error(403, "ORIGIN_NOT_ALLOWED");
        }
        // A page is refused with a page.
        session.post("/invite").header(header, value).await.expect(403);
        let owner = deployment.owner();
        let sign_in = json!({"email": owner.email, "password": owner.password});
        let refused = deployment.anonymous().post("/api/session").header(header, value).json(sign_in).await;
        refused.expect_error(403, "ORIGIN_NOT_ALLOWED");
    }
    let listed = session.get("/api/workspaces").await.expect(200).json();
    assert!(!each(&listed, "name").contains(&"made by another site"), "{listed}");
    let from_here =
        session.post("/api/workspaces").header("origin", &own).header("sec-fetch-site", "same-origin");
    from_here.json(json!({"name": "made from here"})).await.expect(201);
    let followed_a_link = session.get("/api/session").header("sec-fetch-site", "cross-site").await;
    followed_a_link.expect(200);
}

async fn the_console_api_wants_a_session(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = format!("/api/workspaces/{}", workspace.id);
    for path in ["/api/session", "/api/workspaces", &path, &format!("{path}/tokens")] {
        workspace.token.get(path).await.expect_error(401, "UNAUTHORIZED");
        deployment.anonymous().get(path).await.expect_error(401, "UNAUTHORIZED");
        let forged = deployment.anonymous().get(path).header("cookie", "cairn_session=forged");
        forged.await.expect_error(401, "UNAUTHORIZED");
    }
}

async fn sign_in(deployment: &Deployment, person: &Person, password: &str) -> Session {
    let body = json!({"email": person.email, "password": password});
    let reply = deployment.anonymous().post("/api/session").json(body).await.expect(200);
    let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    Session { http: deployment.http(), cookie }
}

async fn wait_until_ended(session: &Session) {
    let ended = async || (session.get("/api/session").await.status == 401).then_some(());
    eventually("the session has ended", ended).await;
    for _ in 0..20 {
        session.get("/api/session").await.expect_error(401, "UNAUTHORIZED");
    }
}

async fn a_new_password_ends_the_other_sessions(deployment: &Deployment) {
    const NEW: &str = "quite another battery";
    let path = "/api/account/password";
    let person = people::join(&deployment.workspace().await, "viewer").await;
    let other = sign_in(deployment, &person, PASSWORD).await;
    other.get("/api/session").await.expect(200);
    let body = json!({"currentPassword": "not the one", "newPassword": NEW});
    let error = person.session.post(path).json(body).await.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(each(&error["errors"], "path"), ["currentPassword"], "{error}");
    let body = json!({"currentPassword": PASSWORD, "newPassword": "short"});
    let error = person.session.post(path).json(body).await.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(each(&error["errors"], "path"), ["newPassword"], "{error}");
    other.get("/api/session").await.expect(200);

    let body = json!({"currentPassword": PASSWORD, "newPassword": NEW});
    deployment.anonymous().post(path).json(&body).await.expect_error(401, "UNAUTHORIZED");
    person.session.post(path).json(&body).await.expect(204);
    wait_until_ended(&other).await;
    person.session.get("/api/session").await.expect(200);
    let old = json!({"email": person.email, "password": PASSWORD});
    deployment.anonymous().post("/api/session").json(old).await.expect_error(401, "UNAUTHORIZED");
    sign_in(deployment, &person, NEW).await.get("/api/session").await.expect(200);
}

async fn guesses_at_the_old_password_are_limited(deployment: &Deployment) {
    let person = people::join(&deployment.workspace().await, "viewer").await;
    let body = json!({"currentPassword": "a guess", "newPassword": "whatever it may be"});
    let refused = eventually("there were too many guesses", async || {
        let reply = person.session.post("/api/account/password").json(&body).await;
        (reply.status != 400).then_some(reply)
    })
    .await;
    assert!(refused.header("retry-after").is_some());
    refused.expect_error(429, "RATE_LIMITED");
    person.session.get("/api/session").await.expect(200);
}

async fn signing_out_everywhere_ends_every_session(deployment: &Deployment) {
    let person = people::join(&deployment.workspace().await, "viewer").await;
    let other = sign_in(deployment, &person, PASSWORD).await;
    let out = person.session.delete("/api/account/sessions").await.expect(204);
    assert!(out.header("set-cookie").is_some_and(|cookie| cookie.starts_with("cairn_session=;")));
    wait_until_ended(&person.session).await;
    wait_until_ended(&other).await;
    sign_in(deployment, &person, PASSWORD).await.get("/api/session").await.expect(200);
    deployment.anonymous().delete("/api/account/sessions").await.expect_error(401, "UNAUTHORIZED");
}

async fn every_answer_has_its_security_headers(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let anonymous = deployment.anonymous();
    let raw = format!("/api/v1/files/{}/raw", workspace.file_id("a.md", None, "<script>").await);
    for reply in [
        workspace.token.get("/api/v1/files").await,
        workspace.token.get(&raw).await,
        workspace.session.get("/api/session").await,
        anonymous.get("/api/v1/files").await,
        anonymous.get("/nowhere").await,
        anonymous.get("/healthz").await,
        anonymous.get("/api/docs/swagger/").await,
        anonymous.get("/api/docs/openapi.json").await,
        anonymous.post("/mcp").json(json!({})).await,
        anonymous.get("/mcp/sse").await,
    ] {
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{reply:?}");
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"), "{reply:?}");
        assert_eq!(reply.header("x-frame-options"), Some("DENY"), "{reply:?}");
        let policy = reply.header("content-security-policy").unwrap_or_default();
        assert!(
            policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"),
            "{reply:?}"
        );
        assert_eq!(reply.header("strict-transport-security"), None, "plain HTTP on loopback: {reply:?}");
    }
}
