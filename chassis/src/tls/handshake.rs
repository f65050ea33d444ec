//! The TLS handshake of incoming connections.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Server;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

impl Server {
    /// Performs the handshake with a client; `None` when it fails, which is logged.
    pub async fn shake_hands(&self, stream: TcpStream, peer: SocketAddr) -> Option<TlsStream<TcpStream>> {
        let handshake = TlsAcceptor::from(self.config()).accept(stream);
        match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
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
}

/// Logs a misconfigured client as a warning; one that disconnects, as a port check does, only at debug level.
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
