//! Authentication: from an API token or a session cookie to an identity signed by svc-auth.
//!
//! Answers of svc-auth are cached for at most a second, so that a revocation takes effect everywhere within a
//! second. Each request is rate-limited: by source address if its token is invalid, else by token
//! ([`Authenticator::enter`]; `/mcp` counts by the content of the body).

mod token_cache;

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use cairn_chassis::call::Call;
use cairn_chassis::deadline;
use cairn_chassis::status::{Problem, Reason};
use cairn_chassis::token_format::{self, Format};
use cairn_proto::auth::v1::AccessTokenDoor;
use cairn_proto::ids::WorkspaceId;
use http::request::Parts;
use http::{HeaderMap, header};

pub(crate) use self::token_cache::{CallerIdentity, TokenCache};
use crate::error::Error;
use crate::origin::Origins;
use crate::rate_limit::Limits;

/// The session cookie over TLS. The `__Host-` prefix makes browsers accept it from this host alone, so a sibling
/// subdomain cannot plant its own.
const HOST_COOKIE: &str = "__Host-cairn_session";
/// The session cookie without TLS, where browsers reject the `__Host-` prefix.
pub(crate) const PLAIN_COOKIE: &str = "cairn_session";

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
    pub(crate) identity: Arc<CallerIdentity>,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let_in(parts)
    }
}

/// The caller that [`crate::guard`] authenticated, as the route's class asks.
fn let_in<T: Clone + Send + Sync + 'static>(parts: &Parts) -> Result<T, Error> {
    let caller = parts.extensions.get().cloned();
    caller.ok_or_else(|| Problem::internal("the class of this route lets in who is not known").into())
}

impl<S: Send + Sync> FromRequestParts<S> for SignedIn {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let_in(parts)
    }
}

/// A person with a web session, with the permissions of their role in one workspace.
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

pub(crate) fn no_workspace() -> Problem {
    Problem::not_found("there is no workspace with that id")
}

fn not_signed_in() -> Problem {
    Problem::unauthorized("you are not signed in: POST /api/session with email and password")
}

/// Authenticates callers.
pub(crate) struct Authenticator {
    tokens: TokenCache,
    limits: Arc<Limits>,
    origins: Arc<Origins>,
}

cairn_chassis::debug_fields!(Authenticator);

impl Authenticator {
    pub(crate) const fn new(tokens: TokenCache, limits: Arc<Limits>, origins: Arc<Origins>) -> Self {
        Self { tokens, limits, origins }
    }

    /// The cache of svc-auth's answers.
    pub(crate) const fn tokens(&self) -> &TokenCache {
        &self.tokens
    }

    /// Authenticates a request with an API token and counts it, whatever its outcome.
    pub(crate) async fn enter(&self, parts: &mut Parts) -> Result<Caller, Error> {
        let identity = self.authenticate(parts).await?;
        self.limits.admit(parts, &identity.claims, 1).await?;
        let caller = Caller { call: call_of(parts).with_credential(&identity.credential), identity };
        parts.extensions.insert(caller.clone());
        Ok(caller)
    }

    /// Authenticates a request with an API token. An invalid token counts against its source address; an address
    /// with too many of them is refused before svc-auth is asked, except with a token that was valid recently.
    pub(crate) async fn authenticate(&self, parts: &Parts) -> Result<Arc<CallerIdentity>, Error> {
        if let Some(token) = access_token(&parts.headers) {
            return self.open_access_token(token, AccessTokenDoor::Api, parts).await;
        }
        let token = match api_token(&parts.headers) {
            Ok(token) => token,
            Err(problem) if parts.headers.contains_key(header::AUTHORIZATION) => {
                return Err(self.limits.invalid_token(parts, problem).await.into());
            }
            Err(problem) => return Err(problem.into()),
        };
        if let Some(identity) = self.tokens.cached_identity(token) {
            return Ok(identity);
        }
        Ok(self.open(token, parts, &call_of(parts)).await?)
    }

    /// The same for an API token from elsewhere than the Authorization header.
    pub(crate) async fn open_token(
        &self,
        token: &str,
        parts: &Parts,
        call: &Call,
    ) -> Result<Arc<CallerIdentity>, Problem> {
        if let Err(problem) = check_form(token) {
            return Err(self.limits.invalid_token(parts, problem).await);
        }
        self.open(token, parts, call).await
    }

    async fn open(&self, token: &str, parts: &Parts, call: &Call) -> Result<Arc<CallerIdentity>, Problem> {
        if !self.tokens.is_known(token) {
            self.limits.check_address(parts)?;
        }
        match self.tokens.token(token, call).await {
            Err(problem) if problem.reason == Reason::Unauthorized => {
                Err(self.limits.invalid_token(parts, problem).await)
            }
            exchanged => exchanged,
        }
    }

    /// As [`Self::authenticate`], for agents: `/mcp` accepts OAuth access tokens like API tokens.
    pub(crate) async fn authenticate_agent(&self, parts: &Parts) -> Result<Arc<CallerIdentity>, Error> {
        match access_token(&parts.headers) {
            Some(token) => self.open_access_token(token, AccessTokenDoor::Mcp, parts).await,
            None => self.authenticate(parts).await,
        }
    }

    async fn open_access_token(
        &self,
        token: &str,
        door: AccessTokenDoor,
        parts: &Parts,
    ) -> Result<Arc<CallerIdentity>, Error> {
        if !self.tokens.is_known(token) {
            self.limits.check_address(parts)?;
        }
        let base = self.origins.base_url(&parts.headers).unwrap_or_default();
        match self.tokens.access_token(token, base, door, &call_of(parts)).await {
            Err(problem) if problem.reason == Reason::Unauthorized => {
                let problem = if door == AccessTokenDoor::Api { not_for_the_api() } else { problem };
                Err(self.limits.invalid_token(parts, problem).await.into())
            }
            exchanged => Ok(exchanged?),
        }
    }

    /// The person of the request's session.
    pub(crate) async fn person(&self, parts: &Parts) -> Result<SignedIn, Problem> {
        let identity = self.session(parts).await?.ok_or_else(not_signed_in)?;
        Ok(SignedIn { call: call_of(parts).with_credential(&identity.credential), identity })
    }

    /// The person of the request's session, in the workspace that the path names as `{id}` or else the query as
    /// `workspaceId`; `None` if the query names none that can be parsed.
    pub(crate) async fn member(&self, parts: &mut Parts) -> Result<Option<Member>, Problem> {
        let secret = self.presented(parts).await?.ok_or_else(not_signed_in)?.to_owned();
        let Some(workspace) = named_workspace(parts).await? else {
            return self.session(parts).await.map(|_| None);
        };
        let call = call_of(parts);
        let identity = self.tokens.session_in(&secret, workspace, &call).await;
        let identity = self.judged(parts, &secret, identity).await?;
        Ok(Some(Member { call: call.with_credential(&identity.credential), identity: Arc::new(identity) }))
    }

    /// The identity of the request's session; `None` without a cookie. An invalid cookie counts against its source
    /// address like a token, unless it was valid recently: people leave pages open, and those keep polling.
    pub(crate) async fn session(&self, parts: &Parts) -> Result<Option<Arc<CallerIdentity>>, Problem> {
        let Some(secret) = self.presented(parts).await? else { return Ok(None) };
        let exchanged = self.tokens.session(secret, &call_of(parts)).await;
        self.judged(parts, secret, exchanged).await.map(Some)
    }

    /// The same, but an expired session counts as none.
    pub(crate) async fn live_session(&self, parts: &Parts) -> Result<Option<Arc<CallerIdentity>>, Problem> {
        match self.session(parts).await {
            Err(problem) if problem.reason == Reason::Unauthorized => Ok(None),
            found => found,
        }
    }

    /// The session secret of the request, if it is well formed and its address not blocked.
    async fn presented<'a>(&self, parts: &'a Parts) -> Result<Option<&'a str>, Problem> {
        let Some(secret) = self.session_secret(&parts.headers) else { return Ok(None) };
        if !token_format::is_session_secret(secret) {
            return Err(self.limits.invalid_token(parts, not_signed_in()).await);
        }
        if !self.tokens.is_session_known(secret) {
            self.limits.check_address(parts)?;
        }
        Ok(Some(secret))
    }

    /// Counts an invalid session against the source address, and marks a valid one as known.
    async fn judged<T>(&self, parts: &Parts, secret: &str, answer: Result<T, Problem>) -> Result<T, Problem> {
        match answer {
            Err(problem)
                if problem.reason == Reason::Unauthorized && !self.tokens.is_session_known(secret) =>
            {
                Err(self.limits.invalid_token(parts, problem).await)
            }
            answer => {
                if answer.is_ok() {
                    self.tokens.mark_session_known(secret);
                }
                answer
            }
        }
    }

    /// The name of the session cookie in this deployment.
    pub(crate) fn session_cookie(&self) -> &'static str {
        if self.origins.is_https() { HOST_COOKIE } else { PLAIN_COOKIE }
    }

    /// The value of the session cookie.
    pub(crate) fn session_secret<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        cookie_value(headers, self.session_cookie()).filter(|secret| !secret.is_empty())
    }
}

/// The call that the edge created for this request.
pub(crate) fn call_of(parts: &Parts) -> Call {
    parts.extensions.get::<Call>().cloned().unwrap_or_else(|| Call::within(deadline::DEFAULT))
}

/// The API token of the one Authorization header.
pub(crate) fn api_token(headers: &HeaderMap) -> Result<&str, Problem> {
    let token = bearer(headers)?;
    check_form(token).map(|()| token)
}

/// The OAuth access token of the one Authorization header.
fn access_token(headers: &HeaderMap) -> Option<&str> {
    bearer(headers).ok().filter(|token| Format::ACCESS_TOKEN.is_well_formed(token))
}

fn not_for_the_api() -> Problem {
    Problem::unauthorized(
        "this OAuth access token has ended, or it opens /mcp only: here send one that was asked for with the resource `/api` \
         of this address, or an API token from the console's Tokens page",
    )
}

/// Checks the format of a token.
fn check_form(token: &str) -> Result<(), Problem> {
    if token_format::is_well_formed(token) {
        return Ok(());
    }
    if Format::ACCESS_TOKEN.is_well_formed(token) {
        return Err(not_for_the_api());
    }
    Err(Problem::unauthorized(
        "this is not a Cairn API token, or it was not copied whole: a token is `cairn_` and 46 letters and digits",
    ))
}

/// The bearer token of the one Authorization header. Tokens in the query or a cookie are not accepted: URLs end up
/// in logs and in other sites' Referer.
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

/// The value of the first cookie of that name.
pub(crate) fn cookie_value<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

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
