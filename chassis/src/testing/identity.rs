//! Signed identities for tests.

use std::sync::Arc;
use std::time::Duration;

use cairn_proto::ids::{FolderId, WorkspaceId};
use tonic::Request;

use crate::ambient::Ambient;
use crate::call::Call;
use crate::clock::{Clock, SystemClock};
use crate::entropy::OsEntropy;
use crate::identity::{
    Identity, Permission, PermissionSet, Principal, PrincipalKind, Role, Scope, Signer, SignerError,
    StaticKeys, Verifier,
};

/// Mints identities that its own ambient accepts.
#[derive(Debug)]
pub struct Issuer {
    signer: Signer,
    clock: Arc<dyn Clock>,
}

impl Issuer {
    /// An issuer on the system's clock.
    ///
    /// # Errors
    /// When the fixed key cannot be used.
    pub fn new() -> Result<Self, SignerError> {
        Ok(Self { signer: Signer::new(&[42; 32])?, clock: Arc::new(SystemClock) })
    }

    /// An ambient whose verifier accepts what this issuer signs.
    pub fn ambient(&self) -> Ambient {
        let keys = Arc::new(StaticKeys(vec![self.signer.public_key().clone()]));
        let verifier = Verifier::new(keys, Arc::clone(&self.clock));
        Ambient::new(Arc::clone(&self.clock), Arc::new(OsEntropy), verifier)
    }

    /// The signed form of any identity.
    ///
    /// # Errors
    /// When it cannot be signed.
    pub fn sign(&self, identity: &Identity) -> Result<String, SignerError> {
        self.signer.sign(identity, self.clock.now())
    }

    /// An identity of a token of that workspace.
    pub fn token(&self, workspace: WorkspaceId, permissions: &[Permission], scope: Scope) -> Identity {
        Identity {
            principal: Principal { kind: PrincipalKind::Token, id: "test-token".into(), name: "test".into() },
            workspace: Some(workspace),
            role: None,
            permissions: permissions.iter().copied().collect(),
            may_publish: true,
            question_log_days: None,
            on_behalf_of: None,
            scope,
            plan: Some("selfhosted".into()),
            expires_at: self.clock.now().plus(Duration::from_secs(300)),
        }
    }

    /// An identity of a person with a web session, in that workspace and role.
    pub fn member(&self, workspace: WorkspaceId, role: Role) -> Identity {
        let id = uuid::Uuid::from_u128(0x70).hyphenated().to_string();
        Identity {
            principal: Principal { kind: PrincipalKind::User, id, name: "person".into() },
            role: Some(role),
            permissions: role.permissions(),
            ..self.token(workspace, &[], Scope::All)
        }
    }

    /// An identity of a service of the mesh.
    pub fn service(&self, name: &str) -> Identity {
        Identity {
            principal: Principal { kind: PrincipalKind::Service, id: name.into(), name: name.into() },
            workspace: None,
            role: None,
            permissions: PermissionSet::all(),
            may_publish: false,
            question_log_days: None,
            on_behalf_of: None,
            scope: Scope::All,
            plan: None,
            expires_at: self.clock.now().plus(Duration::from_secs(300)),
        }
    }

    /// A request of a workspace-wide token with every permission.
    ///
    /// # Errors
    /// When the identity cannot be signed.
    pub fn request<T>(&self, workspace: WorkspaceId, message: T) -> Result<Request<T>, SignerError> {
        self.request_as(&self.token(workspace, &Permission::ALL, Scope::All), message)
    }

    /// A request of a token that is bound to folders.
    ///
    /// # Errors
    /// When the identity cannot be signed.
    pub fn scoped_request<T>(
        &self,
        workspace: WorkspaceId,
        folders: &[FolderId],
        message: T,
    ) -> Result<Request<T>, SignerError> {
        let scope = Scope::Folders(folders.into());
        self.request_as(&self.token(workspace, &Permission::ALL, scope), message)
    }

    /// A request with that identity.
    ///
    /// # Errors
    /// When the identity cannot be signed.
    pub fn request_as<T>(&self, identity: &Identity, message: T) -> Result<Request<T>, SignerError> {
        let signed = self.sign(identity)?;
        Ok(Call::within(Duration::from_secs(30)).with_identity(&signed).request(message))
    }
}
