//! The connected sources of the owner that the tests play.

use cairn_chassis::status::Problem;
use cairn_proto::ingest::v1 as ingest;
use cairn_proto::ingest::v1::source_service_server::SourceService;
use tonic::{Request, Response, Status};

use crate::owner::Owner;

/// What a search does not ask for is not answered.
macro_rules! source_service {
    ($($unused:ident: $request:ident -> $response:ident,)+) => {
        #[tonic::async_trait]
        impl SourceService for Owner {
            async fn list_sources(
                &self,
                _: Request<ingest::ListSourcesRequest>,
            ) -> Result<Response<ingest::ListSourcesResponse>, Status> {
                let mut state = self.answering()?;
                state.asked.sources += 1;
                Ok(Response::new(ingest::ListSourcesResponse { sources: state.sources.clone() }))
            }

            async fn get_source(
                &self,
                request: Request<ingest::GetSourceRequest>,
            ) -> Result<Response<ingest::GetSourceResponse>, Status> {
                let state = self.answering()?;
                let asked = request.into_inner().source_id;
                let source = state.sources.iter().find(|source| source.id == asked).cloned();
                let source = source.ok_or_else(|| Status::from(Problem::not_found("there is no such source")))?;
                let budget = Some(ingest::SourceBudget { limit: 500, used: 7, remaining: 493 });
                let source = ingest::ConnectedSource {
                    source: Some(source),
                    budget,
                    ..ingest::ConnectedSource::default()
                };
                Ok(Response::new(ingest::GetSourceResponse { source: Some(source) }))
            }

            $(async fn $unused(
                &self,
                _: Request<ingest::$request>,
            ) -> Result<Response<ingest::$response>, Status> {
                Err(Status::unimplemented("the test does not need it"))
            })+
        }
    };
}

source_service! {
    count_documents: CountDocumentsRequest -> CountDocumentsResponse,
    list_source_documents: ListSourceDocumentsRequest -> ListSourceDocumentsResponse,
    get_source_document: GetSourceDocumentRequest -> GetSourceDocumentResponse,
    fetch_source_document: FetchSourceDocumentRequest -> FetchSourceDocumentResponse,
    retry_source_document: RetrySourceDocumentRequest -> RetrySourceDocumentResponse,
    connect_source: ConnectSourceRequest -> ConnectSourceResponse,
    check_source: CheckSourceRequest -> CheckSourceResponse,
    list_connected_sources: ListConnectedSourcesRequest -> ListConnectedSourcesResponse,
    update_source: UpdateSourceRequest -> UpdateSourceResponse,
    disconnect_source: DisconnectSourceRequest -> DisconnectSourceResponse,
    sync_source: SyncSourceRequest -> SyncSourceResponse,
    list_source_runs: ListSourceRunsRequest -> ListSourceRunsResponse,
    get_source_run: GetSourceRunRequest -> GetSourceRunResponse,
    cancel_source_run: CancelSourceRunRequest -> CancelSourceRunResponse,
}
