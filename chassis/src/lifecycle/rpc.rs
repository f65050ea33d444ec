//! LifecycleService, which every service shares; only the purge differs.

use std::fmt::Debug;
use std::sync::Arc;

use cairn_proto::ids::WorkspaceId;
use cairn_proto::lifecycle::v1::lifecycle_service_server::{LifecycleService, LifecycleServiceServer};
use cairn_proto::lifecycle::v1::{
    PurgeWorkspaceRequest, PurgeWorkspaceResponse, SetWorkspaceStateRequest, SetWorkspaceStateResponse,
    WorkspaceState,
};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use super::Suspensions;
use crate::identity::Verifier;
use crate::status::{Problem, Violation};
use crate::wording;

/// The service that may change the state of workspaces.
const AUTH: &str = "auth";

/// Deletes the data of a workspace.
#[tonic::async_trait]
pub trait Purge: Debug + Send + Sync + 'static {
    /// Deletes a part, which takes a few seconds at most; returns whether nothing is left. It may be cancelled at any point,
    /// and is then called again.
    async fn purge(&self, workspace: WorkspaceId) -> Result<bool, Problem>;
}

/// The server of `cairn.lifecycle.v1.LifecycleService`.
#[derive(Debug)]
pub struct Rpc {
    suspensions: Suspensions,
    purge: Option<Arc<dyn Purge>>,
    verifier: Verifier,
}

impl Rpc {
    /// The server of a service with storage.
    pub fn server(
        suspensions: Suspensions,
        purge: Arc<dyn Purge>,
        verifier: Verifier,
    ) -> LifecycleServiceServer<Self> {
        LifecycleServiceServer::new(Self { suspensions, purge: Some(purge), verifier })
    }

    /// The server of a service without storage.
    pub fn server_without_storage(
        suspensions: Suspensions,
        verifier: Verifier,
    ) -> LifecycleServiceServer<Self> {
        LifecycleServiceServer::new(Self { suspensions, purge: None, verifier })
    }

    async fn authorize(&self, metadata: &MetadataMap) -> Result<(), Problem> {
        let identity = self.verifier.authenticate(metadata).await?;
        identity.require_service()?;
        if identity.principal.id == AUTH {
            return Ok(());
        }
        Err(Problem::forbidden("only svc-auth decides about workspaces"))
    }
}

#[tonic::async_trait]
impl LifecycleService for Rpc {
    async fn set_workspace_state(
        &self,
        request: Request<SetWorkspaceStateRequest>,
    ) -> Result<Response<SetWorkspaceStateResponse>, Status> {
        self.authorize(request.metadata()).await?;
        let request = request.get_ref();
        let workspace = workspace_id(&request.workspace_id)?;
        let is_suspended = match request.state() {
            WorkspaceState::Live => false,
            WorkspaceState::Suspended => true,
            WorkspaceState::Unspecified => {
                let unknown = Violation::new("state", "invalid", "must be live or suspended");
                return Err(Problem::validation(vec![unknown]).into());
            }
        };
        let set = self.suspensions.set(workspace, is_suspended, request.revision).await;
        set.map_err(Problem::from)?;
        Ok(Response::new(SetWorkspaceStateResponse {}))
    }

    async fn purge_workspace(
        &self,
        request: Request<PurgeWorkspaceRequest>,
    ) -> Result<Response<PurgeWorkspaceResponse>, Status> {
        self.authorize(request.metadata()).await?;
        let request = request.get_ref();
        let workspace = workspace_id(&request.workspace_id)?;
        // The notification of the suspension may have been lost.
        self.suspensions.set(workspace, true, request.revision).await.map_err(Problem::from)?;
        if !self.suspensions.is_suspended_now(workspace).await.map_err(Problem::from)? {
            let message = "the workspace was restored after this was decided: nothing is removed";
            return Err(Problem::version_conflict(message).into());
        }
        let is_done = match &self.purge {
            Some(purge) => purge.purge(workspace).await?,
            None => true,
        };
        if is_done {
            self.suspensions.mark_purged(workspace).await.map_err(Problem::from)?;
        }
        Ok(Response::new(PurgeWorkspaceResponse { is_done }))
    }
}

fn workspace_id(text: &str) -> Result<WorkspaceId, Problem> {
    text.parse().map_err(|_| Problem::validation(vec![Violation::new("workspaceId", "invalid", wording::ID)]))
}
