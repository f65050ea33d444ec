//! Read-only outside knowledge: ingested documents and connected sources.

mod error;
mod rpc;
mod scope;
mod sources;

use cairn_chassis::ambient::Ambient;
use cairn_proto::ingest::v1::{ingest_service_server, source_service_server};
use tonic::service::Routes;

pub use self::error::Error;

/// The full names of the gRPC services here.
pub const SERVICE_NAMES: &[&str] =
    &[ingest_service_server::SERVICE_NAME, source_service_server::SERVICE_NAME];

/// The ingest service.
#[derive(Debug, Clone)]
pub struct Service {
    ambient: Ambient,
}

impl Service {
    /// Opens the service.
    pub fn open(ambient: Ambient) -> Self {
        Self { ambient }
    }

    /// Its gRPC services.
    pub fn routes(&self) -> Routes {
        let verifier = || self.ambient.verifier.clone();
        Routes::new(rpc::documents::server(verifier())).add_service(rpc::sources::server(verifier()))
    }
}
