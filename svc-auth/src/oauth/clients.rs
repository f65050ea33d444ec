//! OAuth clients: registered dynamically (RFC 7591), or identified by the URL of their metadata (Client ID Metadata
//! Documents).

use std::fmt;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::outbound::Guard;
use cairn_chassis::sql::Db;
use cairn_chassis::token_format::Format;
use subtle::ConstantTimeEq as _;

use super::client_name::displayable;
use super::document::{self, Documents};
use super::lifetimes::{GRANT_LIFETIME, before};
use super::redirect;
use crate::error::Error;
use crate::model::oauth::Client;
use crate::model::oauth_error::{Code, OauthError};
use crate::secrets;
use crate::store;

const ID_BYTES: usize = 16;
/// The maximum size of a registration: anybody may make one, and it is stored.
const MAX_BYTES: usize = 8 * 1024;
/// How long an unused registered client is kept.
const UNUSED_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
const UNNAMED: &str = "An app without a name";
const NO_SECRET: &str = "none";
/// The default of RFC 7591.
const DEFAULT_METHOD: &str = "client_secret_basic";
const SECRET_METHODS: [&str; 2] = [DEFAULT_METHOD, "client_secret_post"];

/// A registration request.
#[derive(Debug, Default)]
pub(crate) struct Registration {
    pub(crate) name: String,
    pub(crate) redirect_uris: Vec<String>,
    pub(crate) auth_method: Option<String>,
    pub(crate) grant_types: Vec<String>,
    pub(crate) response_types: Vec<String>,
}

/// A registered client with its secret, which is not stored.
pub(crate) struct Registered {
    pub(crate) client: Client,
    pub(crate) secret: Option<String>,
    pub(crate) auth_method: String,
    pub(crate) issued_at: Timestamp,
}

impl fmt::Debug for Registered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Registered").field("client", &self.client.id).finish_non_exhaustive()
    }
}

/// The credentials of a client.
pub(crate) struct Proof {
    pub(crate) client_id: String,
    pub(crate) secret: Option<String>,
}

/// The rules of clients.
#[derive(Debug)]
pub(crate) struct Clients {
    db: Db,
    ambient: Ambient,
    documents: Documents,
    /// The maximum number of registered clients that have never been used.
    most_unused: i64,
}

impl Clients {
    pub(crate) fn new(db: Db, ambient: Ambient, guard: Guard, most_unused: i64) -> Self {
        Self { db, ambient, documents: Documents::new(guard), most_unused }
    }

    /// Registers a client. Anybody may: access is granted by a user, at each authorization.
    pub(crate) async fn register(&self, registration: Registration) -> Result<Registered, Error> {
        let auth_method = check(&registration)?;
        let secret =
            (auth_method != NO_SECRET).then(|| Format::CLIENT_SECRET.generate(&*self.ambient.entropy));
        let issued_at = self.ambient.clock.now();
        let client = Client {
            id: secrets::random_hex::<ID_BYTES>(&*self.ambient.entropy),
            name: displayable(&registration.name).unwrap_or_else(|| UNNAMED.to_owned()),
            redirect_uris: registration.redirect_uris,
            secret: secret.as_deref().map(secrets::digest),
            fresh_until: None,
        };
        let mut tx = self.db.begin_write().await?;
        // Serializes concurrent registrations, so that each sees the others.
        tx.lock_name("cairn:oauth_clients").await?;
        store::oauth_clients::delete_unused(&mut tx, before(issued_at, UNUSED_LIFETIME)).await?;
        if store::oauth_clients::count_unused(&mut tx).await? >= self.most_unused {
            tx.commit().await?;
            tracing::warn!(
                most = self.most_unused,
                "no further OAuth client is registered (CAIRN_OAUTH_CLIENTS)"
            );
            return Err(Error::TooManyClients(self.most_unused));
        }
        store::oauth_clients::put(&mut tx, &client, issued_at).await?;
        tx.commit().await?;
        Ok(Registered { client, secret, auth_method, issued_at })
    }

    /// The client of an authorization request. Metadata from a URL is refetched if the stored copy is stale, and only
    /// if `may_fetch`: an anonymous caller must not make us send requests.
    pub(super) async fn find(&self, id: &str, may_fetch: bool) -> Result<Option<Client>, Error> {
        let now = self.ambient.clock.now();
        let known = store::oauth_clients::find(&self.db, id).await?;
        let is_fresh = |client: &Client| client.fresh_until.is_none_or(|end| end > now);
        if known.as_ref().is_some_and(is_fresh) {
            return Ok(known);
        }
        if !document::is_address(id) {
            return Err(unknown());
        }
        if !may_fetch {
            return Ok(None);
        }
        let fetched = self.documents.fetch(id, now).await?;
        let mut tx = self.db.begin_write().await?;
        store::oauth_clients::put(&mut tx, &fetched, now).await?;
        tx.commit().await?;
        Ok(Some(fetched))
    }

    /// Deletes registered clients that were not used within a day, and those without grants.
    pub(crate) async fn purge(&self) -> Result<(), Error> {
        let now = self.ambient.clock.now();
        let mut tx = self.db.begin_write().await?;
        store::oauth_clients::delete_unused(&mut tx, before(now, UNUSED_LIFETIME)).await?;
        store::oauth_clients::delete_forgotten(&mut tx, before(now, GRANT_LIFETIME)).await?;
        Ok(tx.commit().await?)
    }

    /// Authenticates the client of a token request. Stored metadata suffices, even if stale.
    pub(super) async fn authenticate(&self, proof: &Proof) -> Result<Client, Error> {
        let client = store::oauth_clients::find(&self.db, &proof.client_id).await?.ok_or_else(unknown)?;
        let is_right = match (&client.secret, &proof.secret) {
            (None, None) => true,
            (Some(kept), Some(sent)) => bool::from(kept.ct_eq(&secrets::digest(sent))),
            (None, Some(_)) | (Some(_), None) => false,
        };
        if is_right { Ok(client) } else { Err(unknown()) }
    }
}

/// The same error for an unknown client and for wrong credentials.
fn unknown() -> Error {
    let message = "the client is not known here, or its secret is wrong: register it again";
    OauthError::new(Code::InvalidClient, "client_id", message).into()
}

/// Validates a registration; returns the client's authentication method.
fn check(registration: &Registration) -> Result<String, OauthError> {
    let weight = registration.name.len() + registration.redirect_uris.iter().map(String::len).sum::<usize>();
    if weight > MAX_BYTES {
        let message = format!(
            "client_name and redirect_uris together may have at most {MAX_BYTES} bytes; they have {weight}"
        );
        return Err(OauthError::new(Code::InvalidClientMetadata, "redirect_uris", message));
    }
    redirect::check(&registration.redirect_uris)?;
    let refused =
        |parameter, message: &str| Err(OauthError::new(Code::InvalidClientMetadata, parameter, message));
    let is_served = |kind: &String| kind == "authorization_code" || kind == "refresh_token";
    // Clients list every grant type they support; the authorization code is the required one.
    if !registration.grant_types.is_empty() && !registration.grant_types.iter().any(is_served) {
        return refused("grant_types", "grant_types must hold authorization_code");
    }
    if !registration.response_types.is_empty()
        && !registration.response_types.iter().any(|kind| kind == "code")
    {
        return refused("response_types", "response_types must hold code");
    }
    let method = registration.auth_method.as_deref().unwrap_or(DEFAULT_METHOD);
    if method != NO_SECRET && !SECRET_METHODS.contains(&method) {
        let message = "token_endpoint_auth_method must be none, client_secret_basic or client_secret_post";
        return refused("token_endpoint_auth_method", message);
    }
    Ok(method.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registration() -> Registration {
        Registration { redirect_uris: vec!["https://tools.example/cb".to_owned()], ..Registration::default() }
    }

    #[test]
    fn a_registration_says_how_it_will_be_proved() {
        assert_eq!(check(&registration()).unwrap(), "client_secret_basic");
        let public = Registration { auth_method: Some("none".to_owned()), ..registration() };
        assert_eq!(check(&public).unwrap(), "none");
    }

    #[test]
    fn a_registration_that_cannot_work_is_refused() {
        let refused = |registration: Registration| check(&registration).unwrap_err();
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(refused(Registration::default()).code, Code::InvalidRedirectUri);
        let many = Registration { redirect_uris: texts(&["https://a.example/"; 21]), ..registration() };
        assert_eq!(refused(many).code, Code::InvalidRedirectUri);
        let bad = Registration {
            redirect_uris: texts(&["https://a.example/", "javascript:alert(1)"]),
            ..registration()
        };
        assert!(refused(bad).description.contains("redirect_uris[1]"));
        let jwt = Registration { auth_method: Some("private_key_jwt".to_owned()), ..registration() };
        assert_eq!(refused(jwt).parameter, "token_endpoint_auth_method");
        let implicit = Registration { grant_types: texts(&["implicit"]), ..registration() };
        assert_eq!(refused(implicit).code, Code::InvalidClientMetadata);
        let token = Registration { response_types: texts(&["token"]), ..registration() };
        assert_eq!(refused(token).parameter, "response_types");
    }
}
