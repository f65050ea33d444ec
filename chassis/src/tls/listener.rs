//! Connections that have shaken hands, for axum and for tonic.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Server;

/// Who has not shaken hands by then is let go.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// Connections that shook hands and were not taken yet.
const WAITING: usize = 64;
/// What follows a failure to accept, such as too many open files.
const PAUSE: Duration = Duration::from_millis(500);

type Accepted = (TlsStream<TcpStream>, SocketAddr);

/// Listens with TLS. Handshakes go on side by side, so that a slow one holds up nobody.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    accepted: mpsc::Receiver<Accepted>,
    accepting: JoinHandle<()>,
}

impl Listener {
    /// Begins to accept on a bound address.
    ///
    /// # Errors
    /// When the address cannot be told.
    pub fn start(listener: TcpListener, server: Server) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (sender, accepted) = mpsc::channel(WAITING);
        let accepting = tokio::spawn(accept(listener, Arc::new(server), sender));
        Ok(Self { address, accepted, accepting })
    }
}

/// The port closes with its listener.
impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl axum::serve::Listener for Listener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> Accepted {
        match self.accepted.recv().await {
            Some(accepted) => accepted,
            // The task ends only with this listener.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

impl Stream for Listener {
    type Item = io::Result<TlsStream<TcpStream>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.accepted.poll_recv(context).map(|next| next.map(|(stream, _)| Ok(stream)))
    }
}

async fn accept(listener: TcpListener, server: Arc<Server>, sender: mpsc::Sender<Accepted>) {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let (server, sender) = (Arc::clone(&server), sender.clone());
        tokio::spawn(async move {
            if let Some(stream) = shake_hands(stream, peer, &server).await {
                // Nobody takes it when the listener ends.
                let _ = sender.send((stream, peer)).await;
            }
        });
    }
}

async fn shake_hands(stream: TcpStream, peer: SocketAddr, server: &Server) -> Option<TlsStream<TcpStream>> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY cannot be set");
    }
    let shaking = TlsAcceptor::from(server.config()).accept(stream);
    match tokio::time::timeout(HANDSHAKE_LIMIT, shaking).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            report(&error, peer);
            None
        }
        Err(_) => {
            tracing::debug!(%peer, "a caller did not finish its TLS handshake in time");
            None
        }
    }
}

/// A caller that does it wrong is worth a line; one that went away, as a port check does, is not.
fn report(error: &io::Error, peer: SocketAddr) {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        None => tracing::debug!(%peer, %error, "a caller left during the TLS handshake"),
        Some(rustls::Error::InvalidMessage(_)) => {
            tracing::warn!(%peer, "a caller did not speak TLS: this address takes https:// only");
        }
        Some(rustls::Error::NoCertificatesPresented) => {
            tracing::warn!(%peer, "a caller showed no client certificate: this address demands one");
        }
        Some(other) => tracing::warn!(%peer, error = %other, "a TLS handshake failed"),
    }
}
