//! Checks identities: signature, audience, issuer, end.

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

/// Checking an Ed25519 signature costs tens of microseconds and the gateway sends the same identity for a second, so
/// checked identities are remembered until they end. One entry is about 1 KiB.
const REMEMBERED_IDENTITIES: usize = 4_096;

/// A key that is not known is asked for again at most this often, so that forged key ids cannot flood svc-auth.
const KEY_REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Known keys are asked for again in the background when they are older than this: a new key is then known before it
/// signs, though svc-auth be down at that moment, and one that was taken back is forgotten. svc-auth publishes a key
/// for longer than this before it signs with it.
pub const KEY_MAX_AGE: Duration = Duration::from_secs(60);

/// An Ed25519 public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    /// The `kid` in the JWT's header.
    pub id: String,
    /// The key.
    pub bytes: [u8; 32],
}

/// Where public keys are asked for.
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

/// Checks identities; cheap to clone, one a process.
#[derive(Debug, Clone)]
pub struct Verifier(Arc<Inner>, Option<Suspensions>);

struct Inner {
    clock: Arc<dyn Clock>,
    directory: Arc<dyn KeyDirectory>,
    keys: RwLock<KnownKeys>,
    refreshing: tokio::sync::Mutex<()>,
    /// Looked up twice a call. Only what was signed for us gets in, so nobody chooses keys: a quick hash will do.
    checked: Cache<String, Arc<Identity>, UnitWeighter, foldhash::fast::RandomState>,
}

#[derive(Default)]
struct KnownKeys {
    by_id: HashMap<String, DecodingKey>,
    asked_at: Option<Timestamp>,
}

crate::debug_fields!(Inner { directory });

impl Verifier {
    /// A verifier that asks the directory for keys when it meets one that it does not know.
    pub fn new(directory: Arc<dyn KeyDirectory>, clock: Arc<dyn Clock>) -> Self {
        let inner = Inner {
            clock,
            directory,
            keys: RwLock::default(),
            refreshing: tokio::sync::Mutex::new(()),
            checked: Cache::with(
                REMEMBERED_IDENTITIES,
                REMEMBERED_IDENTITIES as u64,
                UnitWeighter,
                foldhash::fast::RandomState::default(),
                DefaultLifecycle::default(),
            ),
        };
        Self(Arc::new(inner), None)
    }

    /// The same for one service, which refuses identities of the workspaces that it knows to be suspended.
    #[must_use]
    pub fn refusing(&self, suspensions: Suspensions) -> Self {
        Self(Arc::clone(&self.0), Some(suspensions))
    }

    /// The identity that the metadata of a call carries.
    ///
    /// # Errors
    /// UNAUTHORIZED when there is none, it does not hold, or its workspace is suspended; UNAVAILABLE when its key cannot be
    /// asked for.
    pub async fn authenticate(&self, metadata: &MetadataMap) -> Result<Identity, Problem> {
        self.authenticate_headers(metadata.as_ref()).await
    }

    /// As [`Self::authenticate`], of a call's metadata as it travels.
    ///
    /// # Errors
    /// UNAUTHORIZED when there is none, it does not hold, or its workspace is suspended; UNAVAILABLE when its key cannot be
    /// asked for.
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

    /// Whoever makes a call: the identity that it carries, or the service that presents itself in [`SERVICE_IDENTITY`] and
    /// asks for nobody else, as one that reads a feed does.
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

    /// The caller of a call, as its service knows callers, if the identity has the permission.
    ///
    /// # Errors
    /// As [`Self::authenticate`]; FORBIDDEN without the permission, and what the service says of such a caller.
    pub async fn authorize<C>(&self, metadata: &MetadataMap, permission: Permission) -> Result<C, Problem>
    where
        C: TryFrom<Identity, Error = Problem>,
    {
        let identity = self.authenticate(metadata).await?;
        identity.require(permission)?;
        C::try_from(identity)
    }

    /// Checks that a service of the mesh calls, whomever it calls for: its own identity stands in
    /// [`SERVICE_IDENTITY`], or is the one that the call carries.
    ///
    /// # Errors
    /// UNAUTHORIZED without an identity that holds, FORBIDDEN for anybody but a service.
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
        if let Some(identity) = self.0.checked.get(token) {
            return self.unexpired(identity);
        }
        let identity = self.unexpired(Arc::new(self.check(token).await?))?;
        self.0.checked.insert(token.to_owned(), Arc::clone(&identity));
        Ok(identity)
    }

    /// Whether a token that does not hold did so, and has ended since.
    pub async fn has_ended(&self, token: &str) -> bool {
        let now = self.0.clock.now();
        self.check(token).await.is_ok_and(|identity| identity.expires_at <= now)
    }

    fn unexpired(&self, identity: Arc<Identity>) -> Result<Arc<Identity>, Problem> {
        if identity.expires_at <= self.0.clock.now() {
            return Err(Problem::unauthorized("the identity has expired: exchange the API token again"));
        }
        Ok(identity)
    }

    async fn check(&self, token: &str) -> Result<Identity, Problem> {
        let refused = || Problem::unauthorized("the identity is not valid");
        let header = jsonwebtoken::decode_header(token).map_err(|_| refused())?;
        let key_id = header.kid.ok_or_else(refused)?;
        self.renew_old_keys();
        let key = match self.known_key(&key_id) {
            Some(key) => key,
            None => self.refresh_key(&key_id).await?.ok_or_else(refused)?,
        };

        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.set_audience(&[AUDIENCE]);
        validation.set_issuer(&[ISSUER]);
        validation.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
        // Time is a parameter: `unexpired` compares with our clock.
        validation.validate_exp = false;
        let decoded = jsonwebtoken::decode::<Claims>(token, &key, &validation).map_err(|_| refused())?;
        decoded.claims.into_identity().ok_or_else(refused)
    }

    fn known_key(&self, key_id: &str) -> Option<DecodingKey> {
        self.0.keys.read().unwrap_or_else(PoisonError::into_inner).by_id.get(key_id).cloned()
    }

    async fn refresh_key(&self, key_id: &str) -> Result<Option<DecodingKey>, Problem> {
        let _one_at_a_time = self.0.refreshing.lock().await;
        if let Some(key) = self.known_key(key_id) {
            return Ok(Some(key));
        }
        if self.age_of_keys().is_some_and(|age| age < KEY_REFRESH_INTERVAL) {
            return Ok(None);
        }
        self.ask_for_keys().await?;
        Ok(self.known_key(key_id))
    }

    /// Nobody waits for it: what is known goes on to hold while svc-auth does not answer.
    fn renew_old_keys(&self) {
        if self.age_of_keys().is_none_or(|age| age < KEY_MAX_AGE) {
            return;
        }
        let verifier = self.clone();
        tokio::spawn(async move {
            let Ok(_one_at_a_time) = verifier.0.refreshing.try_lock() else { return };
            if verifier.age_of_keys().is_some_and(|age| age < KEY_MAX_AGE) {
                return;
            }
            if let Err(problem) = verifier.ask_for_keys().await {
                tracing::debug!(%problem, "the signing keys cannot be asked for now");
            }
        });
    }

    /// Nobody knows how old they are once the clock was put back: they count as old.
    fn age_of_keys(&self) -> Option<Duration> {
        let asked_at = self.0.keys.read().unwrap_or_else(PoisonError::into_inner).asked_at;
        asked_at.map(|at| at.age(self.0.clock.now()).unwrap_or(Duration::MAX))
    }

    async fn ask_for_keys(&self) -> Result<(), Problem> {
        // Before the question: the answer is at least as new as this.
        let asked_at = Some(self.0.clock.now());
        let keys = self.0.directory.keys().await?;
        let by_id = keys.into_iter().map(|key| (key.id, DecodingKey::from_ed_der(&key.bytes))).collect();
        *self.0.keys.write().unwrap_or_else(PoisonError::into_inner) = KnownKeys { by_id, asked_at };
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
