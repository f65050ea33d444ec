//! A proxy between two parts of the mesh that can delay, freeze and close connections.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;

const CHUNK_BYTES: usize = 16 * 1024;
/// The pause after a failed accept: a process that is out of file descriptors recovers later.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// The target of a link.
#[derive(Debug, Clone)]
pub(crate) enum Upstream {
    Tcp(std::net::SocketAddr),
    Unix(PathBuf),
}

/// The condition of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Clear,
    /// Each chunk is delayed.
    Slow(Duration),
    /// Nothing is transferred, and no connection is closed.
    Frozen,
    /// Connections are refused.
    Closed,
}

#[derive(Debug, Clone, Copy)]
struct State {
    condition: Condition,
    /// Connections of an earlier epoch are closed.
    epoch: u64,
}

/// A proxy for connections.
#[derive(Debug)]
pub(crate) struct Link {
    name: String,
    state: watch::Sender<State>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Stream for T {}

impl Link {
    /// Listens on loopback; returns the address to connect to.
    pub(crate) async fn over_tcp(name: &str, upstream: Upstream) -> (Self, std::net::SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (link, state) = Self::new(name);
        tokio::task::spawn_local(async move {
            loop {
                // A connection that was aborted before it was accepted is not an error of the listener.
                match listener.accept().await {
                    Ok((stream, _)) => {
                        tokio::task::spawn_local(pass(stream, upstream.clone(), state.clone()));
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                }
            }
        });
        (link, address)
    }

    /// Like [`Self::over_tcp`], on a Unix socket at that path.
    pub(crate) fn over_unix(name: &str, path: &Path, upstream: Upstream) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let (link, state) = Self::new(name);
        tokio::task::spawn_local(async move {
            loop {
                // A connection that was aborted before it was accepted is not an error of the listener.
                match listener.accept().await {
                    Ok((stream, _)) => {
                        tokio::task::spawn_local(pass(stream, upstream.clone(), state.clone()));
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                }
            }
        });
        link
    }

    fn new(name: &str) -> (Self, watch::Receiver<State>) {
        let (state, receiver) = watch::channel(State { condition: Condition::Clear, epoch: 0 });
        (Self { name: name.to_owned(), state }, receiver)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Closes every open connection.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|state| state.epoch += 1);
    }

    /// Delays every chunk for a while.
    pub(crate) async fn slow(&self, delay: Duration, lasting: Duration) {
        self.state.send_modify(|state| state.condition = Condition::Slow(delay));
        tokio::time::sleep(lasting).await;
        self.state.send_modify(|state| state.condition = Condition::Clear);
    }

    /// Closes every connection and refuses new ones for a while, as if nobody listened.
    pub(crate) async fn turn_away(&self, lasting: Duration) {
        self.state
            .send_modify(|state| *state = State { condition: Condition::Closed, epoch: state.epoch + 1 });
        tokio::time::sleep(lasting).await;
        self.state.send_modify(|state| state.condition = Condition::Clear);
    }

    /// Transfers nothing for a while, like a partitioned network; open connections are closed at the end.
    pub(crate) async fn freeze(&self, lasting: Duration) {
        self.state.send_modify(|state| state.condition = Condition::Frozen);
        tokio::time::sleep(lasting).await;
        self.state
            .send_modify(|state| *state = State { condition: Condition::Clear, epoch: state.epoch + 1 });
    }
}

/// Proxies one connection until either side closes it or it is cut.
async fn pass(near: impl Stream + 'static, upstream: Upstream, mut state: watch::Receiver<State>) {
    let State { condition, epoch } = *state.borrow();
    if condition == Condition::Closed || !is_passable(&mut state, epoch).await {
        return;
    }
    // If the target is down, the connection is closed, as it would be without the proxy.
    match upstream {
        Upstream::Tcp(address) => {
            let Ok(far) = TcpStream::connect(address).await else { return };
            join(near, far, state, epoch).await;
        }
        Upstream::Unix(path) => {
            let Ok(far) = UnixStream::connect(path).await else { return };
            join(near, far, state, epoch).await;
        }
    }
}

async fn join(near: impl Stream, far: impl Stream, state: watch::Receiver<State>, epoch: u64) {
    let (near_read, near_write) = tokio::io::split(near);
    let (far_read, far_write) = tokio::io::split(far);
    let mut ending = state.clone();
    tokio::select! {
        () = async { tokio::join!(pump(near_read, far_write, state.clone(), epoch), pump(far_read, near_write, state, epoch)); } => {}
        _ = ending.wait_for(|state| state.epoch != epoch) => {}
    }
}

/// Copies one direction until its end.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<State>,
    epoch: u64,
) {
    let mut bytes = vec![0; CHUNK_BYTES];
    while let Ok(length) = from.read(&mut bytes).await {
        if length == 0 || !is_passable(&mut state, epoch).await {
            break;
        }
        if to.write_all(&bytes[..length]).await.is_err() {
            break;
        }
    }
    // The other side may be closed already.
    let _ = to.shutdown().await;
}

/// Waits for the current condition; `false` if the connection was cut meanwhile.
async fn is_passable(state: &mut watch::Receiver<State>, epoch: u64) -> bool {
    let now = *state.borrow();
    if let Condition::Slow(delay) = now.condition {
        tokio::time::sleep(delay).await;
    }
    let opened = state.wait_for(|state| state.epoch != epoch || state.condition != Condition::Frozen).await;
    opened.is_ok_and(|state| state.epoch == epoch)
}
