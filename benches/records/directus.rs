//! The baseline from npm: Directus on SQLite, with the same records and the same queries.

use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::token_format;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::{self, Api, accepted};
use crate::inserts::Target;
use crate::mesh::{Measured, Spent};
use crate::pages::{LAST_OFFSET, PAGE, Question};
use crate::server::{self, Memory, OWN_TIME, Server, free_address};
use crate::tasks::{Row, STATUSES, TAGS};

/// The entry point, relative to the installation folder.
const PROGRAM: &str = "node_modules/directus/cli.js";
const COLLECTION: &str = "/collections";
const ITEMS: &str = "/items/tasks";
/// Records per request.
const ROWS: u32 = 1_000;
/// The field index in `/proc/…/stat` of the CPU time of children that have exited, counted from the name.
const ENDED_CHILDREN: usize = 13;
const START_LIMIT: Duration = Duration::from_secs(120);
const PROBE_PAUSE: Duration = Duration::from_millis(50);

/// A running Directus with the collection `tasks`, which is stopped on drop.
#[derive(Debug)]
pub(crate) struct Directus {
    server: Server,
    api: Api,
    /// How many records it was filled with.
    records: u32,
    _data: TempDir,
    _installation: Installation,
}

/// A folder with `directus` and `sqlite3` in its `node_modules`.
#[derive(Debug)]
struct Installation {
    folder: PathBuf,
    /// The folder of an installation for this run only.
    _temporary: Option<TempDir>,
}

impl Directus {
    /// Starts Directus from a folder, or installs it for this run, and fills it. Prints a message and returns `None` if it is
    /// missing and cannot be installed.
    pub(crate) async fn start(folder: Option<&Path>, records: u32) -> anyhow::Result<Option<Self>> {
        let installation = match folder {
            Some(folder) => installed(folder)?,
            None => install()?,
        };
        let Some(installation) = installation else { return Ok(None) };
        let (data, address) = (TempDir::new()?, free_address()?);
        let (token, secret) = (token_format::generate(&OsEntropy), token_format::generate(&OsEntropy));
        let run = |what: &str| {
            let mut command = command(&installation.folder, data.path(), address);
            command.env("SECRET", &secret).env("ADMIN_TOKEN", &token).arg(what);
            command
        };
        let made = run("bootstrap").stdin(Stdio::null()).stdout(Stdio::null()).status();
        ensure!(made.context("cannot start node")?.success(), "Directus does not make its tables");
        let server = Server::spawn(run("start"), address)?;
        let api = Api::with_token(api::client()?, address, &token);
        let directus = Self { server, api, records, _data: data, _installation: installation };
        directus.ready().await?;
        directus.fill().await?;
        Ok(Some(directus))
    }

    /// A client with all permissions.
    pub(crate) const fn api(&self) -> &Api {
        &self.api
    }

    async fn ready(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        while accepted(self.api.request(Method::GET, "/server/ping")).await.is_err() {
            ensure!(began.elapsed() < START_LIMIT, "Directus is not ready after {START_LIMIT:?}");
            tokio::time::sleep(PROBE_PAUSE).await;
        }
        Ok(())
    }

    async fn fill(&self) -> anyhow::Result<()> {
        accepted(self.api.request(Method::POST, COLLECTION).json(&collection())).await?;
        let numbers: Vec<u32> = (1..=self.records).collect();
        for numbers in numbers.chunks(ROWS as usize) {
            let rows: Vec<Value> =
                numbers.iter().map(|number| item(&Row::of(*number, self.records))).collect();
            let path = format!("{ITEMS}?fields=id");
            accepted(self.api.request(Method::POST, &path).json(&rows)).await?.bytes().await?;
        }
        Ok(())
    }
}

impl Measured for Directus {
    fn spent(&self) -> anyhow::Result<Spent> {
        Ok(Spent::of("Directus", tree_time(self.server.id())?))
    }

    fn memory(&self) -> anyhow::Result<Memory> {
        self.server.memory()
    }
}

impl Target for Directus {
    type Receipt = ();

    async fn insert(&self, number: u32) -> anyhow::Result<()> {
        let item = item(&Row::of(number, self.records));
        accepted(self.api.request(Method::POST, ITEMS).json(&item)).await?.bytes().await?;
        Ok(())
    }

    /// Returns at once: an acknowledged record is found, as there is no asynchronous index.
    async fn until_found(&self, _: &()) -> anyhow::Result<()> {
        Ok(())
    }
}

/// The queries of Cairn, with the same names. Directus cannot query the page of a record, and searches for words as one phrase.
pub(crate) fn questions(records: u32) -> Vec<Question> {
    let near: Vec<u32> = (0..=LAST_OFFSET).step_by(PAGE as usize).collect();
    let deep = [records / 2, records - 2 * PAGE];
    let ask = |name: &str, is_search: bool, query: &str, offsets: &[u32]| Question {
        name: name.to_owned(),
        is_search,
        // Cairn returns the total, too.
        path: format!("{ITEMS}?limit={PAGE}&meta=filter_count&{query}"),
        others: Vec::new(),
        offsets: offsets.to_vec(),
    };
    let status = "filter[status][_eq]=Doing&sort=points,id";
    let text = "filter[notes][_icontains]=quorum%20retry&sort=points,id";
    vec![
        ask("filter by a select, sort by a number", false, status, &near),
        ask("filter by a text, sort by a number", false, text, &[0]),
        ask("all, sort by a number", false, "sort=points,id", &near),
        ask("all, sort by a text, deep", false, "sort=-name,id", &deep),
        ask("filter by a select, sort by a number, deep", false, status, &[records / 5 - 2 * PAGE]),
        ask("search of a rare word", true, "search=4711", &[0]),
        ask("search of two words", true, "search=quorum%20budget", &[0]),
        ask("search, sort by a number", true, "search=staging&sort=points,id", &near),
    ]
}

/// The schema with seven properties, and indexes on those that are sorted or filtered by.
fn collection() -> Value {
    let key = json!({"is_primary_key": true, "has_auto_increment": true});
    let (plain, indexed) = (json!({}), json!({"is_indexed": true}));
    let field = |name: &str, kind: &str, schema: &Value, meta: Value| -> Value {
        json!({"field": name, "type": kind, "schema": schema, "meta": meta})
    };
    let shown_as = |interface: &str| -> Value { json!({"interface": interface}) };
    let choices = |options: &[&str]| -> Value {
        let listed: Vec<Value> =
            options.iter().map(|option| json!({"text": option, "value": option})).collect();
        json!({"choices": listed})
    };
    let one = json!({"interface": "select-dropdown", "options": choices(&STATUSES)});
    let some = json!({
        "interface": "select-multiple-dropdown", "special": ["cast-json"], "options": choices(&TAGS),
    });
    let fields = [
        field("id", "integer", &key, shown_as("input")),
        field("name", "string", &indexed, shown_as("input")),
        field("notes", "text", &plain, shown_as("input-multiline")),
        field("points", "float", &indexed, shown_as("input")),
        field("due", "date", &plain, shown_as("datetime")),
        field("done", "boolean", &plain, shown_as("boolean")),
        field("status", "string", &indexed, one),
        field("tags", "json", &plain, some),
    ];
    json!({"collection": "tasks", "schema": {}, "meta": {}, "fields": fields})
}

/// The body of a record.
fn item(row: &Row) -> Value {
    json!({
        "name": row.name,
        "notes": row.notes,
        "points": row.points,
        "due": row.date(),
        "done": row.is_done,
        "status": STATUSES.get(row.status).copied().unwrap_or_default(),
        "tags": row.tags.map(|tag| TAGS.get(tag).copied().unwrap_or_default()),
    })
}

fn command(folder: &Path, data: &Path, address: SocketAddr) -> Command {
    let mut command = Command::new("node");
    command.current_dir(folder).arg(PROGRAM).stderr(Stdio::null());
    command.envs([
        ("NODE_ENV", "production"),
        ("KEY", "bench"),
        ("ADMIN_EMAIL", "admin@example.com"),
        ("ADMIN_PASSWORD", "of-this-run-alone"),
        ("DB_CLIENT", "sqlite3"),
        ("LOG_LEVEL", "error"),
        ("TELEMETRY", "false"),
        ("RATE_LIMITER_ENABLED", "false"),
    ]);
    command.env("HOST", address.ip().to_string()).env("PORT", address.port().to_string());
    command.env("PUBLIC_URL", format!("http://{address}")).env("DB_FILENAME", data.join("data.db"));
    command.env("STORAGE_LOCAL_ROOT", data.join("uploads")).env("EXTENSIONS_PATH", data.join("extensions"));
    command
}

fn installed(folder: &Path) -> anyhow::Result<Option<Installation>> {
    if !folder.join(PROGRAM).is_file() {
        println!("skipped: Directus is not installed in {} (see --help)\n", folder.display());
        return Ok(None);
    }
    Ok(Some(Installation { folder: folder.canonicalize()?, _temporary: None }))
}

fn install() -> anyhow::Result<Option<Installation>> {
    let folder = TempDir::new()?;
    // Without it npm would look for a package in the parent folders.
    fs::write(folder.path().join("package.json"), "{}")?;
    let mut npm = Command::new("npm");
    npm.current_dir(folder.path()).args(["install", "--no-audit", "--no-fund", "directus", "sqlite3"]);
    let installed = match npm.stdin(Stdio::null()).stdout(Stdio::null()).status() {
        Ok(status) => status.success(),
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(error).context("cannot start npm"),
    };
    if !installed || !folder.path().join(PROGRAM).is_file() {
        println!("skipped: npm is not there, or cannot install Directus (see --help)\n");
        return Ok(None);
    }
    Ok(Some(Installation { folder: folder.path().canonicalize()?, _temporary: Some(folder) }))
}

/// CPU time of a process and all of its descendants, including exited ones.
fn tree_time(process: u32) -> anyhow::Result<Duration> {
    let mut time = server::cpu_time(process, OWN_TIME)? + server::cpu_time(process, ENDED_CHILDREN)?;
    // A child is listed under the thread that started it (proc(5), `children`).
    for thread in fs::read_dir(format!("/proc/{process}/task"))?.flatten() {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
            // A child that has exited meanwhile is counted among the exited children instead.
            time += tree_time(child).unwrap_or_default();
        }
    }
    Ok(time)
}
