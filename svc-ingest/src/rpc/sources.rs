//! `cairn.ingest.v1.SourceService`.

use cairn_chassis::identity::{Permission, Verifier};
use cairn_chassis::status::Problem;
use cairn_proto::ingest::v1::source_service_server::{SourceService, SourceServiceServer};
use cairn_proto::ingest::v1::{
    CancelSourceRunRequest, CancelSourceRunResponse, CheckSourceRequest, CheckSourceResponse,
    ConnectSourceRequest, ConnectSourceResponse, DisconnectSourceRequest, DisconnectSourceResponse,
    FetchSourceDocumentRequest, FetchSourceDocumentResponse, GetSourceRequest, GetSourceResponse,
    GetSourceRunRequest, GetSourceRunResponse, ListConnectedSourcesRequest, ListConnectedSourcesResponse,
    ListSourceDocumentsRequest, ListSourceDocumentsResponse, ListSourceRunsRequest, ListSourceRunsResponse,
    ListSourcesRequest, ListSourcesResponse, QuerySourceRequest, QuerySourceResponse, SyncSourceRequest,
    SyncSourceResponse, UpdateSourceRequest, UpdateSourceResponse,
};
use tonic::metadata::MetadataMap;
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

impl Rpc {
    /// What every method about connecting answers while no provider can be connected.
    async fn refuse(&self, metadata: &MetadataMap) -> Status {
        match self.verifier.authenticate(metadata).await {
            Ok(_identity) => Problem::unimplemented("no source can be connected yet").into(),
            Err(problem) => problem.into(),
        }
    }
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

    async fn connect_source(
        &self,
        request: Request<ConnectSourceRequest>,
    ) -> Result<Response<ConnectSourceResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn check_source(
        &self,
        request: Request<CheckSourceRequest>,
    ) -> Result<Response<CheckSourceResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn list_connected_sources(
        &self,
        request: Request<ListConnectedSourcesRequest>,
    ) -> Result<Response<ListConnectedSourcesResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn get_source(
        &self,
        request: Request<GetSourceRequest>,
    ) -> Result<Response<GetSourceResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn update_source(
        &self,
        request: Request<UpdateSourceRequest>,
    ) -> Result<Response<UpdateSourceResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn disconnect_source(
        &self,
        request: Request<DisconnectSourceRequest>,
    ) -> Result<Response<DisconnectSourceResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn sync_source(
        &self,
        request: Request<SyncSourceRequest>,
    ) -> Result<Response<SyncSourceResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn list_source_runs(
        &self,
        request: Request<ListSourceRunsRequest>,
    ) -> Result<Response<ListSourceRunsResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn get_source_run(
        &self,
        request: Request<GetSourceRunRequest>,
    ) -> Result<Response<GetSourceRunResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn cancel_source_run(
        &self,
        request: Request<CancelSourceRunRequest>,
    ) -> Result<Response<CancelSourceRunResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }
}
