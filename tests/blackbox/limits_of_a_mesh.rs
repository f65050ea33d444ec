//! Rate limits across processes: gateways share counters in Redis, and each counts for itself while Redis is
//! unavailable.

use futures::future::join_all;

use crate::support::callers::{ApiToken, Session};
use crate::support::http::{Http, id, text};
use crate::support::mesh::Mesh;
use crate::support::prelude::*;
use crate::support::runner::{announce_skip, run_alone};
use crate::support::windows::{in_one_window, set_plan, window};

const WORKSPACE: &str = "/api/v1/workspace";
const FREE: u64 = 600;

/// Runs a test on a mesh of its own that counts in Redis, or reports why there is none.
fn with_redis(environment: &[(&'static str, &'static str)], test: impl AsyncFnOnce(&mut Mesh)) {
    run_alone(async {
        match Mesh::start_with(environment).await {
            Ok(mesh) if mesh.redis().is_none() => announce_skip("Redis is not installed"),
            Ok(mut mesh) => {
                let anonymous = Http::new(&mesh.base_url());
                eventually("the mesh is ready", async || {
                    let reply = anonymous.request(reqwest::Method::GET, "/readyz").await;
                    (reply.status == 200).then_some(())
                })
                .await;
                test(&mut mesh).await;
            }
            Err(why) => announce_skip(&why),
        }
    });
}

/// A workspace on the plan `free`.
async fn free(mesh: &Mesh) -> Workspace {
    let http = Http::new(&mesh.base_url());
    let owner = mesh.owner();
    let form = json!({"email": owner.email, "password": owner.password});
    let signed_in = http.request(reqwest::Method::POST, "/api/session").json(form).await.expect(200);
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let session = Session { http: http.clone(), cookie };
    let made = session.post("/api/workspaces").json(json!({"name": "limited"})).await.expect(201);
    let workspace = id(&made.json());
    let path = format!("/api/workspaces/{workspace}/tokens");
    let body = json!({"name": "all", "permissions": ["read"]});
    let secret = text(&session.post(&path).json(body).await.expect(201).json(), "token");
    let workspace = Workspace { id: workspace, session, token: ApiToken { http, secret } };
    set_plan(&workspace, &workspace.token, "free", FREE).await;
    workspace
}

#[test]
fn two_gateways_let_exactly_the_minute_pass() {
    with_redis(&[], async |mesh| {
        let workspace = free(mesh).await;
        let other = Http::new(&mesh.another_gateway().await);
        let passed = in_one_window(async || {
            let here = workspace.token_with(&["read"]).await;
            let there = ApiToken { http: other.clone(), ..here.clone() };
            let before = window(&here.get(WORKSPACE).await.expect(200));
            let clients = (0..200).map(|number| {
                let token = if number % 2 == 0 { &here } else { &there };
                async move {
                    let mut passed = 0;
                    for _ in 0..4 {
                        let reply = token.get(WORKSPACE).await;
                        assert!([200, 429].contains(&reply.status), "{}: {}", reply.status, reply.text());
                        passed += u64::from(reply.status == 200);
                    }
                    passed
                }
            });
            let passed: u64 = join_all(clients).await.into_iter().sum();
            (before, window(&there.get(WORKSPACE).await), passed + 1)
        })
        .await;
        assert_eq!(passed, FREE);
        assert_eq!(metric(mesh, "cairn_rate_limit_redis_up").await, Some(1.0));
        assert_eq!(metric(mesh, "cairn_rate_limit_fallbacks_total").await, Some(0.0));
    });
}

#[test]
fn requests_go_on_while_redis_hangs_and_when_it_is_gone() {
    with_redis(&[("CAIRN_REDIS_TIMEOUT_MS", "200")], async |mesh| {
        let token = ApiToken { http: Http::new(&mesh.base_url()), secret: mesh.owner().token.clone() };
        counts_in_redis(mesh, &token).await;

        mesh.redis().unwrap().hang().unwrap();
        counts_locally(mesh, &token).await;
        mesh.redis().unwrap().resume().unwrap();
        counts_in_redis(mesh, &token).await;

        mesh.redis().unwrap().kill().unwrap();
        counts_locally(mesh, &token).await;
        assert!(metric(mesh, "cairn_rate_limit_fallbacks_total").await.is_some_and(|count| count > 0.0));
    });
}

async fn counts_in_redis(mesh: &Mesh, token: &ApiToken) {
    eventually("the metrics say that Redis answers", async || {
        token.get(WORKSPACE).await.expect(200);
        metric_is(mesh, "cairn_rate_limit_redis_up", 1.0).await
    })
    .await;
}

/// Requests succeed, and are limited by this process's own windows.
async fn counts_locally(mesh: &Mesh, token: &ApiToken) {
    eventually("the metrics say that Redis is away", async || {
        assert_eq!(window(&token.get(WORKSPACE).await.expect(200)).limit, 1_000_000);
        metric_is(mesh, "cairn_rate_limit_redis_up", 0.0).await
    })
    .await;
    token.get(WORKSPACE).await.expect(200);
}

async fn metric_is(mesh: &Mesh, name: &str, value: f64) -> Option<()> {
    (metric(mesh, name).await == Some(value)).then_some(())
}

async fn metric(mesh: &Mesh, name: &str) -> Option<f64> {
    let all = mesh.gateway_metrics().await;
    let line = all.lines().find_map(|line| line.strip_prefix(name))?.trim();
    line.parse().ok()
}
