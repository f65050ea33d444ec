//! Every invalid OAuth request, and the error that the client gets.

use crate::support::callers::Anonymous;
use crate::support::http::{Http, Reply, text};
use crate::support::oauth::{Agent, CHALLENGE, FORM, REDIRECT, answer, basic, encoded};
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

scenarios!(
    a_request_of_nobody_known_goes_nowhere,
    a_malformed_request_goes_back_to_the_client,
    a_token_request_that_is_wrong_is_told_how,
    a_client_proves_who_it_is_in_one_way,
    a_registration_that_cannot_work_is_refused,
    metadata_of_a_client_is_not_fetched_from_inside,
);

/// The error JSON of RFC 6749.
#[track_caller]
fn refused(reply: &Reply, status: u16, error: &str) {
    let body = reply.json();
    assert_eq!((reply.status, body["error"].as_str()), (status, Some(error)), "{body}");
    let description = text(&body, "error_description");
    assert!(
        !description.is_empty() && description.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
        "{body}"
    );
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("content-type"), Some("application/json"));
}

async fn a_request_of_nobody_known_goes_nowhere(deployment: &Deployment) {
    let agent = Agent::register(deployment).await;
    let twice = format!("{}&client_id={}", agent.address(&[]), agent.client_id);
    for address in [
        agent.address(&[("client_id", "")]),
        agent.address(&[("client_id", "nobody")]),
        agent.address(&[("redirect_uri", "https://evil.example/callback")]),
        agent.address(&[("redirect_uri", "http://127.0.0.1:3000/callback/")]),
        agent.address(&[("redirect_uri", "http://localhost:3000/callback")]),
        agent.address(&[("redirect_uri", "javascript:alert(1)")]),
        agent.address(&[("state", "a\0b")]),
        twice,
        "/oauth/authorize".to_owned(),
        "/oauth/authorize?%ff=%ff&client_id=%00".to_owned(),
    ] {
        let reply = deployment.session().await.get(&address).await;
        let page = reply.text();
        assert_eq!((reply.status / 100, reply.header("location")), (4, None), "{address}: {page}");
        assert!(page.contains("<html") && page.contains("cannot be answered"), "{address}: {page}");
    }
    // Loopback apps choose their port when they start.
    let other_port = agent.address(&[("redirect_uri", "http://127.0.0.1:49152/callback")]);
    deployment.session().await.get(&other_port).await.expect(200);
}

async fn a_malformed_request_goes_back_to_the_client(deployment: &Deployment) {
    let agent = Agent::register(deployment).await;
    let person = deployment.session().await;
    for (name, value, error) in [
        ("response_type", "", "invalid_request"),
        ("response_type", "token", "unsupported_response_type"),
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("code_challenge_method", "", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("scope", "everything", "invalid_scope"),
        ("scope", "read \"write\"", "invalid_scope"),
        ("resource", "https://evil.example/mcp", "invalid_target"),
        ("resource", "not a url", "invalid_target"),
    ] {
        let reply = person.get(&agent.address(&[(name, value)])).await.expect(303);
        assert!(
            reply.header("location").unwrap().starts_with(&format!("{REDIRECT}?error=")),
            "{name}={value}"
        );
        assert_eq!(answer(&reply, "error").as_deref(), Some(error), "{name}={value}");
        assert_eq!(answer(&reply, "state").as_deref(), Some("a state"));
        assert_eq!(answer(&reply, "iss"), Some(deployment.base_url()));
    }
    let twice = format!("{}&code_challenge={CHALLENGE}", agent.address(&[]));
    let reply = person.get(&twice).await.expect(303);
    assert_eq!(answer(&reply, "error").as_deref(), Some("invalid_request"));
}

async fn a_token_request_that_is_wrong_is_told_how(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let agent = Agent::register(deployment).await;
    let other = Agent::register(deployment).await;
    let code = agent.code(&workspace.session, &workspace.id, &["read"]).await;
    let long = "a".repeat(129);
    for (name, value, status, error) in [
        ("grant_type", "", 400, "invalid_request"),
        ("grant_type", "password", 400, "unsupported_grant_type"),
        ("grant_type", "client_credentials", 400, "unsupported_grant_type"),
        ("client_id", "", 400, "invalid_request"),
        ("client_id", "nobody", 401, "invalid_client"),
        ("client_id", &other.client_id, 400, "invalid_grant"),
        ("client_secret", "a secret that a public client has not", 401, "invalid_client"),
        ("code", "", 400, "invalid_request"),
        ("code", "cairn_oc_unknown", 400, "invalid_grant"),
        ("code", "a\0b", 400, "invalid_request"),
        ("redirect_uri", "https://evil.example/", 400, "invalid_grant"),
        ("code_verifier", "", 400, "invalid_request"),
        ("code_verifier", "short", 400, "invalid_request"),
        ("code_verifier", &long, 400, "invalid_request"),
        ("code_verifier", &long[..43], 400, "invalid_grant"),
        ("resource", "https://evil.example/mcp", 400, "invalid_target"),
    ] {
        refused(&agent.redeem(&code, &[(name, value)]).await, status, error);
    }
    let nobody = deployment.anonymous();
    let form = encoded([("grant_type", "refresh_token"), ("client_id", agent.client_id.as_str())]);
    refused(&nobody.post("/oauth/token").body(FORM, form.clone()).await, 400, "invalid_request");
    let twice = format!("{form}&client_id={}", agent.client_id);
    refused(&nobody.post("/oauth/token").body(FORM, twice).await, 400, "invalid_request");
    refused(&nobody.post(&format!("/oauth/token?{form}")).body(FORM, "").await, 400, "invalid_request");
    refused(
        &nobody.post("/oauth/token").json(json!({"grant_type": "refresh_token"})).await,
        400,
        "invalid_request",
    );
    refused(&nobody.post("/oauth/token").body(FORM, "x".repeat(70_000)).await, 413, "invalid_request");
    refused(
        &nobody.post("/oauth/revoke").body(FORM, "client_id=nobody&token=x").await,
        401,
        "invalid_client",
    );
    refused(&nobody.post("/oauth/revoke").body(FORM, form).await, 400, "invalid_request");
    nobody.get("/oauth/token").await.expect(405);
    // None of that consumed the code.
    agent.redeem(&code, &[]).await.expect(200);
}

async fn a_client_proves_who_it_is_in_one_way(deployment: &Deployment) {
    let nobody = deployment.anonymous();
    let metadata = json!({"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "client_secret_basic"});
    let client = nobody.post("/oauth/register").json(metadata).await.expect(201).json();
    assert_eq!(client["client_secret_expires_at"], 0);
    let (id, secret) = (text(&client, "client_id"), text(&client, "client_secret"));
    let form = encoded([("grant_type", "refresh_token"), ("refresh_token", "cairn_or_x")]);
    let ask = |header: &str, body: String| {
        nobody.post("/oauth/token").header("authorization", header).body(FORM, body)
    };
    let with_id = |id: &str| format!("{form}&client_id={id}");
    // The client is authenticated: the remaining error is about the token.
    refused(&ask(&basic(&id, &secret), form.clone()).await, 400, "invalid_grant");
    refused(&ask(&basic(&id, &secret), with_id(&id)).await, 400, "invalid_grant");
    let in_body = format!("{}&client_secret={secret}", with_id(&id));
    refused(&nobody.post("/oauth/token").body(FORM, in_body.clone()).await, 400, "invalid_grant");

    refused(&ask(&basic(&id, "wrong"), form.clone()).await, 401, "invalid_client");
    refused(&ask(&basic("nobody", &secret), form.clone()).await, 401, "invalid_client");
    refused(&ask("Basic !", form.clone()).await, 401, "invalid_client");
    refused(&ask("Bearer x", form.clone()).await, 401, "invalid_client");
    refused(&nobody.post("/oauth/token").body(FORM, with_id(&id)).await, 401, "invalid_client");
    refused(&ask(&basic(&id, &secret), in_body).await, 400, "invalid_request");
    refused(&ask(&basic(&id, &secret), with_id("another")).await, 400, "invalid_request");
    let two = ask(&basic(&id, &secret), form.clone()).header("authorization", basic(&id, &secret));
    refused(&two.await, 400, "invalid_request");
}

async fn a_registration_that_cannot_work_is_refused(deployment: &Deployment) {
    let nobody = deployment.anonymous();
    for (metadata, error) in [
        (json!({}), "invalid_redirect_uri"),
        (json!([]), "invalid_client_metadata"),
        (json!({"redirect_uris": "https://tools.example/"}), "invalid_client_metadata"),
        (json!({"redirect_uris": ["http://tools.example/"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["javascript:alert(1)"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["https://tools.example/#x"]}), "invalid_redirect_uri"),
        (
            json!({"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "private_key_jwt"}),
            "invalid_client_metadata",
        ),
        (json!({"redirect_uris": [REDIRECT], "response_types": ["token"]}), "invalid_client_metadata"),
        (json!({"redirect_uris": [REDIRECT], "client_name": "a\0b"}), "invalid_client_metadata"),
    ] {
        refused(&nobody.post("/oauth/register").json(&metadata).await, 400, error);
    }
    refused(
        &nobody.post("/oauth/register").body("application/json", "{").await,
        400,
        "invalid_client_metadata",
    );
    // What Cursor registers: either all three redirect URIs or none.
    let cursor = json!({"client_name": "Cursor", "token_endpoint_auth_method": "none", "redirect_uris": [
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "https://www.cursor.com/agents/mcp/oauth/callback",
        "http://localhost:8787/callback",
    ]});
    let made = nobody.post("/oauth/register").json(&cursor).await.expect(201);
    assert_eq!(made.json()["redirect_uris"], cursor["redirect_uris"]);
    assert!(made.json().get("client_secret").is_none());
}

async fn metadata_of_a_client_is_not_fetched_from_inside(deployment: &Deployment) {
    let person = deployment.session().await;
    let agent = Agent::register(deployment).await;
    for inside in [
        "https://127.0.0.2/client.json",
        "https://localhost/client.json",
        "https://[::1]/client.json",
        "https://169.254.169.254/latest/meta-data",
        "http://cairn.example/client.json",
        "https://user@cairn.example/client.json",
    ] {
        let page = person.get(&agent.address(&[("client_id", inside)])).await;
        assert_eq!((page.status, page.header("location")), (400, None), "{inside}: {}", page.text());
        assert!(page.text().contains("metadata document of this client cannot be used"), "{}", page.text());
    }
    // An anonymous request causes no outbound fetch.
    let stranger =
        deployment.anonymous().get(&agent.address(&[("client_id", "https://127.0.0.2/client.json")])).await;
    assert!(stranger.expect(200).text().contains("Sign in to Cairn"));
}

#[test]
fn clients_that_nobody_uses_are_few() {
    run_alone(async {
        let data = Scratch::new();
        let up = SingleProcess::start_on(data.path(), &[("CAIRN_OAUTH_CLIENTS", "2")]).await;
        let anonymous = Anonymous { http: Http::new(up.base_url()) };
        let register = async |metadata: Value| anonymous.post("/oauth/register").json(metadata).await;
        let client = || json!({"redirect_uris": ["https://tools.example/cb"]});
        let uris: Vec<_> =
            (0..9).map(|number| format!("https://tools.example/{number}{}", "x".repeat(1_000))).collect();
        let large = register(json!({"redirect_uris": uris})).await.expect(400).json();
        assert_eq!(large["error"], "invalid_client_metadata", "{large}");
        register(client()).await.expect(201);
        register(client()).await.expect(201);
        let refused = register(client()).await.expect(429);
        assert!(refused.header("retry-after").is_some());
        let refused = refused.json();
        assert_eq!(refused["error"], "temporarily_unavailable");
        assert!(refused["error_description"].as_str().unwrap().contains("2 registered clients"), "{refused}");
    });
}
