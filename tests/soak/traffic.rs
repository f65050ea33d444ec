//! Clients that do everything that users and agents do, and keep a bounded number of objects: others are deleted
//! permanently, so that nothing but data with a retention period can grow.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::meter::{Kind, Meter};
use crate::numbers::Numbers;
use crate::support::callers::{ApiToken, Caller as _, Session};
use crate::support::http::{Http, Reply, Request, id, text};
use crate::up::{Owner, Up};

/// How many objects of each kind a client keeps.
pub(crate) const MAX_KEPT: usize = 40;
/// Documents of the directory that is synced repeatedly.
pub(crate) const SYNCED: u64 = 20;
/// The number of different contents of a document, in rotation.
const CONTENTS: u64 = 3;
const WORDS: [&str; 24] = [
    "invoice", "release", "customer", "harbour", "ledger", "protocol", "garden", "engine", "contract",
    "winter", "meeting", "battery", "library", "thread", "compass", "recipe", "archive", "signal", "market",
    "bridge", "notice", "orbit", "canvas", "policy",
];
const RUN_PAUSE: Duration = Duration::from_millis(100);
/// Longer than a run takes on a busy machine.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// A caller with the first token.
fn token_of(up: &Up) -> ApiToken {
    ApiToken { http: Http::new(&up.base_url()), secret: up.owner.token.clone() }
}

/// Shared by all clients.
#[derive(Debug)]
pub(crate) struct Grounds {
    http: Http,
    owner: Owner,
    records: String,
    title: String,
    is_over: Cell<bool>,
}

impl Grounds {
    pub(crate) async fn prepare(up: &Up) -> Self {
        let made =
            token_of(up).post("/api/v1/databases").json(json!({"name": "Orders"})).await.expect(201).json();
        Self {
            http: Http::new(&up.base_url()),
            owner: up.owner.clone(),
            records: format!("/api/v1/databases/{}/records", id(&made)),
            title: text(&made["properties"][0], "id"),
            is_over: Cell::new(false),
        }
    }

    /// Makes clients stop.
    pub(crate) fn stop(&self) {
        self.is_over.set(true);
    }
}

/// A file that only one client writes.
#[derive(Debug, Clone)]
struct Held {
    id: String,
    etag: String,
    /// Occurs in no other file.
    word: String,
}

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    number: u64,
    grounds: Rc<Grounds>,
    meter: Rc<Meter>,
    token: ApiToken,
    numbers: Numbers,
    made: u64,
    files: VecDeque<Held>,
    records: VecDeque<String>,
    memories: VecDeque<String>,
    documents: VecDeque<String>,
}

impl Client {
    pub(crate) fn new(
        number: u64,
        up: &Up,
        grounds: Rc<Grounds>,
        meter: Rc<Meter>,
        numbers: Numbers,
    ) -> Self {
        Self {
            number,
            grounds,
            meter,
            token: token_of(up),
            numbers,
            made: 0,
            files: VecDeque::new(),
            records: VecDeque::new(),
            memories: VecDeque::new(),
            documents: VecDeque::new(),
        }
    }

    /// Does each kind once, then random ones until it is stopped.
    pub(crate) async fn run(mut self) {
        self.write().await;
        for kind in Kind::ALL {
            self.act(kind).await;
        }
        while !self.grounds.is_over.get() {
            let kind = match self.numbers.below(40) {
                0..8 => Kind::Write,
                8..15 => Kind::Edit,
                15..18 => Kind::Read,
                18..21 => Kind::TrashAndRestore,
                21..28 => Kind::Search,
                28..31 => Kind::Script,
                31..34 => Kind::Record,
                34..36 => Kind::Memory,
                36..38 => Kind::Ingest,
                38 => Kind::Sync,
                _ => Kind::SignIn,
            };
            self.act(kind).await;
        }
    }

    async fn act(&mut self, kind: Kind) {
        match kind {
            Kind::Write => self.write().await,
            Kind::Edit => self.edit().await,
            Kind::Read => self.read().await,
            Kind::TrashAndRestore => self.trash_and_restore().await,
            Kind::Remove => self.remove_oldest().await,
            Kind::Search => self.search().await,
            Kind::Script => self.script().await,
            Kind::Record => self.record().await,
            Kind::Memory => self.memory().await,
            Kind::Ingest => self.ingest().await,
            // A directory can only have one run at a time.
            Kind::Sync if self.number == 0 => self.sync().await,
            Kind::Sync => {}
            Kind::SignIn => self.sign_in().await,
        }
    }

    /// Sends a request and records its latency; `None` if the response is unexpected.
    async fn ask(&self, kind: Kind, request: Request, status: u16) -> Option<Reply> {
        let began = Instant::now();
        let reply = self.send(kind, request, status).await?;
        self.meter.took(kind, began.elapsed());
        Some(reply)
    }

    /// The same for one of several requests of an operation.
    async fn send(&self, kind: Kind, request: Request, status: u16) -> Option<Reply> {
        match request.attempt().await {
            Ok(reply) if reply.status == status => return Some(reply),
            Ok(reply) if matches!(reply.status, 503 | 504) => self.meter.was_late(),
            Ok(reply) => {
                self.meter.fail(format!("{}: answered {}: {}", kind.name(), reply.status, reply.text()));
            }
            Err(why) => self.meter.fail(format!("{}: {why}", kind.name())),
        }
        None
    }

    async fn write(&mut self) {
        let word = self.fresh();
        let body =
            json!({"name": format!("{word}.md"), "content": self.prose(&word), "fileType": "markdown"});
        let Some(reply) = self.ask(Kind::Write, self.token.post("/api/v1/files").json(body), 201).await
        else {
            return;
        };
        let made = reply.json();
        self.files.push_back(Held { id: id(&made), etag: text(&made, "contentHash"), word });
        if self.files.len() > MAX_KEPT {
            self.remove_oldest().await;
        }
    }

    async fn remove_oldest(&mut self) {
        let Some(file) = self.files.pop_front() else { return };
        self.remove(Kind::Remove, &format!("/api/v1/files/{}", file.id)).await;
    }

    /// To trash, then permanently.
    async fn remove(&self, kind: Kind, path: &str) {
        if self.ask(kind, self.token.delete(path), 204).await.is_some() {
            self.ask(kind, self.token.delete(&format!("{path}/permanent")), 204).await;
        }
    }

    async fn edit(&mut self) {
        let Some(place) = self.any_file() else { return };
        let file = self.files[place].clone();
        let request = self.token.patch(&format!("/api/v1/files/{}", file.id));
        let request = request.header("if-match", format!("\"{}\"", file.etag));
        let request = request.json(json!({"content": self.prose(&file.word)}));
        match self.ask(Kind::Edit, request, 200).await {
            Some(reply) => self.files[place].etag = text(&reply.json(), "contentHash"),
            None => self.forget(place),
        }
    }

    async fn read(&mut self) {
        let Some(place) = self.any_file() else { return };
        self.ask(Kind::Read, self.token.get(&format!("/api/v1/files/{}", self.files[place].id)), 200).await;
    }

    async fn trash_and_restore(&mut self) {
        let Some(place) = self.any_file() else { return };
        let path = format!("/api/v1/files/{}", self.files[place].id);
        let is_trashed = self.ask(Kind::TrashAndRestore, self.token.delete(&path), 204).await.is_some();
        let restore = self.token.post(&format!("{path}/restore"));
        if !is_trashed || self.ask(Kind::TrashAndRestore, restore, 200).await.is_none() {
            self.forget(place);
        }
    }

    /// A timed-out request may have taken effect, in which case the next one would be rejected.
    fn forget(&mut self, place: usize) {
        self.files.remove(place);
    }

    async fn search(&mut self) {
        let query = format!("{} {}", self.numbers.pick(&WORDS), self.numbers.pick(&WORDS));
        let request = self.token.post("/api/v1/search_context").json(json!({"query": query, "limit": 5}));
        self.ask(Kind::Search, request, 200).await;
    }

    async fn script(&mut self) {
        let script = format!("grep -rl '{}' /files | head -5", self.numbers.pick(&WORDS));
        let request = self.token.post("/api/v1/vfs/exec").json(json!({"script": script}));
        self.ask(Kind::Script, request, 200).await;
    }

    async fn record(&mut self) {
        let title = self.fresh();
        let body = json!({"values": {&self.grounds.title: title}});
        let request = self.token.post(&self.grounds.records).json(body);
        let Some(reply) = self.ask(Kind::Record, request, 201).await else { return };
        self.records.push_back(id(&reply.json()));
        if self.records.len() > MAX_KEPT
            && let Some(oldest) = self.records.pop_front()
        {
            self.remove(Kind::Record, &format!("{}/{oldest}", self.grounds.records)).await;
        }
    }

    async fn memory(&mut self) {
        let members: Vec<Value> =
            self.files.iter().take(3).map(|file| json!({"kind": "file", "fileId": file.id})).collect();
        let body = json!({"name": self.fresh(), "members": members});
        let request = self.token.post("/api/v1/memories").json(body);
        let Some(reply) = self.ask(Kind::Memory, request, 201).await else { return };
        let made = id(&reply.json());
        let use_when = json!({"useWhen": format!("about the {}", self.numbers.pick(&WORDS))});
        let request = self.token.patch(&format!("/api/v1/memories/{made}")).json(use_when);
        self.ask(Kind::Memory, request, 200).await;
        self.memories.push_back(made);
        if self.memories.len() > MAX_KEPT
            && let Some(oldest) = self.memories.pop_front()
        {
            self.remove(Kind::Memory, &format!("/api/v1/memories/{oldest}")).await;
        }
    }

    async fn ingest(&mut self) {
        let key = self.fresh();
        let body = json!({"idempotencyKey": key, "title": key, "content": self.prose(&key)});
        let request = self.token.post("/api/v1/ingest").json(body);
        let Some(reply) = self.ask(Kind::Ingest, request, 202).await else { return };
        self.documents.push_back(id(&reply.json()));
        if self.documents.len() > MAX_KEPT
            && let Some(oldest) = self.documents.pop_front()
        {
            self.ask(Kind::Ingest, self.token.delete(&format!("/api/v1/ingest/{oldest}")), 204).await;
        }
    }

    /// A directory whose documents change from run to run, and return to earlier contents.
    async fn sync(&mut self) {
        self.made += 1;
        let round = self.made;
        let content = |number: u64| {
            format!("# Synced {number}\n\n{}\n", WORDS[usize::try_from((number + round) % CONTENTS).unwrap()])
        };
        let documents: Vec<Value> = (0..SYNCED)
            .map(|number| json!({"path": format!("d{}/{number}.md", number % 4), "content": content(number)}))
            .collect();
        let body = json!({"manifest": {"name": "docs", "documents": documents}});
        let began = Instant::now();
        let request = self.token.post("/api/v1/sync/preview").json(body);
        let Some(preview) = self.send(Kind::Sync, request, 201).await else { return };
        let run = id(&preview.json());
        let start = self.token.post(&format!("/api/v1/sync/{run}/start"));
        // A request that timed out may have started a run, and a directory can only have one at a time.
        let is_started = self.send(Kind::Sync, start, 202).await.is_some();
        while began.elapsed() < RUN_LIMIT {
            tokio::time::sleep(RUN_PAUSE).await;
            let request = self.token.get(&format!("/api/v1/sync/{run}"));
            let Some(reply) = self.send(Kind::Sync, request, 200).await else { continue };
            match text(&reply.json(), "status").as_str() {
                "queued" | "running" => {}
                _ if !is_started => return,
                "completed" | "completed_with_warnings" => {
                    return self.meter.took(Kind::Sync, began.elapsed());
                }
                other => return self.meter.fail(format!("sync: the run is {other}: {}", reply.text())),
            }
        }
        self.meter.fail(format!("sync: the run {run} does not end"));
    }

    async fn sign_in(&mut self) {
        let body = json!({"email": self.grounds.owner.email, "password": self.grounds.owner.password});
        let request = self.grounds.http.request(Method::POST, "/api/session").json(body);
        let Some(reply) = self.ask(Kind::SignIn, request, 200).await else { return };
        let cookie = reply.header("set-cookie").and_then(|cookie| cookie.split(';').next());
        let session = Session { http: self.grounds.http.clone(), cookie: cookie.unwrap().to_owned() };
        self.ask(Kind::SignIn, session.delete("/api/session"), 204).await;
    }

    fn any_file(&mut self) -> Option<usize> {
        if self.files.is_empty() {
            return None;
        }
        usize::try_from(self.numbers.below(self.files.len() as u64)).ok()
    }

    /// A unique word.
    fn fresh(&mut self) -> String {
        self.made += 1;
        format!("zq{}n{}x", self.number, self.made)
    }

    /// Some paragraphs, different each time.
    fn prose(&mut self, word: &str) -> String {
        let mut prose = format!("# {word}\n");
        for _ in 0..=self.numbers.below(5) {
            prose.push_str("\nOf the");
            for _ in 0..=self.numbers.below(60) {
                prose.push(' ');
                prose.push_str(self.numbers.pick::<&str>(&WORDS));
            }
            prose.push_str(".\n");
        }
        prose
    }
}
