//! An agent without a token: discovery, a person's consent, and tokens limited to what was granted.

use crate::support::http::{items, text};
use crate::support::oauth::{Agent, FORM, REDIRECT, answer, encoded, forged_jwt, input};
use crate::support::prelude::*;

scenarios!(
    an_agent_finds_its_way_from_the_refusal,
    a_person_signs_in_consents_and_the_agent_works,
    a_client_is_known_by_its_metadata,
    a_person_says_no,
    what_was_not_granted_is_refused_with_the_way_to_more,
    an_access_token_opens_mcp_only,
    a_revocation_holds_within_a_second,
    refresh_rotates_with_a_grace_and_a_late_replay_is_noticed,
    pages_load_nothing_and_are_framed_by_nobody,
    a_form_of_another_page_allows_nothing,
    programs_in_browsers_may_read_and_ask,
);

const LIST: fn() -> Value = || json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});

fn call(tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

async fn an_agent_finds_its_way_from_the_refusal(deployment: &Deployment) {
    let base = deployment.base_url();
    let nobody = deployment.anonymous();
    let refused = nobody.post("/mcp").json(LIST()).await.expect(401);
    let way = format!("{base}/.well-known/oauth-protected-resource/mcp");
    let challenge = format!(r#"Bearer resource_metadata="{way}", scope="read write delete""#);
    assert_eq!(refused.header("www-authenticate"), Some(challenge.as_str()));
    let wrong = deployment.token("cairn_oa_wrong").post("/mcp").json(LIST()).await.expect(401);
    assert_eq!(
        wrong.header("www-authenticate"),
        Some(format!(r#"{challenge}, error="invalid_token""#).as_str())
    );

    let at = async |path: &str| nobody.get(path).await.expect(200).json();
    let resource = at("/.well-known/oauth-protected-resource/mcp").await;
    assert_eq!(resource, at("/.well-known/oauth-protected-resource").await);
    assert_eq!(resource["resource"], format!("{base}/mcp"));
    assert_eq!(resource["authorization_servers"], json!([base]));
    assert_eq!(resource["bearer_methods_supported"], json!(["header"]));
    let server = at("/.well-known/oauth-authorization-server").await;
    assert_eq!(server, at("/.well-known/oauth-authorization-server/mcp").await);
    assert_eq!(server["issuer"], resource["authorization_servers"][0], "the same text");
    assert_eq!(server["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(server["client_id_metadata_document_supported"], true);
    assert_eq!(server["authorization_response_iss_parameter_supported"], true);
    for endpoint in ["authorization", "token", "registration", "revocation"] {
        assert!(
            text(&server, &format!("{endpoint}_endpoint")).starts_with(&format!("{base}/oauth/")),
            "{server}"
        );
    }
}

async fn a_person_signs_in_consents_and_the_agent_works(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file("granted.md", None, "what the agent may read").await;
    let agent = Agent::register(deployment).await;
    let address = agent.address(&[("resource", &deployment.base_url())]);

    // Nobody is signed in: the page asks, rejects a wrong password, and resumes the pending request.
    let page = deployment.anonymous().get(&address).await.expect(200).text();
    assert!(page.contains("Test &lt;agent&gt;") && page.contains("127.0.0.1:3000"), "{page}");
    let request = input(&page, "request");
    let owner = deployment.owner();
    let sign_in = async |email: &str, password: &str| {
        let fields = [("request", request.as_str()), ("email", email), ("password", password)];
        deployment.anonymous().post("/oauth/sign-in").body(FORM, encoded(fields)).await
    };
    let wrong = sign_in("a-person-of-oauth@example.com", "not the password").await.expect(400).text();
    assert!(
        wrong.contains("The email or the password is wrong") && wrong.contains("role=\"alert\""),
        "{wrong}"
    );
    let signed_in = sign_in(&owner.email, &owner.password).await.expect(303);
    let onward = signed_in.header("location").unwrap().to_owned();
    assert!(onward.starts_with("/oauth/authorize?client_id="), "{onward}");
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let person = crate::support::callers::Session { http: deployment.http(), cookie };

    let page = person.get(&onward).await.expect(200).text();
    for shown in ["Test &lt;agent&gt;", "127.0.0.1:3000", "runs on your own computer", &owner.email] {
        assert!(page.contains(shown), "no {shown}: {page}");
    }
    let answered = agent.decide(&person, &workspace.id, &["read", "write"], "allow").await.expect(303);
    let location = answered.header("location").unwrap();
    assert!(location.starts_with(&format!("{REDIRECT}?code=cairn_oc_")), "{location}");
    assert_eq!(answer(&answered, "state").as_deref(), Some("a state"));
    assert_eq!(answer(&answered, "iss"), Some(deployment.base_url()));

    let given = agent.redeem(&answer(&answered, "code").unwrap(), &[]).await.expect(200);
    assert_eq!(given.header("cache-control"), Some("no-store"));
    let tokens = given.json();
    assert_eq!(tokens["token_type"], "Bearer");
    assert_eq!(tokens["scope"], "read write");
    assert!(
        tokens["expires_in"].as_u64().is_some_and(|seconds| (3_500..=3_600).contains(&seconds)),
        "{tokens}"
    );
    let files =
        agent.caller(&tokens).post("/mcp").json(call("list_files", json!({}))).await.expect(200).json();
    assert!(files["result"]["content"][0]["text"].as_str().unwrap().contains("granted.md"), "{files}");
}

async fn a_client_is_known_by_its_metadata(deployment: &Deployment) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let id = format!("http://{}/client.json", listener.local_addr().unwrap());
    let document =
        json!({"client_id": id, "client_name": "Documented", "redirect_uris": ["http://127.0.0.1/callback"]});
    let document = document.to_string();
    let length = document.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{document}"
    );
    let host = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let workspace = deployment.workspace().await;
    let agent = Agent { deployment, client_id: id };
    let stranger = deployment.anonymous().get(&agent.address(&[])).await.expect(200).text();
    assert!(!stranger.contains("Documented"), "fetched for nobody: {stranger}");
    let page = workspace.session.get(&agent.address(&[])).await.expect(200).text();
    assert!(page.contains("Documented") && page.contains("127.0.0.1:3000"), "{page}");
    let tokens = agent.tokens(&workspace.session, &workspace.id, &["read"]).await;
    host.abort();
    let renewed = agent.refresh(&text(&tokens, "refresh_token")).await.expect(200).json();
    agent.caller(&renewed).post("/mcp").json(LIST()).await.expect(200);
}

async fn a_person_says_no(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let agent = Agent::register(deployment).await;
    let refused = agent.decide(&workspace.session, &workspace.id, &["read"], "deny").await.expect(303);
    assert_eq!(answer(&refused, "error").as_deref(), Some("access_denied"));
    assert_eq!(answer(&refused, "state").as_deref(), Some("a state"));
    assert_eq!(answer(&refused, "iss"), Some(deployment.base_url()));
    assert_eq!(answer(&refused, "code"), None);
    // Allowing nothing shows the page again, with what is missing.
    let again = agent.decide(&workspace.session, &workspace.id, &[], "allow").await.expect(400).text();
    assert!(again.contains("role=\"alert\"") && again.contains("Choose at least one"), "{again}");
    let nowhere =
        agent.decide(&workspace.session, "no workspace", &["read"], "allow").await.expect(400).text();
    assert!(nowhere.contains("Choose one of your workspaces"), "{nowhere}");
}

async fn what_was_not_granted_is_refused_with_the_way_to_more(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let agent = Agent::register(deployment).await;
    let tokens = agent.tokens(&workspace.session, &workspace.id, &["read"]).await;
    let create = call("create_file", json!({"name": "x.md", "content": "x", "fileType": "markdown"}));
    let refused = agent.caller(&tokens).post("/mcp").json(create.clone()).await.expect(200).json();
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let challenge = refused["result"]["_meta"]["mcp/www_authenticate"][0].as_str().unwrap();
    assert!(
        challenge.contains(r#"error="insufficient_scope""#) && challenge.contains("resource_metadata="),
        "{challenge}"
    );
    // An API token cannot be granted more.
    let reader = workspace.token_with(&["read"]).await;
    let refused = reader.post("/mcp").json(create).await.expect(200).json();
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(
        refused["result"].get("_meta").is_none_or(|meta| meta.get("mcp/www_authenticate").is_none()),
        "{refused}"
    );
}

async fn an_access_token_opens_mcp_only(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let agent = Agent::register(deployment).await;
    let tokens = agent.tokens(&workspace.session, &workspace.id, &["read"]).await;
    let caller = agent.caller(&tokens);
    let refused = caller.get("/api/v1/files").await.expect_error(401, "UNAUTHORIZED");
    assert!(text(&refused, "message").contains("/mcp only"), "{refused}");
    caller.get("/api/session").await.expect(401);

    let access = text(&tokens, "access_token");
    let nobody = deployment.anonymous();
    nobody.post(&format!("/mcp?access_token={access}")).json(LIST()).await.expect(401);
    let twice = nobody.post("/mcp").header("authorization", format!("Bearer {access}"));
    twice.header("authorization", format!("Bearer {access}")).json(LIST()).await.expect(401);
    let refresh = text(&tokens, "refresh_token");
    for wrong in [refresh.as_str(), &forged_jwt(), &access[..access.len() - 1], ""] {
        deployment.token(wrong).post("/mcp").json(LIST()).await.expect(401);
    }
    caller.post("/mcp").json(LIST()).await.expect(200);
}

async fn a_revocation_holds_within_a_second(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let agent = Agent::register(deployment).await;
    let grants = format!("/api/workspaces/{}/grants", workspace.id);
    let ends = async |caller: &crate::support::callers::ApiToken| {
        eventually("the grant has ended", async || {
            let reply = caller.post("/mcp").json(LIST()).await;
            (reply.status == 401).then_some(())
        })
        .await;
    };

    let tokens = agent.tokens(&workspace.session, &workspace.id, &["read", "delete"]).await;
    let caller = agent.caller(&tokens);
    caller.post("/mcp").json(LIST()).await.expect(200);
    let listed = workspace.session.get(&grants).await.expect(200).json();
    let [grant] = items(&listed) else { panic!("one grant: {listed}") };
    assert_eq!(grant["clientName"], "Test <agent>");
    assert_eq!(grant["redirectHost"], "127.0.0.1:3000");
    assert_eq!(grant["permissions"], json!(["read", "delete"]));
    assert_eq!(grant["userEmail"], json!(deployment.owner().email));
    let path = format!("{grants}/{}", text(grant, "id"));
    workspace.session.delete(&path).await.expect(204);
    ends(&caller).await;
    workspace.session.delete(&path).await.expect_error(404, "NOT_FOUND");
    assert_eq!(
        agent.refresh(&text(&tokens, "refresh_token")).await.expect(400).json()["error"],
        "invalid_grant"
    );
    assert_eq!(workspace.session.get(&grants).await.expect(200).json(), json!([]));

    // The client revokes it itself.
    let tokens = agent.tokens(&workspace.session, &workspace.id, &["read"]).await;
    let fields = [("client_id", agent.client_id.as_str()), ("token", &text(&tokens, "refresh_token"))]
        .map(|(a, b)| (a, b.to_owned()));
    let form = encoded(fields.iter().map(|(name, value)| (*name, value.as_str())));
    deployment.anonymous().post("/oauth/revoke").body(FORM, form).await.expect(200);
    ends(&agent.caller(&tokens)).await;
}

async fn refresh_rotates_with_a_grace_and_a_late_replay_is_noticed(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let agent = Agent::register(deployment).await;
    let first = agent.tokens(&workspace.session, &workspace.id, &["read"]).await;
    let spent = text(&first, "refresh_token");
    let (one, other) = tokio::join!(agent.refresh(&spent), agent.refresh(&spent));
    let (one, other) = (one.expect(200).json(), other.expect(200).json());
    assert_eq!(one["refresh_token"], other["refresh_token"], "sessions that race stay together");
    assert_ne!(one["refresh_token"], first["refresh_token"]);
    for tokens in [&first, &one, &other] {
        agent.caller(tokens).post("/mcp").json(LIST()).await.expect(200);
    }
    // Redeeming a code twice revokes its tokens.
    let code = agent.code(&workspace.session, &workspace.id, &["read"]).await;
    let tokens = agent.redeem(&code, &[]).await.expect(200).json();
    assert_eq!(agent.redeem(&code, &[]).await.expect(400).json()["error"], "invalid_grant");
    assert_eq!(
        agent.refresh(&text(&tokens, "refresh_token")).await.expect(400).json()["error"],
        "invalid_grant"
    );
}

async fn pages_load_nothing_and_are_framed_by_nobody(deployment: &Deployment) {
    let person = deployment.session().await;
    let agent = Agent::register(deployment).await;
    for page in [
        person.get(&agent.address(&[])).await.expect(200),
        deployment.anonymous().get(&agent.address(&[])).await.expect(200),
        person.get(&agent.address(&[("redirect_uri", "https://evil.example/")])).await.expect(400),
    ] {
        let policy = page.header("content-security-policy").unwrap();
        for part in ["default-src 'none'", "style-src 'self'", "form-action 'self'", "frame-ancestors 'none'"]
        {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("script"), "{policy}");
        assert_eq!(page.header("x-frame-options"), Some("DENY"));
        assert_eq!(page.header("referrer-policy"), Some("same-origin"));
        assert_eq!(page.header("cache-control"), Some("no-store"));
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        assert!(!page.text().contains("<script") && !page.text().contains("style="), "{}", page.text());
    }
    let page = deployment.anonymous().get(&agent.address(&[])).await.expect(200).text();
    let style = page.split("<link rel=\"stylesheet\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let style = deployment.anonymous().get(style).await.expect(200);
    assert_eq!(style.header("content-type"), Some("text/css; charset=utf-8"));
    assert_eq!(style.header("cache-control"), Some("public, max-age=31536000, immutable"));
}

async fn a_form_of_another_page_allows_nothing(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let agent = Agent::register(deployment).await;
    let person = &workspace.session;
    let page = person.get(&agent.address(&[])).await.expect(200).text();
    let (request, csrf) = (input(&page, "request"), input(&page, "csrf"));
    let other_request = encoded([("client_id", agent.client_id.as_str()), ("redirect_uri", REDIRECT)]);
    let form = |request: &str, csrf: &str| {
        let fields =
            [("request", request), ("csrf", csrf), ("workspace", &workspace.id), ("decision", "allow")];
        encoded(fields.into_iter().chain([("permission", "read")]))
    };
    for (request, csrf) in [
        (request.as_str(), ""),
        (&request, "0000000000000000000000000000000000000000000000000000000000000000"),
        (&other_request, &csrf),
    ] {
        person.post("/oauth/authorize").body(FORM, form(request, csrf)).await.expect(403);
    }
    // Of another session of the same person.
    let elsewhere = deployment.sign_in().await;
    elsewhere.post("/oauth/authorize").body(FORM, form(&request, &csrf)).await.expect(403);
    for (name, value) in
        [("origin", "https://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")]
    {
        for path in ["/oauth/authorize", "/oauth/sign-in", "/oauth/sign-out"] {
            let reply = person.post(path).header(name, value).body(FORM, form(&request, &csrf)).await;
            reply.expect(403);
        }
    }
    person.post("/oauth/authorize").body(FORM, form(&request, &csrf)).await.expect(303);
    // A person who has signed out since is asked to sign in.
    let nobody =
        deployment.anonymous().post("/oauth/authorize").body(FORM, form(&request, &csrf)).await.expect(303);
    assert!(nobody.header("location").unwrap().starts_with("/oauth/authorize?"));
    let left = elsewhere.post("/oauth/sign-out").body(FORM, form(&request, &csrf)).await.expect(303);
    assert!(left.header("set-cookie").unwrap().contains("Max-Age=0"));
    elsewhere.get("/api/session").await.expect(401);
}

async fn programs_in_browsers_may_read_and_ask(deployment: &Deployment) {
    let nobody = deployment.anonymous();
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"] {
        let reply = nobody.get(path).header("origin", "https://inspector.example").await.expect(200);
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
        assert_eq!(reply.header("content-type"), Some("application/json"));
    }
    for path in ["/oauth/token", "/oauth/register", "/.well-known/oauth-protected-resource"] {
        let preflight = nobody.request(reqwest::Method::OPTIONS, path).await.expect(204);
        assert_eq!(preflight.header("access-control-allow-origin"), Some("*"), "{path}");
    }
    let page = nobody.get("/oauth/authorize").header("origin", "https://inspector.example").await.expect(400);
    assert_eq!(page.header("access-control-allow-origin"), None);
}
