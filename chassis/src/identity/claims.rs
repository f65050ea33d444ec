//! The JWT form of an identity, and its signer.

use std::fmt;

use cairn_proto::ids::{FolderId, UserId, WorkspaceId};
use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::EncodePrivateKey as _;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Identity, Permission, Principal, PrincipalKind, PublicKey, Role, Scope};
use crate::clock::Timestamp;

/// The `iss` of every identity.
pub const ISSUER: &str = "cairn-auth";
/// The `aud` of every identity: services of the mesh.
pub const AUDIENCE: &str = "cairn-mesh";

/// Registered claims (RFC 7519) and ours.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Claims {
    iss: String,
    aud: String,
    sub: String,
    iat: i64,
    exp: i64,
    kind: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<WorkspaceId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    permissions: Vec<String>,
    /// Absent: not allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    may_publish: bool,
    /// Absent: questions are not logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    question_log_days: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    on_behalf_of: Option<UserId>,
    /// Absent: the whole workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    folders: Option<Vec<FolderId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
}

impl Claims {
    fn new(identity: &Identity, now: Timestamp) -> Self {
        let folders = match &identity.scope {
            Scope::All => None,
            Scope::Folders(folders) => Some(folders.to_vec()),
        };
        Self {
            iss: ISSUER.to_owned(),
            aud: AUDIENCE.to_owned(),
            sub: identity.principal.id.clone(),
            iat: now.as_seconds(),
            exp: identity.expires_at.as_seconds(),
            kind: identity.principal.kind.as_str().to_owned(),
            name: identity.principal.name.clone(),
            workspace: identity.workspace,
            role: identity.role.map(|role| role.as_str().to_owned()),
            permissions: identity
                .permissions
                .iter()
                .map(|permission| permission.as_str().to_owned())
                .collect(),
            may_publish: identity.may_publish,
            question_log_days: identity.question_log_days,
            on_behalf_of: identity.on_behalf_of,
            folders,
            plan: identity.plan.clone(),
        }
    }

    /// `None` when the claims name a kind, a role or a permission that this version does not know.
    pub(super) fn into_identity(self) -> Option<Identity> {
        let kinds = [PrincipalKind::Token, PrincipalKind::Grant, PrincipalKind::User, PrincipalKind::Service];
        let kind = kinds.into_iter().find(|kind| kind.as_str() == self.kind)?;
        let permissions =
            self.permissions.iter().map(|name| name.parse::<Permission>().ok()).collect::<Option<_>>()?;
        let role = self.role.map(|name| name.parse::<Role>()).transpose().ok()?;
        Some(Identity {
            principal: Principal { kind, id: self.sub, name: self.name },
            workspace: self.workspace,
            role,
            permissions,
            may_publish: self.may_publish,
            question_log_days: self.question_log_days,
            on_behalf_of: self.on_behalf_of,
            scope: self.folders.map_or(Scope::All, |folders| Scope::Folders(folders.into())),
            plan: self.plan,
            expires_at: Timestamp::from_seconds(self.exp),
        })
    }
}

/// An identity could not be signed.
#[derive(Debug, Error)]
pub enum SignerError {
    /// The key has no PKCS#8 form.
    #[error("the signing key cannot be encoded")]
    Key,
    /// The claims could not be encoded or signed.
    #[error("the identity cannot be signed: {0}")]
    Sign(#[from] jsonwebtoken::errors::Error),
}

/// Signs identities; only svc-auth has one.
pub struct Signer {
    key: EncodingKey,
    header: Header,
    public: PublicKey,
}

impl fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Signer").field("key_id", &self.public.id).finish_non_exhaustive()
    }
}

impl Signer {
    /// A signer with that Ed25519 seed; its key id is derived from the public key.
    ///
    /// # Errors
    /// When the key cannot be encoded.
    pub fn new(seed: &[u8; 32]) -> Result<Self, SignerError> {
        let signing_key = SigningKey::from_bytes(seed);
        let document = signing_key.to_pkcs8_der().map_err(|_| SignerError::Key)?;
        let bytes = signing_key.verifying_key().to_bytes();
        let id = blake3::hash(&bytes).to_hex().chars().take(16).collect::<String>();
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(id.clone());
        Ok(Self {
            key: EncodingKey::from_ed_der(document.as_bytes()),
            header,
            public: PublicKey { id, bytes },
        })
    }

    /// What verifiers need.
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// The signed form of the identity, valid until its `expires_at`.
    ///
    /// # Errors
    /// When the claims cannot be signed.
    pub fn sign(&self, identity: &Identity, now: Timestamp) -> Result<String, SignerError> {
        Ok(jsonwebtoken::encode(&self.header, &Claims::new(identity, now), &self.key)?)
    }

    /// Signs whatever it is given: for tests of what verifiers refuse.
    #[cfg(test)]
    pub(super) fn sign_claims(&self, claims: &serde_json::Value) -> Result<String, SignerError> {
        Ok(jsonwebtoken::encode(&self.header, claims, &self.key)?)
    }
}
