//! Certificates and keys from PEM files.

use std::path::Path;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Error;

pub(super) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// All certificates of a file, at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let missing = || Error::Missing { path: path.to_owned(), wanted: "certificate" };
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or_else(missing)
}

/// The first private key of a file.
pub(super) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let missing = |_| Error::Missing { path: path.to_owned(), wanted: "private key" };
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(missing)
}
