//! A running Cairn, in either topology.

use std::path::Path;

use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::sealing::Keyring;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::callers::{Anonymous, ApiToken, Caller as _, Session};
use super::http::Http;
use super::mesh::Mesh;
use super::oidc::{CLIENT_ID, CLIENT_SECRET, Provider};
use super::scratch::Scratch;
use super::single::SingleProcess;
use super::smtp::MailServer;
use super::wait::eventually;
use super::workspace::Workspace;

/// How the services are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topology {
    /// `cairn up`: one process, SQLite.
    SingleProcess,
    /// `cairn serve …`: six processes over TCP, PostgreSQL.
    Mesh,
}

/// The account and the token that a new deployment is bootstrapped with.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) email: String,
    pub(crate) password: String,
    pub(crate) token: String,
}

/// A running deployment.
#[derive(Debug)]
pub(crate) struct Deployment {
    shape: Shape,
    owner: Owner,
    cookie: OnceCell<String>,
    mail: MailServer,
    provider: Provider,
    /// The root that folder sources may read on this machine.
    source_root: Scratch,
}

#[derive(Debug)]
enum Shape {
    SingleProcess(SingleProcess),
    Mesh(Mesh),
}

impl Deployment {
    /// Starts a deployment. On a machine that cannot run it, returns the reason, unless the engines are required.
    pub(crate) async fn start(topology: Topology) -> Result<Self, String> {
        let mail = MailServer::start("a-password-for-mail");
        // A shared deployment lives as long as the test process.
        let url: &'static str = mail.url().leak();
        let provider = Provider::start();
        let issuer: &'static str = provider.issuer().leak();
        let source_root = Scratch::new();
        let root: &'static str = source_root.path().display().to_string().leak();
        // The servers that scenarios let it fetch from listen on this machine.
        let outbound = ("CAIRN_OUTBOUND_ALLOW", "127.0.0.1/32");
        let environment = [
            ("CAIRN_SMTP_URL", url),
            ("CAIRN_MAIL_FROM", "Cairn <cairn@example.com>"),
            ("CAIRN_OIDC_ISSUER", issuer),
            ("CAIRN_OIDC_NAME", "Example <ID>"),
            ("CAIRN_OIDC_CLIENT_ID", CLIENT_ID),
            ("CAIRN_OIDC_CLIENT_SECRET", CLIENT_SECRET),
            outbound,
            ("CAIRN_SOURCE_ROOTS", root),
            // Two quick retries, so that a scenario can wait for the last one.
            ("CAIRN_WEBHOOK_RETRY_SECONDS", "1,1"),
            // The first account creates a workspace for each scenario.
            ("CAIRN_WORKSPACES_PER_PERSON", "100000"),
        ];
        let (shape, owner) = match topology {
            Topology::SingleProcess => {
                let process = SingleProcess::start_with(&environment).await;
                let owner = process.owner().clone();
                (Shape::SingleProcess(process), owner)
            }
            Topology::Mesh => {
                // A single process generates its own key; several processes must share one.
                let key: &'static str = Keyring::generate(&OsEntropy).to_text().to_string().leak();
                let environment = [environment.as_slice(), &[("CAIRN_SECRET_KEY", key.trim())]].concat();
                let mesh = Mesh::start_with(&environment).await?;
                let owner = mesh.owner().clone();
                (Shape::Mesh(mesh), owner)
            }
        };
        let deployment = Self { shape, owner, cookie: OnceCell::new(), mail, provider, source_root };
        deployment.wait_until_ready().await;
        Ok(deployment)
    }

    /// The mesh; `None` for a single process.
    pub(crate) fn mesh(&self) -> Option<&Mesh> {
        match &self.shape {
            Shape::SingleProcess(_) => None,
            Shape::Mesh(mesh) => Some(mesh),
        }
    }

    /// The server that receives its mail.
    pub(crate) fn mail(&self) -> &MailServer {
        &self.mail
    }

    /// The OpenID Connect provider that people may sign in with.
    pub(crate) fn provider(&self) -> &Provider {
        &self.provider
    }

    /// The root that folder sources may read.
    pub(crate) fn source_root(&self) -> &Path {
        self.source_root.path()
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(crate) fn base_url(&self) -> String {
        match &self.shape {
            Shape::SingleProcess(process) => process.base_url().to_owned(),
            Shape::Mesh(mesh) => mesh.base_url(),
        }
    }

    /// The addresses that serve /metrics, /healthz and /readyz.
    pub(crate) fn admin_urls(&self) -> Vec<String> {
        match &self.shape {
            Shape::SingleProcess(process) => process.admin_url().into_iter().collect(),
            Shape::Mesh(mesh) => mesh.admin_urls(),
        }
    }

    /// The public gRPC address.
    pub(crate) fn public_grpc_url(&self) -> String {
        match &self.shape {
            Shape::SingleProcess(process) => process.grpc_url(),
            Shape::Mesh(mesh) => mesh.public_grpc_url(),
        }
    }

    /// The gRPC address of a service; a single process has only the public one.
    pub(crate) fn grpc_url(&self, service: &str) -> String {
        match &self.shape {
            Shape::SingleProcess(process) => process.grpc_url(),
            Shape::Mesh(mesh) => mesh.grpc_url(service),
        }
    }

    /// Peak memory of the service's process in bytes; `None` on systems without `/proc`.
    pub(crate) fn peak_memory(&self, service: &str) -> Option<u64> {
        match &self.shape {
            Shape::SingleProcess(process) => process.process().peak_memory(),
            Shape::Mesh(mesh) => mesh.peak_memory(service),
        }
    }

    pub(crate) fn http(&self) -> Http {
        Http::new(&self.base_url())
    }

    pub(crate) fn anonymous(&self) -> Anonymous {
        Anonymous { http: self.http() }
    }

    /// A caller with this secret, valid or not.
    pub(crate) fn token(&self, secret: &str) -> ApiToken {
        ApiToken { http: self.http(), secret: secret.to_owned() }
    }

    /// The first account's session. Scenarios share it, because each sign-in costs a password hash.
    pub(crate) async fn session(&self) -> Session {
        let cookie = self.cookie.get_or_init(|| async { self.sign_in().await.cookie }).await;
        Session { http: self.http(), cookie: cookie.clone() }
    }

    /// A new session, for a scenario that ends it.
    pub(crate) async fn sign_in(&self) -> Session {
        let body = json!({"email": self.owner.email, "password": self.owner.password});
        let reply = self.anonymous().post("/api/session").json(body).await;
        assert_eq!(reply.status / 100, 2, "sign-in answered {}: {}", reply.status, reply.text());
        let cookie = reply.header("set-cookie").unwrap_or_else(|| panic!("a sign-in sets no session cookie"));
        let pair = cookie.split(';').next().unwrap_or_default().to_owned();
        Session { http: self.http(), cookie: pair }
    }

    /// A new workspace for the caller's scenario.
    pub(crate) async fn workspace(&self) -> Workspace {
        Workspace::create(self).await
    }

    pub(crate) async fn wait_until_ready(&self) {
        let anonymous = self.anonymous();
        let probe =
            async || anonymous.get("/readyz").attempt().await.ok().filter(|reply| reply.status == 200);
        eventually("the deployment is ready", probe).await;
    }

    pub(crate) fn show_logs(&self) {
        match &self.shape {
            Shape::SingleProcess(process) => process.process().show_log(),
            Shape::Mesh(mesh) => mesh.show_logs(),
        }
    }
}

/// A string field of a JSON object; it must exist.
pub(crate) fn field(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {value}")).to_owned()
}
