//! A dedicated PostgreSQL that may be killed: unlike the temporary server of other tests it has fsync enabled, and it
//! is restarted whenever it exits.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cairn_chassis::testing::postgres;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::time::Instant;

use crate::orders::Orders;

const SCRIPT: &str = include_str!("tables.sh");
const START_LIMIT: Duration = Duration::from_secs(60);
const START_POLL: Duration = Duration::from_millis(50);

/// A running server.
#[derive(Debug)]
pub(crate) struct Tables {
    /// Closing its standard input ends the script, which stops the server.
    script: Child,
    folder: PathBuf,
}

impl Tables {
    /// Starts it with these faults, or says why this machine cannot run it.
    pub(crate) async fn start(orders: Option<&Orders>) -> Result<Self, String> {
        let ordered = orders.into_iter().flat_map(Orders::environment);
        let whole = format!("{}{SCRIPT}", postgres::TOOLS);
        let mut script = Command::new("sh")
            .args(["-c", &whole])
            // Applies to the server only, not to the shell.
            .envs(ordered.map(|(name, value)| (format!("CAIRN_TABLES_{name}"), value)))
            .env("CAIRN_POSTGRES_SCRIPT", &whole)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Not reached by a signal to the tests' process group.
            .process_group(0)
            .spawn()
            .map_err(|error| format!("no shell: {error}"))?;
        let mut folder = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut folder).unwrap();
        if folder.is_empty() {
            let mut said = String::new();
            script.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            script.wait().unwrap();
            return Err(said.trim().to_owned());
        }
        let tables = Self { script, folder: folder.trim().into() };
        let end = Instant::now() + START_LIMIT;
        while let Err(error) = PgConnection::connect(&tables.url("postgres")).await {
            if Instant::now() > end {
                return Err(format!("postgres does not answer: {error}"));
            }
            tokio::time::sleep(START_POLL).await;
        }
        Ok(tables)
    }

    /// The folder of its socket.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates an empty database; returns its URL, with a socket in that folder.
    pub(crate) async fn database(&self, name: &str) -> String {
        let mut admin = PgConnection::connect(&self.url("postgres")).await.unwrap();
        // The name is a constant.
        let create = AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE template0"));
        sqlx::raw_sql(create).execute(&mut admin).await.unwrap();
        admin.close().await.unwrap();
        self.url(name)
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://postgres@localhost/{database}?host={}&sslmode=disable", self.folder.display())
    }

    /// `kill -9` of the whole server: the script restarts it.
    pub(crate) fn kill(&self) {
        // It may not exist during a start.
        let Ok(written) = std::fs::read_to_string(self.folder.join("data/postmaster.pid")) else { return };
        let Some(server) = written.lines().next() else { return };
        // The file stays when a server is killed. Until the next one has rewritten it, another process may have that
        // pid.
        let name = std::fs::read_to_string(format!("/proc/{server}/comm")).unwrap_or_default();
        if name.trim() != "postgres" {
            return;
        }
        let of_server = std::fs::read_to_string(format!("/proc/{server}/task/{server}/children"));
        let children = of_server.unwrap_or_default();
        // The server first, so that it forks no more; some of the others may have exited by then.
        let all = std::iter::once(server).chain(children.split_whitespace());
        let _status = Command::new("kill").arg("-KILL").args(all).stderr(Stdio::null()).status();
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        // It removes its files; a failure is of no interest here.
        let _status = self.script.wait();
    }
}
