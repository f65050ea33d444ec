//! Qdrant's stand-in (docs/adr/0108) as a separate process: this test binary, started again with a filter for the one
//! test that serves. It keeps everything in memory, so a killed one comes back empty, like a Qdrant that has lost its
//! disk.

use std::cell::RefCell;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use cairn_chassis::testing::ports;
use cairn_index::qdrant::fake::{FakeQdrant, FakeQdrantOptions};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::support::wait::eventually;

/// The variable with the listen address.
const ADDRESS: &str = "FAULT_QDRANT_ADDRESS";
/// The test that serves.
const SERVING: &str = "qdrant::serves_where_it_is_told_to";
/// Kills a process at the end of its input, that is when the test process exits for whatever reason.
const WATCHDOG: &str = "read -r line || kill -9 \"$0\"";

/// The stand-in, which may be down.
#[derive(Debug)]
pub(crate) struct Qdrant {
    address: SocketAddr,
    running: RefCell<Option<Running>>,
    /// Bound, so that nobody else gets its port.
    _held: TcpSocket,
}

#[derive(Debug)]
struct Running {
    process: Child,
    watchdog: Child,
}

impl Qdrant {
    /// Starts an empty one, and waits until it listens.
    pub(crate) async fn start() -> Self {
        let (held, address) = ports::reserve().unwrap();
        let qdrant = Self { address, running: RefCell::new(None), _held: held };
        qdrant.start_again();
        eventually("the fake of Qdrant listens", async || TcpStream::connect(address).await.ok().map(drop))
            .await;
        qdrant
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts it again at the same address, without waiting.
    pub(crate) fn start_again(&self) {
        *self.running.borrow_mut() = Some(Running::start(self.address));
    }

    /// `kill -9`: all data is lost.
    pub(crate) fn kill(&self) {
        drop(self.running.take());
    }

    /// Sends it a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let running = self.running.borrow();
        let process = running.as_ref().unwrap().process.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &process]).status().unwrap();
        assert!(status.success(), "kill -{name} {process} failed");
    }
}

impl Running {
    fn start(address: SocketAddr) -> Self {
        let process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", SERVING, "--ignored", "--nocapture"])
            .env(ADDRESS, address.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, &process.id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, watchdog }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Errors do not matter here: the process may have exited by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if let Some(mut input) = self.watchdog.stdin.take() {
            let _ = input.write_all(b"done\n");
        }
        let _ = self.watchdog.wait();
    }
}

#[test]
#[ignore = "no test, but the process of Qdrant's stand-in"]
fn serves_where_it_is_told_to() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let listener = TcpListener::bind(address).await.unwrap();
        let _fake = FakeQdrant::start(listener, FakeQdrantOptions::default()).unwrap();
        std::future::pending::<()>().await;
    });
}
