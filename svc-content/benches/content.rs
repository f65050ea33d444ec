//! What records, memories and folders cost the content service: `cargo bench -p cairn-content --bench content -- --help`.

#[path = "../../benches/support/report.rs"]
mod report;
#[path = "../../benches/support/samples.rs"]
mod samples;
#[path = "support/side.rs"]
mod side;

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use cairn_proto::content::v1::batch_item::Write;
use cairn_proto::content::v1::batch_result::Item;
use cairn_proto::content::v1::{
    BatchItem, BatchWriteRequest, CreateDatabaseRequest, CreateFileRequest, CreateFolderRequest,
    CreateMemoryRequest, CreatePropertyRequest, CreateRecordRequest, DeleteFolderRequest, FileType,
    ListRecordsRequest, MemberInput, MemberKind, PropertyConfig, PropertyOption, PropertyType,
    ResolveMemoryRequest, Sort,
};
use cairn_proto::domain::{Condition, Filter, Operator, SortOrder};
use clap::Parser;
use cpu_time::ProcessTime;
use serde_json::{Value, json};

use self::report::{Run, Table, Verdicts};
use self::samples::percentile;
use self::side::{Side, sides};

const INSERT_LIMIT: f64 = 15.0;
const PAGE_LIMIT: f64 = 2.0;
const RESOLVE_LIMIT: f64 = 2.0;
const DELETE_LIMIT_MILLIS: f64 = 100.0;
const STATUSES: [&str; 3] = ["Todo", "Doing", "Finished"];
const MEMBERS: usize = 100;
const BODY_BYTES: usize = 4_000;
const BATCH: usize = 1_000;
const DELETIONS: usize = 3;

/// Measures the content service in this process, called over a local channel with a signed identity, on SQLite and on a
/// throw-away PostgreSQL:
///
///   insert   a record of three values, validated, versioned and fed, to an autocommit INSERT of one row by sqlx
///   page     50 records, filtered by one property, sorted by another, with the total, to the hand-written SQL over the
///            same tables whose rows are parsed and written as JSON; and other pages, for their figures
///   resolve  a memory of 100 files of 4 000 bytes, to one SELECT of the same bodies, decompressed
///   delete   a folder of 10 000 files
///
/// On SQLite the figure is CPU time of this process, engine included; on PostgreSQL it is wall time (median). Limits:
/// insert 15 times (on SQLite), page 2 times, resolve 2 times the peer's; delete 100 ms.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Records in the database whose pages are read.
    #[arg(long, default_value_t = 100_000)]
    records: u32,
    /// Inserts and pages of each kind.
    #[arg(long, default_value_t = 200)]
    rounds: u32,
    /// Files in the folder that is deleted.
    #[arg(long, default_value_t = 10_000)]
    files: usize,
    /// Measure only what has this name, and what it needs.
    #[arg(long)]
    only: Option<String>,
    #[command(flatten)]
    run: Run,
}

impl Options {
    fn asks_for(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == name)
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if !options.run.is_bench() {
        return Ok(());
    }
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?
        .block_on(run(&options))
}

async fn run(options: &Options) -> anyhow::Result<()> {
    let mut verdicts = Vec::new();
    for side in sides().await? {
        let mut table = Table::new(&["", "p50 ms", "CPU ms"]);
        let shelf = Shelf::new(&side).await?;
        // Pages need what the first record makes: the count that is kept of them.
        if options.asks_for("insert") || options.asks_for("page") {
            let inserted = insert(&side, &shelf, options, &mut table).await?;
            if side.is_embedded() {
                verdicts.push(inserted);
            }
        }
        if options.asks_for("page") {
            shelf.fill(&side, options.records).await?;
            verdicts.push(page(&side, &shelf, options, &mut table).await?);
        }
        if options.asks_for("resolve") {
            verdicts.push(resolve(&side, options, &mut table).await?);
        }
        if options.asks_for("delete") {
            verdicts.push(delete(&side, options, &mut table).await?);
        }
        table.print();
    }
    let mut judged = Verdicts::default();
    for (what, figure, limit, unit) in &verdicts {
        judged.at_most(what, *figure, *limit, unit);
    }
    judged.finish(&options.run)
}

type Verdict = (String, f64, f64, &'static str);

/// What one call costs.
#[derive(Debug, Clone, Copy)]
struct Cost {
    wall: Duration,
    cpu: Duration,
}

impl Cost {
    /// What is compared: CPU time where it holds the engine's, otherwise wall time.
    const fn of(self, side: &Side) -> Duration {
        if side.is_embedded() { self.cpu } else { self.wall }
    }
}

async fn cost(rounds: u32, mut call: impl AsyncFnMut(u32) -> anyhow::Result<()>) -> anyhow::Result<Cost> {
    let mut walls = Vec::new();
    let before = ProcessTime::now();
    for round in 0..rounds {
        let started = Instant::now();
        call(round).await?;
        walls.push(started.elapsed());
    }
    Ok(Cost { wall: percentile(&walls, 0.5), cpu: before.elapsed() / rounds.max(1) })
}

fn add(table: &mut Table, side: &Side, what: &str, cost: Cost) {
    let millis = |duration: Duration| format!("{:.3}", duration.as_secs_f64() * 1e3);
    let cpu = if side.is_embedded() { millis(cost.cpu) } else { String::new() };
    table.row(vec![format!("{}: {what}", side.name), millis(cost.wall), cpu]);
}

fn verdict(side: &Side, what: &str, (ours, theirs): (Cost, Cost), limit: f64) -> Verdict {
    let ratio = ours.of(side).as_secs_f64() / theirs.of(side).as_secs_f64();
    (format!("{}: {what}", side.name), ratio, limit, "times")
}

/// A database of records with a name, a number and a status.
struct Shelf {
    database: String,
    name: String,
    points: String,
    status: String,
    options: Vec<String>,
}

impl Shelf {
    async fn new(side: &Side) -> anyhow::Result<Self> {
        let mut client = side.databases.clone();
        let asked = CreateDatabaseRequest { name: "Tasks".to_owned(), ..CreateDatabaseRequest::default() };
        let made = client.create_database(side.request(asked)).await?.into_inner();
        let database = made.database.context("no database")?;
        let name = database.properties.first().context("no primary property")?.id.clone();
        let option = |name: &&str| PropertyOption { name: (*name).to_owned(), ..PropertyOption::default() };
        let mut made = Vec::new();
        for (name, kind, options) in [
            ("Points", PropertyType::Number, Vec::new()),
            ("Status", PropertyType::Select, STATUSES.iter().map(option).collect()),
        ] {
            let asked = CreatePropertyRequest {
                database_id: database.id.clone(),
                name: name.to_owned(),
                r#type: kind.into(),
                config: Some(PropertyConfig { options, ..PropertyConfig::default() }),
            };
            let answer = client.create_property(side.request(asked)).await?.into_inner();
            made.push(answer.property.context("no property")?);
        }
        let [points, status] = made.as_slice() else { bail!("two properties were made") };
        let options = status.config.clone().unwrap_or_default().options;
        Ok(Self {
            database: database.id,
            name,
            points: points.id.clone(),
            status: status.id.clone(),
            options: options.into_iter().map(|option| option.id).collect(),
        })
    }

    fn values(&self, number: u32) -> String {
        let status = STATUSES.get(number as usize % STATUSES.len());
        json!({&self.name: format!("task {number}"), &self.points: number, &self.status: status}).to_string()
    }

    /// Puts that many records into the tables, as the service would have.
    async fn fill(&self, side: &Side, count: u32) -> anyhow::Result<()> {
        let Self { database, name, points, status, options } = self;
        let [todo, doing, finished] = options.as_slice() else { bail!("three options were made") };
        let workspace = side.workspace;
        let hex = if side.is_embedded() { "printf('%08x', i)" } else { "lpad(to_hex(i), 8, '0')" };
        let id = format!("{hex} || '-0000-7000-8000-000000000000'");
        let option = format!("CASE i % 3 WHEN 0 THEN '{todo}' WHEN 1 THEN '{doing}' ELSE '{finished}' END");
        let number = format!("(i * 7919 % {count})");
        let numbers = format!(
            "WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
        );
        let values = format!(
            "'{{\"{name}\":\"task ' || i || '\",\"{points}\":' || {number} || ',\"{status}\":\"' || {option} || '\"}}'"
        );
        let mut statements = vec![format!(
            "{numbers} INSERT INTO records (workspace_id, id, database_id, field_values, title, searched, version, \
             created_at, updated_at) SELECT '{workspace}', {id}, '{database}', {values}, 'task ' || i, \
             'task ' || i || '\n' || {number}, 1, i, i FROM n"
        )];
        for (property, number_key, text_key, rest) in [
            (name, "CAST(NULL AS DOUBLE PRECISION)", "'task ' || i", "NULL"),
            (points, number.as_str(), "NULL", &format!("CAST({number} AS TEXT)")),
            (status, "i % 3", &option, "NULL"),
        ] {
            statements.push(format!(
                "{numbers} INSERT INTO record_cells (workspace_id, record_id, property_id, place, database_id, \
                 number_key, text_key, rest) SELECT '{workspace}', {id}, '{property}', 0, '{database}', \
                 {number_key}, {text_key}, {rest} FROM n"
            ));
        }
        statements.push(format!(
            "UPDATE record_counts SET live = live + {count} WHERE workspace_id = '{workspace}' \
             AND database_id = '{database}'"
        ));
        for statement in statements {
            side.run(statement).await?;
        }
        side.settle().await
    }
}

async fn insert(side: &Side, shelf: &Shelf, options: &Options, table: &mut Table) -> anyhow::Result<Verdict> {
    side.run("CREATE TABLE plain (id TEXT NOT NULL PRIMARY KEY, body TEXT NOT NULL)".to_owned()).await?;
    let theirs = cost(options.rounds, async |round| {
        side.insert_plain(&format!("record {round}"), &shelf.values(round)).await
    })
    .await?;
    let mut client = side.records.clone();
    let ours = cost(options.rounds, async |round| {
        let asked = CreateRecordRequest {
            database_id: shelf.database.clone(),
            values_json: shelf.values(round),
            ..CreateRecordRequest::default()
        };
        client.create_record(side.request(asked)).await?;
        Ok(())
    })
    .await?;
    add(table, side, "insert", ours);
    add(table, side, "insert, bare", theirs);
    Ok(verdict(side, "insert to a bare autocommit insert", (ours, theirs), INSERT_LIMIT))
}

async fn page(side: &Side, shelf: &Shelf, options: &Options, table: &mut Table) -> anyhow::Result<Verdict> {
    let by = |field: &str| vec![Sort { field_id: field.to_owned(), order: SortOrder::Desc.number() }];
    let is = |field: &str, operator: Operator, value: Value| {
        let condition =
            Condition { field_id: field.to_owned(), operator: Some(operator), value: Some(value) };
        vec![Filter::Is(condition).into()]
    };
    let asked = |sorts, filters, search: &str, record_id| ListRecordsRequest {
        database_id: shelf.database.clone(),
        sorts,
        filters,
        search: search.to_owned(),
        record_id,
        ..ListRecordsRequest::default()
    };
    let measured = is(&shelf.status, Operator::Equals, "Todo".into());
    let middle = format!("{:08x}-0000-7000-8000-000000000000", options.records / 2);
    let pages = [
        ("filter and sort", asked(by(&shelf.points), measured, "", None)),
        ("all, by creation", asked(Vec::new(), Vec::new(), "", None)),
        ("all, sorted by a text", asked(by(&shelf.name), Vec::new(), "", None)),
        (
            "rare filter, sorted by a text",
            asked(by(&shelf.name), is(&shelf.points, Operator::Lt, 20.into()), "", None),
        ),
        (
            "wide filter, sorted by a text",
            asked(by(&shelf.name), is(&shelf.points, Operator::Gte, 20.into()), "", None),
        ),
        ("the page of a record, by creation", asked(Vec::new(), Vec::new(), "", Some(middle.clone()))),
        ("the page of a record, sorted", asked(by(&shelf.points), Vec::new(), "", Some(middle))),
        ("free-text search", asked(Vec::new(), Vec::new(), "777", None)),
    ];
    let mut client = side.records.clone();
    let mut first = None;
    for (what, asked) in pages {
        client.list_records(side.request(asked.clone())).await?;
        let ours = cost(options.rounds / 4, async |_| {
            client.list_records(side.request(asked.clone())).await?;
            Ok(())
        })
        .await?;
        add(table, side, &format!("page: {what}"), ours);
        first.get_or_insert(ours);
    }
    let ours = first.context("no page was read")?;
    let theirs = cost(options.rounds / 4, async |_| bare_page(side, shelf).await).await?;
    add(table, side, "page: filter and sort, bare", theirs);
    Ok(verdict(side, "page to the hand-written SQL", (ours, theirs), PAGE_LIMIT))
}

/// The total, the 50 rows, and their values read and written as JSON.
async fn bare_page(side: &Side, shelf: &Shelf) -> anyhow::Result<()> {
    let Shelf { database, points, status, options, .. } = shelf;
    let todo = options.first().context("no option")?;
    let workspace = side.workspace;
    let is_todo =
        format!("f.workspace_id = '{workspace}' AND f.property_id = '{status}' AND f.text_key = '{todo}'");
    let total = side
        .number(&format!(
            "SELECT COUNT(*) FROM record_cells f WHERE {is_todo} AND f.database_id = '{database}'"
        ))
        .await?;
    let rows = side
        .rows(&format!(
            "SELECT r.field_values, r.version, CAST(r.title AS {}) FROM record_cells s JOIN records r \
             ON r.workspace_id = s.workspace_id AND r.id = s.record_id WHERE s.workspace_id = '{workspace}' \
             AND s.database_id = '{database}' AND s.property_id = '{points}' AND s.number_key IS NOT NULL \
             AND EXISTS (SELECT 1 FROM record_cells f WHERE f.record_id = s.record_id AND {is_todo}) \
             ORDER BY s.number_key DESC, s.record_id DESC LIMIT 50",
            if side.is_embedded() { "BLOB" } else { "BYTEA" }
        ))
        .await?;
    let mut records = Vec::with_capacity(rows.len());
    for (values, version, _title) in rows {
        let values: Value = serde_json::from_str(&values)?;
        records.push(json!({"values": values, "version": version}));
    }
    let answer = json!({"records": records, "total": total}).to_string();
    if answer.len() < BATCH {
        bail!("the bare page is empty");
    }
    Ok(())
}

async fn resolve(side: &Side, options: &Options, table: &mut Table) -> anyhow::Result<Verdict> {
    let line = |number: usize| format!("Line of an ordinary note, number {number}, of some length.\n");
    let text =
        |file: usize| (0..).map(|one| line(file * 1_000 + one)).take(BODY_BYTES / 60).collect::<String>();
    let files = create_files(side, None, (0..MEMBERS).map(text)).await?;
    let member = |id: &String| MemberInput {
        kind: MemberKind::File.into(),
        file_id: Some(id.clone()),
        ..MemberInput::default()
    };
    let asked = CreateMemoryRequest {
        name: "Everything".to_owned(),
        members: files.iter().map(member).collect(),
        ..CreateMemoryRequest::default()
    };
    let mut client = side.memories.clone();
    let made = client.create_memory(side.request(asked)).await?.into_inner();
    let memory = made.memory.context("no memory")?.id;
    side.settle().await?;
    let ours = cost(options.rounds, async |_| {
        let asked = ResolveMemoryRequest { memory: memory.clone(), when: None };
        client.resolve_memory(side.request(asked)).await?;
        Ok(())
    })
    .await?;
    let list: Vec<String> = files.iter().map(|id| format!("'{id}'")).collect();
    let statement = format!(
        "SELECT f.name, b.size_bytes, b.data FROM files f \
         JOIN bodies b ON b.workspace_id = f.workspace_id AND b.hash = f.content_hash \
         WHERE f.workspace_id = '{}' AND f.id IN ({})",
        side.workspace,
        list.join(", ")
    );
    let theirs = cost(options.rounds, async |_| {
        let mut bytes = 0;
        for (_name, size, data) in side.rows(&statement).await? {
            bytes += String::from_utf8(zstd::bulk::decompress(&data, usize::try_from(size)?)?)?.len();
        }
        anyhow::ensure!(bytes > MEMBERS * BODY_BYTES / 2, "the bodies are not all here");
        Ok(())
    })
    .await?;
    add(table, side, "resolve", ours);
    add(table, side, "resolve, bare", theirs);
    Ok(verdict(side, "resolving to reading the bodies", (ours, theirs), RESOLVE_LIMIT))
}

async fn delete(side: &Side, options: &Options, table: &mut Table) -> anyhow::Result<Verdict> {
    let mut client = side.folders.clone();
    let mut walls = Vec::new();
    let before = ProcessTime::now();
    let mut cpu = Duration::ZERO;
    for round in 0..DELETIONS {
        let asked = CreateFolderRequest { name: format!("many {round}"), parent_id: None };
        let made = client.create_folder(side.request(asked)).await?.into_inner();
        let folder_id = made.folder.context("no folder")?.id;
        let texts = std::iter::repeat_n("A short note.".to_owned(), options.files);
        create_files(side, Some(&folder_id), texts).await?;
        side.settle().await?;
        let (started, used) = (Instant::now(), before.elapsed());
        client.delete_folder(side.request(DeleteFolderRequest { folder_id })).await?;
        walls.push(started.elapsed());
        cpu += before.elapsed().saturating_sub(used);
    }
    let cost = Cost { wall: percentile(&walls, 0.5), cpu: cpu / u32::try_from(DELETIONS)? };
    add(table, side, &format!("delete a folder of {} files", options.files), cost);
    let what = format!("{}: deleting a folder of {} files", side.name, options.files);
    Ok((what, cost.wall.as_secs_f64() * 1e3, DELETE_LIMIT_MILLIS, "ms"))
}

/// Makes a file of each text; answers their ids.
async fn create_files(
    side: &Side,
    folder: Option<&String>,
    texts: impl Iterator<Item = String>,
) -> anyhow::Result<Vec<String>> {
    let write = |(number, content)| BatchItem {
        write: Some(Write::CreateFile(CreateFileRequest {
            name: format!("note {number}.md"),
            content,
            file_type: FileType::Markdown.into(),
            folder_id: folder.cloned(),
            ..CreateFileRequest::default()
        })),
        ..BatchItem::default()
    };
    let writes: Vec<BatchItem> = texts.enumerate().map(write).collect();
    let mut client = side.batches.clone();
    let mut ids = Vec::with_capacity(writes.len());
    for batch in writes.chunks(BATCH) {
        let asked = BatchWriteRequest { writes: batch.to_vec() };
        let answer = client.batch_write(side.request(asked)).await?.into_inner();
        ids.extend(answer.results.into_iter().filter_map(|result| match result.item {
            Some(Item::File(file)) => Some(file.id),
            Some(Item::Folder(_)) | None => None,
        }));
    }
    Ok(ids)
}
