//! Read-only outside knowledge. Its rooms come with the ingest issue: until then every call says so.

use cairn_chassis::ambient::Ambient;
use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::status::Problem;
use cairn_proto::ingest::v1::ingest_service_server::{self, IngestServiceServer};
use cairn_proto::ingest::v1::{
    GetIngestedDocumentRequest, GetIngestedDocumentResponse, IngestDocumentRequest, IngestDocumentResponse,
};
use tonic::metadata::MetadataMap;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

/// The full names of the gRPC services here.
pub const SERVICE_NAMES: &[&str] = &[ingest_service_server::SERVICE_NAME];

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
        let server = IngestServiceServer::new(self.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Routes::new(server)
    }

    async fn refuse(&self, metadata: &MetadataMap) -> Status {
        match self.ambient.verifier.authenticate(metadata).await {
            Ok(_identity) => Problem::unimplemented("ingestion is not served yet").into(),
            Err(problem) => problem.into(),
        }
    }
}

#[tonic::async_trait]
impl ingest_service_server::IngestService for Service {
    async fn ingest_document(
        &self,
        request: Request<IngestDocumentRequest>,
    ) -> Result<Response<IngestDocumentResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn get_ingested_document(
        &self,
        request: Request<GetIngestedDocumentRequest>,
    ) -> Result<Response<GetIngestedDocumentResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }
}
