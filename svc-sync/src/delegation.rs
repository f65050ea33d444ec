//! Delegated identities for work that outlives the call that requested it: svc-auth checks each time what the requester may still do
//! (ADR 58).

use std::fmt::Debug;
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::identity::{Permission, PermissionSet, ServiceIdentitySource};
use cairn_chassis::status::Problem;
use cairn_proto::auth::v1::IssueDelegatedIdentityRequest;
use cairn_proto::auth::v1::delegation_service_client::DelegationServiceClient;
use cairn_proto::ids::WorkspaceId;

use crate::model::Requester;

/// Deadline of a call to svc-auth.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// A delegated identity.
#[derive(Clone)]
pub(crate) struct Delegated {
    /// Signed, with every permission in the workspace.
    pub(crate) identity: String,
    /// The current permissions of the requester.
    pub(crate) permissions: PermissionSet,
}

cairn_chassis::debug_fields!(Delegated { permissions });

/// Issues delegated identities.
#[async_trait::async_trait]
pub(crate) trait Delegates: Debug + Send + Sync {
    /// An identity of this service in a workspace, on behalf of a requester.
    async fn delegate(&self, workspace: WorkspaceId, requester: &Requester) -> Result<Delegated, Problem>;
}

/// svc-auth.
#[derive(Debug)]
pub(crate) struct RemoteDelegates {
    pub(crate) auth: ServiceChannel,
    /// This service's own.
    pub(crate) identity: ServiceIdentitySource,
}

#[async_trait::async_trait]
impl Delegates for RemoteDelegates {
    async fn delegate(&self, workspace: WorkspaceId, requester: &Requester) -> Result<Delegated, Problem> {
        let call = Call::within(CALL_TIMEOUT).with_identity(&self.identity.identity().await?);
        let request = call.request(IssueDelegatedIdentityRequest {
            workspace_id: workspace.to_string(),
            principal_kind: requester.kind.as_str().to_owned(),
            principal_id: requester.id.clone(),
            ..IssueDelegatedIdentityRequest::default()
        });
        let mut client = DelegationServiceClient::new(self.auth.clone());
        let answer = client.issue_delegated_identity(request).await;
        let answer = answer.map_err(|status| Problem::from_status(&status))?.into_inner();
        if !answer.whole_workspace {
            return Err(crate::Error::BoundToFolders.into());
        }
        let permissions =
            answer.permissions.into_iter().filter_map(Permission::from_number).collect::<PermissionSet>();
        Ok(Delegated { identity: answer.identity, permissions })
    }
}
