//! A `cairn up` with a fixed address and data folder across restarts.

use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::testing::ports;
use cairn_chassis::token_format;
use reqwest::Method;
use tokio::net::TcpSocket;

use crate::support::http::Http;
use crate::support::process::Process;
use crate::support::scratch::Scratch;
use crate::support::wait::eventually;

const ANY_PORT: &str = "127.0.0.1:0";

/// The initial account and token.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) email: String,
    pub(crate) password: String,
    pub(crate) token: String,
}

/// A deployment in one process, which may be down.
#[derive(Debug)]
pub(crate) struct Up {
    /// `None` while it is down.
    pub(crate) process: Option<Process>,
    pub(crate) data: Scratch,
    pub(crate) owner: Owner,
    address: String,
    /// Bound, so that nobody else gets its port.
    _held: TcpSocket,
}

impl Up {
    /// Starts on a fresh data folder with additional variables; returns when it answers.
    pub(crate) async fn start(environment: &[(&str, &str)]) -> Self {
        let (held, address) = ports::reserve().unwrap();
        let owner = Owner {
            email: "owner@example.com".to_owned(),
            password: format!("pass {}", token_format::generate(&OsEntropy)),
            token: token_format::generate(&OsEntropy),
        };
        let data = Scratch::new();
        let mut up = Self { process: None, data, owner, address: address.to_string(), _held: held };
        up.launch(environment);
        up.wait_until_ready().await;
        up
    }

    /// Starts the process with additional variables, without waiting.
    pub(crate) fn launch(&mut self, environment: &[(&str, &str)]) {
        let data = self.data.path().display().to_string();
        let arguments = ["up", "--data", &data, "--listen", &self.address, "--admin-listen", ANY_PORT];
        let mut variables = vec![
            ("CAIRN_BOOTSTRAP_EMAIL", self.owner.email.as_str()),
            ("CAIRN_BOOTSTRAP_PASSWORD", self.owner.password.as_str()),
            ("CAIRN_BOOTSTRAP_TOKEN", self.owner.token.as_str()),
        ];
        variables.extend_from_slice(environment);
        self.process = Some(Process::start("cairn up", &arguments.map(str::to_owned), &variables));
    }

    /// Waits until every service answers.
    pub(crate) async fn wait_until_ready(&mut self) {
        let http = Http::new(&self.base_url());
        let process = self.process.as_mut().unwrap();
        eventually("cairn up answers", async || {
            assert!(process.ended().is_none(), "cairn up ended: {}", process.output());
            let reply = http.request(Method::GET, "/readyz").attempt().await;
            reply.is_ok_and(|reply| reply.status == 200).then_some(())
        })
        .await;
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops it; then returns the findings of `cairn doctor`, if any.
    pub(crate) async fn stop(&mut self) -> Result<(), String> {
        let mut process = self.process.take().unwrap();
        process.ask_to_stop();
        process.exit().await;
        let data = self.data.path().display().to_string();
        let arguments = ["doctor", "--quiet", "--data", &data].map(str::to_owned);
        let mut doctor = Process::start("cairn doctor", &arguments, &[]);
        let status = doctor.exit().await;
        // The output is complete once it has exited.
        let said = format!("{}{}", doctor.stdout(), doctor.stderr());
        if status.success() { Ok(()) } else { Err(said) }
    }
}
