//! Durability under `kill -9`, a full disk, a deleted index (issue "What it must reach"; design, "Who owns what").

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::future::join_all;

use crate::doctor::assert_sound;
use crate::support::callers::ApiToken;
use crate::support::citations;
use crate::support::http::{each, id, items, text};
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;
use crate::support::wait::eventually;
use crate::support::workspace::read_file;

const ROUNDS: usize = 50;
/// Enough writers that group commits happen (docs/adr/0090).
const WRITERS: usize = 8;
/// In POSIX blocks of 512 bytes: more than an empty deployment needs for any of its files.
const FULL_BLOCKS: u32 = 3_000;

/// What the writers know about one file.
#[derive(Debug, Clone)]
struct Written {
    acknowledged: String,
    /// Sent and not acknowledged: it may or may not have been applied, but never partially.
    attempted: Option<String>,
}

/// Everything written so far, and the position of the last acknowledged write.
#[derive(Debug, Default)]
struct Ledger {
    files: BTreeMap<String, Written>,
    acknowledgements: usize,
    change: String,
}

#[test]
fn every_acknowledged_write_survives_kill_nine() {
    run_alone(async {
        let data = Scratch::new();
        let mut everything = BTreeMap::new();
        for round in 0..ROUNDS {
            let mut up = SingleProcess::start_on(data.path(), &[]).await;
            let ledger = Arc::new(Mutex::new(Ledger::default()));
            let token = up.token();
            let writers = (0..WRITERS)
                .map(|writer| write_until_refused(token.clone(), round, writer, Arc::clone(&ledger)));
            let enough = 1 + round * 7 % 23;
            let killing = async {
                let counted = async || (ledger.lock().unwrap().acknowledgements >= enough).then_some(());
                eventually("enough writes are acknowledged", counted).await;
                up.kill();
            };
            tokio::join!(join_all(writers), killing);
            drop(up);
            assert_sound(data.path()).await;

            let again = SingleProcess::start_on(data.path(), &[]).await;
            let ledger = ledger.lock().unwrap().take();
            assert!(ledger.acknowledgements >= enough, "round {round}");
            check(&again.token(), &ledger.files, &ledger.change).await;
            everything.extend(ledger.files);
        }
        let again = SingleProcess::start_on(data.path(), &[]).await;
        let marker = again.token().post("/api/v1/folders").json(json!({"name": "the end"})).await.expect(201);
        check(&again.token(), &everything, &marker.change()).await;
        assert_sound(data.path()).await;
    });
}

#[test]
fn a_deleted_index_is_rebuilt() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let mut files = BTreeMap::new();
        let mut change = String::new();
        for number in 0..30 {
            let content = content_of(&format!("zqi{number}x"));
            let made = create(&up.token(), &content).await.unwrap();
            change = made.1;
            files.insert(made.0, Written { acknowledged: content, attempted: None });
        }
        check(&up.token(), &files, &change).await;
        assert!(up.stop().await.success());

        let index = data.path().join("index");
        assert!(std::fs::read_dir(&index).unwrap().next().is_some(), "there is an index to delete");
        std::fs::remove_dir_all(&index).unwrap();
        let again = SingleProcess::start_on(data.path(), &[]).await;
        check(&again.token(), &files, &change).await;
    });
}

#[test]
fn a_damaged_index_does_not_stop_the_rest() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let content = content_of("zqdamagedx");
        let (file, change) = create(&up.token(), &content).await.unwrap();
        let files = BTreeMap::from([(file, Written { acknowledged: content, attempted: None })]);
        check(&up.token(), &files, &change).await;
        up.kill();
        let mut damaged = 0;
        let mut folders = vec![data.path().join("index")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    std::fs::write(path, b"not an index").unwrap();
                    damaged += 1;
                }
            }
        }
        assert!(damaged > 0);
        let again = SingleProcess::start_on(data.path(), &[]).await;
        check(&again.token(), &files, &change).await;
    });
}

#[test]
fn a_full_disk_loses_nothing() {
    run_alone(async {
        let data = Scratch::new();
        drop(SingleProcess::start_on(data.path(), &[]).await);
        let mut full = SingleProcess::start_on_full_disk(data.path(), FULL_BLOCKS).await;
        let token = full.token();
        let mut files = BTreeMap::new();
        let mut change = String::new();
        let mut refusal = None;
        for number in 0..60 {
            let content = format!("{}{}", content_of(&format!("zqf{number}x")), incompressible(number));
            let body = json!({"name": "a.txt", "content": content, "fileType": "text"});
            let reply = token.post("/api/v1/files").json(body).await;
            if reply.status != 201 {
                refusal = Some(reply);
                break;
            }
            change = reply.change();
            files.insert(id(&reply.json()), Written { acknowledged: content, attempted: None });
        }
        let refusal = refusal.expect("the disk was never full: raise the number of writes");
        assert!(matches!(refusal.status, 500 | 503 | 507), "{}", refusal.text());
        assert!(!text(&refusal.json(), "error").is_empty());
        assert!(!files.is_empty());
        for (file, written) in &files {
            assert!(read_file(&token, file).await["content"] == written.acknowledged, "reads go on");
        }
        full.process_mut().ask_to_stop();
        full.process_mut().exit().await;
        let again = SingleProcess::start_on(data.path(), &[]).await;
        check(&again.token(), &files, &change).await;
        create(&again.token(), "there is room again").await.unwrap();
    });
}

impl Ledger {
    fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

/// Creates files and rewrites every third one, until the process is gone.
async fn write_until_refused(token: ApiToken, round: usize, writer: usize, ledger: Arc<Mutex<Ledger>>) {
    for number in 0.. {
        let content = content_of(&format!("zq{round}w{writer}n{number}x"));
        let Ok((file, change)) = create(&token, &content).await else {
            return;
        };
        ledger.lock().unwrap().acknowledge(&file, content, change);
        if number % 3 != 0 {
            continue;
        }
        let rewritten = content_of(&format!("zq{round}w{writer}n{number}y"));
        ledger.lock().unwrap().files.get_mut(&file).unwrap().attempted = Some(rewritten.clone());
        let body = json!({"content": rewritten});
        let Ok(reply) = token.patch(&format!("/api/v1/files/{file}")).json(body).attempt().await else {
            return;
        };
        let change = reply.expect(200).change();
        ledger.lock().unwrap().acknowledge(&file, rewritten, change);
    }
}

impl Ledger {
    fn acknowledge(&mut self, file: &str, content: String, change: String) {
        self.files.insert(file.to_owned(), Written { acknowledged: content, attempted: None });
        self.acknowledgements += 1;
        self.change = change;
    }
}

/// A new file's id and its position in the feed, or why it failed.
async fn create(token: &ApiToken, content: &str) -> Result<(String, String), String> {
    let body = json!({"name": "a.txt", "content": content, "fileType": "text"});
    let reply = token.post("/api/v1/files").json(body).attempt().await?.expect(201);
    Ok((id(&reply.json()), reply.change()))
}

/// Every file exists, is intact, and is found by its unique word.
async fn check(token: &ApiToken, files: &BTreeMap<String, Written>, change: &str) {
    for (file, written) in files {
        let stored = text(&read_file(token, file).await, "content");
        let known = [Some(&written.acknowledged), written.attempted.as_ref()];
        assert!(known.contains(&Some(&stored)), "{file} holds {stored:?}, not {written:?}");
        let word = stored.split(' ').next().unwrap();
        let answer = search_caught_up(token, word, change).await;
        let found = items(&answer["results"]).iter().any(|result| text(result, "fileId") == *file);
        assert!(found, "{file} is not found by {word}: {answer}");
        citations::check_all(token, &answer).await;
    }
}

/// A search that reflects the write; rebuilding an index may take longer than one search waits.
async fn search_caught_up(token: &ApiToken, word: &str, change: &str) -> Value {
    eventually("the index has caught up", async || {
        let request = token.post("/api/v1/search_context").after(change).header("x-cairn-wait-ms", "10000");
        let answer = request.json(json!({"query": word, "strategy": "keyword"})).await.expect(200).json();
        (!each(&answer["coverage"], "code").contains(&"index_behind")).then_some(answer)
    })
    .await
}

fn content_of(word: &str) -> String {
    format!("{word} stands at the start\nand here is the end of {word}\n")
}

/// Incompressible text, so that it occupies its full length on disk.
fn incompressible(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        format!("{state:016x}")
    };
    (0..12_000).map(|_| next()).collect::<Vec<_>>().join("\n")
}
