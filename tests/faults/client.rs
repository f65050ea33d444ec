//! A client that keeps working whatever happens: it writes, reads its own writes, searches, and runs scripts, and
//! checks that it never sees what it must not see.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::access::{Absences, Access};
use crate::ledger::{Entry, FileState, Ledger, Violations, each};
use crate::numbers::Numbers;
use crate::runs;
use crate::support::callers::{ApiToken, Caller as _, Session};
use crate::support::http::{Http, Reply, Request, id, text};
use crate::support::wait::eventually;
use crate::up::Owner;

/// Longer than the gateway's longest deadline: after that, no response will come.
const TIMEOUT: Duration = Duration::from_secs(75);
pub(crate) const SEARCH: &str = "/api/v1/search_context";
pub(crate) const SCRIPT: &str = "/api/v1/vfs/exec";
/// How long a search waits for the index (the contract's maximum).
const INDEX_WAIT_MILLIS: &str = "10000";

/// Shared by all clients.
#[derive(Debug)]
pub(crate) struct Grounds {
    pub(crate) database: String,
    pub(crate) title: String,
    /// A folder, and a token that is restricted to it.
    folder: String,
    scoped: ApiToken,
    pub(crate) workspace: String,
    /// A session of the owner.
    pub(crate) person: Session,
    /// A connected source of a folder, and that folder.
    pub(crate) source: String,
    pub(crate) shelf: PathBuf,
    owner: Owner,
    http: Http,
    pub(crate) is_over: Cell<bool>,
}

impl Grounds {
    pub(crate) async fn prepare(access: &Access) -> Self {
        let (token, http) = (access.token(), Http::new(&access.base_url));
        eventually("files are listed", async || {
            (token.get("/api/v1/files").await.status == 200).then_some(())
        })
        .await;
        let database =
            token.post("/api/v1/databases").json(json!({"name": "Orders"})).await.expect(201).json();
        let title = text(&database["properties"][0], "id");
        let folder =
            id(&token.post("/api/v1/folders").json(json!({"name": "open"})).await.expect(201).json());
        let (owner, shelf) = (access.owner.clone(), access.shelf.clone());
        let cookie = sign_in(&http, &owner).await.unwrap();
        let person = Session { http: http.clone(), cookie };
        let workspace = text(&token.get("/api/v1/workspace").await.expect(200).json(), "id");
        let body = json!({
            "name": "scoped", "permissions": ["read", "write", "delete"],
            "scope": {"type": "folders", "folderIds": [folder]},
        });
        let made = person.post(&format!("/api/workspaces/{workspace}/tokens")).json(body).await.expect(201);
        let scoped = ApiToken { http: http.clone(), secret: text(&made.json(), "token") };
        let draft = json!({"name": "shelf", "provider": "folder", "settings": {"path": shelf}});
        let connected = person.post(&format!("/api/workspaces/{workspace}/sources")).json(draft).await;
        let source = format!("/api/workspaces/{workspace}/sources/{}", id(&connected.expect(201).json()));
        let (database, is_over) = (id(&database), Cell::new(false));
        Self { database, title, folder, scoped, workspace, person, source, shelf, owner, http, is_over }
    }

    /// Lets clients work until [`stop`](Self::stop).
    pub(crate) fn begin(&self) {
        self.is_over.set(false);
    }

    /// Makes clients stop.
    pub(crate) fn stop(&self) {
        self.is_over.set(true);
    }

    /// Whether a user can sign in.
    pub(crate) async fn signs_in(&self) -> Result<(), Reply> {
        sign_in(&self.http, &self.owner).await.map(|_| ())
    }
}

async fn sign_in(http: &Http, owner: &Owner) -> Result<String, Reply> {
    let body = json!({"email": owner.email, "password": owner.password});
    let reply = http.request(reqwest::Method::POST, "/api/session").json(body).await;
    if reply.status != 200 {
        return Err(reply);
    }
    let cookie = reply.header("set-cookie").and_then(|cookie| cookie.split(';').next());
    Ok(cookie.unwrap().to_owned())
}

/// The outcome of a request.
pub(crate) enum Outcome {
    Answered(Reply),
    /// It may have taken effect.
    Unknown,
}

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) number: u64,
    pub(crate) grounds: Rc<Grounds>,
    pub(crate) token: ApiToken,
    absences: Rc<Absences>,
    pub(crate) numbers: Numbers,
    pub(crate) violations: Violations,
    pub(crate) ledger: Ledger,
    pub(crate) made: usize,
}

impl Client {
    pub(crate) fn new(
        number: u64,
        access: &Access,
        grounds: Rc<Grounds>,
        numbers: Numbers,
        violations: Violations,
    ) -> Self {
        let (token, absences) = (access.token(), Rc::clone(&access.absences));
        Self { number, grounds, token, absences, numbers, violations, ledger: Ledger::default(), made: 0 }
    }

    /// Runs until it is stopped; returns its ledger.
    pub(crate) async fn run(mut self) -> Ledger {
        while !self.grounds.is_over.get() {
            match self.numbers.below(24) {
                0..5 => self.create().await,
                5..8 => self.update().await,
                8 => self.trash().await,
                9 => self.restore().await,
                10..13 => self.read().await,
                13..15 => self.search().await,
                15 => self.script().await,
                16 => self.add_record().await,
                17 => self.ingest().await,
                18 => self.look_around().await,
                19 => self.sign_in().await,
                20 => runs::sync(&mut self).await,
                21 => runs::import(&mut self).await,
                _ => runs::feed_shelf(&mut self).await,
            }
        }
        self.ledger
    }

    /// Sends a request, and checks that the contract allows the response.
    pub(crate) async fn ask(&mut self, what: &str, request: Request, allowed: &[u16]) -> Outcome {
        let sent = Instant::now();
        let answer = tokio::time::timeout(TIMEOUT, request.attempt()).await;
        let is_excused = self.absences.excuse(sent);
        let reply = match answer {
            Ok(Ok(reply)) => reply,
            Ok(Err(why)) => {
                // Nobody listens while a gateway starts.
                if !is_excused && !why.contains("ConnectionRefused") {
                    self.violations.note(format!("{what}: the gateway broke the connection: {why}"));
                }
                return self.unknown().await;
            }
            Err(_) => {
                if !is_excused {
                    self.violations.note(format!("{what}: no answer within {TIMEOUT:?}"));
                }
                return self.unknown().await;
            }
        };
        if allowed.contains(&reply.status) {
            self.ledger.answered += 1;
            return Outcome::Answered(reply);
        }
        if !is_expected_fault(&reply) {
            self.violations.note(format!("{what}: answered {}: {}", reply.status, reply.text()));
        }
        self.unknown().await
    }

    async fn unknown(&mut self) -> Outcome {
        self.ledger.failed += 1;
        tokio::time::sleep(Duration::from_millis(self.numbers.below(300))).await;
        Outcome::Unknown
    }

    async fn create(&mut self) {
        let (name, word) = self.fresh();
        let content = format!("# {word}\n\nWritten by client {}.\n", self.number);
        let is_open = self.numbers.below(4) == 0;
        let folder = if is_open { json!(self.grounds.folder) } else { Value::Null };
        let body = json!({"name": name, "content": content, "fileType": "markdown", "folderId": folder});
        let request = self.token.post("/api/v1/files").json(body);
        let live = FileState::Live { content };
        let mut entry = Entry {
            id: None,
            word,
            acknowledged: FileState::Absent,
            possible: Some(live.clone()),
            etag: String::new(),
            change: String::new(),
        };
        if let Outcome::Answered(reply) = self.ask("create", request, &[201]).await {
            entry.id = Some(id(&reply.json()));
            entry.etag = text(&reply.json(), "contentHash");
            entry.change = reply.change();
            entry.acknowledged = live;
            entry.possible = None;
        }
        self.ledger.files.insert(name, entry);
    }

    async fn update(&mut self) {
        let Some((name, entry)) = self.settled(|standing| matches!(standing, FileState::Live { .. })) else {
            return;
        };
        let file = entry.id.clone().unwrap();
        let content = format!("# {}\n\nVersion {} by client {}.\n", entry.word, self.made, self.number);
        self.made += 1;
        let request = self.token.patch(&format!("/api/v1/files/{file}"));
        let request = request.header("if-match", format!("\"{}\"", entry.etag));
        let request = request.json(json!({"content": content}));
        let wanted = FileState::Live { content };
        match self.ask("update", request, &[200]).await {
            Outcome::Answered(reply) => self.settle(&name, wanted, Some(&reply)),
            Outcome::Unknown => self.unsettle(&name, wanted),
        }
    }

    async fn trash(&mut self) {
        let Some((name, entry)) = self.settled(|standing| matches!(standing, FileState::Live { .. })) else {
            return;
        };
        let request = self.token.delete(&format!("/api/v1/files/{}", entry.id.unwrap()));
        match self.ask("trash", request, &[204]).await {
            Outcome::Answered(reply) => self.settle(&name, FileState::Trashed, Some(&reply)),
            Outcome::Unknown => self.unsettle(&name, FileState::Trashed),
        }
    }

    async fn restore(&mut self) {
        let Some((name, entry)) = self.settled(|standing| *standing == FileState::Trashed) else { return };
        let file = entry.id.unwrap();
        let request = self.token.post(&format!("/api/v1/files/{file}/restore"));
        // It holds what it held before, which the next read verifies.
        match self.ask("restore", request, &[200]).await {
            Outcome::Answered(reply) => {
                let read = self.token.get(&format!("/api/v1/files/{file}"));
                let change = reply.change();
                let Outcome::Answered(read) = self.ask("read after restore", read, &[200]).await else {
                    return self.forget(&name);
                };
                let content = text(&read.json(), "content");
                if !content.contains(&entry.word) {
                    self.violations.note(format!("restored {name} holds {content:?}"));
                }
                self.settle(&name, FileState::Live { content }, None);
                if let Some(entry) = self.ledger.files.get_mut(&name) {
                    entry.etag = text(&read.json(), "contentHash");
                    entry.change = change;
                }
            }
            Outcome::Unknown => self.forget(&name),
        }
    }

    /// Read your own writes, immediately.
    async fn read(&mut self) {
        let Some((name, entry)) = self.settled(|_| true) else { return };
        let request = self.token.get(&format!("/api/v1/files/{}", entry.id.clone().unwrap()));
        let Outcome::Answered(reply) = self.ask("read", request, &[200, 404]).await else { return };
        let found = match reply.status {
            200 => FileState::Live { content: text(&reply.json(), "content") },
            _ => FileState::Trashed,
        };
        if !entry.allows(&found) {
            self.violations.note(format!("{name} should be {:?} and is {found:?}", entry.acknowledged));
        }
    }

    /// A write is found with its token; a file in trash never is.
    async fn search(&mut self) {
        let Some((name, entry)) = self.settled(|_| true) else { return };
        let request = self.token.post(SEARCH).after(&entry.change);
        let request = request.header("x-cairn-wait-ms", INDEX_WAIT_MILLIS);
        let request = request.json(json!({"query": entry.word, "strategy": "keyword", "limit": 5}));
        let Outcome::Answered(reply) = self.ask("search", request, &[200]).await else { return };
        let answer = reply.json();
        let file = entry.id.as_deref().unwrap();
        let is_found = each(&answer["results"], "fileId").any(|found| found == file);
        let is_behind = each(&answer["coverage"], "code").any(|code| code == "index_behind");
        match entry.acknowledged {
            FileState::Live { .. } if !is_found && !is_behind => {
                self.violations.note(format!("{name} is not found after its write: {answer}"));
            }
            FileState::Trashed if is_found => {
                self.violations.note(format!("{name} is in trash and found: {answer}"));
            }
            FileState::Live { .. } | FileState::Trashed | FileState::Absent => {}
        }
    }

    /// A script sees every acknowledged write.
    async fn script(&mut self) {
        let Some((name, entry)) = self.settled(|_| true) else { return };
        let script = format!("grep -rl '{}' /files", entry.word);
        let request = self.token.post(SCRIPT).after(&entry.change).json(json!({"script": script}));
        let Outcome::Answered(reply) = self.ask("script", request, &[200]).await else { return };
        let answer = reply.json();
        let is_found = text(&answer, "output").contains(&name);
        let is_live = matches!(entry.acknowledged, FileState::Live { .. });
        if is_found != is_live {
            self.violations.note(format!("{name} is {:?}, and a script says {answer}", entry.acknowledged));
        }
    }

    async fn add_record(&mut self) {
        let (title, _) = self.fresh();
        let path = format!("/api/v1/databases/{}/records", self.grounds.database);
        let body = json!({"values": {&self.grounds.title: title}});
        let outcome = self.ask("add a record", self.token.post(&path).json(body), &[201]).await;
        self.ledger.records.insert(title, matches!(outcome, Outcome::Answered(_)));
    }

    /// Retries the same document under the same key until it is acknowledged: it must exist once.
    async fn ingest(&mut self) {
        let (key, word) = self.fresh();
        let body = json!({"idempotencyKey": key, "title": key, "content": format!("It says {word}.\n")});
        for _ in 0..4 {
            let request = self.token.post("/api/v1/ingest").json(&body);
            if let Outcome::Answered(_) = self.ask("ingest", request, &[200, 201, 202]).await {
                self.ledger.documents.insert(key, true);
                return;
            }
        }
        self.ledger.documents.insert(key, false);
    }

    /// A token of one folder sees nothing of others.
    async fn look_around(&mut self) {
        let query = json!({"query": format!("written by client {}", self.number), "limit": 20});
        let request = self.grounds.scoped.post(SEARCH).json(query);
        let Outcome::Answered(reply) = self.ask("scoped search", request, &[200]).await else { return };
        let answer = reply.json();
        let folder = self.grounds.folder.clone();
        if each(&answer["results"], "folderId").any(|found| found != folder) {
            self.violations.note(format!("a scoped token sees other folders: {answer}"));
        }
        let listed = self.grounds.scoped.get("/api/v1/files?limit=100");
        let Outcome::Answered(reply) = self.ask("scoped list", listed, &[200]).await else { return };
        if each(&reply.json(), "folderId").any(|found| found != folder) {
            self.violations.note(format!("a scoped token lists other folders: {}", reply.text()));
        }
    }

    async fn sign_in(&mut self) {
        let body = json!({"email": self.grounds.owner.email, "password": self.grounds.owner.password});
        let request = self.grounds.http.request(reqwest::Method::POST, "/api/session").json(body);
        self.ask("sign in", request, &[200]).await;
    }

    /// A unique name and a unique word.
    pub(crate) fn fresh(&mut self) -> (String, String) {
        self.made += 1;
        let word = format!("zq{}n{}x", self.number, self.made);
        (format!("{word}.md"), word)
    }

    /// One of its files without unknown outcomes.
    fn settled(&mut self, wanted: impl Fn(&FileState) -> bool) -> Option<(String, Entry)> {
        let fitting = self.ledger.files.iter().filter(|(_, it)| it.is_settled() && wanted(&it.acknowledged));
        let fitting: Vec<_> = fitting.collect();
        if fitting.is_empty() {
            return None;
        }
        let (name, entry) = *self.numbers.pick(&fitting);
        Some((name.clone(), entry.clone()))
    }

    fn settle(&mut self, name: &str, standing: FileState, reply: Option<&Reply>) {
        let Some(entry) = self.ledger.files.get_mut(name) else { return };
        entry.acknowledged = standing;
        let Some(reply) = reply else { return };
        entry.change = reply.change();
        if reply.status == 200 {
            entry.etag = text(&reply.json(), "contentHash");
        }
    }

    fn unsettle(&mut self, name: &str, possible: FileState) {
        if let Some(entry) = self.ledger.files.get_mut(name) {
            entry.possible = Some(possible);
        }
    }

    /// A file whose content is unknown.
    fn forget(&mut self, name: &str) {
        self.ledger.files.remove(name);
    }
}

/// Whether an error is one that a fault may cause: with the contract's body, and Retry-After where required.
pub(crate) fn is_expected_fault(reply: &Reply) -> bool {
    let Ok(body) = serde_json::from_slice::<Value>(&reply.body) else { return false };
    let has_wait = reply.header("retry-after").is_some_and(|wait| wait.parse::<u64>().is_ok());
    match reply.status {
        503 => body["error"] == "UNAVAILABLE" && has_wait,
        504 => body["error"] == "DEADLINE_EXCEEDED",
        _ => false,
    }
}
