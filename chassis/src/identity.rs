//! The signed identity of a caller, which svc-auth issues and every service verifies.
//!
//! It is sent as an Ed25519 JWT (RFC 7519, RFC 8037) in the metadata `authorization: Bearer …`, never in `http::Extensions`,
//! which a local channel could pass on and a remote one could not.

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

/// The metadata with the identity of the calling service, next to that of the user it calls for. It is for one hop: services do
/// not pass it on.
pub const SERVICE_IDENTITY: &str = "x-cairn-service";

/// The part of the workspace that a caller may access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of it.
    All,
    /// These folders and their descendants (spec 5.6).
    Folders(Arc<[FolderId]>),
}

/// What kind of caller it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrincipalKind {
    /// An API token.
    Token,
    /// An OAuth grant of a person to an agent.
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
    /// The display name.
    pub name: String,
}

/// A verified identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Who calls.
    pub principal: Principal,
    /// The one workspace of a token; absent for a user or a service.
    pub workspace: Option<WorkspaceId>,
    /// The workspace role of a person with a web session; absent for tokens and grants, which may do less than the role of their
    /// owner, and for services.
    pub role: Option<Role>,
    /// The permissions, already intersected with those of the owner's role.
    pub permissions: PermissionSet,
    /// Whether it may make memories of its workspace public, which the workspace configures by role.
    pub may_publish: bool,
    /// The retention of the workspace's question log in days; absent: questions are not logged.
    pub question_log_days: Option<u32>,
    /// The person who created the token or granted access; absent for other callers.
    pub on_behalf_of: Option<UserId>,
    /// The part of the workspace where the permissions apply.
    pub scope: Scope,
    /// The workspace's plan; absent without a workspace.
    pub plan: Option<String>,
    /// When the identity expires.
    pub expires_at: Timestamp,
}

impl Identity {
    /// The workspace of the caller.
    ///
    /// # Errors
    /// FORBIDDEN for a caller without one.
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
    /// FORBIDDEN, with the missing permission and those that the caller has.
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

    /// Checks that the caller is a service of the mesh.
    ///
    /// # Errors
    /// FORBIDDEN for other callers.
    pub fn require_service(&self) -> Result<(), Problem> {
        match self.principal.kind {
            PrincipalKind::Service => Ok(()),
            PrincipalKind::Token | PrincipalKind::Grant | PrincipalKind::User => {
                Err(Problem::forbidden("only services of the mesh may call this"))
            }
        }
    }

    /// Checks that the caller is an owner or admin of the workspace with a web session; `what` begins the error message, such as
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

    /// The person who calls, or on whose behalf a token or a grant does.
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
