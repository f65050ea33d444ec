//! The TLS side of calls to other services.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustls::ClientConfig;

use super::{ClientFiles, Error, Loaded, Protocols, authorities, pem, stamps};

/// The TLS configuration of a client; cheap to clone.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    files: ClientFiles,
    loaded: Mutex<Loaded<ClientConfig>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Client").field("files", &self.0.files).finish_non_exhaustive()
    }
}

impl Client {
    /// Reads the files.
    ///
    /// # Errors
    /// When a file is missing or invalid, or the key does not match the certificate.
    pub fn load(files: &ClientFiles) -> Result<Self, Error> {
        let stamps = client_stamps(files);
        let loaded = Mutex::new(Loaded::new(client_config(files)?, stamps));
        Ok(Self(Arc::new(Inner { files: files.clone(), loaded })))
    }

    /// The configuration for the next connection, from the last valid files.
    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        let mut loaded = self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.is_due() {
            self.refresh(&mut loaded);
        }
        Arc::clone(&loaded.config)
    }

    fn refresh(&self, loaded: &mut Loaded<ClientConfig>) {
        let files = &self.0.files;
        loaded.reload(client_stamps(files), || client_config(files), logged_file(files));
    }

    /// Reloads the files regardless of their modification times, whose resolution is too coarse for tests.
    #[cfg(test)]
    pub(super) fn force_reload(&self) {
        let mut loaded = self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.stamps.clear();
        self.refresh(&mut loaded);
    }
}

/// The file that log messages name.
fn logged_file(files: &ClientFiles) -> &std::path::Path {
    files.pair.as_ref().map_or(files.ca.as_path(), |pair| pair.certificate.as_path())
}

fn client_stamps(files: &ClientFiles) -> Vec<Option<SystemTime>> {
    let pair = files.pair.as_ref();
    stamps([Some(&files.ca), pair.map(|pair| &pair.certificate), pair.map(|pair| &pair.key)])
}

fn client_config(files: &ClientFiles) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let authorities = authorities(&files.ca)?;
    let refused = |source: rustls::Error| match &files.pair {
        Some(pair) => Error::Pair { certificate: pair.certificate.clone(), key: pair.key.clone(), source },
        None => Error::Authorities { path: files.ca.clone(), reason: source.to_string() },
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(refused)?
        .with_root_certificates(authorities);
    let mut config = match &files.pair {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let (chain, key) = (pem::certificates(&pair.certificate)?, pem::key(&pair.key)?);
            builder.with_client_auth_cert(chain, key).map_err(refused)?
        }
    };
    config.alpn_protocols = Protocols::Grpc.names();
    Ok(config)
}
