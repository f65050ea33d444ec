//! The OpenID Connect provider: discovery, authorization URLs, and verification of its responses.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::outbound::{Guard, Limits, Refused};
use cairn_chassis::status::Violation;
use chrono::DateTime;
use futures::future::BoxFuture;
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreIdToken, CoreIdTokenClaims,
    CoreJwsSigningAlgorithm as Algorithm, CoreProviderMetadata, CoreTokenResponse, CoreUserInfoClaims,
};
use openidconnect::{
    AsyncHttpClient, AuthType, AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken,
    EndpointMaybeSet, EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, IssuerUrl, Nonce,
    OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope,
    SignatureVerificationError, TokenResponse as _,
};
use tokio::sync::Mutex;

use super::Config;
use super::ticket::Ticket;
use crate::error::Error;
use crate::model::oidc_error::OidcError;

const LIMITS: Limits = Limits { time: Duration::from_secs(5), bytes: 512 * 1024 };
/// How long metadata is cached. An unknown key causes an immediate refetch.
const METADATA_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// How long a failed discovery is cached, so that not every user waits for a timeout.
const FAILURE_LIFETIME: Duration = Duration::from_secs(1);
/// Asymmetric signatures only: with a symmetric one, anybody who knows our client secret could sign.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RsaSsaPkcs1V15Sha256,
    Algorithm::RsaSsaPkcs1V15Sha384,
    Algorithm::RsaSsaPkcs1V15Sha512,
    Algorithm::RsaSsaPssSha256,
    Algorithm::RsaSsaPssSha384,
    Algorithm::RsaSsaPssSha512,
    Algorithm::EcdsaP256Sha256,
    Algorithm::EcdsaP384Sha384,
    Algorithm::EdDsa,
];
const OPENID: &str = "openid";

type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;
type Metadata = Arc<CoreProviderMetadata>;

/// A user, as asserted by the provider.
#[derive(Debug)]
pub(super) struct Person {
    pub(super) subject: String,
    /// Absent unless the provider asserts that it is verified.
    pub(super) verified_email: Option<String>,
    pub(super) name: Option<String>,
}

/// The cached result of discovery.
#[derive(Debug)]
enum DiscoveryCache {
    Nothing,
    Metadata { of: Metadata, since: Timestamp },
    Down { since: Timestamp },
}

/// The configured provider.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) config: Config,
    issuer: IssuerUrl,
    http: Http,
    clock: Arc<dyn Clock>,
    /// Held during discovery, so that it runs only once.
    cache: Mutex<DiscoveryCache>,
}

/// The issuer URL, if the configuration is valid; no request is made.
pub(super) fn issuer(config: &Config, guard: &Guard) -> Result<IssuerUrl, Error> {
    let refused = |why: String| {
        let forms = "https://accounts.example.com; http and hosts inside need CAIRN_OUTBOUND_ALLOW";
        Error::Config(format!("CAIRN_OIDC_ISSUER must be an address such as {forms}: {why}"))
    };
    let url = guard.check(&config.issuer).map_err(|reason| refused(reason.to_string()))?;
    if url.query().is_some() {
        return Err(refused("it has a query".to_owned()));
    }
    if config.client_id.is_empty() {
        return Err(Error::Config("CAIRN_OIDC_CLIENT_ID must be set with CAIRN_OIDC_ISSUER".to_owned()));
    }
    IssuerUrl::new(config.issuer.clone()).map_err(|error| refused(error.to_string()))
}

impl Provider {
    /// A provider whose metadata is not fetched yet.
    pub(super) fn new(config: Config, guard: Guard, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let issuer = issuer(&config, &guard)?;
        Ok(Self { config, issuer, http: Http(guard), clock, cache: Mutex::new(DiscoveryCache::Nothing) })
    }

    /// The URL that starts the sign-in.
    pub(super) async fn authorization_url(
        &self,
        ticket: &Ticket,
        redirect_uri: &str,
    ) -> Result<String, Error> {
        let metadata = self.metadata().await?;
        let client = self.client(&metadata);
        let redirect = redirect(redirect_uri)?;
        let (state, nonce) = (CsrfToken::new(ticket.state()), Nonce::new(ticket.nonce()));
        let challenge =
            PkceCodeChallenge::from_code_verifier_sha256(&PkceCodeVerifier::new(ticket.verifier()));
        // The crate adds `openid` itself.
        let scopes = self.config.scopes.iter().filter(|scope| *scope != OPENID);
        let (url, ..) = client
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, move || state, move || nonce)
            .add_scopes(scopes.cloned().map(Scope::new))
            .set_redirect_uri(std::borrow::Cow::Owned(redirect))
            .set_pkce_challenge(challenge)
            .url();
        Ok(url.to_string())
    }

    /// Exchanges a code for the user's identity.
    pub(super) async fn redeem(
        &self,
        ticket: &Ticket,
        code: &str,
        redirect_uri: &str,
    ) -> Result<Person, Error> {
        let metadata = self.metadata().await?;
        let client = self.client(&metadata);
        let request = client.exchange_code(AuthorizationCode::new(code.to_owned())).map_err(|error| {
            tracing::warn!(%error, "the OpenID Connect provider has no token endpoint");
            OidcError::Unreachable
        })?;
        let answered = request
            .set_redirect_uri(std::borrow::Cow::Owned(redirect(redirect_uri)?))
            .set_pkce_verifier(PkceCodeVerifier::new(ticket.verifier()))
            .request_async(&self.http)
            .await;
        let tokens = answered.map_err(|error| token_refusal(&error))?;
        let id_token = tokens.id_token().ok_or_else(|| untrusted("it sends no ID token"))?;
        let nonce = Nonce::new(ticket.nonce());
        let claims = match self.claims(&client, id_token, &nonce) {
            Err(error) if is_unknown_key(&error) => {
                let newer = self.newer_than(&metadata).await?;
                self.claims(&self.client(&newer), id_token, &nonce).map_err(|error| untrusted(&error))?
            }
            judged => judged.map_err(|error| untrusted(&error))?,
        };
        let person = Person {
            subject: claims.subject().to_string(),
            verified_email: verified(claims.email().map(|email| email.as_str()), claims.email_verified()),
            name: claims.name().and_then(|name| name.get(None)).map(|name| name.to_string()),
        };
        if claims.email().is_some() {
            return Ok(person);
        }
        self.completed(&client, &tokens, claims, person).await
    }

    /// Some providers return the email only from the userinfo endpoint.
    async fn completed(
        &self,
        client: &Client,
        tokens: &CoreTokenResponse,
        claims: &CoreIdTokenClaims,
        person: Person,
    ) -> Result<Person, Error> {
        let subject = Some(claims.subject().clone());
        let Ok(request) = client.user_info(tokens.access_token().clone(), subject) else {
            return Ok(person);
        };
        let told: CoreUserInfoClaims =
            request.request_async(&self.http).await.map_err(|error| untrusted(&error))?;
        let name = told.name().and_then(|name| name.get(None)).map(|name| name.to_string());
        Ok(Person {
            verified_email: verified(told.email().map(|email| email.as_str()), told.email_verified()),
            name: person.name.or(name),
            ..person
        })
    }

    /// The verified claims of the ID token: audience, expiry, nonce and signature.
    fn claims<'a>(
        &self,
        client: &Client,
        id_token: &'a CoreIdToken,
        nonce: &Nonce,
    ) -> Result<&'a CoreIdTokenClaims, ClaimsVerificationError> {
        if !id_token.signing_alg().is_ok_and(|algorithm| ALGORITHMS.contains(algorithm)) {
            return Err(ClaimsVerificationError::Unsupported("the algorithm of the signature".to_owned()));
        }
        let now = self.clock.now();
        let verifier = client.id_token_verifier().set_time_fn(move || {
            DateTime::from_timestamp_micros(now.as_micros()).unwrap_or(DateTime::UNIX_EPOCH)
        });
        id_token.claims(&verifier, nonce)
    }

    fn client(&self, metadata: &CoreProviderMetadata) -> Client {
        let secret = self.config.client_secret.clone().map(ClientSecret::new);
        let client_id = ClientId::new(self.config.client_id.clone());
        let client = CoreClient::from_provider_metadata(metadata.clone(), client_id, secret);
        let takes = |method| {
            metadata.token_endpoint_auth_methods_supported().is_none_or(|methods| methods.contains(&method))
        };
        // The default of the specification is Basic.
        let in_body =
            !takes(CoreClientAuthMethod::ClientSecretBasic) && takes(CoreClientAuthMethod::ClientSecretPost);
        client.set_auth_type(if in_body { AuthType::RequestBody } else { AuthType::BasicAuth })
    }

    /// The provider's metadata with its keys.
    async fn metadata(&self) -> Result<Metadata, OidcError> {
        let mut cache = self.cache.lock().await;
        let now = self.clock.now();
        match &*cache {
            DiscoveryCache::Metadata { of, since } if now.since(*since) < METADATA_LIFETIME => {
                Ok(Arc::clone(of))
            }
            DiscoveryCache::Down { since } if now.since(*since) < FAILURE_LIFETIME => {
                Err(OidcError::Unreachable)
            }
            DiscoveryCache::Nothing | DiscoveryCache::Metadata { .. } | DiscoveryCache::Down { .. } => {
                self.discover(&mut cache).await
            }
        }
    }

    /// Metadata that is newer than the given one, which lacked a key.
    async fn newer_than(&self, seen: &Metadata) -> Result<Metadata, OidcError> {
        let mut cache = self.cache.lock().await;
        match &*cache {
            DiscoveryCache::Metadata { of, .. } if !Arc::ptr_eq(of, seen) => Ok(Arc::clone(of)),
            DiscoveryCache::Nothing | DiscoveryCache::Metadata { .. } | DiscoveryCache::Down { .. } => {
                self.discover(&mut cache).await
            }
        }
    }

    async fn discover(&self, cache: &mut DiscoveryCache) -> Result<Metadata, OidcError> {
        let discovered = CoreProviderMetadata::discover_async(self.issuer.clone(), &self.http).await;
        let since = self.clock.now();
        match discovered {
            Ok(metadata) => {
                let of = Arc::new(metadata);
                *cache = DiscoveryCache::Metadata { of: Arc::clone(&of), since };
                Ok(of)
            }
            Err(error) => {
                *cache = DiscoveryCache::Down { since };
                let cause = error.source().map(ToString::to_string).unwrap_or_default();
                let issuer = &self.config.issuer;
                tracing::warn!(%error, cause, issuer, "the OpenID Connect provider cannot be used");
                Err(OidcError::Unreachable)
            }
        }
    }
}

/// Sends the crate's requests, subject to the outbound guard.
#[derive(Debug)]
struct Http(Guard);

impl AsyncHttpClient<'_> for Http {
    type Error = Refused;
    type Future = BoxFuture<'static, Result<HttpResponse, Refused>>;

    fn call(&self, request: HttpRequest) -> Self::Future {
        let guard = self.0.clone();
        Box::pin(async move {
            let response = guard.send(request.map(Bytes::from), LIMITS).await?;
            Ok(response.map(|body| body.to_vec()))
        })
    }
}

fn redirect(uri: &str) -> Result<RedirectUrl, Error> {
    RedirectUrl::new(uri.to_owned()).map_err(|_| {
        Error::Invalid(vec![Violation::new("redirect_uri", "invalid", "must be the address of the callback")])
    })
}

fn verified(email: Option<&str>, is_verified: Option<bool>) -> Option<String> {
    email.filter(|_| is_verified == Some(true)).map(ToOwned::to_owned)
}

fn is_unknown_key(error: &ClaimsVerificationError) -> bool {
    matches!(error, ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey))
}

/// The crate's messages name claims and algorithms; they quote no token.
fn untrusted(why: &(impl ToString + ?Sized)) -> OidcError {
    tracing::warn!(error = why.to_string(), "an answer of the OpenID Connect provider was refused");
    OidcError::Untrusted
}

/// A malformed response is not quoted: it may contain tokens.
fn token_refusal(
    error: &RequestTokenError<
        Refused,
        openidconnect::StandardErrorResponse<openidconnect::core::CoreErrorResponseType>,
    >,
) -> OidcError {
    use openidconnect::core::CoreErrorResponseType as Kind;
    match error {
        RequestTokenError::ServerResponse(answer) => {
            tracing::warn!(error = answer.error().as_ref(), "the OpenID Connect provider refused a code");
            match answer.error() {
                Kind::InvalidClient | Kind::UnauthorizedClient => OidcError::ClientRefused,
                Kind::InvalidGrant
                | Kind::InvalidRequest
                | Kind::InvalidScope
                | Kind::UnsupportedGrantType
                | Kind::Extension(_) => OidcError::CodeRefused,
            }
        }
        RequestTokenError::Request(reason) => {
            tracing::warn!(error = %reason, "the OpenID Connect provider gives no tokens");
            OidcError::Unreachable
        }
        RequestTokenError::Parse(..) | RequestTokenError::Other(_) => {
            untrusted("its token response cannot be read")
        }
    }
}
