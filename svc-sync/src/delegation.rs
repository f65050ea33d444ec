//! Identities for what goes on after the call that asked for it is over: svc-auth says each time whether whoever asked
//! could still ask (ADR 58).

use std::fmt::Debug;
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::identity::{Permission, PermissionSet, ServiceIdentitySource};
use cairn_chassis::status::Problem;
use cairn_proto::auth::v1::IssueDelegatedIdentityRequest;
use cairn_proto::auth::v1::delegation_service_client::DelegationServiceClient;
use cairn_proto::ids::WorkspaceId;

use crate::model::Asker;

/// How long svc-auth may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What this service may go on with.
#[derive(Clone)]
pub(crate) struct Delegated {
    /// Signed, with every permission in the workspace.
    pub(crate) identity: String,
    /// What whoever asked may do there now.
    pub(crate) permissions: PermissionSet,
}

cairn_chassis::debug_fields!(Delegated { permissions });

/// Who gives them.
#[async_trait::async_trait]
pub(crate) trait Delegates: Debug + Send + Sync {
    /// An identity of this service in a workspace, for whoever asked.
    async fn delegate(&self, workspace: WorkspaceId, asker: &Asker) -> Result<Delegated, Problem>;
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
    async fn delegate(&self, workspace: WorkspaceId, asker: &Asker) -> Result<Delegated, Problem> {
        let call = Call::within(PATIENCE).with_identity(&self.identity.identity().await?);
        let request = call.request(IssueDelegatedIdentityRequest {
            workspace_id: workspace.to_string(),
            principal_kind: asker.kind.as_str().to_owned(),
            principal_id: asker.id.clone(),
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
