//! OAuth tokens: issued for a code, refreshed, exchanged for an identity, revoked.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{Identity, PermissionSet, Principal, PrincipalKind, Scope};
use cairn_chassis::sql::{Db, Tx};
use cairn_chassis::token_format::Format;
use cairn_proto::ids::{GrantId, UserId, WorkspaceId};

use super::clients::{Clients, Proof};
use super::lifetimes::{GRANT_LIFETIME, before};
use super::resource::{self, Door};
use super::{pkce, scope, successor};
use crate::error::Error;
use crate::keys::{Issued, Keys};
use crate::model::has_ended;
use crate::model::oauth::{
    Client, IssuedCode, NewAccessToken, NewGrant, PresentedAccess, RefreshedGrant, Salt,
};
use crate::model::oauth_error::{Code, OauthError};
use crate::secrets::{self, Digest};
use crate::store;

/// Contract, "Identity".
const ACCESS_LIFETIME: Duration = Duration::from_secs(60 * 60);

/// The grace period of rotation: processes of one client refresh concurrently, and responses get lost, so a rotated
/// token yields the same successor for this long.
const GRACE_PERIOD: Duration = Duration::from_secs(60);
/// How long a used code is remembered, so that a replay revokes its tokens.
const CODE_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// A token request with a code.
pub(crate) struct CodeAttempt {
    pub(crate) code: String,
    pub(crate) redirect_uri: Option<String>,
    pub(crate) code_verifier: String,
    pub(crate) resources: Vec<String>,
    pub(crate) base_url: String,
}

/// A token request with a refresh token.
pub(crate) struct RefreshAttempt {
    pub(crate) refresh_token: String,
    pub(crate) scope: Option<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) base_url: String,
}

/// A token response.
pub(crate) struct TokenSet {
    pub(crate) access_token: String,
    pub(crate) expires_at: Timestamp,
    pub(crate) refresh_token: String,
    pub(crate) permissions: PermissionSet,
}

cairn_chassis::debug_fields!(TokenSet { expires_at });

/// The rules of tokens.
#[derive(Debug)]
pub(crate) struct Tokens {
    db: Db,
    ambient: Ambient,
    keys: Arc<Keys>,
    clients: Arc<Clients>,
}

impl Tokens {
    pub(crate) const fn new(db: Db, ambient: Ambient, keys: Arc<Keys>, clients: Arc<Clients>) -> Self {
        Self { db, ambient, keys, clients }
    }

    /// Exchanges a code for tokens. Of concurrent requests with the same code one succeeds, and the next one revokes
    /// its tokens: a code that is used twice was stolen (OAuth 2.1, section 4.1.3).
    pub(crate) async fn redeem_code(&self, proof: &Proof, attempt: &CodeAttempt) -> Result<TokenSet, Error> {
        let client = self.clients.authenticate(proof).await?;
        let now = self.ambient.clock.now();
        let digest = secrets::digest(&attempt.code);
        let grant: GrantId = self.ambient.ids.next();
        let mut tx = self.db.begin_write().await?;
        let Some(code) = store::oauth_codes::claim(&mut tx, &digest, &client.id, grant).await? else {
            return Err(self.take_back(tx, &digest, &client).await?);
        };
        // An error from here on rolls the claim back, so that a faulty request does not consume the code.
        check_attempt(&code, attempt, now)?;
        require_membership(&mut tx, code.user, code.workspace).await?;

        let expires_at = now.plus(GRANT_LIFETIME);
        let new = NewGrant { id: grant, code: &code, created_at: now, expires_at };
        store::oauth_grants::insert(&mut tx, &new).await?;
        let refresh_token = Format::REFRESH_TOKEN.generate(&*self.ambient.entropy);
        let refresh_digest = secrets::digest(&refresh_token);
        store::oauth_tokens::insert_refresh(&mut tx, &refresh_digest, code.workspace, grant).await?;
        let access = self.issue_access(&mut tx, code.workspace, grant, code.permissions).await?;
        tx.commit().await?;
        Ok(TokenSet { refresh_token, ..access })
    }

    /// Why a code could not be claimed; revokes the grant of one that was used before.
    async fn take_back(&self, mut tx: Tx, digest: &Digest, client: &Client) -> Result<Error, Error> {
        let used = store::oauth_codes::find_used(&mut tx, digest, &client.id).await?;
        let Some((workspace, grant)) = used else {
            return Ok(invalid_grant(
                "code",
                "the code is unknown, expired, or another client's: start again",
            ));
        };
        store::oauth_grants::delete(&mut tx, workspace, grant).await?;
        tx.commit().await?;
        tracing::warn!(%workspace, %grant, "an authorization code was used twice: the grant has ended");
        let message = "the code was used before, so what was given for it is taken back: start again";
        Ok(invalid_grant("code", message))
    }

    /// Exchanges a refresh token for new tokens. Within the grace period a repeated request gets the same successor;
    /// after that, reuse revokes the grant, since two parties hold the token.
    pub(crate) async fn refresh(&self, proof: &Proof, attempt: &RefreshAttempt) -> Result<TokenSet, Error> {
        let client = self.clients.authenticate(proof).await?;
        let now = self.ambient.clock.now();
        let digest = secrets::digest(&attempt.refresh_token);
        let unknown = || {
            let message = "the refresh token is unknown, expired, or another client's: sign in again";
            invalid_grant("refresh_token", message)
        };
        let mut tx = self.db.begin_write().await?;
        // Locks the grant, which serializes refreshes of one token family.
        let held =
            store::oauth_grants::touch(&mut tx, &digest, &client.id, now, now.plus(GRANT_LIFETIME)).await?;
        let grant = held.ok_or_else(unknown)?;
        let state = store::oauth_tokens::refresh_state(&mut tx, &digest).await?.ok_or_else(unknown)?;
        let salt = match state {
            None => self.rotate(&mut tx, &digest, &attempt.refresh_token, &grant, now).await?,
            Some((rotated_at, salt)) if now.since(rotated_at) <= GRACE_PERIOD => salt,
            Some(_) => {
                store::oauth_grants::delete(&mut tx, grant.workspace, grant.id).await?;
                tx.commit().await?;
                tracing::warn!(workspace = %grant.workspace, grant = %grant.id, "a spent refresh token came again: the grant has ended");
                let message = "the refresh token was used before, so all tokens of the grant are taken back: sign in again";
                return Err(invalid_grant("refresh_token", message));
            }
        };
        if resource::check(&attempt.resources, &attempt.base_url)? != grant.resource {
            return Err(other_resource());
        }
        require_membership(&mut tx, grant.user, grant.workspace).await?;
        let permissions = narrowed(attempt.scope.as_deref(), grant.permissions)?;
        let access = self.issue_access(&mut tx, grant.workspace, grant.id, permissions).await?;
        tx.commit().await?;
        Ok(TokenSet { refresh_token: successor::of(&attempt.refresh_token, &salt), ..access })
    }

    async fn rotate(
        &self,
        tx: &mut Tx,
        digest: &Digest,
        refresh_token: &str,
        grant: &RefreshedGrant,
        now: Timestamp,
    ) -> Result<Salt, Error> {
        let mut salt: Salt = [0; 32];
        self.ambient.entropy.fill(&mut salt);
        store::oauth_tokens::rotate(tx, digest, now, &salt).await?;
        let next = secrets::digest(&successor::of(refresh_token, &salt));
        store::oauth_tokens::insert_refresh(tx, &next, grant.workspace, grant.id).await?;
        Ok(salt)
    }

    async fn issue_access(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        grant: GrantId,
        permissions: PermissionSet,
    ) -> Result<TokenSet, Error> {
        let access_token = Format::ACCESS_TOKEN.generate(&*self.ambient.entropy);
        let expires_at = self.ambient.clock.now().plus(ACCESS_LIFETIME);
        let digest = secrets::digest(&access_token);
        let stored = NewAccessToken { digest, workspace, grant, permissions, expires_at };
        store::oauth_tokens::insert_access(tx, &stored).await?;
        Ok(TokenSet { access_token, expires_at, refresh_token: String::new(), permissions })
    }

    /// Revokes a token of this client (RFC 7009). A refresh token revokes its grant; unknown tokens are ignored.
    pub(crate) async fn revoke(&self, proof: &Proof, token: &str) -> Result<(), Error> {
        let client = self.clients.authenticate(proof).await?;
        let digest = secrets::digest(token);
        let mut tx = self.db.begin_write().await?;
        if Format::REFRESH_TOKEN.is_well_formed(token) {
            store::oauth_grants::delete_by_refresh_token(&mut tx, &digest, &client.id).await?;
        } else {
            store::oauth_tokens::delete_access(&mut tx, &digest, &client.id).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Exchanges an access token for an identity, at a part of the deployment that it was issued for. Checked at every
    /// exchange, so a revoked grant or a change of the user's role takes effect at the next one.
    pub(crate) async fn exchange(
        &self,
        access_token: &str,
        base_url: &str,
        door: Door,
    ) -> Result<Issued, Error> {
        if !Format::ACCESS_TOKEN.is_well_formed(access_token) {
            return Err(Error::AccessTokenRefused);
        }
        let now = self.ambient.clock.now();
        let found = store::oauth_tokens::find_access(&self.db, &secrets::digest(access_token)).await?;
        let is_open = |token: &PresentedAccess| {
            !has_ended(token.expires_at, now) && resource::opens(&token.resource, base_url, door)
        };
        let token = found.filter(is_open).ok_or(Error::AccessTokenRefused)?;
        // May be empty after a change of role: the caller is authenticated then, but has no permissions.
        let permissions = token.permissions.intersection(token.role.permissions());
        let identity = Identity {
            principal: Principal {
                kind: PrincipalKind::Grant,
                id: token.grant.to_string(),
                name: token.client_name,
            },
            workspace: Some(token.workspace),
            role: None,
            permissions,
            may_publish: token.publishers.allow(token.role, permissions),
            question_log_days: token.question_log_days,
            on_behalf_of: Some(token.user),
            scope: Scope::All,
            plan: Some(token.plan),
            expires_at: now,
        };
        Ok(self.keys.issue(identity, now, Some(token.expires_at))?)
    }

    /// Deletes expired codes and tokens.
    pub(crate) async fn purge(&self) -> Result<(), Error> {
        let now = self.ambient.clock.now();
        store::oauth_tokens::delete_ended(&self.db, now, before(now, GRANT_LIFETIME)).await?;
        store::oauth_codes::delete_ended(&self.db, before(now, CODE_RETENTION)).await?;
        Ok(store::oauth_grants::delete_ended(&self.db, now).await?)
    }
}

fn check_attempt(code: &IssuedCode, attempt: &CodeAttempt, now: Timestamp) -> Result<(), Error> {
    if code.expires_at <= now {
        return Err(invalid_grant("code", "the code has expired: start again"));
    }
    // OAuth 2.1 no longer requires it, but older clients send it.
    if attempt.redirect_uri.as_ref().is_some_and(|uri| *uri != code.redirect_uri) {
        return Err(invalid_grant(
            "redirect_uri",
            "redirect_uri differs from the one that the code was sent to",
        ));
    }
    pkce::check_verifier(&attempt.code_verifier, &code.code_challenge)?;
    if resource::check(&attempt.resources, &attempt.base_url)? != code.resource {
        return Err(other_resource());
    }
    Ok(())
}

/// The grant of somebody who has left the workspace is invalid.
async fn require_membership(tx: &mut Tx, user: UserId, workspace: WorkspaceId) -> Result<(), Error> {
    let found = store::workspaces::find_membership(tx, user, workspace).await?;
    found.map(drop).ok_or_else(|| {
        invalid_grant("grant", "who allowed this is no longer a member of the workspace: sign in again")
    })
}

fn narrowed(asked: Option<&str>, granted: PermissionSet) -> Result<PermissionSet, OauthError> {
    let asked = scope::read(asked)?.unwrap_or(granted);
    if asked.intersection(granted) == asked {
        return Ok(asked);
    }
    Err(OauthError::new(Code::InvalidScope, "scope", "scope must not hold more than was granted"))
}

fn invalid_grant(parameter: &'static str, message: &str) -> Error {
    OauthError::new(Code::InvalidGrant, parameter, message).into()
}

fn other_resource() -> Error {
    OauthError::new(Code::InvalidTarget, "resource", "resource differs from the one that was granted").into()
}
