//! `cairn.ingest.v1.SourceService`.

use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::ingest::v1::source_service_server::{SourceService, SourceServiceServer};
use cairn_proto::ingest::v1::{
    FetchSourceDocumentRequest, FetchSourceDocumentResponse, ListSourceDocumentsRequest,
    ListSourceDocumentsResponse, ListSourcesRequest, ListSourcesResponse, QuerySourceRequest,
    QuerySourceResponse,
};
use tonic::{Request, Response, Status};

use crate::scope::Caller;
use crate::sources;

pub(crate) fn server(verifier: Verifier) -> SourceServiceServer<Rpc> {
    SourceServiceServer::new(Rpc { verifier })
}

#[derive(Debug)]
pub(crate) struct Rpc {
    verifier: Verifier,
}

#[tonic::async_trait]
impl SourceService for Rpc {
    async fn list_sources(
        &self,
        request: Request<ListSourcesRequest>,
    ) -> Result<Response<ListSourcesResponse>, Status> {
        let caller: Caller = self.verifier.authorize(request.metadata(), Permission::Read).await?;
        let sources = sources::list(&caller)?.into_iter().map(|source| match source {}).collect();
        Ok(Response::new(ListSourcesResponse { sources }))
    }

    async fn list_source_documents(
        &self,
        request: Request<ListSourceDocumentsRequest>,
    ) -> Result<Response<ListSourceDocumentsResponse>, Status> {
        let caller: Caller = self.verifier.authorize(request.metadata(), Permission::Read).await?;
        let asked = match &request.get_ref().source_id {
            Some(source_id) => vec![sources::find(&caller, source_id)?],
            None => sources::list(&caller)?,
        };
        let documents = asked.into_iter().map(|source| match source {}).collect();
        Ok(Response::new(ListSourceDocumentsResponse { documents, ..Default::default() }))
    }

    async fn query_source(
        &self,
        request: Request<QuerySourceRequest>,
    ) -> Result<Response<QuerySourceResponse>, Status> {
        let caller: Caller = self.verifier.authorize(request.metadata(), Permission::Read).await?;
        let asked = request.get_ref();
        match sources::find_for_query(&caller, &asked.source_id, &asked.query)? {}
    }

    async fn fetch_source_document(
        &self,
        request: Request<FetchSourceDocumentRequest>,
    ) -> Result<Response<FetchSourceDocumentResponse>, Status> {
        let caller: Caller = self.verifier.authorize(request.metadata(), Permission::Read).await?;
        let asked = request.get_ref();
        match sources::find_for_fetch(&caller, &asked.source_id, &asked.external_id)? {}
    }
}
