//! Cache of the identities that svc-auth returned for tokens and sessions, valid for one second each.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::call::{Call, Credential};
use cairn_chassis::deadline;
use cairn_chassis::identity::Identity;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::auth::v1::{
    AccessTokenDoor, ExchangeAccessTokenRequest, ExchangeRequest, ExchangeSessionRequest,
    IssueTokenViewRequest, IssueTokenViewResponse,
};
use cairn_proto::ids::WorkspaceId;
use quick_cache::sync::Cache;

use crate::error;
use crate::upstreams::Upstreams;

/// An entry is a hash and a signed identity, about 1 KiB.
const MAX_ENTRIES: usize = 16_384;

/// A hash, so that no secret stays in memory, and the second of the exchange: entries of an earlier second are never
/// read again and get evicted.
type Key = (blake3::Hash, i64);
/// An identity, or the refusal (401); other errors are not cached.
type Verdict = Result<Arc<CallerIdentity>, Problem>;

/// An identity as svc-auth signed it, with its decoded claims.
pub(crate) struct CallerIdentity {
    pub(crate) signed: String,
    /// The same, as gRPC metadata of outgoing calls.
    pub(crate) credential: Credential,
    pub(crate) claims: Identity,
}

// Without the signed form, which would be usable as a credential.
cairn_chassis::debug_fields!(CallerIdentity { claims });

/// Identities by secret, for the current second; concurrent lookups of one secret share a single exchange.
pub(crate) struct TokenCache {
    upstreams: Arc<Upstreams>,
    ambient: Ambient,
    verdicts: Cache<Key, Verdict>,
    /// Secrets that were valid recently: these are exchanged even if their source address is blocked for guessing.
    known: Cache<blake3::Hash, ()>,
}

cairn_chassis::debug_fields!(TokenCache);

impl TokenCache {
    pub(crate) fn new(upstreams: Arc<Upstreams>, ambient: Ambient) -> Self {
        Self { upstreams, ambient, verdicts: Cache::new(MAX_ENTRIES), known: Cache::new(MAX_ENTRIES) }
    }

    /// Whether an API token was valid recently. It may have been revoked since.
    pub(crate) fn is_known(&self, token: &str) -> bool {
        self.known.get(&hash("token", token)).is_some()
    }

    /// The identity of an API token if it is cached for this second.
    pub(super) fn cached_identity(&self, token: &str) -> Option<Arc<CallerIdentity>> {
        self.verdicts.get(&self.key("token", token))?.ok()
    }

    /// Whether a web session was valid recently.
    pub(super) fn is_session_known(&self, secret: &str) -> bool {
        self.known.get(&hash("session", secret)).is_some()
    }

    /// Marks a session as valid, after a sign-in or a successful exchange.
    pub(crate) fn mark_session_known(&self, secret: &str) {
        self.known.insert(hash("session", secret), ());
    }

    /// Exchanges an API token for a signed identity.
    pub(crate) async fn token(&self, token: &str, call: &Call) -> Verdict {
        self.cached(self.key("token", token), || async {
            let request = call.request(ExchangeRequest { api_token: token.to_owned() });
            let response = self.upstreams.tokens().exchange(request).await;
            let identity = response?.into_inner().identity;
            self.known.insert(hash("token", token), ());
            Ok(identity)
        })
        .await
    }

    /// Exchanges an OAuth access token for a signed identity, bound to the base URL and entry point it was presented
    /// at.
    pub(crate) async fn access_token(
        &self,
        token: &str,
        base_url: String,
        door: AccessTokenDoor,
        call: &Call,
    ) -> Verdict {
        let place = format!("{} {base_url}", door.as_str_name());
        self.cached(self.key(&place, token), || async {
            let message = ExchangeAccessTokenRequest {
                access_token: token.to_owned(),
                base_url: base_url.clone(),
                door: door.into(),
            };
            let response = self.upstreams.oauth().exchange_access_token(call.request(message)).await;
            let identity = response?.into_inner().identity;
            self.known.insert(hash("token", token), ());
            Ok(identity)
        })
        .await
    }

    /// Exchanges a web session for a signed identity.
    pub(crate) async fn session(&self, secret: &str, call: &Call) -> Verdict {
        self.cached(self.key("session", secret), || async {
            let message = ExchangeSessionRequest {
                session_secret: secret.to_owned(),
                ..ExchangeSessionRequest::default()
            };
            let request = call.request(message);
            let response = self.upstreams.sessions().exchange_session(request).await;
            response.map(|answer| answer.into_inner().identity)
        })
        .await
    }

    /// Exchanges a web session for an identity with the person's role in one workspace. Not cached: few requests
    /// need it, and a revoked role must take effect at once.
    pub(crate) async fn session_in(
        &self,
        secret: &str,
        workspace: WorkspaceId,
        call: &Call,
    ) -> Result<CallerIdentity, Problem> {
        let workspace_id = Some(workspace.to_string());
        let request =
            call.request(ExchangeSessionRequest { session_secret: secret.to_owned(), workspace_id });
        let answer = self.upstreams.sessions().exchange_session(request).await;
        match answer {
            Ok(answer) => self.checked(answer.into_inner().identity).await,
            Err(status) => Err(error::from_upstream(&status)),
        }
    }

    /// Issues a read-only identity of the calling person with the reach of a token, and what svc-auth says about
    /// that token.
    pub(crate) async fn view(
        &self,
        message: IssueTokenViewRequest,
        call: &Call,
    ) -> Result<(CallerIdentity, IssueTokenViewResponse), Problem> {
        let answer = self.upstreams.tokens().issue_token_view(call.request(message)).await;
        let mut view = answer.map_err(|status| error::from_upstream(&status))?.into_inner();
        let identity = self.checked(std::mem::take(&mut view.identity)).await?;
        Ok((identity, view))
    }

    /// Invalidates a session's entry at sign-out.
    pub(crate) fn invalidate_session(&self, secret: &str) {
        self.verdicts.remove(&self.key("session", secret));
    }

    fn key(&self, kind: &str, secret: &str) -> Key {
        (hash(kind, secret), self.ambient.clock.now().as_seconds())
    }

    async fn cached<A>(&self, key: Key, ask: impl FnOnce() -> A) -> Verdict
    where
        A: Future<Output = Result<String, tonic::Status>>,
    {
        match self.verdicts.get(&key) {
            Some(verdict) => verdict,
            // Boxed: it runs once a second per secret and is large, and every request's future would reserve space
            // for it.
            None => Box::pin(self.load(&key, ask())).await,
        }
    }

    async fn load(&self, key: &Key, ask: impl Future<Output = Result<String, tonic::Status>>) -> Verdict {
        let load = self.verdicts.get_or_insert_async(key, async {
            match ask.await {
                Ok(signed) => Ok(Ok(Arc::new(self.checked(signed).await?))),
                Err(status) => refusal(error::from_upstream(&status)).map(Err),
            }
        });
        load.await.and_then(|verdict| verdict)
    }

    /// Verifies and decodes an identity the way every service does. If it expired in transit, the caller's token has
    /// expired too; any other failure is ours (such as a new signing key that is not known here yet).
    async fn checked(&self, signed: String) -> Result<CallerIdentity, Problem> {
        let credential = Credential::of(&signed);
        let call = Call::within(deadline::DEFAULT).with_credential(&credential);
        let verifier = &self.ambient.verifier;
        match verifier.authenticate(call.request(()).metadata()).await {
            Ok(claims) => Ok(CallerIdentity { signed, credential, claims }),
            Err(_) if verifier.has_expired(&signed).await => {
                Err(Problem::unauthorized("the token or session has ended: get a new one"))
            }
            Err(problem) => {
                tracing::error!(%problem, "svc-auth signed what does not hold");
                let message = "who you are cannot be checked now; try again soon";
                Err(Problem::unavailable(message, Duration::from_secs(1)))
            }
        }
    }
}

fn hash(kind: &str, secret: &str) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(kind.as_bytes()).update(&[0]).update(secret.as_bytes());
    hasher.finalize()
}

/// A 401 is cached for the second like an identity; a failure to reach svc-auth is not.
fn refusal(problem: Problem) -> Result<Problem, Problem> {
    if problem.reason == Reason::Unauthorized { Ok(problem) } else { Err(problem) }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::channel::ServiceChannel;
    use cairn_chassis::clock::Timestamp;
    use cairn_chassis::identity::{Permission, Scope};
    use cairn_chassis::testing::identity::Issuer;

    use super::*;

    #[tokio::test]
    async fn an_identity_that_ended_on_its_way_is_the_callers_and_a_strange_one_is_not() {
        let issuer = Issuer::new().unwrap();
        let auth = ServiceChannel::remote("http://127.0.0.1:1").unwrap();
        let upstreams = Upstreams {
            content: auth.clone(),
            ingest: auth.clone(),
            retrieval: auth.clone(),
            sync: auth.clone(),
            content_feed: auth.clone(),
            ingest_feed: auth.clone(),
            auth,
        };
        let cache = TokenCache::new(Arc::new(upstreams), issuer.ambient());
        let workspace = "0199c0de-0000-7000-8000-0000000000a1".parse().unwrap();
        let holds = issuer.token(workspace, &Permission::ALL, Scope::All);
        assert!(cache.checked(issuer.sign(&holds).unwrap()).await.is_ok());

        let ended = Identity { expires_at: Timestamp::from_seconds(1_000_000_000), ..holds };
        let refused = cache.checked(issuer.sign(&ended).unwrap()).await.err().unwrap();
        assert_eq!(refused.reason, Reason::Unauthorized, "{refused}");
        let strange = cache.checked("strange".to_owned()).await.err().unwrap();
        assert_eq!(strange.reason, Reason::Unavailable, "{strange}");
    }
}
