//! A service's own identity, for feeds and background work.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cairn_proto::auth::v1::key_service_client::KeyServiceClient;
use cairn_proto::auth::v1::{IssueServiceIdentityRequest, ListKeysRequest};
use tokio::sync::Mutex;
use tonic::Request;

use super::{KeyDirectory, PublicKey};
use crate::channel::ServiceChannel;
use crate::clock::{Clock, Timestamp};
use crate::status::Problem;

/// An identity is renewed when less than this is left of it.
const RENEWAL_MARGIN: Duration = Duration::from_secs(60);
/// How long svc-auth may take to answer.
const AUTH_DEADLINE: Duration = Duration::from_secs(5);

/// Asks svc-auth for keys over a channel.
#[derive(Debug, Clone)]
pub struct RemoteKeys(pub ServiceChannel);

#[tonic::async_trait]
impl KeyDirectory for RemoteKeys {
    async fn keys(&self) -> Result<Vec<PublicKey>, Problem> {
        let mut request = Request::new(ListKeysRequest {});
        request.set_timeout(AUTH_DEADLINE);
        let response = KeyServiceClient::new(self.0.clone()).list_keys(request).await;
        let keys = response.map_err(|status| Problem::from_status(&status))?.into_inner().keys;
        let read = |key: cairn_proto::auth::v1::Key| {
            let bytes = <[u8; 32]>::try_from(key.public_key.as_ref()).ok()?;
            Some(PublicKey { id: key.id, bytes })
        };
        Ok(keys.into_iter().filter_map(read).collect())
    }
}

/// Keeps a service's identity fresh; cheap to clone.
#[derive(Clone)]
pub struct ServiceIdentitySource(Arc<Inner>);

struct Inner {
    service: &'static str,
    mesh_secret: String,
    auth: ServiceChannel,
    clock: Arc<dyn Clock>,
    current: Mutex<Option<(String, Timestamp)>>,
}

impl fmt::Debug for ServiceIdentitySource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServiceIdentitySource")
            .field("service", &self.0.service)
            .finish_non_exhaustive()
    }
}

impl ServiceIdentitySource {
    /// A source for the service of that name, proved by the mesh's shared secret.
    pub fn new(
        service: &'static str,
        mesh_secret: String,
        auth: ServiceChannel,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self(Arc::new(Inner { service, mesh_secret, auth, clock, current: Mutex::default() }))
    }

    /// The signed identity, renewed when it nears its end.
    ///
    /// # Errors
    /// What svc-auth answered, or UNAVAILABLE when it could not be reached.
    pub async fn identity(&self) -> Result<String, Problem> {
        let mut current = self.0.current.lock().await;
        if let Some((identity, expires_at)) = current.as_ref()
            && expires_at.since(self.0.clock.now()) > RENEWAL_MARGIN
        {
            return Ok(identity.clone());
        }
        let mut request = Request::new(IssueServiceIdentityRequest {
            service: self.0.service.to_owned(),
            mesh_secret: self.0.mesh_secret.clone(),
        });
        request.set_timeout(AUTH_DEADLINE);
        let response = KeyServiceClient::new(self.0.auth.clone()).issue_service_identity(request).await;
        let issued = response.map_err(|status| Problem::from_status(&status))?.into_inner();
        let expires_at = issued.expires_at.as_ref().map_or_else(|| self.0.clock.now(), Timestamp::from_proto);
        *current = Some((issued.identity.clone(), expires_at));
        Ok(issued.identity)
    }
}
