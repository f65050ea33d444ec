//! The storage quota of a plan, which two services share. Each counts what it stores itself; before a write that the plan
//! limits, it requests the usage of the other one (ADR 54).

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use cairn_proto::ids::WorkspaceId;
use cairn_proto::usage::v1::storage_service_client::StorageServiceClient;
use cairn_proto::usage::v1::storage_service_server::{StorageService, StorageServiceServer};
use cairn_proto::usage::v1::{CountStorageRequest, CountStorageResponse};
use tonic::{Request, Response, Status};

use crate::breaker::{Breaker, Threshold};
use crate::call::Call;
use crate::channel::ServiceChannel;
use crate::clock::Clock;
use crate::identity::{ServiceIdentitySource, Verifier};
use crate::status::{Problem, Violation};
use crate::wording;

/// The full name of the gRPC service.
pub const SERVICE_NAME: &str = cairn_proto::usage::v1::storage_service_server::SERVICE_NAME;

/// How long a write waits for the other service.
const TIMEOUT: Duration = Duration::from_secs(1);
const THRESHOLD: Threshold = Threshold { failures: 2, pause: Duration::from_secs(5) };
/// The limit of the usage cache.
const MAX_CACHED: usize = 10_000;

/// The usage of workspaces in the other service; cheap to clone.
#[derive(Debug, Clone)]
pub struct SharedStorage(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    peer: OnceLock<Peer>,
    breaker: Breaker,
    /// The last known usage of each workspace, in bytes.
    cache: Mutex<HashMap<WorkspaceId, u64>>,
}

#[derive(Debug)]
struct Peer {
    channel: ServiceChannel,
    /// That of this service.
    identity: ServiceIdentitySource,
}

impl SharedStorage {
    /// Without a channel to the other service yet; see [`connect`](Self::connect).
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let (peer, cache) = Default::default();
        Self(Arc::new(Inner { peer, breaker: Breaker::new(THRESHOLD, clock), cache }))
    }

    /// Sets the channel to the other service; later calls have no effect.
    pub fn connect(&self, channel: ServiceChannel, identity: ServiceIdentitySource) {
        let _ = self.0.peer.set(Peer { channel, identity });
    }

    /// The bytes of a workspace in the other service. While it is unavailable, the last known value: an outage of one service
    /// must not block the writes of the other.
    pub async fn elsewhere(&self, workspace: WorkspaceId) -> u64 {
        let Some(peer) = self.0.peer.get().filter(|_| self.0.breaker.allows()) else {
            return self.cached(workspace);
        };
        match tokio::time::timeout(TIMEOUT, peer.request_usage(workspace)).await {
            Ok(Ok(bytes)) => {
                self.0.breaker.succeeded();
                self.insert(workspace, bytes);
                return bytes;
            }
            Ok(Err(problem)) => tracing::warn!(%problem, "a limit of storage is held to what was known last"),
            Err(elapsed) => tracing::warn!(%elapsed, "a limit of storage is held to what was known last"),
        }
        self.0.breaker.failed(None);
        self.cached(workspace)
    }

    /// Sets the cached usage, for tests.
    #[cfg(any(test, feature = "testing"))]
    pub fn set_cached(&self, workspace: WorkspaceId, bytes: u64) {
        self.insert(workspace, bytes);
    }

    fn cached(&self, workspace: WorkspaceId) -> u64 {
        let cache = self.0.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.get(&workspace).copied().unwrap_or_default()
    }

    fn insert(&self, workspace: WorkspaceId, bytes: u64) {
        let mut cache = self.0.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        cache.insert(workspace, bytes);
    }
}

impl Peer {
    async fn request_usage(&self, workspace: WorkspaceId) -> Result<u64, Problem> {
        let call = Call::within(TIMEOUT).with_identity(&self.identity.identity().await?);
        let request = call.request(CountStorageRequest { workspace_id: workspace.to_string() });
        let response = StorageServiceClient::new(self.channel.clone()).count_storage(request).await;
        Ok(response.map_err(|status| Problem::from_status(&status))?.into_inner().stored_bytes)
    }
}

/// Counts what a service stores itself.
#[tonic::async_trait]
pub trait Stored: Debug + Send + Sync + 'static {
    /// The bytes of a workspace.
    async fn stored_bytes(&self, workspace: WorkspaceId) -> Result<u64, Problem>;
}

/// The server of `cairn.usage.v1.StorageService`.
#[derive(Debug)]
pub struct Rpc {
    stored: Arc<dyn Stored>,
    verifier: Verifier,
}

impl Rpc {
    /// A server for the routes of a service.
    pub fn server(stored: Arc<dyn Stored>, verifier: Verifier) -> StorageServiceServer<Self> {
        StorageServiceServer::new(Self { stored, verifier })
    }
}

#[tonic::async_trait]
impl StorageService for Rpc {
    async fn count_storage(
        &self,
        request: Request<CountStorageRequest>,
    ) -> Result<Response<CountStorageResponse>, Status> {
        self.verifier.authenticate_service(request.metadata()).await?;
        let invalid = |_| Problem::validation(vec![Violation::new("workspaceId", "invalid", wording::ID)]);
        let workspace = request.get_ref().workspace_id.parse().map_err(invalid)?;
        Ok(Response::new(CountStorageResponse { stored_bytes: self.stored.stored_bytes(workspace).await? }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

    use cairn_proto::auth::v1::key_service_server::{KeyService, KeyServiceServer};
    use cairn_proto::auth::v1::{
        IssueServiceIdentityRequest, IssueServiceIdentityResponse, ListKeysRequest, ListKeysResponse,
    };
    use tonic::Code;
    use tonic::service::Routes;

    use super::*;
    use crate::clock::{ManualClock, SystemClock, Timestamp};
    use crate::testing::identity::Issuer;
    use crate::testing::server as double;

    /// A fake of the other service, with its usage.
    #[derive(Debug, Default)]
    struct Kept {
        bytes: AtomicU64,
        is_down: AtomicBool,
        asked: AtomicU32,
    }

    #[tonic::async_trait]
    impl Stored for Kept {
        async fn stored_bytes(&self, _: WorkspaceId) -> Result<u64, Problem> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            if self.is_down.load(Ordering::SeqCst) {
                return Err(Problem::unavailable("it is down", Duration::from_secs(1)));
            }
            Ok(self.bytes.load(Ordering::SeqCst))
        }
    }

    struct Keys(Issuer);

    #[tonic::async_trait]
    impl KeyService for Keys {
        async fn list_keys(&self, _: Request<ListKeysRequest>) -> Result<Response<ListKeysResponse>, Status> {
            Err(Status::unimplemented("not needed here"))
        }

        async fn issue_service_identity(
            &self,
            _: Request<IssueServiceIdentityRequest>,
        ) -> Result<Response<IssueServiceIdentityResponse>, Status> {
            let identity = self.0.sign(&self.0.service("content")).unwrap();
            Ok(Response::new(IssueServiceIdentityResponse { identity, expires_at: None }))
        }
    }

    /// The other service, and the way to it.
    async fn other() -> (Arc<Kept>, ServiceChannel) {
        let kept = Arc::new(Kept::default());
        let issuer = Issuer::new().unwrap();
        let server = Rpc::server(Arc::clone(&kept) as Arc<dyn Stored>, issuer.ambient().verifier);
        let routes = Routes::new(server).add_service(KeyServiceServer::new(Keys(issuer)));
        let names = [SERVICE_NAME, "cairn.auth.v1.KeyService"];
        (kept, ServiceChannel::local(double::compose(routes, &names).await.unwrap().routes))
    }

    fn workspace() -> WorkspaceId {
        WorkspaceId(uuid::Uuid::from_u128(1))
    }

    #[tokio::test]
    async fn while_the_other_service_is_away_its_last_word_counts_and_it_is_left_alone() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_000)));
        let storage = SharedStorage::new(Arc::clone(&clock) as Arc<dyn Clock>);
        assert_eq!(storage.elsewhere(workspace()).await, 0, "nobody is known");
        let (kept, channel) = other().await;
        let identity =
            ServiceIdentitySource::new("content", "secret".into(), channel.clone(), Arc::new(SystemClock));
        storage.connect(channel, identity);
        kept.bytes.store(700, Ordering::SeqCst);
        assert_eq!(storage.elsewhere(workspace()).await, 700);

        kept.is_down.store(true, Ordering::SeqCst);
        kept.bytes.store(900, Ordering::SeqCst);
        for _ in 0..5 {
            assert_eq!(storage.elsewhere(workspace()).await, 700, "what it said last");
        }
        assert_eq!(kept.asked.load(Ordering::SeqCst), 1 + THRESHOLD.failures);
        assert_eq!(
            storage.elsewhere(WorkspaceId(uuid::Uuid::from_u128(2))).await,
            0,
            "nothing was said of it"
        );

        kept.is_down.store(false, Ordering::SeqCst);
        clock.advance(THRESHOLD.pause);
        assert_eq!(storage.elsewhere(workspace()).await, 900);
    }

    #[tokio::test]
    async fn only_services_are_told() {
        let (kept, channel) = other().await;
        let issuer = Issuer::new().unwrap();
        let asked = || CountStorageRequest { workspace_id: workspace().to_string() };
        let mut client = StorageServiceClient::new(channel);
        let nobody = client.count_storage(Request::new(asked())).await.unwrap_err();
        let token = client.count_storage(issuer.request(workspace(), asked()).unwrap()).await.unwrap_err();
        assert_eq!((nobody.code(), token.code()), (Code::Unauthenticated, Code::PermissionDenied));
        let service = |message| issuer.request_as(&issuer.service("content"), message).unwrap();
        let odd = CountStorageRequest { workspace_id: "x".to_owned() };
        assert_eq!(client.count_storage(service(odd)).await.unwrap_err().code(), Code::InvalidArgument);
        assert_eq!(kept.asked.load(Ordering::SeqCst), 0);
        assert_eq!(client.count_storage(service(asked())).await.unwrap().into_inner().stored_bytes, 0);
    }
}
