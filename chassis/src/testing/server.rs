//! Test doubles of services, with the layers that every service has.

use std::sync::OnceLock;

use tonic::service::Routes;

use super::identity::Issuer;
use crate::identity::SignerError;
use crate::server::{self, Access, Composed, ReflectionError};

/// A double cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum DoubleError {
    /// The signer of identities failed.
    #[error(transparent)]
    Signer(#[from] SignerError),
    /// The contracts cannot be read.
    #[error(transparent)]
    Contracts(#[from] ReflectionError),
}

/// Composes a double that accepts every caller and messages of any size.
///
/// # Errors
/// When the contracts cannot be read.
pub async fn compose(routes: Routes, names: &[&'static str]) -> Result<Composed, DoubleError> {
    static EVERYTHING: OnceLock<Vec<&'static str>> = OnceLock::new();
    let all = EVERYTHING.get_or_init(|| server::methods().collect());
    let verifier = Issuer::new()?.ambient().verifier;
    Ok(server::compose(routes, names, &[Access { open: all, large: all }], &verifier).await?)
}
