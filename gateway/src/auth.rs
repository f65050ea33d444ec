//! Who calls: from an API token or a session cookie to a signed identity of svc-auth.
//!
//! An answer of svc-auth is used for at most a second, so that a revocation holds everywhere within a second. On the
//! way a request counts: for its source address when its token opens nothing, else for the token ([`enter`]; `/mcp`
//! counts what its body asks for).

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, RawPathParams};
use cairn_chassis::ambient::Ambient;
use cairn_chassis::call::Call;
use cairn_chassis::deadline;
use cairn_chassis::identity::Identity;
use cairn_chassis::status::{Problem, Reason};
use cairn_chassis::token_format::{self, Format};
use cairn_proto::auth::v1::{ExchangeAccessTokenRequest, ExchangeRequest, ExchangeSessionRequest};
use cairn_proto::ids::WorkspaceId;
use http::request::Parts;
use http::{HeaderMap, header};
use quick_cache::sync::Cache;

use crate::Upstreams;
use crate::app::App;
use crate::error::{self, Error};
use crate::oauth;

/// The name of the session cookie over TLS: a browser takes it from this host alone, so that no neighbour in the domain
/// can put one of its own in its place.
const HOST_COOKIE: &str = "__Host-cairn_session";
/// Its name where there is no TLS; browsers would not keep the other.
const PLAIN_COOKIE: &str = "cairn_session";
/// An entry is a hash and a signed identity, about 1 KiB.
const REMEMBERED: usize = 16_384;

/// A caller with an API token.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) call: Call,
    pub(crate) identity: Arc<CallerIdentity>,
}

/// A person with a web session.
#[derive(Debug, Clone)]
pub(crate) struct SignedIn {
    pub(crate) call: Call,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let_in(parts)
    }
}

/// The caller that the request was let in with: the class of its route asks for one.
fn let_in<T: Clone + Send + Sync + 'static>(parts: &Parts) -> Result<T, Error> {
    let caller = parts.extensions.get().cloned();
    caller.ok_or_else(|| Problem::internal("the class of this route lets in who is not known").into())
}

/// Lets a request with an API token in: it counts, whatever becomes of it.
pub(crate) async fn enter(parts: &mut Parts, app: &App) -> Result<Caller, Error> {
    let identity = authenticate(parts, app).await?;
    app.limits.admit(parts, &identity.claims, 1).await?;
    let caller = Caller { call: call_of(parts).with_identity(&identity.signed), identity };
    parts.extensions.insert(caller.clone());
    Ok(caller)
}

/// Who a request with an API token comes from. What opens nothing counts for its source address; an address that sent
/// too much of that is refused before svc-auth is asked, except with a token that opened something of late.
pub(crate) async fn authenticate(parts: &Parts, app: &App) -> Result<Arc<CallerIdentity>, Error> {
    let token = match api_token(&parts.headers) {
        Ok(token) => token,
        Err(problem) if parts.headers.contains_key(header::AUTHORIZATION) => {
            return Err(app.limits.invalid_token(parts, problem).await.into());
        }
        Err(problem) => return Err(problem.into()),
    };
    Ok(open(token, parts, app, &call_of(parts)).await?)
}

/// The same for an API token that came another way than in the header.
pub(crate) async fn open_token(
    token: &str,
    parts: &Parts,
    app: &App,
    call: &Call,
) -> Result<Arc<CallerIdentity>, Problem> {
    if let Err(problem) = check_form(token) {
        return Err(app.limits.invalid_token(parts, problem).await);
    }
    open(token, parts, app, call).await
}

async fn open(token: &str, parts: &Parts, app: &App, call: &Call) -> Result<Arc<CallerIdentity>, Problem> {
    if !app.token_cache.knows(token) {
        app.limits.check_address(parts)?;
    }
    match app.token_cache.token(token, call).await {
        Err(problem) if problem.reason == Reason::Unauthorized => {
            Err(app.limits.invalid_token(parts, problem).await)
        }
        exchanged => exchanged,
    }
}

/// As [`authenticate`], for agents: to them an access token of OAuth opens what an API token does.
pub(crate) async fn authenticate_agent(parts: &Parts, app: &App) -> Result<Arc<CallerIdentity>, Error> {
    let Ok(token) = bearer(&parts.headers) else { return authenticate(parts, app).await };
    if !Format::ACCESS_TOKEN.is_well_formed(token) {
        return authenticate(parts, app).await;
    }
    if !app.token_cache.knows(token) {
        app.limits.check_address(parts)?;
    }
    let base = oauth::base_url(app, &parts.headers).unwrap_or_default();
    match app.token_cache.access_token(token, base, &call_of(parts)).await {
        Err(problem) if problem.reason == Reason::Unauthorized => {
            Err(app.limits.invalid_token(parts, problem).await.into())
        }
        exchanged => Ok(exchanged?),
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SignedIn {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let_in(parts)
    }
}

/// The person whose session came along.
pub(crate) async fn person(parts: &Parts, app: &App) -> Result<SignedIn, Problem> {
    let identity = session(parts, app).await?.ok_or_else(not_signed_in)?;
    Ok(SignedIn { call: call_of(parts).with_identity(&identity.signed) })
}

/// A person with a web session in a workspace, with what the role there allows.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) call: Call,
    pub(crate) identity: Arc<CallerIdentity>,
}

impl<S: Send + Sync> FromRequestParts<S> for Member {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let_in(parts)
    }
}

/// The person whose session came along, in the workspace that the path names as `{id}` or else the query as
/// `workspaceId`; `None` when a query names none that can be read.
pub(crate) async fn member(parts: &mut Parts, app: &App) -> Result<Option<Member>, Problem> {
    let secret = presented(parts, app).await?.ok_or_else(not_signed_in)?.to_owned();
    let Some(workspace) = named_workspace(parts).await? else {
        return session(parts, app).await.map(|_| None);
    };
    let call = call_of(parts);
    let identity = app.token_cache.session_in(&secret, workspace, &call).await;
    let identity = judged(parts, app, &secret, identity).await?;
    Ok(Some(Member { call: call.with_identity(&identity.signed), identity: Arc::new(identity) }))
}

async fn named_workspace(parts: &mut Parts) -> Result<Option<WorkspaceId>, Problem> {
    if let Ok(path) = RawPathParams::from_request_parts(parts, &()).await
        && let Some((_, text)) = path.iter().find(|(name, _)| *name == "id")
    {
        return text.parse().map(Some).map_err(|_| no_workspace());
    }
    let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    let named = query.filter(|(name, _)| name == "workspaceId").last();
    Ok(named.and_then(|(_, text)| text.parse().ok()))
}

/// Whose session came along; `None` without one. A cookie that opens nothing counts for its source address as a token
/// does, unless it opened something of late: people leave pages open, and those go on asking.
pub(crate) async fn session(parts: &Parts, app: &App) -> Result<Option<Arc<CallerIdentity>>, Problem> {
    let Some(secret) = presented(parts, app).await? else { return Ok(None) };
    let exchanged = app.token_cache.session(secret, &call_of(parts)).await;
    judged(parts, app, secret, exchanged).await.map(Some)
}

/// The same, where a session that has ended is as good as none.
pub(crate) async fn live_session(parts: &Parts, app: &App) -> Result<Option<Arc<CallerIdentity>>, Problem> {
    match session(parts, app).await {
        Err(problem) if problem.reason == Reason::Unauthorized => Ok(None),
        found => found,
    }
}

/// The secret of a session that is worth a question.
async fn presented<'a>(parts: &'a Parts, app: &App) -> Result<Option<&'a str>, Problem> {
    let Some(secret) = session_secret(app, &parts.headers) else { return Ok(None) };
    if !token_format::is_session_secret(secret) {
        return Err(app.limits.invalid_token(parts, not_signed_in()).await);
    }
    if !app.token_cache.knows_session(secret) {
        app.limits.check_address(parts)?;
    }
    Ok(Some(secret))
}

/// What svc-auth says of a session's secret, counted when it opens nothing.
async fn judged<T>(parts: &Parts, app: &App, secret: &str, answer: Result<T, Problem>) -> Result<T, Problem> {
    match answer {
        Err(problem) if problem.reason == Reason::Unauthorized && !app.token_cache.knows_session(secret) => {
            Err(app.limits.invalid_token(parts, problem).await)
        }
        answer => {
            if answer.is_ok() {
                app.token_cache.note_session(secret);
            }
            answer
        }
    }
}

pub(crate) fn no_workspace() -> Problem {
    Problem::not_found("there is no workspace with that id")
}

fn not_signed_in() -> Problem {
    Problem::unauthorized("you are not signed in: POST /api/session with email and password")
}

/// The call that the edge made for this request.
pub(crate) fn call_of(parts: &Parts) -> Call {
    parts.extensions.get::<Call>().cloned().unwrap_or_else(|| Call::within(deadline::DEFAULT))
}

/// Who a signed call speaks for, checked like every service checks it.
pub(crate) async fn identity_of(call: &Call, app: &App) -> Result<Identity, Problem> {
    app.ambient.verifier.authenticate(call.request(()).metadata()).await
}

/// The API token of the one Authorization header.
pub(crate) fn api_token(headers: &HeaderMap) -> Result<&str, Problem> {
    let token = bearer(headers)?;
    check_form(token).map(|()| token)
}

/// Tells what is wrong with a token by its looks.
fn check_form(token: &str) -> Result<(), Problem> {
    if token_format::is_well_formed(token) {
        return Ok(());
    }
    if Format::ACCESS_TOKEN.is_well_formed(token) {
        return Err(Problem::unauthorized(
            "an OAuth access token opens /mcp only; here send an API token from the console's Tokens page",
        ));
    }
    Err(Problem::unauthorized(
        "this is not a Cairn API token, or it was not copied whole: a token is `cairn_` and 46 letters and digits",
    ))
}

/// The token of the one Authorization header. One in the query or in a cookie does not count: addresses end up in
/// logs and in other sites' Referer.
fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let mut sent = headers.get_all(header::AUTHORIZATION).iter();
    let Some(only) = sent.next() else {
        return Err(Problem::unauthorized(
            "no token: send `Authorization: Bearer <API_TOKEN>` with a token from the console's Tokens page",
        ));
    };
    if sent.next().is_some() {
        return Err(Problem::unauthorized("more than one Authorization header: send exactly one"));
    }
    let bearer = only.to_str().ok().and_then(|value| value.split_once(' '));
    let Some((_, token)) = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) else {
        return Err(Problem::unauthorized("the Authorization header must be `Bearer <API_TOKEN>`"));
    };
    Ok(token.trim())
}

/// What the session cookie is called in this deployment.
pub(crate) fn session_cookie(app: &App) -> &'static str {
    if app.origins.is_https() { HOST_COOKIE } else { PLAIN_COOKIE }
}

/// The value of the session cookie.
pub(crate) fn session_secret<'a>(app: &App, headers: &'a HeaderMap) -> Option<&'a str> {
    cookie_value(headers, session_cookie(app)).filter(|secret| !secret.is_empty())
}

/// The value of the first cookie of that name.
pub(crate) fn cookie_value<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value)
}

/// A hash, so that no secret stays in memory, and the second that it was asked in: an entry of an earlier second is
/// never read again and falls out by itself.
type Key = (blake3::Hash, i64);
/// An identity, or the refusal; nothing else is kept.
type Verdict = Result<Arc<CallerIdentity>, Problem>;

/// An identity as svc-auth signed it, and what it says.
pub(crate) struct CallerIdentity {
    pub(crate) signed: String,
    pub(crate) claims: Identity,
}

/// Without the signature, with which it could be used.
impl fmt::Debug for CallerIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CallerIdentity").field("claims", &self.claims).finish_non_exhaustive()
    }
}

/// What svc-auth said within this second, each secret asked about once.
pub(crate) struct TokenCache {
    upstreams: Upstreams,
    ambient: Ambient,
    verdicts: Cache<Key, Verdict>,
    /// Tokens and sessions that opened something of late: they are worth a question even from an address that guesses.
    known: Cache<blake3::Hash, ()>,
}

impl fmt::Debug for TokenCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TokenCache").finish_non_exhaustive()
    }
}

impl TokenCache {
    pub(crate) fn new(upstreams: Upstreams, ambient: Ambient) -> Self {
        Self { upstreams, ambient, verdicts: Cache::new(REMEMBERED), known: Cache::new(REMEMBERED) }
    }

    /// Whether an API token opened something of late. It may have been revoked since.
    pub(crate) fn knows(&self, token: &str) -> bool {
        self.known.get(&hash("token", token)).is_some()
    }

    /// Whether a web session opened something of late.
    fn knows_session(&self, secret: &str) -> bool {
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

    /// The signed identity of an access token, at the address that it is presented under.
    pub(crate) async fn access_token(&self, token: &str, base_url: String, call: &Call) -> Verdict {
        self.remembered(self.key(&base_url, token), || async {
            let message =
                ExchangeAccessTokenRequest { access_token: token.to_owned(), base_url: base_url.clone() };
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
        let call = Call::within(deadline::DEFAULT).with_identity(&signed);
        let verifier = &self.ambient.verifier;
        match verifier.authenticate(call.request(()).metadata()).await {
            Ok(claims) => Ok(CallerIdentity { signed, claims }),
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
            auth,
        };
        let cache = TokenCache::new(upstreams, issuer.ambient());
        let workspace = "0199c0de-0000-7000-8000-0000000000a1".parse().unwrap();
        let holds = issuer.token(workspace, &Permission::ALL, Scope::All);
        assert!(cache.checked(issuer.sign(&holds).unwrap()).await.is_ok());

        let ended = Identity { expires_at: Timestamp::from_seconds(1_000_000_000), ..holds };
        let refused = cache.checked(issuer.sign(&ended).unwrap()).await.err().unwrap();
        assert_eq!(refused.reason, Reason::Unauthorized, "{refused}");
        let strange = cache.checked("strange".to_owned()).await.err().unwrap();
        assert_eq!(strange.reason, Reason::Unavailable, "{strange}");
    }

    fn headers(name: header::HeaderName, values: &[&str]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for value in values {
            map.append(name.clone(), value.parse().unwrap());
        }
        map
    }

    #[test]
    fn one_bearer_token_is_taken() {
        let token = token_format::assemble(&"a".repeat(token_format::RANDOM_LENGTH));
        for spelled in [format!("Bearer {token}"), format!("bearer  {token} "), format!("BEARER {token}")] {
            assert_eq!(api_token(&headers(header::AUTHORIZATION, &[&spelled])), Ok(token.as_str()));
        }
    }

    #[test]
    fn everything_else_is_unauthorized_without_the_token_in_the_text() {
        let token = token_format::assemble(&"a".repeat(token_format::RANDOM_LENGTH));
        let good = format!("Bearer {token}");
        let typo = good.replace("aaaa", "aaab");
        let basic = format!("Basic {token}");
        let sent: [&[&str]; 6] = [&[], &[&good, &good], &[&typo], &[&basic], &["Bearer"], &[&token]];
        for values in sent {
            let problem = api_token(&headers(header::AUTHORIZATION, values)).unwrap_err();
            assert_eq!(problem.reason, Reason::Unauthorized);
            assert!(!problem.message.contains("aaa"), "{}", problem.message);
        }
    }

    #[test]
    fn the_session_cookie_is_found_among_others() {
        let sent = headers(header::COOKIE, &["a=b; cairn_session=s3; c", "cairn_session=other"]);
        assert_eq!(cookie_value(&sent, PLAIN_COOKIE), Some("s3"));
        assert_eq!(cookie_value(&headers(header::COOKIE, &["__Host-cairn_session=s3"]), PLAIN_COOKIE), None);
    }
}
