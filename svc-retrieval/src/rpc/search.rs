//! SearchService.

use cairn_chassis::call::Call;
use cairn_chassis::identity::Permission;
use cairn_proto::retrieval::v1::search_service_server::SearchService;
use cairn_proto::retrieval::v1::{
    ExplainAbsenceRequest, ExplainAbsenceResponse, QuerySourceRequest, QuerySourceResponse,
    SearchContextRequest, SearchContextResponse,
};
use tonic::{Request, Response, Status};

use crate::Service;
use crate::analytics::{self, Found, Operation};
use crate::questions::LoggedRequest;
use crate::search::{AbsenceRequest, SearchRequest, SourceQuery, require_whole_workspace};

#[tonic::async_trait]
impl SearchService for Service {
    async fn search_context(
        &self,
        request: Request<SearchContextRequest>,
    ) -> Result<Response<SearchContextResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        identity.require(Permission::Read)?;
        let call = Call::from_metadata(request.metadata());
        let request = request.into_inner();
        let pending =
            self.questions().begin(&identity, &call, || LoggedRequest::Search(Box::new(request.clone())));
        let checked = SearchRequest::try_from(request)?;
        let strategy = analytics::Strategy::of(&checked);
        let measured = self.analytics().begin(&identity, &call, Operation::SearchContext, strategy);
        let answer = self.searcher().search(&identity, &call, checked).await;
        measured.end(&answer, Found::by_search);
        let response = answer?.response;
        if let Some(pending) = pending {
            pending.answered(self.questions(), &response.results, &response.coverage);
        }
        Ok(Response::new(response))
    }

    async fn query_source(
        &self,
        request: Request<QuerySourceRequest>,
    ) -> Result<Response<QuerySourceResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        identity.require(Permission::Read)?;
        require_whole_workspace(&identity)?;
        let call = Call::from_metadata(request.metadata());
        let request = request.into_inner();
        let pending =
            self.questions().begin(&identity, &call, || LoggedRequest::SourceQuery(request.clone()));
        let checked = SourceQuery::try_from(request)?;
        let strategy = analytics::Strategy::of(&checked.search);
        let measured = self.analytics().begin(&identity, &call, Operation::QuerySource, strategy);
        let answer = self.searcher().query_source(&identity, &call, checked).await;
        measured.end(&answer, Found::by_source_query);
        let response = answer?;
        if let Some(pending) = pending {
            pending.answered(self.questions(), &response.results, &response.coverage);
        }
        Ok(Response::new(response))
    }

    async fn explain_absence(
        &self,
        request: Request<ExplainAbsenceRequest>,
    ) -> Result<Response<ExplainAbsenceResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        identity.require(Permission::Read)?;
        let call = Call::from_metadata(request.metadata());
        let checked = AbsenceRequest::try_from(request.into_inner())?;
        Ok(Response::new(self.searcher().explain_absence(&identity, &call, checked).await?))
    }
}
