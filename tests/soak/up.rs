//! `cairn up` at an address and on a data folder that stay, however often it is started.

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

/// The account and the token that it is born with.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) email: String,
    pub(crate) password: String,
    pub(crate) token: String,
}

/// A deployment in one process, or the place of one.
#[derive(Debug)]
pub(crate) struct Up {
    /// `None` while it is away.
    pub(crate) process: Option<Process>,
    pub(crate) data: Scratch,
    pub(crate) owner: Owner,
    address: String,
    /// While this is bound, nobody else is given its port.
    _held: TcpSocket,
}

impl Up {
    /// On a fresh data folder, with these variables besides, when it answers.
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

    /// Starts the process with these variables besides, and does not wait for anything.
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

    /// Asks it to stop and waits until it has; what `cairn doctor` says of the folder then, if that is not sound.
    pub(crate) async fn stop(&mut self) -> Result<(), String> {
        let mut process = self.process.take().unwrap();
        process.ask_to_stop();
        process.exit().await;
        let data = self.data.path().display().to_string();
        let arguments = ["doctor", "--quiet", "--data", &data].map(str::to_owned);
        let mut doctor = Process::start("cairn doctor", &arguments, &[]);
        let status = doctor.exit().await;
        // All that it said is read once it has ended.
        let said = format!("{}{}", doctor.stdout(), doctor.stderr());
        if status.success() { Ok(()) } else { Err(said) }
    }
}
