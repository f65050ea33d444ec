//! The invariants that must hold after the faults.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::access::Access;
use crate::client::{Grounds, SCRIPT, SEARCH, is_expected_fault};
use crate::cluster::Cluster;
use crate::ledger::{Entry, FileState, Ledger, Violations, each};
use crate::support::callers::{ApiToken, Caller};
use crate::support::http::{id, items, text};
use crate::support::process::Process;
use crate::support::wait::eventually;

/// A request that was in flight when the clients stopped may complete until then: the longest deadline of a service.
const LAST_DEADLINE: Duration = Duration::from_secs(60);
const PAGE: usize = 1_000;
/// The page limit for documents of a source is lower.
const DOCUMENTS_OF_SOURCE: usize = 200;
const SOURCE_PAUSE: Duration = Duration::from_millis(500);
/// Longer than the lease of an interrupted run plus the next run.
const SOURCE_LIMIT: Duration = Duration::from_secs(180);
/// Longer than all overlapping faults, and the requests that they delay.
const SCRIPT_LIMIT: Duration = Duration::from_secs(180);
/// Longer than rebuilding a lost index.
const INDEX_LIMIT: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(100);
/// How many files are searched for, approximately.
const SEARCHED_FILES: usize = 100;

/// Waits until everything answers again without intervention; returns how long that took.
pub(crate) async fn recovery(access: &Access, grounds: &Rc<Grounds>) -> Duration {
    let (token, began) = (access.token(), Instant::now());
    eventually("everything answers again", async || {
        let file = json!({"name": "recovered.md", "content": "Recovered.\n", "fileType": "markdown"});
        let requests = [
            token.post("/api/v1/files").json(file),
            token.post("/api/v1/search_context").json(json!({"query": "recovered"})),
            token.post("/api/v1/vfs/exec").json(json!({"script": "ls /files | wc -l"})),
            token.get("/api/v1/workspace"),
            token.get("/api/v1/ingest"),
            token.get("/readyz"),
        ];
        for request in requests {
            let reply = request.attempt().await.ok()?;
            if !matches!(reply.status, 200 | 201) {
                return None;
            }
        }
        grounds.signs_in().await.ok()
    })
    .await;
    began.elapsed()
}

/// Waits until no sync and no import is running: interrupted ones must come to an end by themselves.
pub(crate) async fn ended_runs(grounds: &Grounds) {
    let paths = [
        format!("/api/workspaces/{}/sync", grounds.workspace),
        format!("/api/import?workspaceId={}", grounds.workspace),
    ];
    for path in paths {
        eventually(&format!("all runs of {path} are over"), async || {
            let reply = grounds.person.get(&path).attempt().await.ok().filter(|reply| reply.status == 200)?;
            let runs = reply.json();
            let is_over = each(&runs, "status").all(|status| !matches!(status, "queued" | "running"));
            is_over.then_some(())
        })
        .await;
    }
}

/// Waits until a connected source has every file of its folder exactly once; returns their number.
pub(crate) async fn source(grounds: &Grounds) -> usize {
    let shelved = std::fs::read_dir(&grounds.shelf).unwrap().flatten();
    let mut expected: Vec<String> = shelved.map(|file| file.file_name().into_string().unwrap()).collect();
    expected.sort_unstable();
    let end = Instant::now() + SOURCE_LIMIT;
    loop {
        let sync = grounds.person.post(&format!("{}/sync", grounds.source)).json(json!({}));
        let asked = sync.attempt().await.map(|reply| reply.status);
        tokio::time::sleep(SOURCE_PAUSE).await;
        let path = format!("{}/documents?limit={DOCUMENTS_OF_SOURCE}", grounds.source);
        let listed = grounds.person.get(&path).attempt().await;
        let documents = listed.ok().filter(|reply| reply.status == 200).map(|reply| reply.json());
        let documents = documents.unwrap_or_default();
        let mut found: Vec<&str> = each(&documents, "externalId").collect();
        found.sort_unstable();
        if found == expected {
            return expected.len();
        }
        assert!(Instant::now() < end, "a source (last asked: {asked:?}) has {found:?} of {expected:?}");
    }
}

/// Waits until unanswered requests of the clients, which have stopped, can no longer take effect.
pub(crate) async fn silence(ledgers: &[Ledger], silent_since: Instant) {
    if ledgers.iter().any(|ledger| ledger.failed > 0) {
        tokio::time::sleep_until(silent_since + LAST_DEADLINE).await;
    }
}

/// Compares the clients' ledgers with the actual state; returns the number of comparisons.
pub(crate) async fn ledgers(
    access: &Access,
    grounds: &Grounds,
    ledgers: &[Ledger],
    violations: &Violations,
) -> String {
    let token = access.token();
    let files = listed(&token, "/api/v1/files").await;
    let mut lost_or_doubled = 0;
    for (name, entry) in ledgers.iter().flat_map(|ledger| &ledger.files) {
        let named: Vec<_> = files.iter().filter(|file| file["name"] == **name).collect();
        let times = named.len();
        let found = file_state(&token, entry, named.first().copied()).await;
        if times > 1 || !entry.allows(&found) {
            lost_or_doubled += 1;
            let (was, may) = (&entry.acknowledged, &entry.possible);
            violations
                .note(format!("{name} is there {times} times, {found:?}; acknowledged: {was:?}, {may:?}"));
        }
    }
    once(&titles(&files, "name"), "import", ledgers.iter().flat_map(|ledger| &ledger.imported), violations);
    synced(&token, &files, ledgers, violations).await;
    let records = records(&token, grounds).await;
    once(&titles(&records, "title"), "record", ledgers.iter().flat_map(|ledger| &ledger.records), violations);
    let documents = listed(&token, "/api/v1/ingest").await;
    once(
        &titles(&documents, "idempotencyKey"),
        "document",
        ledgers.iter().flat_map(|ledger| &ledger.documents),
        violations,
    );
    counts(grounds, &token, files.len(), violations).await;
    let sum = |of: fn(&Ledger) -> usize| ledgers.iter().map(of).sum::<usize>();
    format!(
        "{} requests answered, {} failed as documented, {} files, {} of syncs, {} of imports, {} records, {} documents, \
         {lost_or_doubled} wrong",
        sum(|ledger| ledger.answered),
        sum(|ledger| ledger.failed),
        sum(|ledger| ledger.files.len()),
        sum(|ledger| ledger.synced.len()),
        sum(|ledger| ledger.imported.len()),
        sum(|ledger| ledger.records.len()),
        sum(|ledger| ledger.documents.len()),
    )
}

/// A synced file exists once, with the content of the last acknowledged run or of a later unacknowledged one.
async fn synced(token: &ApiToken, files: &[Value], ledgers: &[Ledger], violations: &Violations) {
    let mut named: HashMap<&str, Vec<String>> = HashMap::new();
    for file in files {
        if let Some(name) = file["name"].as_str() {
            named.entry(name).or_default().push(id(file));
        }
    }
    for (name, synced) in ledgers.iter().flat_map(|ledger| &ledger.synced) {
        let found = named.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
        let content = match found.first() {
            Some(file) => {
                let file = token.get(&format!("/api/v1/files/{file}")).await.expect(200).json();
                Some(text(&file, "content"))
            }
            None => None,
        };
        if found.len() > 1 || !synced.allows(content.as_deref()) {
            let times = found.len();
            violations.note(format!("{name} of a sync is there {times} times with {content:?}: {synced:?}"));
        }
    }
}

/// The actual state of a file; one whose creation was not acknowledged is identified by its name.
async fn file_state(token: &ApiToken, entry: &Entry, named: Option<&Value>) -> FileState {
    let Some(file) = entry.id.clone().or_else(|| named.map(id)) else { return FileState::Absent };
    let found = token.get(&format!("/api/v1/files/{file}")).await;
    match found.status {
        404 => FileState::Trashed,
        _ => FileState::Live { content: text(&found.expect(200).json(), "content") },
    }
}

/// Each exists exactly once if it was acknowledged, and at most once otherwise.
fn once<'a>(
    there: &[String],
    what: &str,
    known: impl Iterator<Item = (&'a String, &'a bool)>,
    violations: &Violations,
) {
    for (name, is_acknowledged) in known {
        let times = there.iter().filter(|found| *found == name).count();
        if times > 1 || (times == 0 && *is_acknowledged) {
            violations.note(format!("{what} {name} is there {times} times; acknowledged: {is_acknowledged}"));
        }
    }
}

/// The usage counters of the workspace match its contents, including trash.
async fn counts(grounds: &Grounds, token: &ApiToken, live: usize, violations: &Violations) {
    let trash = listed(&grounds.person, &format!("/api/workspaces/{}/trash", grounds.workspace)).await;
    let trashed = trash.iter().filter(|item| item["kind"] == "file").count();
    let used = token.get("/api/v1/workspace").await.expect(200).json()["files"]["used"].as_u64();
    if used != u64::try_from(live + trashed).ok() {
        violations.note(format!("{live} files and {trashed} in trash are there, and {used:?} are counted"));
    }
}

/// All items of a list, page by page.
async fn listed(caller: &impl Caller, path: &str) -> Vec<Value> {
    let (mut all, mut next) = (Vec::new(), format!("{path}?limit={PAGE}"));
    loop {
        let reply = caller.get(&next).await.expect(200);
        all.extend(items(&reply.json()).to_vec());
        let link = reply.header("link").filter(|link| link.contains("rel=\"next\""));
        let Some(address) = link.and_then(|link| link.split_once('<')?.1.split_once('>')) else { return all };
        next = address.0[address.0.find("/api").unwrap()..].to_owned();
    }
}

async fn records(token: &ApiToken, grounds: &Grounds) -> Vec<Value> {
    let (mut all, path) = (Vec::new(), format!("/api/v1/databases/{}/records", grounds.database));
    loop {
        let page = token.get(&format!("{path}?limit=100&offset={}", all.len())).await.expect(200).json();
        let found = items(&page["records"]);
        if found.is_empty() {
            return all;
        }
        all.extend(found.to_vec());
    }
}

fn titles(list: &[Value], field: &str) -> Vec<String> {
    list.iter().filter_map(|item| item[field].as_str()).map(str::to_owned).collect()
}

/// Scripts do not depend on the index or on Redis: one must be answered before the failed component is back.
pub(crate) async fn scripts(access: &Access, away: &str, violations: &Violations) {
    let (token, end) = (access.token(), Instant::now() + SCRIPT_LIMIT);
    loop {
        let asked = token.post(SCRIPT).json(json!({"script": "ls /files | wc -l"})).attempt().await;
        let said = match asked {
            Ok(reply) if reply.status == 200 => return,
            Ok(reply) => format!("{}: {}", reply.status, reply.text()),
            Err(why) => why,
        };
        if Instant::now() >= end {
            return violations.note(format!("no script is answered while {away} is away: {said}"));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// A search without its index fails with the documented error: it must not return an empty result.
pub(crate) async fn search_without_index(access: &Access, violations: &Violations) {
    let search = access.token().post(SEARCH).json(json!({"query": "recovered", "strategy": "keyword"}));
    // The gateway may be down too.
    let Ok(reply) = search.attempt().await else { return };
    if !is_expected_fault(&reply) {
        let (status, text) = (reply.status, reply.text());
        violations.note(format!("a search while Qdrant is away is answered {status}: {text}"));
    }
}

/// Every document that clients know to exist is found by its text: the index has caught up.
pub(crate) async fn index(access: &Access, ledgers: &[Ledger], violations: &Violations) {
    let (token, end) = (access.token(), Instant::now() + INDEX_LIMIT);
    let files = ledgers.iter().flat_map(|ledger| &ledger.files);
    let live: Vec<(&String, &Entry)> = files
        .filter(|(_, entry)| entry.is_settled() && matches!(entry.acknowledged, FileState::Live { .. }))
        .collect();
    for (name, entry) in live.iter().step_by(live.len() / SEARCHED_FILES + 1) {
        let query = json!({"query": entry.word, "strategy": "keyword", "limit": 5});
        loop {
            let reply = token.post(SEARCH).json(&query).await;
            let is_found = reply.status == 200
                && each(&reply.json()["results"], "fileId").any(|found| entry.id.as_deref() == Some(found));
            if is_found {
                break;
            }
            if Instant::now() >= end {
                return violations.note(format!("{name} is not found in the end: {}", reply.text()));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Stops everything; `cairn doctor` must find every database sound.
pub(crate) async fn databases(cluster: &Cluster, violations: &Violations) {
    for (service, url) in cluster.stop().await {
        let arguments = ["doctor", "--quiet", "--database", &url].map(str::to_owned);
        let mut doctor = Process::start("cairn doctor", &arguments, &[]);
        let status = doctor.exit().await;
        let said = doctor.output();
        if !status.success() {
            violations.note(format!("the tables of {service} are not sound: {said}"));
        }
    }
}
