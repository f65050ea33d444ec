//! A process added to a mesh gets calls, a removed one gets none, and no request fails meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::support::callers::ApiToken;
use crate::support::http::{Http, id};
use crate::support::prelude::*;
use crate::support::replicas::ReplicatedMesh;
use crate::support::runner::{announce_skip, run_alone};

const SERVICE: &str = "content";
const METHOD: &str = "/cairn.content.v1.FileService/GetFile";
const READERS: usize = 2;
/// The pause between two requests of one reader: the distribution is under test, not the throughput.
const PAUSE: Duration = Duration::from_millis(50);
/// Enough calls to rule out chance.
const MIN_CALLS: u64 = 20;

#[test]
fn an_added_process_gets_calls_and_a_removed_one_is_not_missed() {
    run_alone(async {
        match ReplicatedMesh::with_spare(SERVICE).await {
            Ok((mut mesh, added)) => scale(&mut mesh, added).await,
            Err(why) => announce_skip(&why),
        }
    });
}

async fn scale(mesh: &mut ReplicatedMesh, added: usize) {
    let first = mesh.other_replica(added);
    let (address, _) = mesh.gateways().remove(0);
    let token = ApiToken { http: Http::new(&address), secret: mesh.owner().token.clone() };
    let file = create_file(&token).await;
    let readers = Readers::start(&token, &file);
    wait_for_calls(mesh, first, 0).await;

    mesh.add(added).await;
    wait_for_calls(mesh, added, 0).await;
    let shared = mesh.calls(first, METHOD).await;
    wait_for_calls(mesh, first, shared).await;

    mesh.remove(first).await;
    let alone = mesh.calls(added, METHOD).await;
    wait_for_calls(mesh, added, alone).await;
    let outcomes = readers.stop().await;
    let failures: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    if !failures.is_empty() {
        mesh.show_logs();
    }
    assert!(failures.is_empty(), "{} of {} requests failed: {failures:#?}", failures.len(), outcomes.len());

    let before = mesh.calls(added, METHOD).await;
    for _ in 0..MIN_CALLS {
        token.get(&file).await.expect(200);
    }
    assert_eq!(
        mesh.calls(added, METHOD).await - before,
        MIN_CALLS,
        "each is answered by the one that is left, once"
    );
}

/// A file that every request reads.
async fn create_file(token: &ApiToken) -> String {
    let body = json!({"name": "heron.md", "content": "The heron stands alone.\n", "fileType": "markdown"});
    let made = eventually("a file is written", async || {
        let reply = token.post("/api/v1/files").json(body.clone()).await;
        (reply.status == 201).then(|| id(&reply.json()))
    })
    .await;
    format!("/api/v1/files/{made}")
}

/// Waits until a process has answered its share of calls, on top of the count before.
async fn wait_for_calls(mesh: &ReplicatedMesh, slot: usize, before: u64) {
    eventually("a process gets its share of the calls", async || {
        (mesh.calls(slot, METHOD).await >= before + MIN_CALLS).then_some(())
    })
    .await;
}

/// Readers that fetch the file in a loop.
struct Readers {
    tasks: JoinSet<Vec<Result<(), String>>>,
    stop: Arc<AtomicBool>,
}

impl Readers {
    fn start(token: &ApiToken, file: &str) -> Self {
        let (stop, mut tasks) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
        for _ in 0..READERS {
            let (token, file, stop) = (token.clone(), file.to_owned(), Arc::clone(&stop));
            tasks.spawn(async move {
                let mut outcomes = Vec::new();
                while !stop.load(Ordering::Acquire) {
                    outcomes.push(read(&token, &file).await);
                    sleep(PAUSE).await;
                }
                outcomes
            });
        }
        Self { tasks, stop }
    }

    async fn stop(mut self) -> Vec<Result<(), String>> {
        self.stop.store(true, Ordering::Release);
        let mut outcomes = Vec::new();
        while let Some(of_one) = self.tasks.join_next().await {
            outcomes.extend(of_one.unwrap());
        }
        outcomes
    }
}

async fn read(token: &ApiToken, file: &str) -> Result<(), String> {
    let reply = token.get(file).attempt().await?;
    match reply.status == 200 && reply.text().contains("heron") {
        true => Ok(()),
        false => Err(format!("{}: {}", reply.status, reply.text())),
    }
}
