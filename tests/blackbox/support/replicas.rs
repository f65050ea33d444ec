//! Two replicas of each service, as in a rolling update; or one of each, with a reserved slot for another replica of
//! one service. Each caller is configured with all addresses of a service, as DNS would resolve them.

use std::net::SocketAddr;
use std::path::PathBuf;

use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::testing::{ports, postgres};
use cairn_chassis::token_format;
use tokio::net::TcpSocket;

use super::deployment::Owner;
use super::http::Http;
use super::mesh::SERVICES;
use super::process::Process;
use super::scratch::Scratch;
use super::wait::eventually;

const GATEWAY: &str = "gateway";
/// The time between a gateway's readiness turning false and its listener closing.
const GATEWAY_DELAY_SECONDS: &str = "1";

/// Replicas, running or reserved.
#[derive(Debug)]
pub(crate) struct ReplicatedMesh {
    replicas: Vec<Replica>,
    owner: Owner,
    mesh_secret: String,
    /// The addresses of each service, by environment variable.
    urls: Vec<(String, String)>,
    _folder: Scratch,
    /// Bound sockets keep the ports reserved.
    _reserved: Vec<TcpSocket>,
}

/// One replica; its process may not run.
#[derive(Debug)]
struct Replica {
    service: &'static str,
    database: Option<String>,
    data: PathBuf,
    address: SocketAddr,
    admin: SocketAddr,
    process: Option<Process>,
}

impl ReplicatedMesh {
    /// Starts two of each, or returns why this machine cannot run a mesh.
    pub(crate) async fn start() -> Result<Self, String> {
        let mut mesh = Self::reserve(|_| 2).await?;
        let all: Vec<usize> = (0..mesh.len()).collect();
        mesh.start_all(&all).await;
        Ok(mesh)
    }

    /// Starts one of each, with a reserved slot for another replica of one service; returns that slot, too.
    pub(crate) async fn with_spare(service: &'static str) -> Result<(Self, usize), String> {
        let mut mesh = Self::reserve(|one| if one == service { 2 } else { 1 }).await?;
        let spare = mesh.replicas.iter().rposition(|replica| replica.service == service).unwrap();
        let running: Vec<usize> = (0..mesh.len()).filter(|slot| *slot != spare).collect();
        mesh.start_all(&running).await;
        Ok((mesh, spare))
    }

    /// Reserves slots and addresses for that many replicas of each service.
    async fn reserve(count: impl Fn(&str) -> usize) -> Result<Self, String> {
        let (folder, mut reserved, mut replicas) = (Scratch::new(), Vec::new(), Vec::new());
        for service in SERVICES.into_iter().chain([GATEWAY]) {
            let database = if service == GATEWAY { None } else { Some(database().await?) };
            for number in 1..=count(service) {
                let data = folder.path().join(format!("{service}-{number}"));
                std::fs::create_dir_all(&data).unwrap();
                let ((one, address), (other, admin)) = (ports::reserve().unwrap(), ports::reserve().unwrap());
                reserved.extend([one, other]);
                let database = database.clone();
                replicas.push(Replica { service, database, data, address, admin, process: None });
            }
        }
        let urls = SERVICES.into_iter().map(|service| {
            let of_service = replicas.iter().filter(|replica| replica.service == service);
            let urls: Vec<_> = of_service.map(|replica| format!("http://{}", replica.address)).collect();
            (format!("CAIRN_{}_URL", service.to_uppercase()), urls.join(","))
        });
        let urls = urls.collect();
        let owner = Owner {
            email: "owner@example.com".to_owned(),
            password: format!("pass {}", token_format::generate(&OsEntropy)),
            token: token_format::generate(&OsEntropy),
        };
        let mesh_secret = token_format::generate(&OsEntropy);
        Ok(Self { replicas, owner, mesh_secret, urls, _folder: folder, _reserved: reserved })
    }

    /// Starts the replicas in these slots. The first of them creates the first account, so the others wait for it.
    async fn start_all(&mut self, reserve: &[usize]) {
        let (first, others) = reserve.split_first().unwrap();
        self.add(*first).await;
        for slot in others {
            self.start_process(*slot);
        }
        for slot in others {
            self.wait_until_ready(*slot).await;
        }
    }

    /// The number of slots.
    pub(crate) fn len(&self) -> usize {
        self.replicas.len()
    }

    /// The service of a slot.
    pub(crate) fn service(&self, slot: usize) -> &'static str {
        self.replicas[slot].service
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The public address and the admin address of each gateway.
    pub(crate) fn gateways(&self) -> Vec<(String, String)> {
        let gateways = self.replicas.iter().filter(|replica| replica.service == GATEWAY);
        gateways.map(|it| (format!("http://{}", it.address), format!("http://{}", it.admin))).collect()
    }

    /// The slot of the service's other replica.
    pub(crate) fn other_replica(&self, slot: usize) -> usize {
        let service = self.service(slot);
        (0..self.len()).find(|other| *other != slot && self.service(*other) == service).unwrap()
    }

    /// Starts a replica in its slot, and waits until it is ready.
    pub(crate) async fn add(&mut self, slot: usize) {
        self.start_process(slot);
        self.wait_until_ready(slot).await;
    }

    /// Asks a replica to stop, and waits until it has exited cleanly.
    pub(crate) async fn remove(&mut self, slot: usize) {
        let replica = &mut self.replicas[slot];
        let mut old = replica.process.take().unwrap();
        old.ask_to_stop();
        let status = old.exit().await;
        assert_eq!(status.code(), Some(0), "{} ended badly: {}", replica.service, old.output());
    }

    /// Replaces the replica in a slot.
    pub(crate) async fn replace(&mut self, slot: usize) {
        self.remove(slot).await;
        self.add(slot).await;
    }

    /// The number of calls of a method that a replica has answered, from its own metrics.
    pub(crate) async fn calls(&self, slot: usize, method: &str) -> u64 {
        let admin = Http::new(&format!("http://{}", self.replicas[slot].admin));
        let metrics = admin.request(reqwest::Method::GET, "/metrics").await.expect(200).text();
        let of_method = format!("method=\"{method}\"");
        let counted = metrics.lines().filter(|line| {
            line.starts_with("cairn_grpc_server_requests_total{") && line.contains(&of_method)
        });
        counted.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
    }

    pub(crate) fn show_logs(&self) {
        self.replicas.iter().filter_map(|replica| replica.process.as_ref()).for_each(Process::show_log);
    }

    fn start_process(&mut self, slot: usize) {
        let replica = &self.replicas[slot];
        let service = replica.service;
        let mut arguments: Vec<String> = ["serve", service].map(str::to_owned).to_vec();
        arguments.extend(["--listen".to_owned(), replica.address.to_string()]);
        arguments.extend(["--admin-listen".to_owned(), replica.admin.to_string()]);
        if let Some(url) = &replica.database {
            arguments.extend(["--data".to_owned(), replica.data.display().to_string()]);
            arguments.extend(["--database".to_owned(), url.clone()]);
        }
        let mut environment = vec![("CAIRN_MESH_SECRET", self.mesh_secret.as_str())];
        environment.extend(self.urls.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        if service == "auth" {
            environment.extend([
                ("CAIRN_BOOTSTRAP_EMAIL", self.owner.email.as_str()),
                ("CAIRN_BOOTSTRAP_PASSWORD", self.owner.password.as_str()),
                ("CAIRN_BOOTSTRAP_TOKEN", self.owner.token.as_str()),
            ]);
        }
        if service == GATEWAY {
            environment.push(("CAIRN_SHUTDOWN_DELAY_SECONDS", GATEWAY_DELAY_SECONDS));
        }
        let process = Process::start(&format!("cairn serve {service}"), &arguments, &environment);
        self.replicas[slot].process = Some(process);
    }

    async fn wait_until_ready(&mut self, slot: usize) {
        let replica = &mut self.replicas[slot];
        let (service, process) = (replica.service, replica.process.as_mut().unwrap());
        let admin = Http::new(&format!("http://{}", replica.admin));
        eventually(&format!("{service} is ready"), async || {
            if let Some(status) = process.ended() {
                panic!("cairn serve {service} ended with {status}: {}{}", process.stdout(), process.stderr());
            }
            let reply = admin.request(reqwest::Method::GET, "/readyz").attempt().await;
            reply.is_ok_and(|reply| reply.status == 200).then_some(())
        })
        .await;
    }
}

async fn database() -> Result<String, String> {
    match postgres::database().await {
        Ok(url) => Ok(url),
        Err(why) if postgres::is_required() => panic!("CAIRN_REQUIRE_ENGINES wants postgres: {why}"),
        Err(why) => Err(format!("the mesh needs PostgreSQL: {why}")),
    }
}
