//! Authorization requests of clients, and the user's consent.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::identity::PermissionSet;
use cairn_chassis::sql::Db;
use cairn_chassis::status::Violation;
use cairn_chassis::token_format::Format;
use cairn_proto::ids::{UserId, WorkspaceId};

use super::clients::Clients;
use super::{pkce, redirect, resource, scope};
use crate::error::Error;
use crate::model::oauth::{Client, IssuedCode};
use crate::model::oauth_error::{Code, OauthError};
use crate::secrets;
use crate::store;
use crate::workspaces::require_member;

/// Long enough for a redirect on a slow connection.
const CODE_LIFETIME: Duration = Duration::from_secs(60);

/// The parameters of an authorization request, not yet validated.
#[derive(Debug, Default)]
pub(crate) struct AuthorizationParams {
    pub(crate) client_id: String,
    pub(crate) redirect_uri: Option<String>,
    pub(crate) response_type: String,
    pub(crate) scope: Option<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) code_challenge: String,
    pub(crate) code_challenge_method: String,
    pub(crate) base_url: String,
}

/// An authorization request with a valid client and redirect URI.
#[derive(Debug)]
pub(crate) struct CheckedAuthorization {
    pub(crate) client: Client,
    pub(crate) redirect_uri: String,
    pub(crate) redirect_host: String,
    pub(crate) is_loopback: bool,
    /// The requested access; or the error to return to the client by redirect.
    pub(crate) requested: Result<RequestedAccess, OauthError>,
}

/// The access that a client requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestedAccess {
    pub(crate) permissions: PermissionSet,
    pub(crate) resource: String,
}

/// The choices of the user.
#[derive(Debug)]
pub(crate) struct Consent {
    pub(crate) user: UserId,
    pub(crate) workspace: WorkspaceId,
    pub(crate) permissions: PermissionSet,
}

/// The rules of authorization requests.
#[derive(Debug)]
pub(crate) struct Authorizations {
    db: Db,
    ambient: Ambient,
    clients: Arc<Clients>,
}

impl Authorizations {
    pub(crate) const fn new(db: Db, ambient: Ambient, clients: Arc<Clients>) -> Self {
        Self { db, ambient, clients }
    }

    /// Validates a request; `None` if the client can be looked up only for a signed-in user.
    pub(crate) async fn check(
        &self,
        params: &AuthorizationParams,
        is_signed_in: bool,
    ) -> Result<Option<CheckedAuthorization>, Error> {
        let Some(client) = self.clients.find(&params.client_id, is_signed_in).await? else {
            return Ok(None);
        };
        let redirect_uri = redirect_uri(&client, params.redirect_uri.as_deref())?;
        Ok(Some(CheckedAuthorization {
            redirect_host: redirect::shown(&redirect_uri),
            is_loopback: redirect::is_loopback(&redirect_uri),
            requested: requested(params),
            client,
            redirect_uri,
        }))
    }

    /// Records the consent; returns the code and the redirect URI. The grant is the intersection of the requested, the
    /// chosen and the role's permissions.
    pub(crate) async fn authorize(
        &self,
        params: &AuthorizationParams,
        consent: &Consent,
    ) -> Result<(String, String), Error> {
        let checked = self.check(params, true).await?.ok_or(Error::SessionRefused)?;
        let requested = checked.requested?;
        let mut tx = self.db.begin_write().await?;
        let role = require_member(&mut tx, consent.user, consent.workspace).await?.role;
        let chosen = consent.permissions.intersection(requested.permissions);
        let permissions = chosen.intersection(role.permissions());
        if permissions == PermissionSet::default() {
            return Err(nothing_granted(chosen, role.as_str()));
        }
        let secret = Format::AUTHORIZATION_CODE.generate(&*self.ambient.entropy);
        let code = IssuedCode {
            workspace: consent.workspace,
            user: consent.user,
            client_id: checked.client.id,
            client_name: checked.client.name,
            redirect_uri: checked.redirect_uri.clone(),
            redirect_host: checked.redirect_host,
            code_challenge: params.code_challenge.clone(),
            permissions,
            resource: requested.resource,
            expires_at: self.ambient.clock.now().plus(CODE_LIFETIME),
        };
        store::oauth_clients::set_used(&mut tx, &code.client_id, self.ambient.clock.now()).await?;
        store::oauth_codes::insert(&mut tx, &secrets::digest(&secret), &code).await?;
        tx.commit().await?;
        Ok((secret, checked.redirect_uri))
    }
}

fn nothing_granted(chosen: PermissionSet, role: &str) -> Error {
    let message = if chosen == PermissionSet::default() {
        "must hold at least one of those that the client asks for".to_owned()
    } else {
        format!("holds nothing that your role in this workspace ('{role}') allows")
    };
    Error::Invalid(vec![Violation::new("permissions", "invalid", message)])
}

/// The redirect URI. Until it is validated, no error may be redirected.
fn redirect_uri(client: &Client, requested: Option<&str>) -> Result<String, OauthError> {
    let refused = |message| Err(OauthError::new(Code::InvalidRequest, "redirect_uri", message));
    match (requested, client.redirect_uris.as_slice()) {
        (None, [only]) => Ok(only.clone()),
        (None, _) => refused("redirect_uri is required: the client has several"),
        (Some(uri), registered) if registered.iter().any(|known| redirect::matches(known, uri)) => {
            Ok(uri.to_owned())
        }
        (Some(_), _) => refused("redirect_uri is not one that the client registered"),
    }
}

fn requested(params: &AuthorizationParams) -> Result<RequestedAccess, OauthError> {
    match params.response_type.as_str() {
        "code" => {}
        "" => {
            return Err(OauthError::new(
                Code::InvalidRequest,
                "response_type",
                "response_type is required: code",
            ));
        }
        _ => {
            let message = "response_type must be code";
            return Err(OauthError::new(Code::UnsupportedResponseType, "response_type", message));
        }
    }
    pkce::check_challenge(&params.code_challenge, &params.code_challenge_method)?;
    Ok(RequestedAccess {
        permissions: scope::read(params.scope.as_deref())?.unwrap_or_else(PermissionSet::all),
        resource: resource::check(&params.resources, &params.base_url)?,
    })
}
