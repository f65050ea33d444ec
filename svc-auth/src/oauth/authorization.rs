//! What a client asks a person for, and the person's yes.

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

/// Long enough for a redirect on a slow line.
const CODE_LIFETIME: Duration = Duration::from_secs(60);

/// An authorization request as it came.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) client_id: String,
    pub(crate) redirect_uri: Option<String>,
    pub(crate) response_type: String,
    pub(crate) scope: Option<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) code_challenge: String,
    pub(crate) code_challenge_method: String,
    pub(crate) base_url: String,
}

/// An authorization request whose client and redirect URI are in order.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) client: Client,
    pub(crate) redirect_uri: String,
    pub(crate) redirect_host: String,
    pub(crate) is_loopback: bool,
    /// What is asked for and what it is for; or what the client must be told, by redirect.
    pub(crate) wanted: Result<Wanted, OauthError>,
}

/// What a client wants to do, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) permissions: PermissionSet,
    pub(crate) resource: String,
}

/// What the person chose.
#[derive(Debug)]
pub(crate) struct Consent {
    pub(crate) user: UserId,
    pub(crate) workspace: WorkspaceId,
    pub(crate) permissions: PermissionSet,
}

/// The rules of asking.
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

    /// Judges a request; `None` when the client can be looked up only for a person who is signed in.
    pub(crate) async fn check(&self, asked: &Asked, is_signed_in: bool) -> Result<Option<Checked>, Error> {
        let Some(client) = self.clients.find(&asked.client_id, is_signed_in).await? else {
            return Ok(None);
        };
        let redirect_uri = redirect_uri(&client, asked.redirect_uri.as_deref())?;
        Ok(Some(Checked {
            redirect_host: redirect::shown(&redirect_uri),
            is_loopback: redirect::is_loopback(&redirect_uri),
            wanted: wanted(asked),
            client,
            redirect_uri,
        }))
    }

    /// Records a person's yes; answers the code and where to take it. What is granted is what was asked for, chosen, and
    /// allowed by the person's role.
    pub(crate) async fn authorize(
        &self,
        asked: &Asked,
        consent: &Consent,
    ) -> Result<(String, String), Error> {
        let checked = self.check(asked, true).await?.ok_or(Error::SessionRefused)?;
        let wanted = checked.wanted?;
        let mut tx = self.db.begin_write().await?;
        let role = require_member(&mut tx, consent.user, consent.workspace).await?.role;
        let chosen = consent.permissions.intersection(wanted.permissions);
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
            code_challenge: asked.code_challenge.clone(),
            permissions,
            resource: wanted.resource,
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

/// Where the answer goes. Until this is settled nothing may be sent anywhere.
fn redirect_uri(client: &Client, asked: Option<&str>) -> Result<String, OauthError> {
    let refused = |message| Err(OauthError::new(Code::InvalidRequest, "redirect_uri", message));
    match (asked, client.redirect_uris.as_slice()) {
        (None, [only]) => Ok(only.clone()),
        (None, _) => refused("redirect_uri is required: the client has several"),
        (Some(uri), registered) if registered.iter().any(|known| redirect::matches(known, uri)) => {
            Ok(uri.to_owned())
        }
        (Some(_), _) => refused("redirect_uri is not one that the client registered"),
    }
}

fn wanted(asked: &Asked) -> Result<Wanted, OauthError> {
    match asked.response_type.as_str() {
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
    pkce::check_challenge(&asked.code_challenge, &asked.code_challenge_method)?;
    Ok(Wanted {
        permissions: scope::read(asked.scope.as_deref())?.unwrap_or_else(PermissionSet::all),
        resource: resource::check(&asked.resources, &asked.base_url)?,
    })
}
