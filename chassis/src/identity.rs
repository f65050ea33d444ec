//! Who calls: the signed identity that svc-auth mints and every service checks for itself.
//!
//! It travels as an Ed25519 JWT (RFC 7519, RFC 8037) in the metadata `authorization: Bearer …`, never in
//! `http::Extensions`, which would cross a local channel and not a remote one.

mod claims;
mod source;
mod verifier;

use std::str::FromStr;
use std::sync::Arc;

use cairn_proto::ids::{FolderId, UserId, WorkspaceId};

pub use self::claims::{AUDIENCE, ISSUER, Signer, SignerError};
pub use self::source::{RemoteKeys, ServiceIdentitySource};
pub use self::verifier::{KEY_MAX_AGE, KeyDirectory, PublicKey, StaticKeys, Verifier};
use crate::clock::Timestamp;
use crate::status::Problem;

/// The metadata in which a service proves itself beside the identity of whoever it calls for. It is for one hop: no
/// service passes it on.
pub const SERVICE_IDENTITY: &str = "x-cairn-service";

/// What a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Look.
    Read,
    /// Create and change.
    Write,
    /// Move to trash, restore what needs it, remove for good.
    Delete,
}

impl Permission {
    /// All three, in the contract's order.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Delete];

    /// The contract's spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::Delete => 4,
        }
    }
}

impl FromStr for Permission {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|permission| permission.as_str() == text).ok_or(())
    }
}

/// A set of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PermissionSet(u8);

impl PermissionSet {
    /// All of them.
    pub fn all() -> Self {
        Permission::ALL.into_iter().collect()
    }

    /// Whether the set holds it.
    pub const fn contains(self, permission: Permission) -> bool {
        self.0 & permission.bit() != 0
    }

    /// What both sets hold.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The members, in the contract's order.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL.into_iter().filter(move |permission| self.contains(*permission))
    }
}

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(permissions.into_iter().fold(0, |bits, permission| bits | permission.bit()))
    }
}

/// A user's standing in a workspace (contract, "Identity").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Everything, and the plan.
    Owner,
    /// Everything but the plan and closing the workspace.
    Admin,
    /// Read, write, delete.
    Editor,
    /// Read, write.
    Contributor,
    /// Read.
    Viewer,
}

impl Role {
    /// All five, from the strongest.
    pub const ALL: [Self; 5] = [Self::Owner, Self::Admin, Self::Editor, Self::Contributor, Self::Viewer];

    /// The contract's spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Editor => "editor",
            Self::Contributor => "contributor",
            Self::Viewer => "viewer",
        }
    }

    /// What the role may do with content.
    pub fn permissions(self) -> PermissionSet {
        match self {
            Self::Owner | Self::Admin | Self::Editor => PermissionSet::all(),
            Self::Contributor => [Permission::Read, Permission::Write].into_iter().collect(),
            Self::Viewer => [Permission::Read].into_iter().collect(),
        }
    }

    /// Whether the role may manage what belongs to other members.
    pub const fn is_manager(self) -> bool {
        match self {
            Self::Owner | Self::Admin => true,
            Self::Editor | Self::Contributor | Self::Viewer => false,
        }
    }
}

impl FromStr for Role {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(())
    }
}

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
