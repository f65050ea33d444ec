//! What a page of a database's records costs the server over HTTP: `cargo bench --bench records -- --help`.

#[expect(dead_code, reason = "files are written by other benches")]
#[path = "support/api.rs"]
mod api;
#[path = "support/mesh.rs"]
mod mesh;
#[path = "support/report.rs"]
mod report;
#[path = "support/server.rs"]
mod server;
#[path = "support/tasks.rs"]
mod tasks;

use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Parser;
use cpu_time::ProcessTime;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{Connection as _, SqliteConnection};
use tempfile::TempDir;

use self::api::{Api, accepted};
use self::mesh::{Measured, Mesh};
use self::report::{Run, Table, Verdicts};
use self::server::Server;
use self::tasks::{MICROS_A_DAY, Row, STATUSES, TAGS};

const PAGE_LIMIT_MILLIS: f64 = 0.6;
const SEARCH_LIMIT_MILLIS: f64 = 0.8;
const LARGE_PAGE_LIMIT_MILLIS: f64 = 3.0;
const LARGE_SEARCH_LIMIT_MILLIS: f64 = 8.0;
/// From here on a database is a large one.
const LARGE: u32 = 200_000;
const BUDGET_MEBIBYTES: &str = "CAIRN_RECORDS_MEMORY_MB";
/// A page that the engine answers takes longer than this while the columns are being built.
const BUILD_WAIT: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_millis(100);
const TOGETHER: u32 = 8;
const LEAST_REQUESTS: u32 = 16;
/// Records that are sent at once.
const ROWS: u32 = 1_000;
/// Of the pages that go on behind each other.
const LAST_OFFSET: u32 = 950;
const PAGE: u32 = 50;

/// Measures pages of 50 records of a database with 7 properties (two texts, number, date, truth, select, multi-select) of a
/// `cairn up` in a process of its own: filtered by a select and by a text, sorted by a number, with offsets up to 950 and
/// deep ones, found by words, and the page of a record. Beside it the same build with CAIRN_RECORDS_MEMORY_MB=0, which
/// answers by SQL; and SQLite in this process over a flat table with the right index, and with LIKE for the search: page
/// and total. Figures are CPU time of the server a request. Limits: page .6 ms and search .8 ms; with 200 000 records and
/// more, 3 and 8 ms, by one client.
///
/// With --mesh, six processes on PostgreSQL and Redis answer the same, from columns; their figures are the CPU time of
/// everything.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Records in the database.
    #[arg(long, default_value_t = 10_000)]
    records: u32,
    /// Requests of each kind.
    #[arg(long, default_value_t = 600)]
    requests: u32,
    /// Megabytes for columns.
    #[arg(long, default_value_t = 1024)]
    memory: u32,
    /// Ask a mesh, too.
    #[arg(long)]
    mesh: bool,
    #[command(flatten)]
    run: Run,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if !options.run.is_bench() {
        return Ok(());
    }
    let is_large = options.records >= LARGE;
    ensure!(!(options.mesh && is_large), "a mesh is filled over its API, with less than {LARGE} records");
    let data = TempDir::new()?;
    let mut cairn = Server::cairn(data.path())?;
    cairn.ready().await?;
    let sample = Sample::make(&Api::open(cairn.address, data.path())?).await?;
    cairn.stop().await?;
    // Cells are what SQL reads, and of a large database it is not asked.
    fill(data.path(), &sample, options.records, !is_large).await?;

    let mut table = Table::new(&["", "alone, CPU ms", "8 at once", "wall ms"]);
    let mut verdicts = Verdicts::default();
    let memory = options.memory.to_string();
    let mut server = Server::cairn_with(data.path(), &[(BUDGET_MEBIBYTES, OsStr::new(&memory))])?;
    server.ready().await?;
    let api = Api::open(server.address, data.path())?;
    let before = server.memory()?;
    let (waited, cpu) = sample.wait_for_columns(&server, &api).await?;
    let after = server.memory()?;
    let middle = id(options.records / 2);
    for question in sample.questions(options.records, &middle) {
        let cost = measure(&server, &api, &question, options.requests).await?;
        add(&mut table, &format!("cairn: {}", question.name), &cost);
        let limit = match (question.is_search, is_large) {
            (false, false) => PAGE_LIMIT_MILLIS,
            (true, false) => SEARCH_LIMIT_MILLIS,
            (false, true) => LARGE_PAGE_LIMIT_MILLIS,
            (true, true) => LARGE_SEARCH_LIMIT_MILLIS,
        };
        verdicts.at_most(&question.name, cost.alone, limit, "ms of CPU");
    }
    server.stop().await?;
    println!(
        "columns: read in {waited:.1} s and {cpu:.1} s of CPU; {:.1} MiB resident more, {:.0} bytes a record",
        after.resident - before.resident,
        (after.resident - before.resident) * f64::from(1 << 20) / f64::from(options.records)
    );

    if !is_large {
        let mut engine = Server::cairn_with(data.path(), &[(BUDGET_MEBIBYTES, OsStr::new("0"))])?;
        engine.ready().await?;
        let api = Api::open(engine.address, data.path())?;
        for question in sample.questions(options.records, &middle) {
            let cost = measure(&engine, &api, &question, options.requests / 20).await?;
            add(&mut table, &format!("by SQL: {}", question.name), &cost);
        }
        engine.stop().await?;
    }
    if options.mesh {
        in_mesh(&mut table, &options, &memory).await?;
    }
    peer(&mut table, &options, data.path()).await?;
    table.print();
    verdicts.finish(&options.run)
}

/// Asks a mesh for the same, and prints who took what of all its pages.
async fn in_mesh(table: &mut Table, options: &Options, memory: &str) -> anyhow::Result<()> {
    let mesh = Mesh::start(&[(BUDGET_MEBIBYTES, memory)]).await?;
    let api = mesh.api()?;
    let sample = Sample::make(&api).await?;
    sample.send(&api, options.records).await?;
    mesh.count().await?;
    let middle = sample.id_at(&api, options.records / 2).await?;
    sample.wait_for_columns(&mesh, &api).await?;
    let (before, questions) = (mesh.spent()?, sample.questions(options.records, &middle));
    for question in &questions {
        let cost = measure(&mesh, &api, question, options.requests).await?;
        add(table, &format!("mesh: {}", question.name), &cost);
    }
    // Each is asked by one client, and by several at once.
    let asked = 2 * options.requests.max(LEAST_REQUESTS) * u32::try_from(questions.len())?;
    mesh.spent()?.since(&before).print("a page in the mesh", asked);
    println!("the mesh: {:.0} MiB resident in its six processes\n", mesh.memory()?.resident);
    mesh.stop().await
}

/// Which property, which of its values, and the value as a number, as a text, and as a text that is only searched.
type Cell<'a> = (usize, i64, Option<f64>, Option<&'a str>, Option<&'a str>);

/// The database and what its parts are called.
struct Sample {
    workspace: String,
    database: String,
    /// In the order of creation: Name, Notes, Points, Due, Done, Status, Tags.
    fields: Vec<String>,
    statuses: Vec<String>,
    tags: Vec<String>,
}

struct Question {
    name: String,
    is_search: bool,
    path: String,
    /// Offsets that the requests go through.
    offsets: Vec<u32>,
}

struct Cost {
    alone: f64,
    together: f64,
    wall: f64,
}

impl Sample {
    async fn make(api: &Api) -> anyhow::Result<Self> {
        let post = async |path: &str, body: Value| -> anyhow::Result<Value> {
            Ok(accepted(api.request(Method::POST, path).json(&body)).await?.json().await?)
        };
        let text = |value: &Value, name: &str| -> anyhow::Result<String> {
            let found = value.get(name).and_then(Value::as_str);
            Ok(found.with_context(|| format!("an answer without {name}"))?.to_owned())
        };
        let made = post("/api/v1/databases", json!({"name": "Tasks"})).await?;
        let database = text(&made, "id")?;
        let workspace = text(&made, "workspaceId").unwrap_or_default();
        let primary = made.get("fields").or_else(|| made.get("properties")).and_then(|list| list.get(0));
        let mut fields = vec![text(primary.context("a database without a property")?, "id")?];
        let (mut statuses, mut tags) = (Vec::new(), Vec::new());
        for (name, kind) in [
            ("Notes", "text"),
            ("Points", "number"),
            ("Due", "date"),
            ("Done", "boolean"),
            ("Status", "select"),
            ("Tags", "multi_select"),
        ] {
            let choices: &[&str] = match kind {
                "select" => &STATUSES,
                "multi_select" => &TAGS,
                _ => &[],
            };
            let options: Vec<Value> = choices.iter().map(|name| json!({"name": name})).collect();
            let mut body = json!({"name": name, "type": kind});
            if !options.is_empty() {
                body = json!({"name": name, "type": kind, "config": {"options": options}});
            }
            let field = post(&format!("/api/v1/databases/{database}/fields"), body).await?;
            fields.push(text(&field, "id")?);
            let ids = field.pointer("/config/options").and_then(Value::as_array);
            let ids = ids.into_iter().flatten().map(|option| text(option, "id"));
            match kind {
                "select" => statuses = ids.collect::<Result<_, _>>()?,
                "multi_select" => tags = ids.collect::<Result<_, _>>()?,
                _ => {}
            }
        }
        // The first record makes the count that is kept of them.
        post(&format!("/api/v1/databases/{database}/records"), json!({"values": {}})).await?;
        Ok(Self { workspace, database, fields, statuses, tags })
    }

    fn field(&self, place: usize) -> &str {
        self.fields.get(place).map(String::as_str).unwrap_or_default()
    }

    fn questions(&self, records: u32, middle: &str) -> Vec<Question> {
        let near: Vec<u32> = (0..=LAST_OFFSET).step_by(PAGE as usize).collect();
        let deep = vec![records / 2, records - 2 * PAGE];
        let by_points = format!("sortFieldId={}", self.field(2));
        let is = |field: usize, operator: &str, value: &str| {
            format!("filterFieldId={}&filterOperator={operator}&filterValue={value}", self.field(field))
        };
        let status = is(5, "equals", "Doing");
        let few = vec![0];
        let ask = |name: &str, is_search: bool, query: String, offsets: &[u32]| Question {
            name: name.to_owned(),
            is_search,
            path: format!("/api/v1/databases/{}/records?limit={PAGE}&{query}", self.database),
            offsets: offsets.to_vec(),
        };
        vec![
            ask("filter by a select, sort by a number", false, format!("{status}&{by_points}"), &near),
            ask(
                "filter by a text, sort by a number",
                false,
                format!("{}&{by_points}", is(1, "contains", "quorum%20retry")),
                &few,
            ),
            ask("all, sort by a number", false, by_points.clone(), &near),
            ask(
                "all, sort by a text, deep",
                false,
                format!("sortFieldId={}&sortDirection=desc", self.field(0)),
                &deep,
            ),
            ask(
                "filter by a select, sort by a number, deep",
                false,
                format!("{status}&{by_points}"),
                &[records / 5 - 2 * PAGE],
            ),
            ask("the page of a record, sorted", false, format!("recordId={middle}&{by_points}"), &few),
            ask("search of a rare word", true, "search=4711".to_owned(), &few),
            ask("search of two words", true, "search=quorum%20budget".to_owned(), &few),
            ask("search, sort by a number", true, format!("search=staging&{by_points}"), &near),
        ]
    }

    /// Writes the records over the API, as tables of a thousand rows.
    async fn send(&self, api: &Api, records: u32) -> anyhow::Result<()> {
        let path = format!("/api/v1/databases/{}/records/csv", self.database);
        let columns = self.fields.iter().enumerate();
        let columns: Vec<Value> = columns.map(|(place, id)| json!({"index": place, "fieldId": id})).collect();
        let all: Vec<u32> = (1..=records).collect();
        for numbers in all.chunks(ROWS as usize) {
            let mut csv = Row::HEAD.to_owned();
            numbers.iter().for_each(|number| csv.push_str(&Row::of(*number, records).csv()));
            let body = json!({"csv": csv, "columns": columns});
            accepted(api.request(Method::POST, &path).json(&body)).await?;
        }
        Ok(())
    }

    /// The id of the record at a place of the list.
    async fn id_at(&self, api: &Api, place: u32) -> anyhow::Result<String> {
        let path = format!("/api/v1/databases/{}/records?limit=1&offset={place}", self.database);
        let page: Value = accepted(api.request(Method::GET, &path)).await?.json().await?;
        let id = page.pointer("/records/0/id").and_then(Value::as_str);
        Ok(id.context("a page without a record")?.to_owned())
    }

    /// Asks until the columns answer, which is when a page is as cheap as the one before; seconds, and of them CPU.
    async fn wait_for_columns(&self, server: &impl Measured, api: &Api) -> anyhow::Result<(f64, f64)> {
        let path = format!("/api/v1/databases/{}/records?limit=1&search=4711", self.database);
        let (began, start) = (Instant::now(), server.spent()?);
        // The second question has the database read.
        for _ in 0..2 {
            accepted(api.request(Method::GET, &path)).await?;
        }
        loop {
            tokio::time::sleep(PAUSE).await;
            let before = server.spent()?;
            tokio::time::sleep(PAUSE).await;
            if server.spent()?.since(&before).total() < PAUSE / 5 || began.elapsed() > BUILD_WAIT {
                break;
            }
        }
        Ok((began.elapsed().as_secs_f64(), server.spent()?.since(&start).total().as_secs_f64()))
    }
}

fn id(number: u32) -> String {
    format!("{number:08x}-0000-7000-8000-000000000000")
}

async fn measure(
    server: &impl Measured,
    api: &Api,
    question: &Question,
    requests: u32,
) -> anyhow::Result<Cost> {
    let requests = requests.max(LEAST_REQUESTS);
    let ask = async |number: u32| -> anyhow::Result<()> {
        let place = number as usize % question.offsets.len().max(1);
        let offset = question.offsets.get(place).copied().unwrap_or_default();
        let path = format!("{}&offset={offset}", question.path);
        accepted(api.request(Method::GET, &path)).await?.bytes().await?;
        Ok(())
    };
    for number in 0..requests.min(20) {
        ask(number).await?;
    }
    let (before, began) = (server.spent()?, Instant::now());
    for number in 0..requests {
        ask(number).await?;
    }
    let wall = began.elapsed();
    let alone = server.spent()?.since(&before).total();
    let (before, next) = (server.spent()?, AtomicU32::new(0));
    let askers = (0..TOGETHER).map(|_| async {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= requests {
                return anyhow::Ok(());
            }
            ask(number).await?;
        }
    });
    futures::future::try_join_all(askers).await?;
    let together = server.spent()?.since(&before).total();
    let each = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(requests);
    Ok(Cost { alone: each(alone), together: each(together), wall: each(wall) })
}

fn add(table: &mut Table, name: &str, cost: &Cost) {
    let cell = |figure: f64| format!("{figure:.3}");
    table.row(vec![name.to_owned(), cell(cost.alone), cell(cost.together), cell(cost.wall)]);
}

/// Writes the records into the server's tables: a million inserts are not what is measured.
async fn fill(data: &Path, sample: &Sample, records: u32, with_cells: bool) -> anyhow::Result<()> {
    let options = SqliteConnectOptions::new()
        .filename(data.join("content.db"))
        .journal_mode(SqliteJournalMode::Wal)
        .foreign_keys(true);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let workspace: String = match sample.workspace.as_str() {
        "" => {
            sqlx::query_scalar("SELECT workspace_id FROM databases WHERE id = $1")
                .bind(&sample.database)
                .fetch_one(&mut connection)
                .await?
        }
        known => known.to_owned(),
    };
    let mut tx = connection.begin().await?;
    for number in 1..=records {
        let row = Row::of(number, records);
        let (id, date) = (id(number), row.date());
        let option = |list: &[String], place: usize| list.get(place).cloned().unwrap_or_default();
        let (status, tags) =
            (option(&sample.statuses, row.status), row.tags.map(|place| option(&sample.tags, place)));
        let values = json!({
            sample.field(0): row.name, sample.field(1): row.notes, sample.field(2): row.points,
            sample.field(3): date, sample.field(4): row.is_done, sample.field(5): status, sample.field(6): tags,
        });
        let (name, notes) = (row.name.to_lowercase(), row.notes.to_lowercase());
        sqlx::query(
            "INSERT INTO records (workspace_id, id, database_id, field_values, title, searched, version, created_at, \
             updated_at) VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $7)",
        )
        .bind(&workspace)
        .bind(&id)
        .bind(&sample.database)
        .bind(values.to_string())
        .bind(&row.name)
        .bind(format!("{name}\n{notes}\n{}\n{date}", row.points))
        .bind(i64::from(number))
        .execute(&mut *tx)
        .await?;
        if !with_cells {
            continue;
        }
        let points = row.points.to_string();
        let micros = (row.day * MICROS_A_DAY) as f64;
        let cells: [Cell<'_>; 8] = [
            (0, 0, None, Some(&name), None),
            (1, 0, None, Some(&notes), None),
            (2, 0, Some(f64::from(row.points)), None, Some(&points)),
            (3, 0, Some(micros), None, Some(&date)),
            (4, 0, Some(f64::from(u8::from(row.is_done))), None, None),
            (5, 0, Some(row.status as f64), Some(&status), None),
            (6, 0, row.tags.first().map(|tag| *tag as f64), tags.first().map(String::as_str), None),
            (6, 1, row.tags.last().map(|tag| *tag as f64), tags.last().map(String::as_str), None),
        ];
        for (field, place, number_key, text_key, rest) in cells {
            sqlx::query(
                "INSERT INTO record_cells (workspace_id, record_id, property_id, place, database_id, number_key, text_key, \
                 rest) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            )
            .bind(&workspace)
            .bind(&id)
            .bind(sample.field(field))
            .bind(place)
            .bind(&sample.database)
            .bind(number_key)
            .bind(text_key)
            .bind(rest)
            .execute(&mut *tx)
            .await?;
        }
    }
    sqlx::query("UPDATE record_counts SET live = live + $1 WHERE database_id = $2")
        .bind(i64::from(records))
        .bind(&sample.database)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    connection.close().await?;
    Ok(())
}

/// SQLite over a flat table, in this process.
async fn peer(table: &mut Table, options: &Options, data: &Path) -> anyhow::Result<()> {
    let at = SqliteConnectOptions::new().filename(data.join("flat.db")).create_if_missing(true);
    let mut connection = SqliteConnection::connect_with(&at).await?;
    let mut tx = connection.begin().await?;
    for statement in [
        "CREATE TABLE flat (id TEXT PRIMARY KEY, name TEXT, notes TEXT, points REAL, due TEXT, done INT, status INT, tags TEXT)",
        "CREATE INDEX flat_by_status ON flat (status, points, id)",
    ] {
        sqlx::query(statement).execute(&mut *tx).await?;
    }
    for number in 1..=options.records {
        let row = Row::of(number, options.records);
        sqlx::query("INSERT INTO flat VALUES ($1, $2, $3, $4, $5, $6, $7, $8)")
            .bind(id(number))
            .bind(&row.name)
            .bind(&row.notes)
            .bind(row.points)
            .bind(row.date())
            .bind(row.is_done)
            .bind(row.status as i64)
            .bind(row.tags.map(|tag| TAGS.get(tag).copied().unwrap_or_default()).join(","))
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    type Flat = (String, String, String, f64, String, bool, i64, String);
    let rounds = (options.requests / 10).max(8);
    let mut run = async |name: &str, page: &'static str, count: &'static str, pattern: Option<&str>| {
        let (began, wall) = (ProcessTime::now(), Instant::now());
        for round in 0..rounds {
            let offset = i64::from(round * PAGE % (LAST_OFFSET + PAGE));
            let asked = sqlx::query_as(page).bind(pattern.map_or("2".to_owned(), str::to_owned)).bind(offset);
            let rows: Vec<Flat> = asked.fetch_all(&mut connection).await?;
            let counted = sqlx::query_scalar(count).bind(pattern.map_or("2".to_owned(), str::to_owned));
            let total: i64 = counted.fetch_one(&mut connection).await?;
            std::hint::black_box((rows, total));
        }
        let each = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(rounds);
        let (alone, wall) = (each(began.elapsed()), each(wall.elapsed()));
        table.row(vec![name.to_owned(), format!("{alone:.3}"), String::new(), format!("{wall:.3}")]);
        anyhow::Ok(())
    };
    run(
        "SQLite with the right index: filter by a select, sort by a number",
        "SELECT * FROM flat WHERE status = CAST($1 AS INT) ORDER BY points, id LIMIT 50 OFFSET $2",
        "SELECT COUNT(*) FROM flat WHERE status = CAST($1 AS INT)",
        None,
    )
    .await?;
    run(
        "SQLite with LIKE: search of a word",
        "SELECT * FROM flat WHERE name LIKE $1 OR notes LIKE $1 LIMIT 50 OFFSET $2",
        "SELECT COUNT(*) FROM flat WHERE name LIKE $1 OR notes LIKE $1",
        Some("%staging%"),
    )
    .await
}
