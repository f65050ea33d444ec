//! `cairn.ingest.v1.SourceService`.

mod wire;

use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::ingest::v1::source_service_server::{SourceService, SourceServiceServer};
use cairn_proto::ingest::v1::{
    CancelSourceRunRequest, CancelSourceRunResponse, CheckSourceRequest, CheckSourceResponse,
    ConnectSourceRequest, ConnectSourceResponse, CountDocumentsRequest, CountDocumentsResponse,
    DisconnectSourceRequest, DisconnectSourceResponse, FetchSourceDocumentRequest,
    FetchSourceDocumentResponse, GetSourceDocumentRequest, GetSourceDocumentResponse, GetSourceRequest,
    GetSourceResponse, GetSourceRunRequest, GetSourceRunResponse, ListConnectedSourcesRequest,
    ListConnectedSourcesResponse, ListSourceDocumentsRequest, ListSourceDocumentsResponse,
    ListSourceRunsRequest, ListSourceRunsResponse, ListSourcesRequest, ListSourcesResponse,
    RetrySourceDocumentRequest, RetrySourceDocumentResponse, SyncSourceRequest, SyncSourceResponse,
    UpdateSourceRequest, UpdateSourceResponse,
};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use crate::model::{PageRequest, SOURCE_PAGES};
use crate::scope::Caller;
use crate::sources::Sources;

pub(crate) fn server(sources: Sources, verifier: Verifier) -> SourceServiceServer<Rpc> {
    SourceServiceServer::new(Rpc { sources, verifier })
}

#[derive(Debug)]
pub(crate) struct Rpc {
    sources: Sources,
    verifier: Verifier,
}

impl Rpc {
    async fn reader(&self, metadata: &MetadataMap) -> Result<Caller, Status> {
        Ok(self.verifier.authorize(metadata, Permission::Read).await?)
    }

    /// An owner or admin of the workspace, with a session.
    async fn manager(&self, metadata: &MetadataMap, what: &str) -> Result<Caller, Status> {
        let identity = self.verifier.authenticate(metadata).await?;
        identity.require_manager(what)?;
        Ok(Caller::try_from(identity)?)
    }
}

#[tonic::async_trait]
impl SourceService for Rpc {
    async fn list_sources(
        &self,
        request: Request<ListSourcesRequest>,
    ) -> Result<Response<ListSourcesResponse>, Status> {
        let caller = self.reader(request.metadata()).await?;
        let (listed, now) = (self.sources.list(&caller).await?, self.sources.now());
        let sources = listed.iter().map(|shown| wire::source(shown, now)).collect();
        Ok(Response::new(ListSourcesResponse { sources }))
    }

    async fn count_documents(
        &self,
        request: Request<CountDocumentsRequest>,
    ) -> Result<Response<CountDocumentsResponse>, Status> {
        let caller = self.reader(request.metadata()).await?;
        Ok(Response::new(wire::status_counts(&self.sources.count_documents(&caller).await?)))
    }

    async fn list_source_documents(
        &self,
        request: Request<ListSourceDocumentsRequest>,
    ) -> Result<Response<ListSourceDocumentsResponse>, Status> {
        let caller = self.reader(request.metadata()).await?;
        let asked = request.into_inner();
        let (source, status) = (asked.source_id.as_deref(), asked.status.as_deref());
        let request = PageRequest::new(SOURCE_PAGES, asked.page_size, &asked.page_token)?;
        let page = self.sources.list_documents(&caller, source, status, &asked.title, request).await?;
        Ok(Response::new(ListSourceDocumentsResponse {
            documents: page.items.into_iter().map(wire::document).collect(),
            next_page_token: page.next,
            total_size: page.total,
        }))
    }

    async fn get_source_document(
        &self,
        request: Request<GetSourceDocumentRequest>,
    ) -> Result<Response<GetSourceDocumentResponse>, Status> {
        let caller = self.reader(request.metadata()).await?;
        let details = self.sources.get_document(&caller, &request.get_ref().document_id).await?;
        Ok(Response::new(wire::document_details(details)))
    }

    async fn fetch_source_document(
        &self,
        request: Request<FetchSourceDocumentRequest>,
    ) -> Result<Response<FetchSourceDocumentResponse>, Status> {
        let caller = self.reader(request.metadata()).await?;
        let asked = request.get_ref();
        let fetched = self.sources.fetch(&caller, &asked.source_id, &asked.external_id).await?;
        Ok(Response::new(wire::fetched(fetched)))
    }

    async fn retry_source_document(
        &self,
        request: Request<RetrySourceDocumentRequest>,
    ) -> Result<Response<RetrySourceDocumentResponse>, Status> {
        let caller = self.verifier.authorize(request.metadata(), Permission::Write).await?;
        let document = self.sources.retry_document(&caller, &request.get_ref().document_id).await?;
        Ok(Response::new(RetrySourceDocumentResponse { document: Some(wire::document(document)) }))
    }

    async fn connect_source(
        &self,
        request: Request<ConnectSourceRequest>,
    ) -> Result<Response<ConnectSourceResponse>, Status> {
        let caller = self.manager(request.metadata(), "connecting sources").await?;
        let draft = wire::draft(request.into_inner().source.unwrap_or_default());
        let shown = self.sources.connect(&caller, draft).await?;
        let source = wire::connected(&shown, self.sources.now());
        Ok(Response::new(ConnectSourceResponse { source: Some(source) }))
    }

    async fn check_source(
        &self,
        request: Request<CheckSourceRequest>,
    ) -> Result<Response<CheckSourceResponse>, Status> {
        let caller = self.manager(request.metadata(), "checking sources").await?;
        let draft = wire::draft(request.into_inner().source.unwrap_or_default());
        let answer = self.sources.check(&caller, draft).await?;
        Ok(Response::new(CheckSourceResponse {
            ok: answer.ok,
            account: answer.account,
            message: answer.message,
        }))
    }

    async fn list_connected_sources(
        &self,
        request: Request<ListConnectedSourcesRequest>,
    ) -> Result<Response<ListConnectedSourcesResponse>, Status> {
        let caller = self.reader(request.metadata()).await?;
        let (listed, now) = (self.sources.list(&caller).await?, self.sources.now());
        let sources = listed.iter().map(|shown| wire::connected(shown, now)).collect();
        Ok(Response::new(ListConnectedSourcesResponse { sources }))
    }

    async fn get_source(
        &self,
        request: Request<GetSourceRequest>,
    ) -> Result<Response<GetSourceResponse>, Status> {
        let caller = self.reader(request.metadata()).await?;
        let shown = self.sources.get(&caller, &request.get_ref().source_id).await?;
        let source = wire::connected(&shown, self.sources.now());
        Ok(Response::new(GetSourceResponse { source: Some(source) }))
    }

    async fn update_source(
        &self,
        request: Request<UpdateSourceRequest>,
    ) -> Result<Response<UpdateSourceResponse>, Status> {
        let caller = self.manager(request.metadata(), "changing sources").await?;
        let (source_id, patch) = wire::patch(request.into_inner());
        let shown = self.sources.update(&caller, &source_id, patch).await?;
        let source = wire::connected(&shown, self.sources.now());
        Ok(Response::new(UpdateSourceResponse { source: Some(source) }))
    }

    async fn disconnect_source(
        &self,
        request: Request<DisconnectSourceRequest>,
    ) -> Result<Response<DisconnectSourceResponse>, Status> {
        let caller = self.manager(request.metadata(), "disconnecting sources").await?;
        let position = self.sources.disconnect(&caller, &request.get_ref().source_id).await?;
        Ok(Response::new(DisconnectSourceResponse { position }))
    }

    async fn sync_source(
        &self,
        request: Request<SyncSourceRequest>,
    ) -> Result<Response<SyncSourceResponse>, Status> {
        let caller = self.manager(request.metadata(), "running sources").await?;
        let asked = request.get_ref();
        let run = self.sources.sync(&caller, &asked.source_id, asked.full).await?;
        Ok(Response::new(SyncSourceResponse { run: Some(wire::run(&run)) }))
    }

    async fn list_source_runs(
        &self,
        request: Request<ListSourceRunsRequest>,
    ) -> Result<Response<ListSourceRunsResponse>, Status> {
        let caller = self.reader(request.metadata()).await?;
        let asked = request.get_ref();
        let request = PageRequest::new(SOURCE_PAGES, asked.page_size, &asked.page_token)?;
        let page = self.sources.list_runs(&caller, &asked.source_id, request).await?;
        Ok(Response::new(ListSourceRunsResponse {
            runs: page.items.iter().map(wire::run).collect(),
            next_page_token: page.next,
            total_size: page.total,
        }))
    }

    async fn get_source_run(
        &self,
        request: Request<GetSourceRunRequest>,
    ) -> Result<Response<GetSourceRunResponse>, Status> {
        let caller = self.reader(request.metadata()).await?;
        let asked = request.get_ref();
        let run = self.sources.get_run(&caller, &asked.source_id, &asked.run_id).await?;
        Ok(Response::new(GetSourceRunResponse { run: Some(wire::run(&run)) }))
    }

    async fn cancel_source_run(
        &self,
        request: Request<CancelSourceRunRequest>,
    ) -> Result<Response<CancelSourceRunResponse>, Status> {
        let caller = self.manager(request.metadata(), "cancelling runs").await?;
        let asked = request.get_ref();
        let run = self.sources.cancel_run(&caller, &asked.source_id, &asked.run_id).await?;
        Ok(Response::new(CancelSourceRunResponse { run: Some(wire::run(&run)) }))
    }
}
