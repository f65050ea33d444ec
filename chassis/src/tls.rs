//! TLS configuration (rustls, ring), for listeners and for calls between services.
//!
//! Changed files are reloaded, so a renewed certificate needs no restart: the next connection uses it.

mod client;
mod handshake;
mod pem;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

pub use self::client::Client;

/// How often files are checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The TLS files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("the TLS file {} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file does not contain what it should.
    #[error("{} holds no {wanted} in PEM form (-----BEGIN …)", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What it should contain.
        wanted: &'static str,
    },
    /// The certificate and the key do not match, or cannot be used.
    #[error("the certificate {} cannot be used with the key {}: {source}", certificate.display(), key.display())]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The authorities cannot be used.
    #[error("the certificate authorities in {} cannot be used: {reason}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// A certificate with its chain, and its private key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate, then what leads to its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The TLS files of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFiles {
    /// The server certificate and its key.
    pub pair: Pair,
    /// The authorities of client certificates; absent: none are required.
    pub client_ca: Option<PathBuf>,
}

/// The TLS files of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFiles {
    /// The authorities of the services' certificates.
    pub ca: PathBuf,
    /// The client certificate, for services that require one.
    pub pair: Option<Pair>,
}

/// The protocols inside TLS (ALPN).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocols {
    /// gRPC: HTTP/2 only.
    Grpc,
    /// HTTP/2 or HTTP/1.1.
    Http,
}

impl Protocols {
    fn names(self) -> Vec<Vec<u8>> {
        match self {
            Self::Grpc => vec![b"h2".to_vec()],
            Self::Http => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        }
    }
}

/// The TLS side of a listener.
pub struct Server {
    files: ServerFiles,
    protocols: Protocols,
    loaded: Mutex<Loaded<ServerConfig>>,
}

/// The configuration of the last files that were valid.
struct Loaded<C> {
    config: Arc<C>,
    /// The modification times of the files.
    stamps: Vec<Option<SystemTime>>,
    checked_at: Instant,
}

impl<C> Loaded<C> {
    fn new(config: C, stamps: Vec<Option<SystemTime>>) -> Self {
        Self { config: Arc::new(config), stamps, checked_at: Instant::now() }
    }

    /// Whether the next check is due; if so, its time is recorded.
    fn is_due(&mut self) -> bool {
        let is_due = self.checked_at.elapsed() >= CHECK_INTERVAL;
        if is_due {
            self.checked_at = Instant::now();
        }
        is_due
    }

    /// Reloads files whose modification times have changed. Invalid files are ignored, and the old configuration stays.
    fn reload(
        &mut self,
        stamps: Vec<Option<SystemTime>>,
        read: impl FnOnce() -> Result<C, Error>,
        file: &Path,
    ) {
        if stamps == self.stamps {
            return;
        }
        self.stamps = stamps;
        match read() {
            Ok(config) => {
                self.config = Arc::new(config);
                tracing::info!(file = %file.display(), "new TLS files are in use");
            }
            Err(error) => {
                tracing::warn!(%error, "the new TLS files cannot be used; the old ones stay in use")
            }
        }
    }
}

crate::debug_fields!(Server { files });

impl Server {
    /// Reads the files.
    ///
    /// # Errors
    /// When a file is missing or invalid, or the key does not match the certificate.
    pub fn load(files: ServerFiles, protocols: Protocols) -> Result<Self, Error> {
        let stamps = server_stamps(&files);
        let loaded = Mutex::new(Loaded::new(server_config(&files, protocols)?, stamps));
        Ok(Self { files, protocols, loaded })
    }

    /// The configuration for the next connection, from the last valid files.
    fn config(&self) -> Arc<ServerConfig> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.is_due() {
            self.refresh(&mut loaded);
        }
        Arc::clone(&loaded.config)
    }

    fn refresh(&self, loaded: &mut Loaded<ServerConfig>) {
        let read = || server_config(&self.files, self.protocols);
        loaded.reload(server_stamps(&self.files), read, &self.files.pair.certificate);
    }
}

fn server_stamps(files: &ServerFiles) -> Vec<Option<SystemTime>> {
    stamps([Some(&files.pair.certificate), Some(&files.pair.key), files.client_ca.as_ref()])
}

/// The modification time of each file. Symbolic links are followed, since Kubernetes mounts secrets as links.
fn stamps<'a>(paths: impl IntoIterator<Item = Option<&'a PathBuf>>) -> Vec<Option<SystemTime>> {
    let changed_at = |path: &PathBuf| std::fs::metadata(path).and_then(|found| found.modified()).ok();
    paths.into_iter().flatten().map(changed_at).collect()
}

fn server_config(files: &ServerFiles, protocols: Protocols) -> Result<ServerConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let pair = &files.pair;
    let unusable =
        |source| Error::Pair { certificate: pair.certificate.clone(), key: pair.key.clone(), source };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let authorities = Arc::new(authorities(path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(authorities, provider).build();
            let refused = |error: rustls::server::VerifierBuilderError| Error::Authorities {
                path: path.clone(),
                reason: error.to_string(),
            };
            builder.with_client_cert_verifier(verifier.map_err(refused)?)
        }
    };
    let (chain, key) = (pem::certificates(&pair.certificate)?, pem::key(&pair.key)?);
    let mut config = builder.with_single_cert(chain, key).map_err(unusable)?;
    config.alpn_protocols = protocols.names();
    Ok(config)
}

fn authorities(path: &Path) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    for certificate in pem::certificates(path)? {
        let refused =
            |error: rustls::Error| Error::Authorities { path: path.to_owned(), reason: error.to_string() };
        store.add(certificate).map_err(refused)?;
    }
    Ok(store)
}

#[cfg(test)]
mod tests;
