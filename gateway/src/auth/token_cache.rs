//! What svc-auth says of tokens and sessions, each asked about once a second.

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
const REMEMBERED: usize = 16_384;

/// A hash, so that no secret stays in memory, and the second that it was asked in: an entry of an earlier second is
/// never read again and falls out by itself.
type Key = (blake3::Hash, i64);
/// An identity, or the refusal; nothing else is kept.
type Verdict = Result<Arc<CallerIdentity>, Problem>;

/// An identity as svc-auth signed it, and what it says.
pub(crate) struct CallerIdentity {
    pub(crate) signed: String,
    /// The same as calls carry it.
    pub(crate) credential: Credential,
    pub(crate) claims: Identity,
}

// Without the signature, with which it could be used.
cairn_chassis::debug_fields!(CallerIdentity { claims });

/// What svc-auth said within this second, each secret asked about once.
pub(crate) struct TokenCache {
    upstreams: Arc<Upstreams>,
    ambient: Ambient,
    verdicts: Cache<Key, Verdict>,
    /// Tokens and sessions that opened something of late: they are worth a question even from an address that guesses.
    known: Cache<blake3::Hash, ()>,
}

cairn_chassis::debug_fields!(TokenCache);

impl TokenCache {
    pub(crate) fn new(upstreams: Arc<Upstreams>, ambient: Ambient) -> Self {
        Self { upstreams, ambient, verdicts: Cache::new(REMEMBERED), known: Cache::new(REMEMBERED) }
    }

    /// Whether an API token opened something of late. It may have been revoked since.
    pub(crate) fn knows(&self, token: &str) -> bool {
        self.known.get(&hash("token", token)).is_some()
    }

    /// Who an API token is of, where it was opened within this second.
    pub(super) fn opened(&self, token: &str) -> Option<Arc<CallerIdentity>> {
        self.verdicts.get(&self.key("token", token))?.ok()
    }

    /// Whether a web session opened something of late.
    pub(super) fn knows_session(&self, secret: &str) -> bool {
        self.known.get(&hash("session", secret)).is_some()
    }

    /// Remembers a session that was opened or that opened something.
    pub(crate) fn note_session(&self, secret: &str) {
        self.known.insert(hash("session", secret), ());
    }

    /// The signed identity of an API token.
    pub(crate) async fn token(&self, token: &str, call: &Call) -> Verdict {
        self.remembered(self.key("token", token), || async {
            let request = call.request(ExchangeRequest { api_token: token.to_owned() });
            let response = self.upstreams.tokens().exchange(request).await;
            let identity = response?.into_inner().identity;
            self.known.insert(hash("token", token), ());
            Ok(identity)
        })
        .await
    }

    /// The signed identity of an access token, at the address and the door that it is presented at.
    pub(crate) async fn access_token(
        &self,
        token: &str,
        base_url: String,
        door: AccessTokenDoor,
        call: &Call,
    ) -> Verdict {
        let place = format!("{} {base_url}", door.as_str_name());
        self.remembered(self.key(&place, token), || async {
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

    /// The signed identity of a web session.
    pub(crate) async fn session(&self, secret: &str, call: &Call) -> Verdict {
        self.remembered(self.key("session", secret), || async {
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

    /// The signed identity of a web session in one workspace, with the person's role there. It is asked for anew each
    /// time: few requests need it, and a role that was taken away is so gone at once.
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

    /// A read-only identity of the calling person that sees what a token sees, and what svc-auth says of that token.
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

    /// A session that signed out must not live on here.
    pub(crate) fn forget_session(&self, secret: &str) {
        self.verdicts.remove(&self.key("session", secret));
    }

    fn key(&self, kind: &str, secret: &str) -> Key {
        (hash(kind, secret), self.ambient.clock.now().as_seconds())
    }

    async fn remembered<A>(&self, key: Key, ask: impl FnOnce() -> A) -> Verdict
    where
        A: Future<Output = Result<String, tonic::Status>>,
    {
        match self.verdicts.get(&key) {
            Some(verdict) => verdict,
            // Once a second, and large: every request's future would have room for it.
            None => Box::pin(self.asked(&key, ask())).await,
        }
    }

    async fn asked(&self, key: &Key, ask: impl Future<Output = Result<String, tonic::Status>>) -> Verdict {
        let asked = self.verdicts.get_or_insert_async(key, async {
            match ask.await {
                Ok(signed) => Ok(Ok(Arc::new(self.checked(signed).await?))),
                Err(status) => refusal(error::from_upstream(&status)).map(Err),
            }
        });
        asked.await.and_then(|verdict| verdict)
    }

    /// Reads an identity, checked like every service checks it. One that ended on its way here is the caller's, like the
    /// token that it ended with; another that does not hold is the mesh's fault (a new key that is not known here yet).
    async fn checked(&self, signed: String) -> Result<CallerIdentity, Problem> {
        let credential = Credential::of(&signed);
        let call = Call::within(deadline::DEFAULT).with_credential(&credential);
        let verifier = &self.ambient.verifier;
        match verifier.authenticate(call.request(()).metadata()).await {
            Ok(claims) => Ok(CallerIdentity { signed, credential, claims }),
            Err(_) if verifier.has_ended(&signed).await => {
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

/// A refusal is remembered for its second like an identity; that svc-auth was not reachable is not.
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
