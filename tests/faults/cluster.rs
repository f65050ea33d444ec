//! A mesh of six processes whose connections to each other, to PostgreSQL, to Redis and to Qdrant go through proxies
//! ([`Link`]).

use std::cell::RefCell;
use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::testing::{ports, postgres, redis};
use cairn_chassis::token_format;
use reqwest::Method;
use tokio::net::TcpSocket;
use tokio::sync::Mutex;

use crate::access::{Absences, Access};
use crate::ledger::Violations;
use crate::link::{Link, Upstream};
use crate::numbers::Numbers;
use crate::orders::{Library, Orders, Refusal};
use crate::qdrant::Qdrant;
use crate::support::http::Http;
use crate::support::process::Process;
use crate::support::scratch::Scratch;
use crate::support::wait::eventually;
use crate::tables::Tables;
use crate::up::Owner;

/// In start order; the gateway is the last.
pub(crate) const SERVICES: [&str; 6] = ["auth", "content", "ingest", "sync", "retrieval", GATEWAY];
pub(crate) const GATEWAY: &str = "gateway";
/// The targets of links besides the services: the database of each, Redis, and Qdrant.
pub(crate) static LINKS: [&str; 12] = [
    "auth",
    "content",
    "ingest",
    "sync",
    "retrieval",
    "tables of auth",
    "tables of content",
    "tables of ingest",
    "tables of sync",
    "tables of retrieval",
    REDIS,
    QDRANT,
];
pub(crate) const REDIS: &str = "Redis";
pub(crate) const QDRANT: &str = "Qdrant";
const POSTGRES_SOCKET: &str = ".s.PGSQL.5432";

/// The index engine of a mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Index {
    /// Embedded in retrieval.
    Embedded,
    /// Qdrant's stand-in.
    Qdrant,
}

impl Index {
    /// The engine that a seed selects, as far as this build has it.
    pub(crate) fn of(seed: u64) -> Self {
        let wants_qdrant = Numbers::new(seed).below(2) == 0;
        if cfg!(feature = "qdrant") && wants_qdrant { Self::Qdrant } else { Self::Embedded }
    }
}

/// Six running processes.
#[derive(Debug)]
pub(crate) struct Cluster {
    members: Vec<Member>,
    links: Vec<Link>,
    environment: Vec<(String, String)>,
    access: Access,
    tables: Tables,
    /// Fault injection for the disk of PostgreSQL; `None` if the library cannot be built.
    tables_orders: Option<Orders>,
    redis: Option<Mutex<redis::Server>>,
    /// Where the index is in Qdrant.
    qdrant: Option<Qdrant>,
    _folder: Scratch,
    /// Bound, so that nobody else gets these ports.
    _held: Vec<TcpSocket>,
}

/// One process, which may be down.
#[derive(Debug)]
struct Member {
    service: &'static str,
    address: SocketAddr,
    admin: SocketAddr,
    data: PathBuf,
    /// Its URL through the link, and the direct one.
    database: Option<(String, String)>,
    /// Fault injection for its clock; `None` if the library cannot be built.
    orders: Option<Orders>,
    /// `None` while it is down.
    process: RefCell<Option<Process>>,
}

impl Cluster {
    /// Starts all six, or says why this machine cannot run them.
    pub(crate) async fn start(index: Index) -> Result<Self, String> {
        let folder = Scratch::new();
        // PostgreSQL runs as another user, who needs to read the library and its control file.
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o711)).unwrap();
        let library = Library::build(folder.path());
        if let Err(why) = &library {
            crate::say(&format!("skipped: clocks and the disk of PostgreSQL: {why}"));
        }
        let ordered = |name: &str| {
            let file = folder.path().join(format!("orders of {name}"));
            library.as_ref().ok().map(|library| Orders::new(library, &file))
        };
        let tables_orders = ordered("tables");
        let tables = started_tables(tables_orders.as_ref()).await?;
        let (mut members, mut links, mut held, mut urls) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for service in SERVICES {
            let ((one, address), (other, admin)) = (ports::reserve().unwrap(), ports::reserve().unwrap());
            held.extend([one, other]);
            let data = folder.path().join(service);
            std::fs::create_dir_all(&data).unwrap();
            let mut database = None;
            if service != GATEWAY {
                let (link, at) = Link::over_tcp(service, Upstream::Tcp(address)).await;
                urls.push((format!("CAIRN_{}_URL", service.to_uppercase()), format!("http://{at}")));
                links.push(link);
                let direct = tables.database(&format!("cairn_{service}")).await;
                let linked = linked_database(service, &tables, &data.join("postgres"), &direct, &mut links);
                database = Some((linked, direct));
            }
            let orders = ordered(service);
            let process = RefCell::new(None);
            members.push(Member { service, address, admin, data, database, orders, process });
        }
        let redis = if cfg!(feature = "redis") { redis::server(redis::Mode::Alone).await } else { None };
        if let Some(socket) = redis.as_ref().map(redis::Server::url) {
            let path = socket.strip_prefix("unix://").unwrap().into();
            let (link, at) = Link::over_tcp(REDIS, Upstream::Unix(path)).await;
            urls.push(("CAIRN_REDIS_URL".to_owned(), format!("redis://{at}")));
            links.push(link);
        }
        let qdrant = if index == Index::Qdrant { Some(Qdrant::start().await) } else { None };
        if let Some(qdrant) = &qdrant {
            let (link, at) = Link::over_tcp(QDRANT, Upstream::Tcp(qdrant.address())).await;
            urls.push(("CAIRN_QDRANT_URL".to_owned(), format!("http://{at}")));
            links.push(link);
        }
        let owner = Owner {
            email: "owner@example.com".to_owned(),
            password: format!("pass {}", token_format::generate(&OsEntropy)),
            token: token_format::generate(&OsEntropy),
        };
        let shelf = folder.path().join("shelf");
        std::fs::create_dir(&shelf).unwrap();
        let mut environment = urls;
        environment.push(("CAIRN_MESH_SECRET".to_owned(), token_format::generate(&OsEntropy)));
        environment.push(("CAIRN_BOOTSTRAP_EMAIL".to_owned(), owner.email.clone()));
        environment.push(("CAIRN_BOOTSTRAP_PASSWORD".to_owned(), owner.password.clone()));
        environment.push(("CAIRN_BOOTSTRAP_TOKEN".to_owned(), owner.token.clone()));
        environment.push(("CAIRN_SOURCE_ROOTS".to_owned(), shelf.display().to_string()));
        let gateway = members.last().map(|member| member.address).unwrap();
        let base_url = format!("http://{gateway}");
        let access = Access { base_url, owner, absences: Rc::new(Absences::default()), shelf };
        let mut cluster = Self {
            members,
            links,
            environment,
            access,
            tables,
            tables_orders,
            redis: redis.map(Mutex::new),
            qdrant,
            _folder: folder,
            _held: held,
        };
        for service in SERVICES {
            cluster.start_one(service);
        }
        cluster.wait_until_ready().await;
        Ok(cluster)
    }

    /// Waits until every process is ready.
    async fn wait_until_ready(&mut self) {
        for member in &mut self.members {
            let admin = Http::new(&format!("http://{}", member.admin));
            let process = member.process.get_mut().as_mut().unwrap();
            eventually(&format!("{} is ready", member.service), async || {
                assert!(process.ended().is_none(), "{} ended: {}", member.service, process.output());
                let reply = admin.request(Method::GET, "/readyz").attempt().await;
                reply.is_ok_and(|reply| reply.status == 200).then_some(())
            })
            .await;
        }
    }

    /// Starts a service again at its address.
    pub(crate) fn start_one(&self, service: &str) {
        if service == GATEWAY {
            self.access.absences.start();
        }
        let member = self.member(service);
        let mut arguments: Vec<String> = ["serve", service].map(str::to_owned).to_vec();
        arguments.extend(["--listen".to_owned(), member.address.to_string()]);
        arguments.extend(["--admin-listen".to_owned(), member.admin.to_string()]);
        if let Some((linked, _)) = &member.database {
            arguments.extend(["--data".to_owned(), member.data.display().to_string()]);
            arguments.extend(["--database".to_owned(), linked.clone()]);
        }
        let common = self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let environment: Vec<_> = common.chain(member.orders.iter().flat_map(Orders::environment)).collect();
        let process = Process::start(&format!("cairn serve {service}"), &arguments, &environment);
        *member.process.borrow_mut() = Some(process);
    }

    /// `kill -9`.
    pub(crate) fn kill(&self, service: &str) {
        self.take(service).kill();
    }

    /// SIGTERM, and waits for the exit.
    pub(crate) async fn end(&self, service: &str) {
        let mut process = self.take(service);
        process.ask_to_stop();
        process.exit().await;
    }

    /// Sends a signal to a service.
    pub(crate) fn signal(&self, service: &str, name: &str) {
        self.member(service).process.borrow().as_ref().unwrap().signal(name);
    }

    /// Restarts processes that exited by themselves, see [`Stage::tend`](crate::stage::Stage::tend).
    pub(crate) fn tend(&self, violations: &Violations) {
        for service in SERVICES {
            let listens = format!("cairn {service} listening on");
            let process = &self.member(service).process;
            let has_ended = process.borrow_mut().as_mut().is_some_and(|it| it.ended().is_some());
            let has_started = process.borrow().as_ref().is_some_and(|it| it.output().contains(&listens));
            if service == GATEWAY && has_started {
                self.access.absences.started();
            }
            if !has_ended {
                continue;
            }
            let said = self.take(service).output();
            if has_started {
                violations.note(format!("{service} ended by itself: {said}"));
            }
            crate::say(&format!("{service} has ended by itself, and is started again"));
            self.start_one(service);
        }
    }

    /// Records that a service is about to go down: clients notice only the gateway.
    pub(crate) fn note_absence(&self, service: &str) {
        if service == GATEWAY {
            self.access.absences.begin();
        }
    }

    /// Records that a service is back, or about to be.
    pub(crate) fn note_return(&self, service: &str) {
        if service == GATEWAY {
            self.access.absences.end();
        }
    }

    /// The index engine.
    pub(crate) fn index(&self) -> Index {
        if self.qdrant.is_some() { Index::Qdrant } else { Index::Embedded }
    }

    /// Qdrant's stand-in, where the index is in it.
    pub(crate) fn qdrant(&self) -> Option<&Qdrant> {
        self.qdrant.as_ref()
    }

    /// A link by name; `None` for Redis if it is not installed, and for Qdrant if the index is not in it.
    pub(crate) fn link(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.name() == name)
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// `kill -9` of PostgreSQL with all of its children; it is restarted by its watchdog.
    pub(crate) fn kill_tables(&self) {
        self.tables.kill();
    }

    /// Makes all writes to PostgreSQL's disk fail from now on, or succeed again.
    pub(crate) fn refuse_writes_of_tables(&self, refusal: Option<Refusal>) {
        if let Some(orders) = &self.tables_orders {
            orders.refuse_writes(refusal);
        }
    }

    /// The Redis server, if there is one.
    pub(crate) fn redis(&self) -> Option<&Mutex<redis::Server>> {
        self.redis.as_ref()
    }

    /// Shifts the clock of a service relative to the true time.
    pub(crate) fn shift_clock(&self, service: &str, millis: i64) {
        if let Some(orders) = &self.member(service).orders {
            orders.shift_clock(millis);
        }
    }

    /// Stops every process; returns the databases of those that have one.
    pub(crate) async fn stop(&self) -> Vec<(&'static str, String)> {
        for service in SERVICES.into_iter().rev() {
            self.end(service).await;
        }
        let databases =
            self.members.iter().filter_map(|member| Some((member.service, member.database.as_ref()?)));
        databases.map(|(service, (_, direct))| (service, direct.clone())).collect()
    }

    pub(crate) fn show_logs(&self) {
        self.members.iter().for_each(|member| member.process.borrow().iter().for_each(Process::show_log));
    }

    fn member(&self, service: &str) -> &Member {
        self.members.iter().find(|member| member.service == service).unwrap()
    }

    fn take(&self, service: &str) -> Process {
        self.member(service).process.take().unwrap()
    }
}

async fn started_tables(orders: Option<&Orders>) -> Result<Tables, String> {
    match Tables::start(orders).await {
        Err(why) if postgres::is_required() => panic!("CAIRN_REQUIRE_ENGINES wants postgres: {why}"),
        started => started.map_err(|why| format!("the mesh needs PostgreSQL: {why}")),
    }
}

/// The same database through a link: the URL names the folder with the socket that the link listens on.
fn linked_database(
    service: &str,
    tables: &Tables,
    socket: &Path,
    direct: &str,
    links: &mut Vec<Link>,
) -> String {
    std::fs::create_dir_all(socket).unwrap();
    let upstream = Upstream::Unix(tables.folder().join(POSTGRES_SOCKET));
    links.push(Link::over_unix(&format!("tables of {service}"), &socket.join(POSTGRES_SOCKET), upstream));
    direct.replace(&tables.folder().display().to_string(), &socket.display().to_string())
}
