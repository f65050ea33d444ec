//! CPU time of the server over HTTP per page of a database's records, and per inserted record:
//! `cargo bench --bench records -- --help`.

#[expect(dead_code, reason = "files are written by other benches")]
#[path = "../support/api.rs"]
mod api;
mod directus;
mod fill;
mod flat;
mod inserts;
#[path = "../support/mesh.rs"]
mod mesh;
mod pages;
#[path = "../support/report.rs"]
mod report;
mod sample;
#[path = "../support/server.rs"]
mod server;
#[path = "../support/tasks.rs"]
mod tasks;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::Parser;
use tempfile::TempDir;

use self::api::Api;
use self::directus::Directus;
use self::fill::fill;
use self::mesh::{Measured as _, Mesh};
use self::pages::{Cost, MIN_REQUESTS, add, measure};
use self::report::{Run, Table, Verdicts};
use self::sample::Sample;
use self::server::Server;

const PAGE_LIMIT_MILLIS: f64 = 0.6;
const SEARCH_LIMIT_MILLIS: f64 = 0.8;
const LARGE_PAGE_LIMIT_MILLIS: f64 = 3.0;
const LARGE_SEARCH_LIMIT_MILLIS: f64 = 8.0;
const INSERT_LIMIT_MILLIS: f64 = 0.8;
const MIN_INSERTS_PER_SECOND: f64 = 3_000.0;
/// The maximum ratio of CPU time to that of Directus.
const PEER_LIMIT: f64 = 1.0;
/// Directus gets one request in this many. It is slow enough that a kernel clock tick stays a small measurement error.
const PEER_SAMPLING: u32 = 10;
/// From this many records on the limits of large databases apply.
const LARGE_FROM: u32 = 200_000;
const BUDGET_MEBIBYTES: &str = "CAIRN_RECORDS_MEMORY_MB";

/// Measures pages of 50 records of a database with 7 properties (two texts, number, date, truth, select, multi-select) of a
/// `cairn up` in a process of its own: filtered by a select and by a text, sorted by a number, with offsets up to 950 and
/// deep ones, found by words, and the page of a record. Beside it the same build with CAIRN_RECORDS_MEMORY_MB=0, which
/// answers by SQL; and SQLite in this process over a flat table with the right index, and with LIKE for the search: page
/// and total. Figures are CPU time of the server a request. Limits: page .6 ms and search .8 ms; with 200 000 records and
/// more, 3 and 8 ms, by one client.
///
/// Then records are inserted one by one into such a database of another `cairn up`, by one writer and by 8: CPU time of the
/// server a record until the last is found with its token, and records a second. Limits: .8 ms, 3 000 a second.
///
/// With --mesh, six processes on PostgreSQL and Redis answer the same, from columns; their figures are the CPU time of
/// everything.
///
/// With --directus, Directus on SQLite, of npm, gets the same records, with indexes on what is sorted and filtered, and is
/// asked the same. It wants `npm install directus sqlite3` in DIR; without DIR it is installed for this run alone. Limit: what
/// Cairn takes is at most what it takes.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Records in the database.
    #[arg(long, default_value_t = 10_000)]
    records: u32,
    /// Requests of each kind.
    #[arg(long, default_value_t = 600)]
    requests: u32,
    /// Records that 8 writers insert.
    #[arg(long, default_value_t = 5_000)]
    inserts: u32,
    /// Megabytes for columns.
    #[arg(long, default_value_t = 1024)]
    memory: u32,
    /// Ask a mesh, too.
    #[arg(long)]
    mesh: bool,
    /// Ask Directus, too.
    #[arg(long, value_name = "DIR")]
    directus: Option<Option<PathBuf>>,
    #[command(flatten)]
    run: Run,
}

/// The results of Cairn.
#[derive(Debug)]
struct Measurements {
    table: Table,
    verdicts: Verdicts,
    /// By the name of the query.
    pages: Vec<(String, Cost)>,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if !options.run.is_bench() {
        return Ok(());
    }
    let is_large = options.records >= LARGE_FROM;
    let has_others = options.mesh || options.directus.is_some();
    ensure!(
        !(has_others && is_large),
        "others are filled over their APIs, with less than {LARGE_FROM} records"
    );
    let data = TempDir::new()?;
    let mut cairn = Server::cairn(data.path())?;
    cairn.ready().await?;
    let sample = Sample::make(&Api::open(cairn.address, data.path())?).await?;
    cairn.stop().await?;
    // Only SQL reads cells, and it is not measured on a large database.
    fill(data.path(), &sample, options.records, !is_large).await?;

    let mut measured = Measurements {
        table: Table::new(&["", "alone, CPU ms", "8 at once", "wall ms"]),
        verdicts: Verdicts::default(),
        pages: Vec::new(),
    };
    in_columns(&mut measured, &options, data.path(), &sample).await?;
    let mut inserted = None;
    if !is_large {
        by_sql(&mut measured.table, &options, data.path(), &sample).await?;
        inserted = Some(insert(&mut measured, &options).await?);
    }
    if options.mesh {
        in_mesh(&mut measured.table, &options).await?;
    }
    flat::measure(&mut measured.table, options.records, options.requests, data.path()).await?;
    if let (Some(folder), Some(inserted)) = (&options.directus, &inserted) {
        beside_directus(&mut measured, &options, folder.as_deref(), inserted).await?;
    }
    measured.table.print();
    measured.verdicts.finish(&options.run)
}

async fn in_columns(
    measured: &mut Measurements,
    options: &Options,
    data: &Path,
    sample: &Sample,
) -> anyhow::Result<()> {
    let memory = options.memory.to_string();
    let mut server = Server::cairn_with(data, &[(BUDGET_MEBIBYTES, OsStr::new(&memory))])?;
    server.ready().await?;
    let api = Api::open(server.address, data)?;
    let before = server.memory()?;
    let (waited, cpu) = sample.wait_for_columns(&server, &api).await?;
    let after = server.memory()?;
    for question in sample.questions(options.records, &fill::id(options.records / 2)) {
        let cost = measure(&server, &api, &question, options.requests).await?;
        add(&mut measured.table, &format!("cairn: {}", question.name), &cost);
        let limit = match (question.is_search, options.records >= LARGE_FROM) {
            (false, false) => PAGE_LIMIT_MILLIS,
            (true, false) => SEARCH_LIMIT_MILLIS,
            (false, true) => LARGE_PAGE_LIMIT_MILLIS,
            (true, true) => LARGE_SEARCH_LIMIT_MILLIS,
        };
        measured.verdicts.at_most(&question.name, cost.alone, limit, "ms of CPU");
        measured.pages.push((question.name, cost));
    }
    server.stop().await?;
    println!(
        "columns: read in {waited:.1} s and {cpu:.1} s of CPU; {:.1} MiB resident more, {:.0} bytes a record",
        after.resident - before.resident,
        (after.resident - before.resident) * f64::from(1 << 20) / f64::from(options.records)
    );
    Ok(())
}

async fn by_sql(table: &mut Table, options: &Options, data: &Path, sample: &Sample) -> anyhow::Result<()> {
    let mut engine = Server::cairn_with(data, &[(BUDGET_MEBIBYTES, OsStr::new("0"))])?;
    engine.ready().await?;
    let api = Api::open(engine.address, data)?;
    for question in sample.questions(options.records, &fill::id(options.records / 2)) {
        let cost = measure(&engine, &api, &question, options.requests / 20).await?;
        add(table, &format!("by SQL: {}", question.name), &cost);
    }
    engine.stop().await
}

/// Measures inserts into a database that was filled over the API, so that its records are in the search index, too.
async fn insert(measured: &mut Measurements, options: &Options) -> anyhow::Result<inserts::Cost> {
    let data = TempDir::new()?;
    let mut server = Server::cairn(data.path())?;
    server.ready().await?;
    let api = Api::open(server.address, data.path())?;
    let sample = Sample::make(&api).await?;
    sample.send(&api, options.records).await?;
    let target = inserts::Cairn { api: &api, sample: &sample, records: options.records };
    let alone = options.requests.max(MIN_REQUESTS);
    let cost = inserts::measure(&server, &target, alone, options.inserts).await?;
    server.stop().await?;
    inserts::add(&mut measured.table, "cairn", &cost);
    let verdicts = &mut measured.verdicts;
    verdicts.at_most("insert, with its indexing", cost.alone, INSERT_LIMIT_MILLIS, "ms of CPU");
    let of_many = format!("{} inserts by {} writers, each", options.inserts, inserts::WRITERS);
    verdicts.at_most(&of_many, 1e3 / cost.per_second, 1e3 / MIN_INSERTS_PER_SECOND, "ms");
    Ok(cost)
}

/// Runs the same queries on Directus, with fewer requests, as it is much slower.
async fn beside_directus(
    measured: &mut Measurements,
    options: &Options,
    folder: Option<&Path>,
    inserted: &inserts::Cost,
) -> anyhow::Result<()> {
    let Some(directus) = Directus::start(folder, options.records).await? else { return Ok(()) };
    for question in directus::questions(options.records) {
        let theirs = measure(&directus, directus.api(), &question, options.requests / PEER_SAMPLING).await?;
        add(&mut measured.table, &format!("Directus: {}", question.name), &theirs);
        let ours = measured.pages.iter().find(|(name, _)| *name == question.name);
        let (_, ours) = ours.context("Cairn is not asked what Directus is")?;
        let what = format!("{}, to Directus", question.name);
        measured.verdicts.at_most(&what, ours.alone / theirs.alone, PEER_LIMIT, "times its CPU");
    }
    let alone = (options.requests / PEER_SAMPLING).max(MIN_REQUESTS);
    let theirs = inserts::measure(&directus, &directus, alone, options.inserts / PEER_SAMPLING).await?;
    inserts::add(&mut measured.table, "Directus", &theirs);
    let verdicts = &mut measured.verdicts;
    verdicts.at_most("insert, to Directus", inserted.alone / theirs.alone, PEER_LIMIT, "times its CPU");
    let of_many = format!("an insert by {} writers, to Directus", inserts::WRITERS);
    verdicts.at_most(&of_many, theirs.per_second / inserted.per_second, PEER_LIMIT, "times its time");
    println!("Directus: {:.0} MiB resident\n", directus.memory()?.resident);
    Ok(())
}

/// Runs the same queries on a mesh, and prints the CPU time per process.
async fn in_mesh(table: &mut Table, options: &Options) -> anyhow::Result<()> {
    let mesh = Mesh::start(&[(BUDGET_MEBIBYTES, options.memory.to_string().as_str())]).await?;
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
    // Each query runs with one client, and with several.
    let requests = 2 * options.requests.max(MIN_REQUESTS) * u32::try_from(questions.len())?;
    mesh.spent()?.since(&before).print("a page in the mesh", requests);
    println!("the mesh: {:.0} MiB resident in its six processes\n", mesh.memory()?.resident);
    mesh.stop().await
}
