//! Read-only outside knowledge: ingested documents and connected sources.

mod error;
mod rpc;
mod scope;
mod sources;

use std::sync::Arc;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::identity::Verifier;
use cairn_chassis::lifecycle::{self, Suspensions};
use cairn_chassis::server::Access;
use cairn_proto::ingest::v1::{ingest_service_server, source_service_server};
use tonic::service::Routes;

pub use self::error::Error;

/// The full names of the gRPC services here.
pub const SERVICE_NAMES: &[&str] =
    &[ingest_service_server::SERVICE_NAME, source_service_server::SERVICE_NAME];

/// Documents are large.
pub const ACCESS: Access = Access { open: &[], large: &["/cairn.ingest.v1.IngestService/IngestDocument"] };

/// The ingest service.
#[derive(Debug, Clone)]
pub struct Service {
    suspensions: Suspensions,
    verifier: Verifier,
}

impl Service {
    /// Opens the service.
    pub fn open(ambient: &Ambient) -> Self {
        let suspensions = Suspensions::in_memory(Arc::clone(&ambient.clock));
        let verifier = ambient.verifier.refusing(suspensions.clone());
        Self { suspensions, verifier }
    }

    /// Its gRPC services.
    pub fn routes(&self) -> Routes {
        let verifier = || self.verifier.clone();
        Routes::new(rpc::documents::server(verifier())).add_service(rpc::sources::server(verifier()))
    }

    /// The server by which svc-auth tells what becomes of workspaces.
    pub fn lifecycle(&self) -> Routes {
        let (suspensions, verifier) = (self.suspensions.clone(), self.verifier.clone());
        Routes::new(lifecycle::Rpc::server_without_storage(suspensions, verifier))
    }
}
