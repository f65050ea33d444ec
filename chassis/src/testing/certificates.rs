//! Certificates for tests: an authority of their own, in a folder of their own.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::tls::Pair;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// An authority whose certificates are files; they go with it.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
    folder: TempDir,
}

crate::debug_fields!(Authority { folder });

impl Authority {
    /// A new authority, with its own certificate in `ca.pem`.
    ///
    /// # Errors
    /// When the certificate cannot be made or written.
    pub fn new() -> Result<Self, Failed> {
        let key = KeyPair::generate()?;
        let mut parameters = CertificateParams::new(Vec::new())?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, "an authority for tests");
        let certificate = parameters.self_signed(&key)?.pem();
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("ca.pem"), &certificate)?;
        Ok(Self { issuer: Issuer::new(parameters, key), certificate, folder })
    }

    /// The authority's own certificate.
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The same as text.
    pub fn ca_pem(&self) -> &str {
        &self.certificate
    }

    /// A certificate for `localhost` and 127.0.0.1 that is good for servers and clients, in files of that name.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub fn issue(&self, name: &str) -> Result<Pair, Failed> {
        let key = KeyPair::generate()?;
        let mut parameters = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
        parameters.distinguished_name.push(DnType::CommonName, name);
        let certificate = parameters.signed_by(&key, &self.issuer)?.pem();
        let pair = Pair { certificate: self.path(name, "crt"), key: self.path(name, "key") };
        std::fs::write(&pair.certificate, certificate)?;
        std::fs::write(&pair.key, key.serialize_pem())?;
        Ok(pair)
    }

    fn path(&self, name: &str, extension: &str) -> PathBuf {
        Path::new(self.folder.path()).join(format!("{name}.{extension}"))
    }
}
