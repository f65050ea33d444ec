//! Secrets and contents stay out of logs (design, "Telemetry").

use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::token_format;

use crate::support::callers::{Anonymous, ApiToken, Caller, Session};
use crate::support::deployment::Owner;
use crate::support::http::{Http, id, text};
use crate::support::mcp;
use crate::support::mesh::Mesh;
use crate::support::oauth::{CHALLENGE, FORM, REDIRECT, VERIFIER, answer, encoded, input};
use crate::support::people;
use crate::support::prelude::*;
use crate::support::runner::{announce_skip, run_alone};
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;
use crate::support::smtp::{MailServer, REFUSED};

/// The more is logged, the more can leak.
const VERBOSE: (&str, &str) = ("CAIRN_LOG", "debug");
const MAIL_FROM: (&str, &str) = ("CAIRN_MAIL_FROM", "cairn@example.com");
const CONTENT: &str = "zqsecretcontentx";
const FEEDBACK: &str = "zqsecretfeedbackx";

#[test]
fn one_process_keeps_secrets_to_itself() {
    run_alone(async {
        let data = Scratch::new();
        // The first start prints the account, as it should; the second has nothing to print.
        let mail = MailServer::start(&token_format::generate(&OsEntropy));
        let url = mail.url();
        let environment = [VERBOSE, ("CAIRN_SMTP_URL", url.as_str()), MAIL_FROM];
        let mut first = SingleProcess::start_on(data.path(), &environment).await;
        let mut secrets = use_everything(&first.owner().clone(), first.base_url()).await;
        secrets.push(mail.password().to_owned());
        let key = std::fs::read_to_string(data.path().join("secret.key")).unwrap();
        secrets.push(key.trim().to_owned());
        let logged = first.process_mut().stderr();
        assert!(first.stop().await.success());
        check(&secrets, &format!("{logged}{}", first.process_mut().stderr()));

        let mut second = SingleProcess::start_on(data.path(), &environment).await;
        secrets.extend(use_everything(&second.owner().clone(), second.base_url()).await);
        assert!(second.stop().await.success());
        check(&secrets, &second.process().output());
    });
}

#[test]
fn a_mesh_keeps_secrets_to_itself() {
    run_alone(async {
        let mail = MailServer::start(&token_format::generate(&OsEntropy));
        let key = cairn_chassis::sealing::Keyring::generate(&OsEntropy).to_text().trim().to_owned();
        // The harness borrows its environment for the life of the test process.
        let (url, shown_key): (&str, &str) = (mail.url().leak(), key.clone().leak());
        let environment = [VERBOSE, ("CAIRN_SMTP_URL", url), MAIL_FROM, ("CAIRN_SECRET_KEY", shown_key)];
        let mut mesh = match Mesh::start_with(&environment).await {
            Ok(mesh) => mesh,
            Err(why) => return announce_skip(&why),
        };
        let anonymous = Anonymous { http: Http::new(&mesh.base_url()) };
        eventually("the mesh is ready", async || {
            (anonymous.get("/readyz").await.status == 200).then_some(())
        })
        .await;
        let mut secrets = use_everything(mesh.owner(), &mesh.base_url()).await;
        secrets.extend([mesh.mesh_secret().to_owned(), mail.password().to_owned(), key]);
        mesh.stop().await;
        check(&secrets, &mesh.output());
    });
}

/// Uses every kind of secret, valid and invalid; returns all of them.
async fn use_everything(owner: &Owner, base_url: &str) -> Vec<String> {
    let http = Http::new(base_url);
    let anonymous = Anonymous { http: http.clone() };
    let form = json!({"email": owner.email, "password": owner.password});
    let signed_in = anonymous.post("/api/session").json(form).await;
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let session = Session { http: http.clone(), cookie: cookie.clone() };
    let workspace = session.post("/api/workspaces").json(json!({"name": "w"})).await.expect(201).json();
    let tokens = format!("/api/workspaces/{}/tokens", id(&workspace));
    let body = json!({"name": "t", "permissions": ["read", "write", "delete"]});
    let made = session.post(&tokens).json(body).await.expect(201).json();
    let token = ApiToken { http: http.clone(), secret: text(&made, "token") };

    let body = json!({"name": "a.md", "content": CONTENT, "fileType": "markdown"});
    let created = token.post("/api/v1/files").json(body).await.expect(201);
    let search =
        token.post("/api/v1/search_context").after(&created.change()).json(json!({"query": CONTENT}));
    search.await.expect(200);
    mcp::call(&token, "get_file", json!({"id": id(&created.json())})).await;
    let refused = json!({"name": 5, "content": CONTENT});
    token.post("/api/v1/files").json(refused).await.expect(400);

    let email = people::unused_email();
    let place = Workspace { id: id(&workspace), session: session.clone(), token: token.clone() };
    let invitation = people::invite(&place, &email, "viewer").await;
    anonymous.post("/api/invitations/look-up").json(json!({"secret": invitation})).await.expect(200);
    people::accept(&anonymous, &invitation).await.expect(201);
    people::accept(&anonymous, &invitation).await.expect(404);

    for message in [FEEDBACK.to_owned(), format!("{FEEDBACK} {REFUSED}")] {
        let body = json!({"message": message, "context": {"query": FEEDBACK}});
        let status = if message.contains(REFUSED) { 502 } else { 200 };
        token.post("/api/v1/feedback").json(body).await.expect(status);
    }

    // The host does not exist: the failed delivery is logged, and its secret is not.
    let webhooks = format!("/api/workspaces/{}/webhooks", id(&workspace));
    let draft = json!({"name": "h", "url": "https://receiver.invalid/"});
    let hook = session.post(&webhooks).json(draft).await.expect(201).json();
    let own = format!("{webhooks}/{}", id(&hook));
    let tested = session.post(&format!("{own}/test")).await.expect(200).json();
    assert_eq!(tested["ok"], false, "{tested}");
    let rotated = session.post(&format!("{own}/rotate")).await.expect(200).json();

    let wrong_password = format!("wrong {}", token_format::generate(&OsEntropy));
    let form = json!({"email": owner.email, "password": wrong_password});
    anonymous.post("/api/session").json(form).await.expect(401);
    let unknown = ApiToken { http, secret: token_format::generate(&OsEntropy) };
    unknown.get("/api/v1/files").await.expect(401);
    let misplaced = token_format::generate(&OsEntropy);
    token.get(&format!("/api/v1/files?access_token={misplaced}")).await.expect(200);

    let mut secrets = use_oauth(&session, base_url, &id(&workspace)).await;
    let cookie_secret = cookie.trim_start_matches("cairn_session=").to_owned();
    secrets.extend([
        owner.password.clone(),
        owner.token.clone(),
        cookie_secret,
        token.secret,
        CONTENT.to_owned(),
        FEEDBACK.to_owned(),
        wrong_password,
        invitation,
        people::PASSWORD.to_owned(),
        unknown.secret,
        misplaced,
        text(&hook, "secret"),
        text(&rotated, "secret"),
    ]);
    secrets
}

/// Authorizes an agent by OAuth; returns every secret involved.
async fn use_oauth(session: &Session, base_url: &str, workspace: &str) -> Vec<String> {
    let anonymous = Anonymous { http: session.http.clone() };
    let metadata =
        json!({"client_name": "agent", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"});
    let client =
        text(&anonymous.post("/oauth/register").json(metadata).await.expect(201).json(), "client_id");
    let resource = format!("{base_url}/mcp");
    let asked = encoded([
        ("client_id", client.as_str()),
        ("redirect_uri", REDIRECT),
        ("response_type", "code"),
        ("scope", "read"),
        ("state", "a state"),
        ("resource", &resource),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
    ]);
    let page = session.get(&format!("/oauth/authorize?{asked}")).await.expect(200).text();
    let csrf = input(&page, "csrf");
    let decided = encoded([
        ("request", input(&page, "request").as_str()),
        ("csrf", &csrf),
        ("workspace", workspace),
        ("decision", "allow"),
        ("permission", "read"),
    ]);
    let allowed = session.post("/oauth/authorize").body(FORM, decided).await.expect(303);
    let code = answer(&allowed, "code").unwrap();
    let redeem = |verifier: &str| {
        encoded([
            ("grant_type", "authorization_code"),
            ("client_id", client.as_str()),
            ("code", &code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", verifier),
        ])
    };
    let tokens = anonymous.post("/oauth/token").body(FORM, redeem(VERIFIER)).await.expect(200).json();
    let (access, refresh) = (text(&tokens, "access_token"), text(&tokens, "refresh_token"));
    let caller = ApiToken { http: session.http.clone(), secret: access.clone() };
    mcp::call(&caller, "list_files", json!({})).await;
    let again = encoded([
        ("grant_type", "refresh_token"),
        ("client_id", client.as_str()),
        ("refresh_token", &refresh),
    ]);
    let renewed = anonymous.post("/oauth/token").body(FORM, again).await.expect(200).json();
    // A replayed code is refused, and revokes its tokens.
    anonymous.post("/oauth/token").body(FORM, redeem(VERIFIER)).await.expect(400);
    let renewed = [text(&renewed, "access_token"), text(&renewed, "refresh_token")];
    [vec![csrf, code, VERIFIER.to_owned(), access, refresh], renewed.to_vec()].concat()
}

#[track_caller]
fn check(secrets: &[String], output: &str) {
    assert!(!output.is_empty(), "nothing was logged, so this shows nothing");
    for secret in secrets {
        let line = output.lines().find(|line| line.contains(secret.as_str()));
        assert!(line.is_none(), "a secret was logged: {}", line.unwrap_or_default());
    }
}
