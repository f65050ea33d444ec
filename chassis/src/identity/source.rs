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

/// An identity is renewed this long before it expires.
const RENEWAL_MARGIN: Duration = Duration::from_secs(60);
/// The pause after a failed renewal.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The timeout of requests to svc-auth.
const AUTH_TIMEOUT: Duration = Duration::from_secs(5);

/// Fetches the keys from svc-auth over a channel.
#[derive(Debug, Clone)]
pub struct RemoteKeys(pub ServiceChannel);

#[tonic::async_trait]
impl KeyDirectory for RemoteKeys {
    async fn keys(&self) -> Result<Vec<PublicKey>, Problem> {
        let mut request = Request::new(ListKeysRequest {});
        request.set_timeout(AUTH_TIMEOUT);
        let response = KeyServiceClient::new(self.0.clone()).list_keys(request).await;
        let keys = response.map_err(|status| Problem::from_status(&status))?.into_inner().keys;
        let read = |key: cairn_proto::auth::v1::Key| {
            let bytes = <[u8; 32]>::try_from(key.public_key.as_ref()).ok()?;
            Some(PublicKey { id: key.id, bytes })
        };
        Ok(keys.into_iter().filter_map(read).collect())
    }
}

/// Caches a service's identity and renews it; cheap to clone.
#[derive(Clone)]
pub struct ServiceIdentitySource(Arc<Inner>);

struct Inner {
    service: &'static str,
    mesh_secret: String,
    auth: ServiceChannel,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The identity and its expiry.
    current: Option<(String, Timestamp)>,
    /// The last failed renewal and its time.
    failed: Option<(Problem, Timestamp)>,
}

impl State {
    /// The identity, if it is valid for longer than that.
    fn valid_for(&self, now: Timestamp, more_than: Duration) -> Option<String> {
        let (identity, expires_at) = self.current.as_ref()?;
        (expires_at.since(now) > more_than).then(|| identity.clone())
    }

    /// The error of a renewal that failed less than [`RETRY_INTERVAL`] ago.
    fn recent_failure(&self, now: Timestamp) -> Option<Problem> {
        let (problem, at) = self.failed.as_ref()?;
        let is_recent = at.age(now).is_some_and(|age| age < RETRY_INTERVAL);
        is_recent.then(|| problem.clone())
    }
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
    /// A source for the service of that name, which authenticates with the mesh's shared secret.
    pub fn new(
        service: &'static str,
        mesh_secret: String,
        auth: ServiceChannel,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self(Arc::new(Inner { service, mesh_secret, auth, clock, state: Mutex::default() }))
    }

    /// The signed identity, renewed shortly before it expires.
    ///
    /// # Errors
    /// The error of svc-auth, or UNAVAILABLE when it cannot be reached.
    pub async fn identity(&self) -> Result<String, Problem> {
        let mut state = self.0.state.lock().await;
        let now = self.0.clock.now();
        if let Some(identity) = state.valid_for(now, RENEWAL_MARGIN) {
            return Ok(identity);
        }
        // Callers that waited for the lock during a failed renewal share its result, instead of each waiting for a timeout.
        let problem = match state.recent_failure(now) {
            Some(problem) => problem,
            None => match self.renew().await {
                Ok(renewed) => {
                    let identity = renewed.0.clone();
                    *state = State { current: Some(renewed), failed: None };
                    return Ok(identity);
                }
                Err(problem) => {
                    state.failed = Some((problem.clone(), self.0.clock.now()));
                    problem
                }
            },
        };
        state.valid_for(self.0.clock.now(), Duration::ZERO).ok_or(problem)
    }

    async fn renew(&self) -> Result<(String, Timestamp), Problem> {
        let mut request = Request::new(IssueServiceIdentityRequest {
            service: self.0.service.to_owned(),
            mesh_secret: self.0.mesh_secret.clone(),
        });
        request.set_timeout(AUTH_TIMEOUT);
        let response = KeyServiceClient::new(self.0.auth.clone()).issue_service_identity(request).await;
        let issued = response.map_err(|status| Problem::from_status(&status))?.into_inner();
        let expires_at = issued.expires_at.as_ref().map_or_else(|| self.0.clock.now(), Timestamp::from_proto);
        Ok((issued.identity, expires_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_lies_ahead_was_not_a_moment_ago() {
        let at = Timestamp::from_seconds(1_000);
        let failed = Some((Problem::unavailable("down", RETRY_INTERVAL), at));
        let state = State { current: None, failed };
        assert!(state.recent_failure(at).is_some());
        assert!(state.recent_failure(at.plus(RETRY_INTERVAL)).is_none());
        assert!(state.recent_failure(Timestamp::from_seconds(900)).is_none(), "the clock was put back");
    }
}
