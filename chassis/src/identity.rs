//! Who calls: the signed identity that svc-auth mints and every service checks for itself.
//!
//! It travels as an Ed25519 JWT (RFC 7519, RFC 8037) in the metadata `authorization: Bearer …`, never in
//! `http::Extensions`, which would cross a local channel and not a remote one.

mod claims;
mod source;
mod verifier;

use std::sync::Arc;

pub use cairn_proto::domain::{Permission, PermissionSet, Role};
use cairn_proto::ids::{FolderId, UserId, WorkspaceId};

pub use self::claims::{AUDIENCE, ISSUER, Signer, SignerError};
pub use self::source::{RemoteKeys, ServiceIdentitySource};
pub use self::verifier::{KEY_MAX_AGE, KeyDirectory, PublicKey, StaticKeys, Verifier};
use crate::clock::Timestamp;
use crate::status::Problem;

/// The metadata in which a service proves itself beside the identity of whoever it calls for. It is for one hop: no
/// service passes it on.
pub const SERVICE_IDENTITY: &str = "x-cairn-service";

/// Which part of the workspace a caller may touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of it.
    All,
    /// These folders and everything below them (spec 5.6).
    Folders(Arc<[FolderId]>),
}

/// What kind of caller it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrincipalKind {
    /// An API token.
    Token,
    /// What a person allowed an agent by OAuth.
    Grant,
    /// A person with a web session.
    User,
    /// A service of the mesh.
    Service,
}

impl PrincipalKind {
    /// The spelling in the claims and the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Grant => "grant",
            Self::User => "user",
            Self::Service => "service",
        }
    }
}

/// The caller by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// What kind of caller.
    pub kind: PrincipalKind,
    /// The id of the token, grant or user, or the service's name.
    pub id: String,
    /// For people to read.
    pub name: String,
}

/// A checked identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Who calls.
    pub principal: Principal,
    /// The one workspace of a token; absent for a user or a service.
    pub workspace: Option<WorkspaceId>,
    /// The role in the workspace of a person with a web session; absent for everybody else: what tokens and grants may
    /// do is less than their owner's role.
    pub role: Option<Role>,
    /// What it may do: already the intersection with the owner's role.
    pub permissions: PermissionSet,
    /// Whether it may make memories of its workspace public: the workspace says which roles may.
    pub may_publish: bool,
    /// For how many days its workspace keeps what is asked there; absent: it keeps none of it.
    pub question_log_days: Option<u32>,
    /// Who made the token or allowed the grant; absent for everybody else.
    pub on_behalf_of: Option<UserId>,
    /// Where it may do it.
    pub scope: Scope,
    /// The workspace's plan; absent without a workspace.
    pub plan: Option<String>,
    /// When the signature ends.
    pub expires_at: Timestamp,
}

impl Identity {
    /// The workspace that the call is about.
    ///
    /// # Errors
    /// FORBIDDEN for a caller that is bound to none.
    pub fn workspace_id(&self) -> Result<WorkspaceId, Problem> {
        self.workspace.ok_or_else(|| {
            Problem::forbidden(
                "this call needs an identity of one workspace: use an API token of that workspace",
            )
        })
    }

    /// Checks a permission.
    ///
    /// # Errors
    /// FORBIDDEN, naming the permission that is missing and what the caller has.
    pub fn require(&self, permission: Permission) -> Result<(), Problem> {
        if self.permissions.contains(permission) {
            return Ok(());
        }
        let held: Vec<_> = self.permissions.iter().map(Permission::as_str).collect();
        let has = if held.is_empty() { "none".to_owned() } else { held.join(", ") };
        Err(Problem::forbidden(format!(
            "this needs the permission '{}'; the caller has: {has}. Create a token with that permission, \
             or ask for a higher role.",
            permission.as_str()
        )))
    }

    /// Checks that a service of the mesh calls.
    ///
    /// # Errors
    /// FORBIDDEN for everybody else.
    pub fn require_service(&self) -> Result<(), Problem> {
        match self.principal.kind {
            PrincipalKind::Service => Ok(()),
            PrincipalKind::Token | PrincipalKind::Grant | PrincipalKind::User => {
                Err(Problem::forbidden("only services of the mesh may call this"))
            }
        }
    }

    /// Checks that an owner or admin of the workspace calls, with a web session; `what` begins the refusal, such as
    /// "reading analytics".
    ///
    /// # Errors
    /// FORBIDDEN for tokens, grants and services, and for lower roles.
    pub fn require_manager(&self, what: &str) -> Result<(), Problem> {
        self.user_id()?;
        match self.role {
            Some(role) if role.is_manager() => Ok(()),
            held => Err(Problem::forbidden(format!(
                "{what} needs the role 'owner' or 'admin' in the workspace; yours is '{}'",
                held.map_or("none", Role::as_str)
            ))),
        }
    }

    /// The person who calls, or for whom a token or a grant does.
    pub fn person(&self) -> Option<UserId> {
        self.user_id().ok().or(self.on_behalf_of)
    }

    /// The person behind a session.
    ///
    /// # Errors
    /// FORBIDDEN for tokens and services.
    pub fn user_id(&self) -> Result<UserId, Problem> {
        let sign_in =
            || Problem::forbidden("this needs a signed-in person: use a web session (POST /api/session)");
        if self.principal.kind != PrincipalKind::User {
            return Err(sign_in());
        }
        self.principal.id.parse().map_err(|_| sign_in())
    }
}
