//! A process added to a mesh gets calls, a removed one gets none, and no request fails meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::support::callers::ApiToken;
use crate::support::http::{Http, id};
use crate::support::pairs::Pairs;
use crate::support::prelude::*;
use crate::support::runner::{announce_skip, run_alone};

const SERVICE: &str = "content";
const METHOD: &str = "/cairn.content.v1.FileService/GetFile";
const READERS: usize = 2;
/// The pause between two requests of one reader: the distribution is under test, not the throughput.
const PAUSE: Duration = Duration::from_millis(50);
/// Enough calls to rule out chance.
const SHARE: u64 = 20;

#[test]
fn an_added_process_gets_calls_and_a_removed_one_is_not_missed() {
    run_alone(async {
        match Pairs::with_room_for(SERVICE).await {
            Ok((mut pairs, added)) => scale(&mut pairs, added).await,
            Err(why) => announce_skip(&why),
        }
    });
}

async fn scale(pairs: &mut Pairs, added: usize) {
    let first = pairs.other_than(added);
    let (address, _) = pairs.gateways().remove(0);
    let token = ApiToken { http: Http::new(&address), secret: pairs.owner().token.clone() };
    let file = written(&token).await;
    let readers = Readers::start(&token, &file);
    served(pairs, first, 0).await;

    pairs.add(added).await;
    served(pairs, added, 0).await;
    let shared = pairs.calls(first, METHOD).await;
    served(pairs, first, shared).await;

    pairs.remove(first).await;
    let alone = pairs.calls(added, METHOD).await;
    served(pairs, added, alone).await;
    let outcomes = readers.stop().await;
    let failures: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    if !failures.is_empty() {
        pairs.show_logs();
    }
    assert!(failures.is_empty(), "{} of {} requests failed: {failures:#?}", failures.len(), outcomes.len());

    let before = pairs.calls(added, METHOD).await;
    for _ in 0..SHARE {
        token.get(&file).await.expect(200);
    }
    assert_eq!(
        pairs.calls(added, METHOD).await - before,
        SHARE,
        "each is answered by the one that is left, once"
    );
}

/// A file that every request reads.
async fn written(token: &ApiToken) -> String {
    let body = json!({"name": "heron.md", "content": "The heron stands alone.\n", "fileType": "markdown"});
    let made = eventually("a file is written", async || {
        let reply = token.post("/api/v1/files").json(body.clone()).await;
        (reply.status == 201).then(|| id(&reply.json()))
    })
    .await;
    format!("/api/v1/files/{made}")
}

/// Waits until a process has answered its share of calls, on top of the count before.
async fn served(pairs: &Pairs, place: usize, before: u64) {
    eventually("a process gets its share of the calls", async || {
        (pairs.calls(place, METHOD).await >= before + SHARE).then_some(())
    })
    .await;
}

/// Readers that fetch the file in a loop.
struct Readers {
    under_way: JoinSet<Vec<Result<(), String>>>,
    stop: Arc<AtomicBool>,
}

impl Readers {
    fn start(token: &ApiToken, file: &str) -> Self {
        let (stop, mut under_way) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
        for _ in 0..READERS {
            let (token, file, stop) = (token.clone(), file.to_owned(), Arc::clone(&stop));
            under_way.spawn(async move {
                let mut outcomes = Vec::new();
                while !stop.load(Ordering::Acquire) {
                    outcomes.push(read(&token, &file).await);
                    sleep(PAUSE).await;
                }
                outcomes
            });
        }
        Self { under_way, stop }
    }

    async fn stop(mut self) -> Vec<Result<(), String>> {
        self.stop.store(true, Ordering::Release);
        let mut outcomes = Vec::new();
        while let Some(of_one) = self.under_way.join_next().await {
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
