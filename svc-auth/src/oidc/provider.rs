//! The provider: what it says of itself, where it asks people, and what its answers prove.

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
/// How long what the provider says of itself is used. A key that is not among its keys is asked for at once.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// Those who come while it is down need not each wait for it.
const DOWN: Duration = Duration::from_secs(1);
/// Signatures that only the provider can make. With a symmetric one, whoever knows our client secret could.
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

/// Who somebody is, as the provider vouches for it.
#[derive(Debug)]
pub(super) struct Person {
    pub(super) subject: String,
    /// Absent unless the provider says that it has verified it.
    pub(super) verified_email: Option<String>,
    pub(super) name: Option<String>,
}

/// What is known of the provider.
#[derive(Debug)]
enum Known {
    Nothing,
    Metadata { of: Metadata, since: Timestamp },
    Down { since: Timestamp },
}

/// The operator's provider.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) config: Config,
    issuer: IssuerUrl,
    http: Http,
    clock: Arc<dyn Clock>,
    /// Held while the provider is asked, so that it is asked once.
    known: Mutex<Known>,
}

/// The provider's address, when the settings make sense; it is not asked.
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
    /// A provider that was not asked yet.
    pub(super) fn new(config: Config, guard: Guard, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let issuer = issuer(&config, &guard)?;
        Ok(Self { config, issuer, http: Http(guard), clock, known: Mutex::new(Known::Nothing) })
    }

    /// Where the person goes to prove who they are.
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
        // The crate asks for `openid` by itself.
        let scopes = self.config.scopes.iter().filter(|scope| *scope != OPENID);
        let (url, ..) = client
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, move || state, move || nonce)
            .add_scopes(scopes.cloned().map(Scope::new))
            .set_redirect_uri(std::borrow::Cow::Owned(redirect))
            .set_pkce_challenge(challenge)
            .url();
        Ok(url.to_string())
    }

    /// Who the person is that the code stands for.
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

    /// Some providers tell the email only when they are asked about the person.
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

    /// What the ID token says, when it is ours, of now, for this sign-in, and signed by the provider.
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
        // Basic is what is taken where nothing is said.
        let in_body =
            !takes(CoreClientAuthMethod::ClientSecretBasic) && takes(CoreClientAuthMethod::ClientSecretPost);
        client.set_auth_type(if in_body { AuthType::RequestBody } else { AuthType::BasicAuth })
    }

    /// What the provider says of itself, with its keys.
    async fn metadata(&self) -> Result<Metadata, OidcError> {
        let mut known = self.known.lock().await;
        let now = self.clock.now();
        match &*known {
            Known::Metadata { of, since } if now.since(*since) < KEPT => Ok(Arc::clone(of)),
            Known::Down { since } if now.since(*since) < DOWN => Err(OidcError::Unreachable),
            Known::Nothing | Known::Metadata { .. } | Known::Down { .. } => self.discover(&mut known).await,
        }
    }

    /// The same, asked for after those that were found wanting.
    async fn newer_than(&self, seen: &Metadata) -> Result<Metadata, OidcError> {
        let mut known = self.known.lock().await;
        match &*known {
            Known::Metadata { of, .. } if !Arc::ptr_eq(of, seen) => Ok(Arc::clone(of)),
            Known::Nothing | Known::Metadata { .. } | Known::Down { .. } => self.discover(&mut known).await,
        }
    }

    async fn discover(&self, known: &mut Known) -> Result<Metadata, OidcError> {
        let discovered = CoreProviderMetadata::discover_async(self.issuer.clone(), &self.http).await;
        let since = self.clock.now();
        match discovered {
            Ok(metadata) => {
                let of = Arc::new(metadata);
                *known = Known::Metadata { of: Arc::clone(&of), since };
                Ok(of)
            }
            Err(error) => {
                *known = Known::Down { since };
                let cause = error.source().map(ToString::to_string).unwrap_or_default();
                let issuer = &self.config.issuer;
                tracing::warn!(%error, cause, issuer, "the OpenID Connect provider cannot be used");
                Err(OidcError::Unreachable)
            }
        }
    }
}

/// Brings the crate's requests to the provider, and to nobody inside whom the operator did not allow.
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

/// The crate's texts name claims and algorithms; they repeat no token.
fn untrusted(why: &(impl ToString + ?Sized)) -> OidcError {
    tracing::warn!(error = why.to_string(), "an answer of the OpenID Connect provider was refused");
    OidcError::Untrusted
}

/// An answer that cannot be read is not repeated: it may hold tokens.
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
