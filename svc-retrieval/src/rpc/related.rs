//! RelatedService.

use cairn_chassis::call::Call;
use cairn_chassis::identity::Permission;
use cairn_proto::retrieval::v1::related_service_server::RelatedService;
use cairn_proto::retrieval::v1::{GetRelatedFilesRequest, GetRelatedFilesResponse};
use tonic::{Request, Response, Status};

use crate::Service;
use crate::analytics::{Found, Operation, Strategy};
use crate::search::RelatedRequest;

#[tonic::async_trait]
impl RelatedService for Service {
    async fn get_related_files(
        &self,
        request: Request<GetRelatedFilesRequest>,
    ) -> Result<Response<GetRelatedFilesResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        identity.require(Permission::Read)?;
        let call = Call::from_metadata(request.metadata());
        let checked = RelatedRequest::try_from(request.into_inner())?;
        let measured = self.analytics().begin(&identity, &call, Operation::RelatedFiles, Strategy::None);
        let answer = self.searcher().related(&identity, &call, checked).await;
        measured.end(&answer, Found::by_neighbours);
        Ok(Response::new(answer?))
    }
}
