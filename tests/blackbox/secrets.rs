//! Secrets and contents stay out of what processes say (design, "Telemetry").

use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::token_format;

use crate::support::callers::{Anonymous, ApiToken, Caller, Session};
use crate::support::deployment::Owner;
use crate::support::http::{Http, id, text};
use crate::support::mcp;
use crate::support::mesh::Mesh;
use crate::support::prelude::*;
use crate::support::runner::{announce_skip, run_alone};
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

/// The more is logged, the more can slip.
const VERBOSE: (&str, &str) = ("CAIRN_LOG", "debug");
const CONTENT: &str = "zqsecretcontentx";

#[test]
fn one_process_keeps_secrets_to_itself() {
    run_alone(async {
        let data = Scratch::new();
        // The first start prints the account, as it should; the second has nothing to tell.
        let mut first = SingleProcess::start_on(data.path(), &[VERBOSE]).await;
        let mut secrets = use_everything(&first.owner().clone(), first.base_url()).await;
        let logged = first.process_mut().stderr();
        assert!(first.stop().await.success());
        check(&secrets, &format!("{logged}{}", first.process_mut().stderr()));

        let mut second = SingleProcess::start_on(data.path(), &[VERBOSE]).await;
        secrets.extend(use_everything(&second.owner().clone(), second.base_url()).await);
        assert!(second.stop().await.success());
        check(&secrets, &second.process().said());
    });
}

#[test]
fn a_mesh_keeps_secrets_to_itself() {
    run_alone(async {
        let mut mesh = match Mesh::start_with(&[VERBOSE]).await {
            Ok(mesh) => mesh,
            Err(why) => return announce_skip(&why),
        };
        let anonymous = Anonymous { http: Http::new(&mesh.base_url()) };
        eventually("the mesh is ready", async || {
            (anonymous.get("/readyz").await.status == 200).then_some(())
        })
        .await;
        let mut secrets = use_everything(mesh.owner(), &mesh.base_url()).await;
        secrets.push(mesh.mesh_secret().to_owned());
        mesh.stop().await;
        check(&secrets, &mesh.said());
    });
}

/// Uses every kind of secret, rightly and wrongly; answers all of them.
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

    let wrong_password = format!("wrong {}", token_format::generate(&OsEntropy));
    let form = json!({"email": owner.email, "password": wrong_password});
    anonymous.post("/api/session").json(form).await.expect(401);
    let unknown = ApiToken { http, secret: token_format::generate(&OsEntropy) };
    unknown.get("/api/v1/files").await.expect(401);
    let misplaced = token_format::generate(&OsEntropy);
    token.get(&format!("/api/v1/files?access_token={misplaced}")).await.expect(200);

    let cookie_secret = cookie.trim_start_matches("cairn_session=").to_owned();
    vec![
        owner.password.clone(),
        owner.token.clone(),
        cookie_secret,
        token.secret,
        CONTENT.to_owned(),
        wrong_password,
        unknown.secret,
        misplaced,
    ]
}

#[track_caller]
fn check(secrets: &[String], said: &str) {
    assert!(!said.is_empty(), "nothing was logged, so this shows nothing");
    for secret in secrets {
        let line = said.lines().find(|line| line.contains(secret.as_str()));
        assert!(line.is_none(), "a secret was logged: {}", line.unwrap_or_default());
    }
}
