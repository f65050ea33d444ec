//! Verifies identities: signature, audience, issuer and expiry.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use quick_cache::UnitWeighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use tonic::metadata::MetadataMap;

use super::claims::{AUDIENCE, Claims, ISSUER};
use super::{Identity, Permission, SERVICE_IDENTITY};
use crate::clock::{Clock, Timestamp};
use crate::lifecycle::Suspensions;
use crate::status::Problem;

/// Capacity of the identity cache. Verifying an Ed25519 signature costs tens of microseconds, and the gateway sends the same
/// identity for a second, so verified identities are cached until they expire. An entry takes about 1 KiB.
const CACHE_CAPACITY: usize = 4_096;

/// Unknown key ids cause a refresh at most this often, so that forged ones cannot flood svc-auth.
const KEY_REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Cached keys that are older than this are refreshed in the background: a new key is known before it signs, even if svc-auth
/// is down at that moment, and a revoked one is dropped. svc-auth publishes a key for longer than this before it signs with
/// it.
pub const KEY_MAX_AGE: Duration = Duration::from_secs(60);

/// An Ed25519 public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    /// The `kid` in the JWT's header.
    pub id: String,
    /// The key.
    pub bytes: [u8; 32],
}

/// The source of public keys.
#[tonic::async_trait]
pub trait KeyDirectory: fmt::Debug + Send + Sync {
    /// All keys that identities may be signed with now.
    async fn keys(&self) -> Result<Vec<PublicKey>, Problem>;
}

/// A fixed set of keys: svc-auth's own, and those of tests.
#[derive(Debug)]
pub struct StaticKeys(pub Vec<PublicKey>);

#[tonic::async_trait]
impl KeyDirectory for StaticKeys {
    async fn keys(&self) -> Result<Vec<PublicKey>, Problem> {
        Ok(self.0.clone())
    }
}

/// Verifies identities; cheap to clone, one per process.
#[derive(Debug, Clone)]
pub struct Verifier(Arc<Inner>, Option<Suspensions>);

struct Inner {
    clock: Arc<dyn Clock>,
    directory: Arc<dyn KeyDirectory>,
    keys: RwLock<KeyCache>,
    refreshing: tokio::sync::Mutex<()>,
    /// Looked up twice a call. A fast hash is safe: only verified identities become keys, so an attacker cannot choose them.
    verified: Cache<String, Arc<Identity>, UnitWeighter, foldhash::fast::RandomState>,
}

#[derive(Default)]
struct KeyCache {
    by_id: HashMap<String, DecodingKey>,
    refreshed_at: Option<Timestamp>,
}

crate::debug_fields!(Inner { directory });

impl Verifier {
    /// A verifier that fetches keys from the directory when it meets an unknown key id.
    pub fn new(directory: Arc<dyn KeyDirectory>, clock: Arc<dyn Clock>) -> Self {
        let inner = Inner {
            clock,
            directory,
            keys: RwLock::default(),
            refreshing: tokio::sync::Mutex::new(()),
            verified: Cache::with(
                CACHE_CAPACITY,
                CACHE_CAPACITY as u64,
                UnitWeighter,
                foldhash::fast::RandomState::default(),
                DefaultLifecycle::default(),
            ),
        };
        Self(Arc::new(inner), None)
    }

    /// The same for one service, which also rejects identities of suspended workspaces.
    #[must_use]
    pub fn refusing(&self, suspensions: Suspensions) -> Self {
        Self(Arc::clone(&self.0), Some(suspensions))
    }

    /// Verifies the identity in the metadata of a call.
    ///
    /// # Errors
    /// UNAUTHORIZED when there is none, it is not valid, or its workspace is suspended; UNAVAILABLE when its key cannot be
    /// fetched.
    pub async fn authenticate(&self, metadata: &MetadataMap) -> Result<Identity, Problem> {
        self.authenticate_headers(metadata.as_ref()).await
    }

    /// As [`Self::authenticate`], for HTTP headers.
    ///
    /// # Errors
    /// As [`Self::authenticate`].
    pub async fn authenticate_headers(&self, headers: &HeaderMap) -> Result<Identity, Problem> {
        self.caller_of(headers).await.map(Arc::unwrap_or_clone)
    }

    async fn caller_of(&self, headers: &HeaderMap) -> Result<Arc<Identity>, Problem> {
        let identity = self.identity_of(bearer(headers)?).await?;
        if let (Some(suspensions), Some(workspace)) = (&self.1, identity.workspace) {
            suspensions.check(workspace)?;
        }
        Ok(identity)
    }

    /// Verifies the caller: the identity in the call, or without one the service in [`SERVICE_IDENTITY`], which calls for itself,
    /// such as to read a feed.
    ///
    /// # Errors
    /// As [`Self::authenticate`].
    pub async fn authenticate_call(&self, headers: &HeaderMap) -> Result<Arc<Identity>, Problem> {
        match headers.get(SERVICE_IDENTITY).and_then(|value| value.to_str().ok()) {
            Some(presented) if !headers.contains_key(AUTHORIZATION) => {
                let identity = self.identity_of(presented).await?;
                identity.require_service()?;
                Ok(identity)
            }
            _ => self.caller_of(headers).await,
        }
    }

    /// Verifies the identity and its permission, and converts it into the service's own caller type.
    ///
    /// # Errors
    /// As [`Self::authenticate`]; FORBIDDEN without the permission; the error of the conversion.
    pub async fn authorize<C>(&self, metadata: &MetadataMap, permission: Permission) -> Result<C, Problem>
    where
        C: TryFrom<Identity, Error = Problem>,
    {
        let identity = self.authenticate(metadata).await?;
        identity.require(permission)?;
        C::try_from(identity)
    }

    /// Verifies that the caller is a service of the mesh, for itself or on behalf of a user: by [`SERVICE_IDENTITY`], or by the
    /// identity of the call.
    ///
    /// # Errors
    /// UNAUTHORIZED without a valid identity, FORBIDDEN for any caller but a service.
    pub async fn authenticate_service(&self, metadata: &MetadataMap) -> Result<Identity, Problem> {
        let presented = metadata.get(SERVICE_IDENTITY).and_then(|value| value.to_str().ok());
        let token = presented.map_or_else(|| bearer(metadata.as_ref()), Ok).map_err(|_| {
            Problem::unauthorized(
                "only services of the mesh may call this, and the call carries no service's identity: sign in or \
                 send the API token to the gateway's REST API, or exchange an API token with TokenService/Exchange",
            )
        })?;
        let identity = self.identity_of(token).await?;
        identity.require_service()?;
        Ok(Arc::unwrap_or_clone(identity))
    }

    async fn identity_of(&self, token: &str) -> Result<Arc<Identity>, Problem> {
        if let Some(identity) = self.0.verified.get(token) {
            return self.unexpired(identity);
        }
        let identity = self.unexpired(Arc::new(self.verify(token).await?))?;
        self.0.verified.insert(token.to_owned(), Arc::clone(&identity));
        Ok(identity)
    }

    /// Whether a rejected token is valid except that it has expired.
    pub async fn has_expired(&self, token: &str) -> bool {
        let now = self.0.clock.now();
        self.verify(token).await.is_ok_and(|identity| identity.expires_at <= now)
    }

    fn unexpired(&self, identity: Arc<Identity>) -> Result<Arc<Identity>, Problem> {
        if identity.expires_at <= self.0.clock.now() {
            return Err(Problem::unauthorized("the identity has expired: exchange the API token again"));
        }
        Ok(identity)
    }

    async fn verify(&self, token: &str) -> Result<Identity, Problem> {
        let invalid = || Problem::unauthorized("the identity is not valid");
        let header = jsonwebtoken::decode_header(token).map_err(|_| invalid())?;
        let key_id = header.kid.ok_or_else(invalid)?;
        self.refresh_in_background();
        let key = match self.cached_key(&key_id) {
            Some(key) => key,
            None => self.fetch_key(&key_id).await?.ok_or_else(invalid)?,
        };

        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.set_audience(&[AUDIENCE]);
        validation.set_issuer(&[ISSUER]);
        validation.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
        // Time is a parameter: `unexpired` compares with our clock.
        validation.validate_exp = false;
        let decoded = jsonwebtoken::decode::<Claims>(token, &key, &validation).map_err(|_| invalid())?;
        decoded.claims.into_identity().ok_or_else(invalid)
    }

    fn cached_key(&self, key_id: &str) -> Option<DecodingKey> {
        self.0.keys.read().unwrap_or_else(PoisonError::into_inner).by_id.get(key_id).cloned()
    }

    async fn fetch_key(&self, key_id: &str) -> Result<Option<DecodingKey>, Problem> {
        let _refreshing = self.0.refreshing.lock().await;
        if let Some(key) = self.cached_key(key_id) {
            return Ok(Some(key));
        }
        if self.key_cache_age().is_some_and(|age| age < KEY_REFRESH_INTERVAL) {
            return Ok(None);
        }
        self.refresh_keys().await?;
        Ok(self.cached_key(key_id))
    }

    /// Refreshes old keys in a spawned task. The cached keys stay valid while svc-auth is unavailable.
    fn refresh_in_background(&self) {
        if self.key_cache_age().is_none_or(|age| age < KEY_MAX_AGE) {
            return;
        }
        let verifier = self.clone();
        tokio::spawn(async move {
            let Ok(_refreshing) = verifier.0.refreshing.try_lock() else { return };
            if verifier.key_cache_age().is_some_and(|age| age < KEY_MAX_AGE) {
                return;
            }
            if let Err(problem) = verifier.refresh_keys().await {
                tracing::debug!(%problem, "the signing keys cannot be asked for now");
            }
        });
    }

    /// The age of the cached keys; `None` before the first refresh. When the clock was set back since, their age is unknown, and
    /// they count as old.
    fn key_cache_age(&self) -> Option<Duration> {
        let refreshed_at = self.0.keys.read().unwrap_or_else(PoisonError::into_inner).refreshed_at;
        refreshed_at.map(|at| at.age(self.0.clock.now()).unwrap_or(Duration::MAX))
    }

    async fn refresh_keys(&self) -> Result<(), Problem> {
        // The time before the request, so that the keys are at least as recent as it says.
        let refreshed_at = Some(self.0.clock.now());
        let keys = self.0.directory.keys().await?;
        let by_id = keys.into_iter().map(|key| (key.id, DecodingKey::from_ed_der(&key.bytes))).collect();
        *self.0.keys.write().unwrap_or_else(PoisonError::into_inner) = KeyCache { by_id, refreshed_at };
        Ok(())
    }
}

fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Err(Problem::unauthorized(
            "the call carries no identity: send `authorization: Bearer <identity>`",
        ));
    };
    if values.next().is_some() {
        return Err(Problem::unauthorized("the call carries more than one authorization"));
    }
    value
        .to_str()
        .ok()
        .and_then(|text| text.strip_prefix("Bearer "))
        .ok_or_else(|| Problem::unauthorized("the authorization is not a bearer identity"))
}

#[cfg(test)]
mod tests;
