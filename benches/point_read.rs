//! What a whole point read costs over HTTP, against a bare server: `cargo bench --bench point_read -- --help`.

#[path = "support/api.rs"]
mod api;
#[path = "support/bare.rs"]
mod bare;
#[path = "support/mesh.rs"]
mod mesh;
#[path = "support/report.rs"]
mod report;
#[path = "support/samples.rs"]
mod samples;
#[path = "support/server.rs"]
mod server;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use clap::Parser;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use tempfile::TempDir;

use self::api::{Api, accepted};
use self::mesh::{Measured, Mesh};
use self::report::{Run, Table, Verdicts};
use self::samples::percentile;
use self::server::Server;

/// The maximum ratio of a whole point read to the bare handler, in CPU time.
const RATIO_LIMIT: f64 = 3.0;
/// The maximum ratio of a mesh to one process, in total CPU time.
const MESH_LIMIT: f64 = 3.0;
const BODY_SIZES: [usize; 2] = [2_000, 64_000];
const ROUNDS: u32 = 3;
const CONNECTIONS: u32 = 8;
const WARM_UP: u32 = 500;
/// The same as in `cairn_chassis::sql`.
const READERS: u32 = 4;

const CREATE: &str = "CREATE TABLE files (id TEXT NOT NULL PRIMARY KEY, workspace_id TEXT NOT NULL, folder_id TEXT, \
     name TEXT NOT NULL, path TEXT NOT NULL, file_type TEXT NOT NULL, content TEXT NOT NULL, size_bytes BIGINT NOT NULL, \
     content_hash TEXT NOT NULL, version BIGINT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL)";
const INSERT: &str = "INSERT INTO files (id, workspace_id, folder_id, name, path, file_type, content, size_bytes, \
     content_hash, version, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
const SELECT: &str = "SELECT * FROM files WHERE id = $1";

/// Measures `GET /api/v1/files/{id}` of a `cairn up` in a process of its own: token exchange (remembered for a second),
/// identity check, two in-process gRPC hops, path and body from SQLite, JSON with ETag and request id. The peer is
/// an axum handler in a process of its own that does one SELECT by primary key with sqlx on SQLite and answers the
/// same JSON, with no authentication, no hops, no telemetry.
///
/// One client asks both over 8 kept-alive connections, in turns, three rounds each. The figure is the server
/// process's CPU time (user and system, from /proc) for each request; wall times are the client's and say little,
/// since client and server share the cores. Limit: the median of the rounds is at most 3 times the peer's.
///
/// With --mesh, six processes on PostgreSQL and Redis are asked after them. Their figure is the CPU time of everything,
/// PostgreSQL and Redis included. Limit: 3 times that of the one process.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Requests of a round.
    #[arg(long, default_value_t = 10_000)]
    requests: u32,
    /// Ask a mesh, too.
    #[arg(long)]
    mesh: bool,
    #[command(flatten)]
    run: Run,
    /// Be the bare server.
    #[arg(long, hide = true, requires = "database")]
    bare: Option<SocketAddr>,
    #[arg(long, hide = true)]
    database: Option<PathBuf>,
}

/// A file as both sides return it.
#[derive(Debug, Serialize, Deserialize, sqlx::FromRow)]
#[serde(rename_all = "camelCase")]
struct File {
    id: String,
    workspace_id: String,
    folder_id: Option<String>,
    name: String,
    path: String,
    file_type: String,
    content: String,
    /// Not in the table, but in the response, so that both sides return the same fields.
    #[sqlx(skip)]
    tags: Vec<String>,
    size_bytes: i64,
    content_hash: String,
    version: i64,
    created_at: String,
    updated_at: String,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match (options.bare, &options.database) {
        (Some(address), Some(database)) => runtime.block_on(serve_bare(address, database)),
        _ if options.run.is_bench() => runtime.block_on(run(options)),
        _ => Ok(()),
    }
}

async fn run(options: Options) -> anyhow::Result<()> {
    let data = TempDir::new()?;
    let mut cairn = Server::cairn(data.path())?;
    cairn.ready().await?;
    let api = Api::open(cairn.address, data.path())?;
    let mut table =
        Table::new(&["", "CPU µs", "p50 µs", "p99 µs", "answer bytes", "MiB resident", "of it heap"]);
    let mut costs = Vec::new();
    for size in BODY_SIZES {
        let path = make(&api, size).await?;
        let file: File = accepted(api.request(Method::GET, &path)).await?.json().await?;
        let database = data.path().join(format!("bare-{size}.db"));
        store(&database, &file).await?;
        let mut peer = bare::start(&["--database", &database.to_string_lossy()])?;
        peer.ready().await?;
        let peer_api = Api::open(peer.address, data.path())?;

        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        round(&cairn, &api, &path, WARM_UP).await?;
        round(&peer, &peer_api, &path, WARM_UP).await?;
        for _ in 0..ROUNDS {
            ours.push(round(&cairn, &api, &path, options.requests).await?);
            theirs.push(round(&peer, &peer_api, &path, options.requests).await?);
        }
        let ours_cpu = add(&mut table, &format!("cairn, {size} bytes"), &ours, &cairn)?;
        let theirs_cpu = add(&mut table, &format!("bare, {size} bytes"), &theirs, &peer)?;
        costs.push((size, ours_cpu, theirs_cpu));
        peer.stop().await?;
    }
    cairn.stop().await?;
    let of_mesh = if options.mesh { in_mesh(&mut table, options.requests).await? } else { Vec::new() };
    table.print();
    let mut verdicts = Verdicts::default();
    for (size, ours, theirs) in &costs {
        let what = format!("CPU of a point read of {size} bytes to the bare handler's");
        verdicts.at_most(&what, ours / theirs, RATIO_LIMIT, "times");
    }
    for ((size, ours, _), all) in costs.iter().zip(of_mesh) {
        let what = format!("CPU of a point read of {size} bytes by a mesh to that by one process");
        verdicts.at_most(&what, all / ours, MESH_LIMIT, "times");
    }
    verdicts.finish(&options.run)
}

/// Measures a mesh; returns its CPU microseconds per request for each size.
async fn in_mesh(table: &mut Table, requests: u32) -> anyhow::Result<Vec<f64>> {
    let mesh = Mesh::start(&[]).await?;
    let api = mesh.api()?;
    let mut costs = Vec::new();
    for size in BODY_SIZES {
        let path = make(&api, size).await?;
        mesh.count().await?;
        round(&mesh, &api, &path, WARM_UP).await?;
        let (before, mut rounds) = (mesh.spent()?, Vec::new());
        for _ in 0..ROUNDS {
            rounds.push(round(&mesh, &api, &path, requests).await?);
        }
        mesh.spent()?.since(&before).print(&format!("a read of {size} bytes in the mesh"), requests * ROUNDS);
        costs.push(add(table, &format!("mesh, {size} bytes"), &rounds, &mesh)?);
    }
    mesh.stop().await?;
    Ok(costs)
}

/// Creates a file of that size; returns its URL.
async fn make(api: &Api, size: usize) -> anyhow::Result<String> {
    let text = "A line of the file.\n".repeat(size / 20);
    let (id, _change) = api.create_file(&format!("{size}.md"), &text).await?;
    Ok(format!("/api/v1/files/{id}"))
}

/// The cost of a round.
struct Round {
    cpu: Duration,
    walls: Vec<Duration>,
    bytes: usize,
    requests: u32,
}

/// Sends requests on several connections until that many responses were read.
async fn round(server: &impl Measured, api: &Api, path: &str, requests: u32) -> anyhow::Result<Round> {
    let before = server.spent()?;
    let left = Arc::new(AtomicU32::new(requests));
    let askers = (0..CONNECTIONS).map(|_| {
        let left = Arc::clone(&left);
        async move {
            let (mut walls, mut bytes) = (Vec::new(), 0);
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
            {
                let started = Instant::now();
                bytes = accepted(api.request(Method::GET, path)).await?.bytes().await?.len();
                walls.push(started.elapsed());
            }
            anyhow::Ok((walls, bytes))
        }
    });
    let answered = futures::future::try_join_all(askers).await?;
    let cpu = server.spent()?.since(&before).total();
    let bytes = answered.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    let walls = answered.into_iter().flat_map(|(walls, _)| walls).collect();
    Ok(Round { cpu, walls, bytes, requests })
}

/// Adds the median round to the report, and returns its CPU microseconds per request.
fn add(table: &mut Table, name: &str, rounds: &[Round], server: &impl Measured) -> anyhow::Result<f64> {
    let memory = server.memory()?;
    let costs: Vec<Duration> = rounds.iter().map(|round| round.cpu / round.requests).collect();
    let cpu = micros(percentile(&costs, 0.5));
    let walls: Vec<Duration> = rounds.iter().flat_map(|round| round.walls.iter().copied()).collect();
    table.row(vec![
        name.to_owned(),
        format!("{cpu:.1}"),
        format!("{:.0}", micros(percentile(&walls, 0.5))),
        format!("{:.0}", micros(percentile(&walls, 0.99))),
        rounds.iter().map(|round| round.bytes).max().unwrap_or(0).to_string(),
        format!("{:.1}", memory.resident),
        format!("{:.1}", memory.anonymous),
    ]);
    Ok(cpu)
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

async fn store(database: &Path, file: &File) -> anyhow::Result<()> {
    let pool =
        SqlitePool::connect_with(SqliteConnectOptions::new().filename(database).create_if_missing(true))
            .await?;
    sqlx::query(CREATE).execute(&pool).await?;
    sqlx::query(INSERT)
        .bind(&file.id)
        .bind(&file.workspace_id)
        .bind(&file.folder_id)
        .bind(&file.name)
        .bind(&file.path)
        .bind(&file.file_type)
        .bind(&file.content)
        .bind(file.size_bytes)
        .bind(&file.content_hash)
        .bind(file.version)
        .bind(&file.created_at)
        .bind(&file.updated_at)
        .execute(&pool)
        .await?;
    pool.close().await;
    Ok(())
}

async fn serve_bare(address: SocketAddr, database: &Path) -> anyhow::Result<()> {
    let pool = SqlitePoolOptions::new()
        .max_connections(READERS)
        .test_before_acquire(false)
        .connect_with(SqliteConnectOptions::new().filename(database))
        .await
        .context("cannot open the bare server's database")?;
    let read = |State(pool): State<SqlitePool>, axum::extract::Path(id): axum::extract::Path<String>| async move {
        let found: Result<Option<File>, sqlx::Error> =
            sqlx::query_as(SELECT).bind(&id).fetch_optional(&pool).await;
        match found {
            Ok(Some(file)) => Ok(Json(file)),
            Ok(None) => Err(axum::http::StatusCode::NOT_FOUND),
            Err(_) => Err(axum::http::StatusCode::INTERNAL_SERVER_ERROR),
        }
    };
    let router = Router::new()
        .route("/api/v1/files/{id}", get(read))
        .route("/readyz", get(async || ()))
        .with_state(pool);
    bare::serve(address, router).await
}
