//! `cairn up`: everything in one process on a data folder.

use std::path::Path;
use std::process::ExitStatus;

use reqwest::Method;
use serde_json::Value;

use super::callers::ApiToken;
use super::deployment::{Owner, field};
use super::http::Http;
use super::process::Process;
use super::scratch::Scratch;
use super::wait::eventually;

const ANY_PORT: &str = "127.0.0.1:0";

/// A running `cairn up`.
#[derive(Debug)]
pub(crate) struct SingleProcess {
    process: Process,
    base_url: String,
    admin_url: Option<String>,
    grpc_url: Option<String>,
    owner: Owner,
    /// Dropped with the deployment; `None` when the caller keeps the folder for the next start.
    _folder: Option<Scratch>,
}

impl SingleProcess {
    /// On a new data folder.
    pub(crate) async fn start_with(environment: &[(&str, &str)]) -> Self {
        let folder = Scratch::new();
        let started = Self::start_on(folder.path(), environment).await;
        Self { _folder: Some(folder), ..started }
    }

    /// On this data folder, which outlives it.
    pub(crate) async fn start_on(data: &Path, environment: &[(&str, &str)]) -> Self {
        Self::follow(data, Self::launch(data, environment)).await
    }

    /// On this data folder, with a limit on file sizes, in blocks: to a write it looks like a full disk.
    pub(crate) async fn start_on_full_disk(data: &Path, blocks: u32) -> Self {
        let process = Process::start_on_full_disk("cairn up", &arguments(data, ANY_PORT), blocks);
        Self::follow(data, process).await
    }

    /// On this data folder, with that soft limit on open files.
    pub(crate) async fn start_on_few_files(data: &Path, environment: &[(&str, &str)], files: u32) -> Self {
        let process = Process::start_on_few_files("cairn up", &arguments(data, ANY_PORT), environment, files);
        Self::follow(data, process).await
    }

    /// Starts the process without waiting.
    pub(crate) fn launch(data: &Path, environment: &[(&str, &str)]) -> Process {
        Process::start("cairn up", &arguments(data, ANY_PORT), environment)
    }

    /// Like [`Self::launch`], on a terminal; `None` where the machine cannot provide one.
    pub(crate) fn launch_on_terminal(data: &Path) -> Option<Process> {
        Process::start_on_terminal("cairn up", &arguments(data, ANY_PORT))
    }

    /// Like [`Self::launch_at`], with the default admin address.
    pub(crate) fn launch_without_admin(data: &Path, listen: &str) -> Process {
        let data = data.display().to_string();
        let arguments = ["up", "--data", &data, "--listen", listen].map(str::to_owned);
        Process::start("cairn up", &arguments, &[])
    }

    /// Like [`Self::launch`], on that address.
    pub(crate) fn launch_at(data: &Path, listen: &str) -> Process {
        Process::start("cairn up", &arguments(data, listen), &[])
    }

    /// Waits until it is ready.
    async fn follow(data: &Path, mut process: Process) -> Self {
        let bootstrap = data.join("bootstrap.json");
        let written = eventually("cairn up has written bootstrap.json and answers", async || {
            if let Some(status) = process.ended() {
                panic!("cairn up ended with {status}: {}{}", process.stdout(), process.stderr());
            }
            let parsed: Value = serde_json::from_slice(&std::fs::read(&bootstrap).ok()?).ok()?;
            let base_url = parsed["baseUrl"].as_str()?;
            // The file of an earlier start names a port that another process may have by now.
            let is_ours = process.stdout().contains(base_url);
            let ready = Http::new(base_url).request(Method::GET, "/readyz").attempt().await;
            (is_ours && ready.is_ok_and(|reply| reply.status == 200)).then_some(parsed)
        })
        .await;
        let owner = Owner {
            email: field(&written, "email"),
            password: field(&written, "password"),
            token: field(&written, "token"),
        };
        let admin_url = process.printed_address("dmin ");
        let grpc_url = process.printed_address("gRPC ");
        Self { base_url: field(&written, "baseUrl"), admin_url, grpc_url, owner, process, _folder: None }
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    pub(crate) fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }

    /// A caller with the first token.
    pub(crate) fn token(&self) -> ApiToken {
        ApiToken { http: Http::new(&self.base_url), secret: self.owner.token.clone() }
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    pub(crate) fn admin_url(&self) -> Option<String> {
        self.admin_url.clone()
    }

    /// The public gRPC address.
    pub(crate) fn grpc_url(&self) -> String {
        self.grpc_url.clone().unwrap_or_else(|| panic!("cairn up does not say where it answers gRPC"))
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Asks it to stop and waits until it has exited.
    pub(crate) async fn stop(&mut self) -> ExitStatus {
        self.process.ask_to_stop();
        self.process.exit().await
    }
}

fn arguments(data: &Path, listen: &str) -> Vec<String> {
    let data = data.display().to_string();
    let all =
        ["up", "--data", &data, "--listen", listen, "--admin-listen", ANY_PORT, "--grpc-listen", ANY_PORT];
    all.map(str::to_owned).to_vec()
}
