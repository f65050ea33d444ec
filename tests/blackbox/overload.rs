//! Overload of a process: capacity units by cost, shared fairly between workspaces. Latency is not tested here;
//! `benches/overload.rs` measures it.

use tokio::task::JoinSet;

use crate::support::callers::{Anonymous, ApiToken, Session};
use crate::support::embedder::{EmbedderServer, wait_until_active};
use crate::support::http::{Http, Reply, id, text};
use crate::support::mcp::{self, message};
use crate::support::people::session_cookie;
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::single::SingleProcess;
use crate::support::workspace::make_token;

const SEARCH: &str = "/api/v1/search_context";
/// Far more than are admitted.
const FLOOD: usize = 40;
const MODEL: &str = "slow";

/// A process with that capacity, whose searches block while its embedder does, and a token in each of two workspaces.
struct SmallDeployment {
    up: SingleProcess,
    embedder: EmbedderServer,
    first: ApiToken,
    second: ApiToken,
}

impl SmallDeployment {
    async fn start(capacity: &str) -> Self {
        let embedder = EmbedderServer::start();
        let environment = embedder.environment(MODEL);
        let environment = environment.iter().map(|(name, value)| (*name, value.as_str()));
        // A search may wait almost as long as the request timeout.
        let own = [("CAIRN_CAPACITY", capacity), ("CAIRN_EMBEDDER_QUERY_TIMEOUT_MS", "25000")];
        let up = SingleProcess::start_with(&environment.chain(own).collect::<Vec<_>>()).await;
        let first = up.token();
        wait_until_active(&first, MODEL).await;
        let second = other_workspace(&up).await;
        Self { up, embedder, first, second }
    }

    /// A search of the first workspace that is admitted, and holds its permit until the embedder answers.
    async fn occupy(&self) -> JoinSet<Reply> {
        self.embedder.set_stalled(true);
        let mut held = JoinSet::new();
        held.spawn(self.first.post(SEARCH).json(json!({"query": "held by nobody"})).into_future());
        eventually("the search has its place", async || {
            (!self.has("capacity_units_used 0").await).then_some(())
        })
        .await;
        held
    }

    async fn metrics(&self) -> String {
        let admin = Http::new(&self.up.admin_url().unwrap());
        admin.request(reqwest::Method::GET, "/metrics").await.expect(200).text()
    }

    /// Whether the metrics contain that line.
    async fn has(&self, line: &str) -> bool {
        self.metrics().await.lines().any(|one| one.strip_prefix("cairn_") == Some(line))
    }

    /// Waits until no request is in flight or queued.
    async fn wait_until_idle(&self) {
        eventually("every place is given back", async || {
            let is_at_rest = self.has("capacity_units_used 0").await && self.has("requests_waiting 0").await;
            is_at_rest.then_some(())
        })
        .await;
    }
}

async fn other_workspace(up: &SingleProcess) -> ApiToken {
    let anonymous = Anonymous { http: Http::new(up.base_url()) };
    let body = json!({"email": up.owner().email, "password": up.owner().password});
    let opened = anonymous.post("/api/session").json(body).await.expect(200);
    let session = Session { cookie: session_cookie(&opened), http: anonymous.http };
    let created = session.post("/api/workspaces").json(json!({"name": "Another"})).await.expect(201).json();
    let permissions = json!({"name": "all", "permissions": ["read", "write", "delete"]});
    make_token(&session, &id(&created), permissions).await
}

async fn file_of(token: &ApiToken) -> String {
    let body = json!({"name": "a.md", "content": "x\n", "fileType": "markdown"});
    let made = token.post("/api/v1/files").json(body).await.expect(201).json();
    format!("/api/v1/files/{}", id(&made))
}

/// The body of a 503, which must carry `Retry-After`.
#[track_caller]
fn refused(reply: Reply) -> Value {
    let seconds = reply.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
    assert!(seconds.is_some_and(|seconds| seconds > 0), "{:?}", reply.headers);
    reply.expect_error(503, "UNAVAILABLE")
}

#[test]
fn a_flood_of_one_workspace_keeps_no_other_one_out() {
    run_alone(async {
        let small = SmallDeployment::start("4").await;
        let file = file_of(&small.second).await;
        let mut asked = small.occupy().await;
        for number in 0..FLOOD {
            let body = json!({"query": format!("number {number}")});
            asked.spawn(small.first.post(SEARCH).json(body).into_future());
        }
        let mut replies = Vec::new();
        // All but one are rejected, and cheap requests succeed meanwhile.
        while replies.len() < FLOOD {
            small.second.get(&file).await.expect(200);
            let probe = Http::new(small.up.base_url());
            probe.request(reqwest::Method::GET, "/healthz").await.expect(200);
            let admin = Http::new(&small.up.admin_url().unwrap());
            admin.request(reqwest::Method::GET, "/readyz").await.expect(200);
            while let Some(reply) = asked.try_join_next() {
                replies.push(reply.unwrap());
            }
        }
        for reply in replies {
            refused(reply);
        }
        assert!(small.metrics().await.contains("cairn_requests_refused_total{bound="), "they are counted");
        small.embedder.set_stalled(false);
        asked.join_next().await.unwrap().unwrap().expect(200);
        small.wait_until_idle().await;
        small.first.post(SEARCH).json(json!({"query": "once more"})).await.expect(200);
    });
}

#[test]
fn who_finds_no_place_is_told_so_everywhere_and_who_leaves_makes_room() {
    run_alone(async {
        let small = SmallDeployment::start("1").await;
        let file = file_of(&small.second).await;
        let held = small.occupy().await;
        refused(small.second.get(&file).await);
        refused(small.second.post("/api/v1/files").json(json!({"name": "b.md"})).await);
        let call = |id: u64| message(id, "tools/call", &json!({"name": "list_files", "arguments": {}}));
        let single = mcp::post(&small.second).json(call(7)).await.expect(503);
        assert!(single.header("retry-after").is_some());
        let error = single.json();
        assert_eq!((&error["id"], &error["error"]["code"]), (&json!(7), &json!(503)), "{error}");
        assert_eq!(error["error"]["data"]["retryAfterSeconds"], 1, "{error}");
        let batch = mcp::post(&small.second).json(json!([call(1), call(2)])).await.expect(503).json();
        assert_eq!((&batch[0]["error"]["code"], &batch[1]["id"]), (&json!(503), &json!(2)), "{batch}");
        // An anonymous request is rejected just the same.
        refused(Anonymous { http: Http::new(small.up.base_url()) }.get("/api/docs/openapi.json").await);
        drop(held);
        eventually("the place of a caller that left is free", async || {
            (small.second.get(&file).await.status == 200).then_some(())
        })
        .await;
        small.embedder.set_stalled(false);
        small.wait_until_idle().await;
    });
}

#[test]
fn who_waits_for_changes_holds_no_place() {
    run_alone(async {
        let small = SmallDeployment::start("1").await;
        let head = small.second.get("/api/v1/changes").await.expect(200).json();
        let after = format!("/api/v1/changes?after={}", text(&head, "next"));
        let mut waits = JoinSet::new();
        waits.spawn(small.second.get(&format!("{after}&wait=25")).into_future());
        let mut events = small.second.get(&after).header("accept", "text/event-stream").events().await;
        events.next("ready").await.unwrap();
        eventually("both wait", async || small.has("change_followers 2").await.then_some(())).await;
        small.wait_until_idle().await;
        let file = file_of(&small.second).await;
        let told = waits.join_next().await.unwrap().unwrap().expect(200).json();
        assert!(file.ends_with(&text(&told["changes"][0], "id")), "{told}");
        assert!(events.next("change").await.is_some());
        drop(events);
        small.wait_until_idle().await;
    });
}
