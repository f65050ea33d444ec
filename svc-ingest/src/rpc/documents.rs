//! `cairn.ingest.v1.IngestService`: it is not served yet, and every call says so.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::identity::Verifier;
use cairn_chassis::status::Problem;
use cairn_proto::ingest::v1::ingest_service_server::{IngestService, IngestServiceServer};
use cairn_proto::ingest::v1::{
    DeleteIngestedDocumentRequest, DeleteIngestedDocumentResponse, GetIngestedContentRequest,
    GetIngestedContentResponse, GetIngestedDocumentRequest, GetIngestedDocumentResponse, GetUsageRequest,
    GetUsageResponse, IngestDocumentRequest, IngestDocumentResponse, IngestFileRequest, IngestFileResponse,
    ListIngestedDocumentsRequest, ListIngestedDocumentsResponse,
};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};

pub(crate) fn server(verifier: Verifier) -> IngestServiceServer<Rpc> {
    IngestServiceServer::new(Rpc { verifier }).max_decoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    verifier: Verifier,
}

impl Rpc {
    async fn refuse(&self, metadata: &MetadataMap) -> Status {
        match self.verifier.authenticate(metadata).await {
            Ok(_identity) => Problem::unimplemented("ingestion is not served yet").into(),
            Err(problem) => problem.into(),
        }
    }
}

#[tonic::async_trait]
impl IngestService for Rpc {
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

    async fn ingest_file(
        &self,
        request: Request<Streaming<IngestFileRequest>>,
    ) -> Result<Response<IngestFileResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn list_ingested_documents(
        &self,
        request: Request<ListIngestedDocumentsRequest>,
    ) -> Result<Response<ListIngestedDocumentsResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn get_ingested_content(
        &self,
        request: Request<GetIngestedContentRequest>,
    ) -> Result<Response<GetIngestedContentResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn delete_ingested_document(
        &self,
        request: Request<DeleteIngestedDocumentRequest>,
    ) -> Result<Response<DeleteIngestedDocumentResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn get_usage(
        &self,
        request: Request<GetUsageRequest>,
    ) -> Result<Response<GetUsageResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }
}
