//! A rolling replacement of every process of a mesh under load: no request fails, and no write is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Method;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::support::callers::ApiToken;
use crate::support::http::{Http, id, items};
use crate::support::mcp;
use crate::support::prelude::*;
use crate::support::replicas::ReplicatedMesh;
use crate::support::runner::{announce, announce_skip, run_alone};

/// Requests per second: reads, writes, searches and agent calls in turn. Set it higher for a longer run.
const RATE: &str = "CAIRN_TEST_ROLL_RATE";
const DEFAULT_RATE: u32 = 20;
/// The number of rounds; seven rounds at 200 requests per second are about 10 000 requests.
const ROUNDS: &str = "CAIRN_TEST_ROLL_ROUNDS";
const DEFAULT_ROUNDS: u32 = 1;
/// The interval between readiness probes of a gateway: well within its shutdown delay.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);
const SEARCH: &str = "/api/v1/search_context";

#[test]
fn a_mesh_is_replaced_under_load_and_no_request_fails() {
    run_alone(async {
        match ReplicatedMesh::start().await {
            Ok(mut mesh) => roll(&mut mesh).await,
            Err(why) => announce_skip(&why),
        }
    });
}

async fn roll(mesh: &mut ReplicatedMesh) {
    let balancer = Balancer::over(mesh);
    let shared = SharedFile::prepare(&balancer).await;
    let stop = Arc::new(AtomicBool::new(false));
    let load = tokio::spawn(load(Arc::clone(&balancer), shared, Arc::clone(&stop)));
    sleep(Duration::from_secs(2)).await;
    let began = Instant::now();
    let (rounds, slots) = (number_from(ROUNDS, DEFAULT_ROUNDS), mesh.len());
    for slot in (0..rounds).flat_map(|_| 0..slots) {
        announce(&format!("{:>5.1} s: another {}", began.elapsed().as_secs_f32(), mesh.service(slot)));
        mesh.replace(slot).await;
    }
    let rolled = began.elapsed();
    sleep(Duration::from_secs(2)).await;
    stop.store(true, Ordering::Release);
    let outcomes = load.await.unwrap();

    let failures: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.result.as_ref().err()).collect();
    if !failures.is_empty() {
        mesh.show_logs();
    }
    assert!(failures.is_empty(), "{} of {} requests failed: {failures:#?}", failures.len(), outcomes.len());
    let written: Vec<_> =
        outcomes.iter().filter_map(|outcome| outcome.result.as_ref().ok()?.clone()).collect();
    for write in &written {
        let file = balancer.token().get(&format!("/api/v1/files/{}", write.file)).await.expect(200).json();
        assert_eq!(file["content"], json!(write.content), "what was written is there");
    }
    let last = written.last().unwrap();
    let request = balancer.token().post(SEARCH).after(&last.change).header("x-cairn-wait-ms", "10000");
    let query = json!({"query": last.content, "strategy": "keyword"});
    let answer = request.json(query).await.expect(200).json();
    assert!(items(&answer["results"]).iter().any(|found| found["fileId"] == *last.file), "{answer}");
    announce(&format!(
        "{slots} processes were replaced, {rounds} times each, in {:.1} s; of {} requests none failed; {}",
        rolled.as_secs_f32(),
        outcomes.len(),
        latency_summary(&outcomes)
    ));
}

/// The number in this variable.
fn number_from(variable: &str, usual: u32) -> u32 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A summary of the latencies.
fn latency_summary(outcomes: &[Outcome]) -> String {
    let mut took: Vec<_> = outcomes.iter().map(|outcome| outcome.took).collect();
    took.sort_unstable();
    let at = |share: usize| took[(took.len() - 1) * share / 100];
    format!("p50 {:?}, p99 {:?}, longest {:?}", at(50), at(99), at(100))
}

/// Round-robins requests over the ready gateways.
#[derive(Debug)]
struct Balancer {
    gateways: Vec<Gateway>,
    next: AtomicUsize,
    secret: String,
}

#[derive(Debug)]
struct Gateway {
    http: Http,
    admin: Http,
    is_ready: AtomicBool,
}

impl Balancer {
    fn over(mesh: &ReplicatedMesh) -> Arc<Self> {
        let gateway = |(address, admin): (String, String)| Gateway {
            http: Http::new(&address),
            admin: Http::new(&admin),
            is_ready: AtomicBool::new(true),
        };
        let gateways = mesh.gateways().into_iter().map(gateway).collect();
        let secret = mesh.owner().token.clone();
        let balancer = Arc::new(Self { gateways, next: AtomicUsize::new(0), secret });
        for slot in 0..balancer.gateways.len() {
            let following = Arc::downgrade(&balancer);
            tokio::spawn(async move {
                while let Some(balancer) = following.upgrade() {
                    let gateway = &balancer.gateways[slot];
                    let answer = gateway.admin.request(Method::GET, "/readyz").attempt().await;
                    let is_ready = answer.is_ok_and(|reply| reply.status == 200);
                    gateway.is_ready.store(is_ready, Ordering::Release);
                    drop(balancer);
                    sleep(PROBE_INTERVAL).await;
                }
            });
        }
        balancer
    }

    /// A caller of the next ready gateway.
    fn token(&self) -> ApiToken {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let in_turn = self.gateways.iter().cycle().skip(turn % self.gateways.len()).take(self.gateways.len());
        let ready = in_turn.clone().find(|gateway| gateway.is_ready.load(Ordering::Acquire));
        let http = ready.or_else(|| in_turn.clone().next()).unwrap().http.clone();
        ApiToken { http, secret: self.secret.clone() }
    }
}

/// A file that exists from the start.
#[derive(Debug, Clone)]
struct SharedFile {
    file: String,
}

impl SharedFile {
    /// Creates the file, and waits until each service answers and the file is searchable.
    async fn prepare(balancer: &Balancer) -> Self {
        let body =
            json!({"name": "tapir.md", "content": "The tapir was here before.\n", "fileType": "markdown"});
        let made = eventually("a file is written", async || {
            let reply = balancer.token().post("/api/v1/files").json(body.clone()).await;
            (reply.status == 201).then(|| id(&reply.json()))
        })
        .await;
        // Both retrieval processes consume the whole feed, each at its own pace.
        let mut found_in_a_row = 0;
        eventually("every search finds it", async || {
            let answer = balancer.token().post(SEARCH).json(json!({"query": "tapir"})).await;
            let is_found = answer.status == 200
                && items(&answer.json()["results"]).iter().any(|found| found["fileId"] == *made);
            found_in_a_row = if is_found { found_in_a_row + 1 } else { 0 };
            (found_in_a_row >= 8).then_some(())
        })
        .await;
        Self { file: made }
    }
}

/// The outcome of a request.
#[derive(Debug)]
struct Outcome {
    took: Duration,
    /// Its write, if any; or why it failed.
    result: Result<Option<Written>, String>,
}

#[derive(Debug, Clone)]
struct Written {
    file: String,
    content: String,
    change: String,
}

/// Sends requests at a fixed rate, without waiting for earlier responses.
async fn load(balancer: Arc<Balancer>, shared: SharedFile, stop: Arc<AtomicBool>) -> Vec<Outcome> {
    let rate = number_from(RATE, DEFAULT_RATE);
    let mut turns = interval(Duration::from_secs(1) / rate);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut in_flight, mut number) = (JoinSet::new(), 0_usize);
    while !stop.load(Ordering::Acquire) {
        turns.tick().await;
        let (token, shared) = (balancer.token(), shared.clone());
        in_flight.spawn(async move {
            let began = Instant::now();
            let result = send(number, &token, &shared).await;
            Outcome {
                took: began.elapsed(),
                result: result.map_err(|why| format!("request {number}: {why}")),
            }
        });
        number += 1;
    }
    let mut outcomes = Vec::new();
    while let Some(outcome) = in_flight.join_next().await {
        outcomes.push(outcome.unwrap());
    }
    outcomes
}

async fn send(number: usize, token: &ApiToken, shared: &SharedFile) -> Result<Option<Written>, String> {
    let file = format!("/api/v1/files/{}", shared.file);
    let request = match number % 4 {
        0 => token.get(&file),
        1 => return write(number, token).await.map(Some),
        2 => token.post(SEARCH).json(json!({"query": "tapir"})),
        _ => {
            let call = json!({"name": "get_file", "arguments": {"id": shared.file}});
            let message = mcp::message(1, "tools/call", &call);
            mcp::post(token).header("mcp-protocol-version", mcp::LEGACY[0]).json(message)
        }
    };
    let reply = request.attempt().await?;
    if reply.status != 200 || !reply.text().contains("tapir") {
        return Err(format!("{}: {}", reply.status, reply.text()));
    }
    Ok(None)
}

async fn write(number: usize, token: &ApiToken) -> Result<Written, String> {
    let content = format!("The axolotl wrote{number} this.\n");
    let body = json!({"name": format!("{number}.md"), "content": content, "fileType": "markdown"});
    let reply = token.post("/api/v1/files").json(body).attempt().await?;
    if reply.status != 201 {
        return Err(format!("{}: {}", reply.status, reply.text()));
    }
    let (file, change) = (id(&reply.json()), reply.change());
    Ok(Written { file, content, change })
}
