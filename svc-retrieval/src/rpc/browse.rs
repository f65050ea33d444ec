//! BrowseService.

use cairn_browse::Script;
use cairn_chassis::call::Call;
use cairn_chassis::identity::Permission;
use cairn_proto::retrieval::v1::browse_service_server::BrowseService;
use cairn_proto::retrieval::v1::{ExecuteScriptRequest, ExecuteScriptResponse};
use tonic::{Request, Response, Status};

use crate::Service;

#[tonic::async_trait]
impl BrowseService for Service {
    async fn execute_script(
        &self,
        request: Request<ExecuteScriptRequest>,
    ) -> Result<Response<ExecuteScriptResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        identity.require(Permission::Read)?;
        let call = Call::from_metadata(request.metadata());
        let script = Script::try_from(request.into_inner())?;
        Ok(Response::new(self.browser().execute(&identity, &call, script).await?))
    }
}
