//! Outside trees that become workspace content. Its rooms come with the sync issue: until then every call says so.

use std::sync::Arc;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::identity::Verifier;
use cairn_chassis::lifecycle::{self, Suspensions};
use cairn_chassis::server::Access;
use cairn_chassis::status::Problem;
use cairn_proto::sync::v1::sync_service_server::{self, SyncServiceServer};
use cairn_proto::sync::v1::{
    DeleteSyncRequest, DeleteSyncResponse, GetSyncRequest, GetSyncResponse, PreviewSyncRequest,
    PreviewSyncResponse, StartSyncRequest, StartSyncResponse,
};
use tonic::metadata::MetadataMap;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

/// The full names of the gRPC services here.
pub const SERVICE_NAMES: &[&str] = &[sync_service_server::SERVICE_NAME];

/// A manifest carries its documents.
pub const ACCESS: Access = Access { open: &[], large: &["/cairn.sync.v1.SyncService/PreviewSync"] };

/// The sync service.
#[derive(Debug, Clone)]
pub struct Service {
    suspensions: Suspensions,
    verifier: Verifier,
}

impl Service {
    /// Opens the service.
    pub fn open(ambient: &Ambient) -> Self {
        let suspensions = Suspensions::in_memory(Arc::clone(&ambient.clock));
        let verifier = ambient.verifier.refusing(suspensions.clone());
        Self { suspensions, verifier }
    }

    /// Its gRPC services.
    pub fn routes(&self) -> Routes {
        let server = SyncServiceServer::new(self.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Routes::new(server)
    }

    /// The server by which svc-auth tells what becomes of workspaces.
    pub fn lifecycle(&self) -> Routes {
        let (suspensions, verifier) = (self.suspensions.clone(), self.verifier.clone());
        Routes::new(lifecycle::Rpc::server_without_storage(suspensions, verifier))
    }

    async fn refuse(&self, metadata: &MetadataMap) -> Status {
        match self.verifier.authenticate(metadata).await {
            Ok(_identity) => Problem::unimplemented("directory sync is not served yet").into(),
            Err(problem) => problem.into(),
        }
    }
}

#[tonic::async_trait]
impl sync_service_server::SyncService for Service {
    async fn preview_sync(
        &self,
        request: Request<PreviewSyncRequest>,
    ) -> Result<Response<PreviewSyncResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn get_sync(&self, request: Request<GetSyncRequest>) -> Result<Response<GetSyncResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn start_sync(
        &self,
        request: Request<StartSyncRequest>,
    ) -> Result<Response<StartSyncResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }

    async fn delete_sync(
        &self,
        request: Request<DeleteSyncRequest>,
    ) -> Result<Response<DeleteSyncResponse>, Status> {
        Err(self.refuse(request.metadata()).await)
    }
}
