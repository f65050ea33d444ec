//! Sign-in by an OpenID Connect provider that the operator configures: the authorization code flow with PKCE.
//!
//! The `openidconnect` crate implements the protocol and verifies ID tokens ([`provider`]). The state of a sign-in is
//! kept in the browser that began it ([`ticket`]), so that any replica can finish it and no secret is stored. A user is
//! identified by the pair of issuer and subject; an email counts only if the provider has verified it, and only at the
//! first sign-in. An unproved account with that email is then handed over to the user, without the access that somebody
//! else may have to it ([`crate::proof`]).

mod provider;
mod return_to;
#[cfg(test)]
mod tests;
mod ticket;

use std::sync::Arc;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::outbound::Guard;
use cairn_chassis::sql::{Db, Tx};
use cairn_chassis::status::Violation;

use self::provider::{Person, Provider};
use self::ticket::Ticket;
use crate::error::Error;
use crate::model::oidc_error::OidcError;
use crate::sessions::{Device, Sessions, SignedIn};
use crate::users::{self, NewUser, User};
use crate::{proof, secrets, store};

const MAX_NAME_CHARS: usize = 100;

/// The configuration of the provider.
#[derive(Clone)]
pub struct Config {
    /// The issuer URL, exactly as in its metadata and ID tokens.
    pub issuer: String,
    /// The client id.
    pub client_id: String,
    /// The client secret; absent for a public client.
    pub client_secret: Option<String>,
    /// The name on the sign-in button.
    pub name: String,
    /// The scopes that are requested besides `openid`.
    pub scopes: Vec<String>,
    /// Whether users without an account or an invitation get an account.
    pub sign_up: bool,
}

// Without the secret.
cairn_chassis::debug_fields!(Config { issuer, client_id, sign_up });

/// Validates the configuration; no request is made.
///
/// # Errors
/// When the issuer URL is invalid, or not allowed.
pub(crate) fn check(config: &Config, guard: &Guard) -> Result<(), Error> {
    provider::issuer(config, guard).map(drop)
}

/// A sign-in that has begun.
pub(crate) struct PendingSignIn {
    pub(crate) authorization_url: String,
    pub(crate) ticket: Ticket,
}

/// The provider's response, as the browser delivered it.
pub(crate) struct Attempt {
    pub(crate) ticket: String,
    pub(crate) state: String,
    pub(crate) code: String,
    pub(crate) redirect_uri: String,
}

/// The rules of sign-in by a provider.
#[derive(Debug)]
pub(crate) struct Oidc {
    db: Db,
    ambient: Ambient,
    sessions: Arc<Sessions>,
    provider: Option<Provider>,
}

impl Oidc {
    /// No request is made yet: a provider that is down must not keep Cairn from starting.
    pub(crate) fn new(
        db: Db,
        ambient: Ambient,
        sessions: Arc<Sessions>,
        config: Option<Config>,
        guard: Guard,
    ) -> Result<Self, Error> {
        let clock = Arc::clone(&ambient.clock);
        let provider = config.map(|config| Provider::new(config, guard, clock)).transpose()?;
        Ok(Self { db, ambient, sessions, provider })
    }

    /// The display name of the provider, if there is one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.provider.as_ref().map(|provider| provider.config.name.as_str())
    }

    /// Begins a sign-in.
    pub(crate) async fn begin(&self, redirect_uri: &str, return_to: &str) -> Result<PendingSignIn, Error> {
        let provider = self.provider()?;
        if let Some(fault) = return_to::fault(return_to) {
            return Err(Error::Invalid(vec![Violation::new("return_to", "invalid", fault)]));
        }
        let ticket = Ticket::new(return_to, self.ambient.clock.now(), &*self.ambient.entropy);
        let authorization_url = provider.authorization_url(&ticket, redirect_uri).await?;
        Ok(PendingSignIn { authorization_url, ticket })
    }

    /// Verifies the provider's response and signs the user in; also returns the path that they wanted to visit.
    pub(crate) async fn finish(
        &self,
        device: &Device,
        attempt: &Attempt,
    ) -> Result<(SignedIn, String), Error> {
        let redeemed = self.redeem(device, attempt);
        self.sessions.sign_ins().counted(device.source(), None, redeemed).await
    }

    async fn redeem(&self, device: &Device, attempt: &Attempt) -> Result<(SignedIn, String), Error> {
        let provider = self.provider()?;
        let ticket = Ticket::read(&attempt.ticket, self.ambient.clock.now()).ok_or(OidcError::NotBegun)?;
        if !secrets::same(&ticket.state(), &attempt.state) {
            return Err(OidcError::NotBegun.into());
        }
        let person = provider.redeem(&ticket, &attempt.code, &attempt.redirect_uri).await?;
        let user = self.admit(provider, &ticket, &person).await?;
        Ok((self.sessions.open(user, device).await?, ticket.return_to().to_owned()))
    }

    /// Deletes records of used tickets that have expired.
    pub(crate) async fn purge(&self) -> Result<(), Error> {
        Ok(store::oidc::delete_ended(&self.db, self.ambient.clock.now()).await?)
    }

    fn provider(&self) -> Result<&Provider, OidcError> {
        self.provider.as_ref().ok_or(OidcError::NotSetUp)
    }

    /// The account of an authenticated user.
    async fn admit(&self, provider: &Provider, ticket: &Ticket, person: &Person) -> Result<User, Error> {
        match self.admit_once(provider, ticket, person).await {
            // A concurrent sign-in of the same user was first, or the account is linked to another subject: retrying
            // tells.
            Err(Error::Storage(error)) if error.is_unique_violation() => {}
            outcome => return outcome,
        }
        match self.admit_once(provider, ticket, person).await {
            Err(Error::Storage(error)) if error.is_unique_violation() => Err(OidcError::OtherSubject.into()),
            outcome => outcome,
        }
    }

    async fn admit_once(&self, provider: &Provider, ticket: &Ticket, person: &Person) -> Result<User, Error> {
        let now = self.ambient.clock.now();
        let issuer = &provider.config.issuer;
        let mut tx = self.db.begin_write().await?;
        let used = store::oidc::insert_used(&mut tx, &ticket.digest(), ticket.expires_at()).await;
        used.map_err(|error| {
            if error.is_unique_violation() { OidcError::NotBegun.into() } else { Error::from(error) }
        })?;
        if let Some(user) = store::oidc::find_linked(&mut tx, issuer, &person.subject).await? {
            tx.commit().await?;
            return Ok(user);
        }
        let email = person.verified_email.as_deref().and_then(fold).ok_or(OidcError::EmailUnproved)?;
        let user = match store::users::find_by_email(&mut tx, &email).await? {
            Some(user) if user.email_verified => user,
            Some(user) => proof::take_over(&mut tx, &self.ambient, &user).await?,
            None => self.sign_up(&mut tx, provider, email, person).await?,
        };
        store::oidc::insert_link(&mut tx, issuer, &person.subject, user.id, now).await?;
        tx.commit().await?;
        tracing::info!(user.id = %user.id, "an account was linked to the OpenID Connect provider");
        Ok(user)
    }

    /// Creates an account for an invited user, or for anybody if sign-up is enabled. Invitations remain until the user
    /// accepts them.
    async fn sign_up(
        &self,
        tx: &mut Tx,
        provider: &Provider,
        email: String,
        person: &Person,
    ) -> Result<User, Error> {
        let now = self.ambient.clock.now();
        if !provider.config.sign_up && !store::invitations::any_of_email(tx, &email, now).await? {
            return Err(OidcError::Unknown.into());
        }
        let name = person_name(person, &email);
        let user = User { id: self.ambient.ids.next(), email, name, email_verified: true };
        let account = NewUser {
            id: user.id,
            email: &user.email,
            name: &user.name,
            password_hash: None,
            email_verified: true,
        };
        store::users::insert(tx, &account, now).await?;
        Ok(user)
    }
}

/// Normalizes an email. A non-ASCII letter that folds to an ASCII one would merge two addresses.
fn fold(email: &str) -> Option<String> {
    let foreign = |text: &str| text.chars().filter(|character| !character.is_ascii()).count();
    users::fold_email(email).filter(|folded| foreign(folded) == foreign(email.trim()))
}

/// The user's name at the provider, truncated to our limit; the local part of the email if it is empty.
fn person_name(person: &Person, email: &str) -> String {
    let plain = |text: &str| -> String {
        let text: String =
            text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_NAME_CHARS).collect()
    };
    let given = person.name.as_deref().map(plain).filter(|name| !name.is_empty());
    given.unwrap_or_else(|| plain(email.split('@').next().unwrap_or(email)))
}
