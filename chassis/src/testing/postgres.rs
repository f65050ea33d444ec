//! A temporary PostgreSQL: one server per test process, a database per test.
//!
//! The first test that needs it starts the server as a non-root user. The server stops, and its files are removed, when the
//! test process ends, even by a crash. `CAIRN_TEST_POSTGRES` names a running server to use instead (the URL of a role
//! that may create databases).

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::sync::OnceCell;

/// The prelude of scripts that run PostgreSQL, which pass themselves on as a whole in `CAIRN_POSTGRES_SCRIPT`: it drops root
/// privileges, and finds the programs of the server.
pub const TOOLS: &str = include_str!("postgres_tools.sh");
const SCRIPT: &str = concat!(include_str!("postgres_tools.sh"), include_str!("postgres.sh"));
const EXTERNAL: &str = "CAIRN_TEST_POSTGRES";
const REQUIRED: &str = "CAIRN_REQUIRE_ENGINES";
const START_LIMIT: Duration = Duration::from_secs(60);
const START_POLL: Duration = Duration::from_millis(20);

static SERVER: OnceCell<Result<Server, String>> = OnceCell::const_new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// A static is never dropped: the server stops because the end of this process closes the pipe to its script.
#[derive(Debug)]
struct Server {
    prefix: String,
    suffix: String,
    _script: Option<Child>,
}

impl Server {
    fn url(&self, database: &str) -> String {
        format!("{}{database}{}", self.prefix, self.suffix)
    }
}

/// Whether `CAIRN_REQUIRE_ENGINES` (comma-separated names) requires PostgreSQL.
pub fn is_required() -> bool {
    std::env::var(REQUIRED).is_ok_and(|names| names.split(',').any(|name| name.trim() == "postgres"))
}

/// The URL of a fresh, empty database.
///
/// # Errors
/// Why there is none: PostgreSQL is not installed, or does not start.
pub async fn database() -> Result<String, String> {
    let server = SERVER.get_or_init(start).await.as_ref().map_err(Clone::clone)?;
    let place = DATABASES.fetch_add(1, Ordering::Relaxed);
    let name = format!("cairn_test_{}_{place}", std::process::id());
    let mut admin = connect(&server.url("postgres")).await.map_err(|error| error.to_string())?;
    // The name is not input. `template0` has no connections, so several tests can copy it concurrently.
    let create = AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE template0"));
    sqlx::raw_sql(create).execute(&mut admin).await.map_err(|error| error.to_string())?;
    admin.close().await.map_err(|error| error.to_string())?;
    Ok(server.url(&name))
}

async fn connect(url: &str) -> Result<PgConnection, sqlx::Error> {
    PgConnection::connect(url).await
}

async fn start() -> Result<Server, String> {
    if let Ok(url) = std::env::var(EXTERNAL) {
        return external(&url);
    }
    let started = tokio::task::spawn_blocking(run_script).await.map_err(|error| error.to_string())??;
    let (script, folder) = started;
    let server = Server {
        prefix: "postgres://postgres@localhost/".to_owned(),
        suffix: format!("?host={folder}&sslmode=disable"),
        _script: Some(script),
    };
    let limit = Instant::now() + START_LIMIT;
    loop {
        match connect(&server.url("postgres")).await {
            Ok(connection) => {
                connection.close().await.map_err(|error| error.to_string())?;
                return Ok(server);
            }
            Err(error) if Instant::now() > limit => return Err(format!("postgres does not answer: {error}")),
            Err(_) => tokio::time::sleep(START_POLL).await,
        }
    }
}

/// The path of the URL is the database name; the rest of the URL is reused for each test database.
fn external(url: &str) -> Result<Server, String> {
    let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("{EXTERNAL} is not a URL"))?;
    let (authority, tail) = rest.split_once('/').unwrap_or((rest, ""));
    let suffix = tail.split_once('?').map(|(_, query)| format!("?{query}")).unwrap_or_default();
    Ok(Server { prefix: format!("{scheme}://{authority}/"), suffix, _script: None })
}

fn run_script() -> Result<(Child, String), String> {
    let mut script = Command::new("sh")
        .args(["-c", SCRIPT])
        .env("CAIRN_POSTGRES_SCRIPT", SCRIPT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Out of reach of a signal to the tests' process group.
        .process_group(0)
        .spawn()
        .map_err(|error| format!("no shell: {error}"))?;
    let mut folder = String::new();
    if let Some(stdout) = script.stdout.take() {
        BufReader::new(stdout).read_line(&mut folder).map_err(|error| error.to_string())?;
    }
    if folder.is_empty() {
        let mut said = String::new();
        if let Some(mut stderr) = script.stderr.take() {
            stderr.read_to_string(&mut said).map_err(|error| error.to_string())?;
        }
        script.wait().map_err(|error| error.to_string())?;
        return Err(said.trim().to_owned());
    }
    Ok((script, folder.trim().to_owned()))
}
