//! A mesh under measurement: a process per service, with a temporary PostgreSQL and Redis. It is compared with the single
//! process that the same run measures; its cost is that of all of its processes.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::testing::{ports, postgres, redis};
use cairn_chassis::token_format;
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;

use super::api::{self, Api};
use super::report::Table;
use super::server::{self, Memory, OWN_TIME, Server};

const GATEWAY: &str = "gateway";
/// The gateway is last, since its readiness requires all others.
const SERVICES: [&str; 6] = ["auth", "content", "ingest", "sync", "retrieval", GATEWAY];
const POSTGRES: &str = "PostgreSQL";
const REDIS: &str = "Redis";
/// The field index in `/proc/…/stat` of the CPU time of exited children, counted after the name.
const ENDED_CHILDREN: usize = 13;

/// A deployment of one or more processes.
pub(crate) trait Measured {
    /// CPU time so far, by component.
    fn spent(&self) -> anyhow::Result<Spent>;
    /// The current memory of its own processes.
    fn memory(&self) -> anyhow::Result<Memory>;
}

impl Measured for Server {
    fn spent(&self) -> anyhow::Result<Spent> {
        Ok(Spent::of("cairn", self.cpu_time()?))
    }

    fn memory(&self) -> anyhow::Result<Memory> {
        Self::memory(self)
    }
}

impl Measured for Mesh {
    fn spent(&self) -> anyhow::Result<Spent> {
        let mut spent = Vec::new();
        for (service, member) in &self.members {
            spent.push((*service, member.cpu_time()?));
        }
        spent.push((POSTGRES, self.postgres_time()?));
        spent.push((REDIS, server::cpu_time(self.redis.process().parse()?, OWN_TIME)?));
        Ok(Spent(spent))
    }

    fn memory(&self) -> anyhow::Result<Memory> {
        let mut all = Memory { resident: 0.0, anonymous: 0.0 };
        for (_, member) in &self.members {
            let held = member.memory()?;
            all.resident += held.resident;
            all.anonymous += held.anonymous;
        }
        Ok(all)
    }
}

/// Six running processes, and their PostgreSQL and Redis.
#[derive(Debug)]
pub(crate) struct Mesh {
    /// In start order. The address of a service is that of its readiness, that of the gateway its public one.
    members: Vec<(&'static str, Server)>,
    address: SocketAddr,
    /// Of the initial account of the mesh.
    token: String,
    databases: Vec<String>,
    postmaster: u32,
    redis: redis::Server,
    _folder: TempDir,
}

/// CPU time of each component of a deployment.
#[derive(Debug)]
pub(crate) struct Spent(Vec<(&'static str, Duration)>);

impl Mesh {
    /// Starts everything, with additional environment variables for each service, and waits until the gateway is ready.
    pub(crate) async fn start(environment: &[(&str, &str)]) -> anyhow::Result<Self> {
        let redis = redis::start(redis::Mode::Alone).await.map_err(|why| anyhow!("no Redis: {why}"))?;
        let (token, folder) = (token_format::generate(&OsEntropy), TempDir::new()?);
        let (mut held, mut places) = (Vec::new(), Vec::new());
        let mut told = vec![
            ("CAIRN_MESH_SECRET".to_owned(), token_format::generate(&OsEntropy)),
            ("CAIRN_BOOTSTRAP_EMAIL".to_owned(), "owner@example.com".to_owned()),
            ("CAIRN_BOOTSTRAP_PASSWORD".to_owned(), token_format::generate(&OsEntropy)),
            ("CAIRN_BOOTSTRAP_TOKEN".to_owned(), token.clone()),
            ("CAIRN_REDIS_URL".to_owned(), redis.url()),
            // On a busy machine, slow responses must not count as an outage of Redis.
            ("CAIRN_REDIS_TIMEOUT_MS".to_owned(), "30000".to_owned()),
            // The same setting as in the single process.
            ("CAIRN_LOG".to_owned(), "warn".to_owned()),
        ];
        for service in SERVICES {
            let ((one, address), (other, admin)) = (ports::reserve()?, ports::reserve()?);
            held.extend([one, other]);
            if service != GATEWAY {
                told.push((format!("CAIRN_{}_URL", service.to_uppercase()), format!("http://{address}")));
            }
            places.push((service, address, admin));
        }
        let (mut members, mut databases) = (Vec::new(), Vec::new());
        for &(service, address, admin) in &places {
            let mut command = server::command();
            command.args(["serve", service, "--listen", &address.to_string()]);
            command.args(["--admin-listen", &admin.to_string()]);
            command.envs(told.iter().map(|(name, value)| (name, value))).envs(environment.iter().copied());
            if service != GATEWAY {
                let database = postgres::database().await.map_err(|why| anyhow!("no PostgreSQL: {why}"))?;
                let data = folder.path().join(service);
                fs::create_dir_all(&data)?;
                command.arg("--data").arg(data).args(["--database", &database]);
                databases.push(database);
            }
            let asked = if service == GATEWAY { address } else { admin };
            members.push((service, Server::spawn(command, asked)?));
        }
        let address = places.last().map(|(_, address, _)| *address).context("no gateway")?;
        for (service, member) in &mut members {
            member.ready().await.with_context(|| format!("cairn serve {service}"))?;
        }
        let postmaster = process_of(databases.first().context("no database")?)?;
        Ok(Self { members, address, token, databases, postmaster, redis, _folder: folder })
    }

    /// A client with the token of the first start.
    pub(crate) fn api(&self) -> anyhow::Result<Api> {
        Ok(Api::with_token(api::client()?, self.address, &self.token))
    }

    /// Runs ANALYZE, as autovacuum would within a minute.
    pub(crate) async fn count(&self) -> anyhow::Result<()> {
        for database in &self.databases {
            let mut connection = PgConnection::connect(database).await?;
            sqlx::raw_sql("ANALYZE").execute(&mut connection).await?;
            connection.close().await?;
        }
        Ok(())
    }

    /// Each connection is a child process of the postmaster, to which the kernel adds the CPU time of children that exit.
    fn postgres_time(&self) -> anyhow::Result<Duration> {
        let first = self.postmaster;
        let mut time = server::cpu_time(first, OWN_TIME)? + server::cpu_time(first, ENDED_CHILDREN)?;
        let children = fs::read_to_string(format!("/proc/{first}/task/{first}/children"))
            .context("the kernel does not tell the children of PostgreSQL (CONFIG_PROC_CHILDREN)")?;
        for child in children.split_whitespace() {
            // A process that has exited meanwhile is counted among the exited children instead.
            time += server::cpu_time(child.parse()?, OWN_TIME).unwrap_or_default();
        }
        Ok(time)
    }

    /// Stops it gracefully, as an orchestrator does: the gateway, then the services.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        for (_, member) in self.members.into_iter().rev() {
            member.stop().await?;
        }
        Ok(())
    }
}

impl Spent {
    /// The CPU time of one component.
    pub(crate) fn of(part: &'static str, time: Duration) -> Self {
        Self(vec![(part, time)])
    }

    pub(crate) fn total(&self) -> Duration {
        self.0.iter().map(|(_, time)| *time).sum()
    }

    /// The CPU time since an earlier reading.
    pub(crate) fn since(self, before: &Self) -> Self {
        let parts = self.0.into_iter().zip(&before.0);
        Self(parts.map(|((part, now), (_, then))| (part, now.saturating_sub(*then))).collect())
    }

    /// Prints the CPU time per request of each component, if there are several.
    pub(crate) fn print(&self, of: &str, requests: u32) {
        if self.0.len() < 2 {
            return;
        }
        let mut table = Table::new(&[of, "CPU µs"]);
        for (part, time) in &self.0 {
            let micros = time.as_secs_f64() * 1e6 / f64::from(requests.max(1));
            table.row(vec![(*part).to_owned(), format!("{micros:.1}")]);
        }
        table.print();
    }
}

/// The postmaster of the server with a database. A temporary one listens in the folder of its files.
fn process_of(database: &str) -> anyhow::Result<u32> {
    let folder = database.split_once("?host=").and_then(|(_, rest)| rest.split('&').next());
    let folder = folder.context("the CPU time of a PostgreSQL that is not thrown away cannot be told")?;
    let file = fs::read_to_string(Path::new(folder).join("data").join("postmaster.pid"))?;
    Ok(file.lines().next().unwrap_or_default().trim().parse()?)
}
