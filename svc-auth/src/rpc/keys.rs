//! KeyService, and the key source of svc-auth's own verifier.

use std::sync::Arc;

use cairn_chassis::identity::{KeyDirectory, PublicKey};
use cairn_chassis::status::Problem;
use cairn_proto::auth::v1::key_service_server::KeyService;
use cairn_proto::auth::v1::{
    IssueServiceIdentityRequest, IssueServiceIdentityResponse, Key, ListKeysRequest, ListKeysResponse,
};
use tonic::{Request, Response, Status};

use crate::keys::{Keys, ServiceIdentities};

#[derive(Debug)]
pub(super) struct KeyServer {
    pub(super) keys: Arc<Keys>,
    pub(super) identities: Arc<ServiceIdentities>,
}

#[tonic::async_trait]
impl KeyService for KeyServer {
    async fn list_keys(&self, _: Request<ListKeysRequest>) -> Result<Response<ListKeysResponse>, Status> {
        let keys = self.keys.public_keys().await?;
        Ok(Response::new(ListKeysResponse { keys: keys.into_iter().map(encode).collect() }))
    }

    async fn issue_service_identity(
        &self,
        request: Request<IssueServiceIdentityRequest>,
    ) -> Result<Response<IssueServiceIdentityResponse>, Status> {
        let message = request.get_ref();
        let issued = self.identities.issue(&message.service, &message.mesh_secret)?;
        let expires_at = Some(issued.expires_at.to_proto());
        Ok(Response::new(IssueServiceIdentityResponse { identity: issued.identity, expires_at }))
    }
}

/// Reads the deployment's keys without an RPC.
#[derive(Debug)]
pub(crate) struct Directory(pub(crate) Arc<Keys>);

#[tonic::async_trait]
impl KeyDirectory for Directory {
    async fn keys(&self) -> Result<Vec<PublicKey>, Problem> {
        Ok(self.0.public_keys().await?)
    }
}

fn encode(key: PublicKey) -> Key {
    Key { id: key.id, public_key: key.bytes.to_vec().into() }
}
