//! `cairn serve …`: six processes over TCP, each service with a PostgreSQL database of its own.

use std::net::SocketAddr;
use std::process::ExitStatus;

use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::testing::{ports, postgres, redis};
use cairn_chassis::token_format;

use super::deployment::Owner;
use super::http::Http;
use super::process::Process;
use super::scratch::Scratch;
use super::wait::eventually;

/// The services in start order: each after those that it calls, except for svc-auth, which calls all of them back, and
/// svc-content, which calls svc-ingest.
pub(crate) const SERVICES: [&str; 5] = ["auth", "content", "ingest", "sync", "retrieval"];
const GATEWAY: &str = "gateway";
const ANY_PORT: &str = "127.0.0.1:0";

/// Six running processes.
#[derive(Debug)]
pub(crate) struct Mesh {
    /// In start order; gateways come last.
    members: Vec<Member>,
    owner: Owner,
    mesh_secret: String,
    /// The reserved addresses of the services that svc-auth calls, known before they start.
    called_back: Vec<(&'static str, SocketAddr)>,
    /// The first gateway's reserved address, known before it starts: links in mails point there.
    gateway: SocketAddr,
    folder: Scratch,
    environment: Vec<(&'static str, &'static str)>,
    /// The counters that gateways share; without Redis on the machine each gateway counts for itself.
    redis: Option<redis::Server>,
}

/// One process of the mesh.
#[derive(Debug)]
struct Member {
    service: &'static str,
    database: Option<String>,
    address: String,
    admin: String,
    /// The gateway's public gRPC address.
    public_grpc: Option<String>,
    process: Process,
}

impl Mesh {
    /// Starts all six, or returns why this machine cannot run a mesh.
    pub(crate) async fn start() -> Result<Self, String> {
        Self::start_with(&[]).await
    }

    /// Like [`Self::start`], with additional environment for each process.
    pub(crate) async fn start_with(environment: &[(&'static str, &'static str)]) -> Result<Self, String> {
        let mut databases = Vec::new();
        for service in SERVICES {
            match postgres::database().await {
                Ok(url) => databases.push((service, url)),
                Err(why) if postgres::is_required() => panic!("CAIRN_REQUIRE_ENGINES wants postgres: {why}"),
                Err(why) => return Err(format!("the mesh needs PostgreSQL: {why}")),
            }
        }
        let owner = Owner {
            email: "owner@example.com".to_owned(),
            password: format!("pass {}", token_format::generate(&OsEntropy)),
            token: token_format::generate(&OsEntropy),
        };
        let mesh_secret = token_format::generate(&OsEntropy);
        let folder = Scratch::new();
        let environment = environment.to_vec();
        let called = SERVICES.into_iter().filter(|service| *service != "auth");
        let (_held, called_back): (Vec<_>, Vec<_>) = called
            .map(|service| {
                let (held, address) = ports::reserve().unwrap();
                (held, (service, address))
            })
            .unzip();
        let (_held_too, gateway) = ports::reserve().unwrap();
        let redis = if cfg!(feature = "redis") { redis::server(redis::Mode::Alone).await } else { None };
        let mut mesh = Self {
            members: Vec::new(),
            owner,
            mesh_secret,
            called_back,
            gateway,
            folder,
            environment,
            redis,
        };
        for (service, database) in databases {
            let reserved = mesh.called_back.iter().find(|(called, _)| *called == service);
            let listen = reserved.map_or_else(|| ANY_PORT.to_owned(), |(_, address)| address.to_string());
            mesh.start_member(service, Some(database), &listen).await;
        }
        mesh.start_member(GATEWAY, None, &gateway.to_string()).await;
        Ok(mesh)
    }

    async fn start_member(&mut self, service: &'static str, database: Option<String>, listen: &str) {
        let mut arguments: Vec<String> = ["serve", service, "--listen", listen].map(str::to_owned).to_vec();
        arguments.extend(["--admin-listen", ANY_PORT].map(str::to_owned));
        if service == GATEWAY {
            arguments.extend(["--grpc-listen", ANY_PORT].map(str::to_owned));
        }
        if let Some(url) = &database {
            let data = self.folder.path().join(service);
            std::fs::create_dir_all(&data).unwrap();
            arguments.extend(["--data".to_owned(), data.display().to_string()]);
            arguments.extend(["--database".to_owned(), url.clone()]);
        }
        if service == "auth" {
            for (called, address) in &self.called_back {
                arguments.extend([format!("--{called}-url"), format!("http://{address}")]);
            }
        }
        let told = |member: &&Member| service != "auth" && ![service, GATEWAY].contains(&member.service);
        for member in self.members.iter().filter(told) {
            arguments.extend([format!("--{}-url", member.service), format!("http://{}", member.address)]);
        }
        // svc-content calls svc-ingest, which starts after it.
        let is_told = self.members.iter().any(|member| member.service == "ingest");
        let ingest = self.called_back.iter().find(|(called, _)| *called == "ingest");
        if let ("content", false, Some((_, address))) = (service, is_told, ingest) {
            arguments.extend(["--ingest-url".to_owned(), format!("http://{address}")]);
        }
        let mut environment = vec![("CAIRN_MESH_SECRET", self.mesh_secret.as_str())];
        let gateway = format!("http://{}", self.gateway);
        if service == "auth" {
            environment.extend([
                ("CAIRN_BASE_URL", gateway.as_str()),
                ("CAIRN_BOOTSTRAP_EMAIL", self.owner.email.as_str()),
                ("CAIRN_BOOTSTRAP_PASSWORD", self.owner.password.as_str()),
                ("CAIRN_BOOTSTRAP_TOKEN", self.owner.token.as_str()),
            ]);
        }
        let redis = self.redis.as_ref().map(redis::Server::url);
        // A busy machine must not look like an unavailable Redis.
        environment.push(("CAIRN_REDIS_TIMEOUT_MS", "30000"));
        environment
            .extend(redis.as_deref().filter(|_| service == GATEWAY).map(|url| ("CAIRN_REDIS_URL", url)));
        environment.extend(self.environment.iter().copied());
        let mut process = Process::start(&format!("cairn serve {service}"), &arguments, &environment);
        let what = format!("{service} says where it listens");
        let (address, admin, public_grpc) = eventually(&what, async || {
            if let Some(status) = process.ended() {
                panic!("cairn serve {service} ended with {status}: {}{}", process.stdout(), process.stderr());
            }
            announced(service, &process.stdout())
        })
        .await;
        self.members.push(Member { service, database, address, admin, public_grpc, process });
    }

    /// Kills one service: `kill -9`.
    pub(crate) fn kill(&mut self, service: &str) {
        self.member_mut(service).process.kill();
    }

    /// Asks one service to stop, without waiting.
    pub(crate) fn ask_to_stop(&self, service: &str) {
        self.member(service).process.ask_to_stop();
    }

    /// Waits until one service has exited.
    pub(crate) async fn exit(&mut self, service: &str) {
        self.member_mut(service).process.exit().await;
    }

    /// Restarts a service at its address, with its database.
    pub(crate) async fn restart(&mut self, service: &'static str) {
        let place = self.members.iter().position(|member| member.service == service).unwrap();
        let old = self.members.remove(place);
        self.start_member(service, old.database.clone(), &old.address).await;
    }

    /// Starts another gateway in front of the same services; returns its address.
    pub(crate) async fn another_gateway(&mut self) -> String {
        self.start_member(GATEWAY, None, ANY_PORT).await;
        self.members.last().map(|member| format!("http://{}", member.address)).unwrap()
    }

    /// The Redis that gateways share their counters in.
    pub(crate) fn redis(&self) -> Option<&redis::Server> {
        self.redis.as_ref()
    }

    /// The metrics of the first gateway.
    pub(crate) async fn gateway_metrics(&self) -> String {
        let admin = Http::new(&format!("http://{}", self.member(GATEWAY).admin));
        admin.request(reqwest::Method::GET, "/metrics").await.expect(200).text()
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(crate) fn mesh_secret(&self) -> &str {
        &self.mesh_secret
    }

    /// The database of a service.
    pub(crate) fn database(&self, service: &str) -> &str {
        self.member(service).database.as_deref().unwrap()
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.member(GATEWAY).address)
    }

    /// The gRPC address of a service.
    pub(crate) fn grpc_url(&self, service: &str) -> String {
        format!("http://{}", self.member(service).address)
    }

    /// The first gateway's public gRPC address.
    pub(crate) fn public_grpc_url(&self) -> String {
        format!("http://{}", self.member(GATEWAY).public_grpc.as_deref().unwrap())
    }

    /// Peak memory of a service in bytes; `None` on systems without `/proc`.
    pub(crate) fn peak_memory(&self, service: &str) -> Option<u64> {
        self.member(service).process.peak_memory()
    }

    pub(crate) fn admin_urls(&self) -> Vec<String> {
        self.members.iter().map(|member| format!("http://{}", member.admin)).collect()
    }

    /// Asks the remaining processes to stop: gateways first, then the services in reverse start order.
    pub(crate) async fn stop(&mut self) -> Vec<ExitStatus> {
        let mut statuses = Vec::new();
        for member in self.members.iter_mut().rev() {
            if member.process.ended().is_none() {
                member.process.ask_to_stop();
            }
            statuses.push(member.process.exit().await);
        }
        statuses
    }

    pub(crate) fn output(&self) -> String {
        self.members.iter().map(|member| member.process.output()).collect()
    }

    pub(crate) fn show_logs(&self) {
        for member in &self.members {
            member.process.show_log();
        }
    }

    fn member(&self, service: &str) -> &Member {
        self.members.iter().find(|member| member.service == service).unwrap()
    }

    fn member_mut(&mut self, service: &str) -> &mut Member {
        self.members.iter_mut().find(|member| member.service == service).unwrap()
    }
}

/// Parses `cairn <service> listening on ADDRESS (admin ADDRESS)`, and the gateway's second line.
fn announced(service: &str, stdout: &str) -> Option<(String, String, Option<String>)> {
    let start = format!("cairn {service} listening on ");
    let rest = stdout.lines().find_map(|line| line.strip_prefix(&start))?;
    let (address, rest) = rest.split_once(" (admin ")?;
    let public = stdout.lines().find_map(|line| line.strip_prefix("cairn gateway answers gRPC on "));
    if service == GATEWAY && public.is_none() {
        return None;
    }
    Some((address.to_owned(), rest.strip_suffix(')')?.to_owned(), public.map(str::to_owned)))
}
