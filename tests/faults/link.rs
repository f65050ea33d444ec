//! A connection between two parts of the mesh that can be slowed, frozen and cut.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;

const CHUNK_BYTES: usize = 16 * 1024;
/// After a connection that could not be taken: a process that is out of files has some again later.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Where the other side of a link is.
#[derive(Debug, Clone)]
pub(crate) enum Upstream {
    Tcp(std::net::SocketAddr),
    Unix(PathBuf),
}

/// How bytes go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weather {
    Clear,
    /// Each piece waits so long.
    Slow(Duration),
    /// Nothing goes through, and nobody is told.
    Frozen,
    /// Whoever connects is turned away.
    Closed,
}

#[derive(Debug, Clone, Copy)]
struct State {
    weather: Weather,
    /// Connections of an earlier one are closed.
    epoch: u64,
}

/// What connections of others go through.
#[derive(Debug)]
pub(crate) struct Link {
    name: String,
    state: watch::Sender<State>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Stream for T {}

impl Link {
    /// Listens on this machine for connections to the other side; answers the address to connect to.
    pub(crate) async fn over_tcp(name: &str, upstream: Upstream) -> (Self, std::net::SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (link, state) = Self::new(name);
        tokio::task::spawn_local(async move {
            loop {
                // One that went away before it was taken is no reason to take no others.
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

    /// As [`Self::over_tcp`], on a socket at that path.
    pub(crate) fn over_unix(name: &str, path: &Path, upstream: Upstream) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let (link, state) = Self::new(name);
        tokio::task::spawn_local(async move {
            loop {
                // One that went away before it was taken is no reason to take no others.
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
        let (state, receiver) = watch::channel(State { weather: Weather::Clear, epoch: 0 });
        (Self { name: name.to_owned(), state }, receiver)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Closes every connection that is open.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|state| state.epoch += 1);
    }

    /// Delays every piece for a while.
    pub(crate) async fn slow(&self, delay: Duration, lasting: Duration) {
        self.state.send_modify(|state| state.weather = Weather::Slow(delay));
        tokio::time::sleep(lasting).await;
        self.state.send_modify(|state| state.weather = Weather::Clear);
    }

    /// Closes every connection, and turns away whoever connects for a while: nobody listens at the other side.
    pub(crate) async fn turn_away(&self, lasting: Duration) {
        self.state.send_modify(|state| *state = State { weather: Weather::Closed, epoch: state.epoch + 1 });
        tokio::time::sleep(lasting).await;
        self.state.send_modify(|state| state.weather = Weather::Clear);
    }

    /// Lets nothing through for a while, as a network does that is partitioned; what was open is closed at the end.
    pub(crate) async fn freeze(&self, lasting: Duration) {
        self.state.send_modify(|state| state.weather = Weather::Frozen);
        tokio::time::sleep(lasting).await;
        self.state.send_modify(|state| *state = State { weather: Weather::Clear, epoch: state.epoch + 1 });
    }
}

/// Passes one connection on until a side closes it or it is cut.
async fn pass(near: impl Stream + 'static, upstream: Upstream, mut state: watch::Receiver<State>) {
    let State { weather, epoch } = *state.borrow();
    if weather == Weather::Closed || !is_passable(&mut state, epoch).await {
        return;
    }
    // A side that is not there closes the connection, as it would without this between.
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

/// One direction, until its end.
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
    // The other side may have gone already.
    let _ = to.shutdown().await;
}

/// Waits as long as the weather wants; `false` when the connection was cut meanwhile.
async fn is_passable(state: &mut watch::Receiver<State>, epoch: u64) -> bool {
    let now = *state.borrow();
    if let Weather::Slow(delay) = now.weather {
        tokio::time::sleep(delay).await;
    }
    let opened = state.wait_for(|state| state.epoch != epoch || state.weather != Weather::Frozen).await;
    opened.is_ok_and(|state| state.epoch == epoch)
}
