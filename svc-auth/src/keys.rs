//! The key that identities are signed with, and what services ask about it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::entropy::Entropy;
use cairn_chassis::identity::{
    Identity, PermissionSet, Principal, PrincipalKind, PublicKey, Scope, Signer, SignerError,
};
use cairn_chassis::sql::{self, Db};
use cairn_chassis::status::Violation;

use crate::error::Error;
use crate::{secrets, store};

/// How long an identity holds (contract, "Identity").
pub(crate) const LIFETIME: Duration = Duration::from_secs(5 * 60);
const MAX_SERVICE_NAME: usize = 40;

/// A signed identity.
pub(crate) struct Issued {
    pub(crate) identity: String,
    pub(crate) expires_at: Timestamp,
}

impl fmt::Debug for Issued {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Issued").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// A key as it is stored.
pub(crate) struct StoredKey {
    pub(crate) public: PublicKey,
    pub(crate) seed: [u8; 32],
}

/// Signs with the deployment's active key. It stands in the storage, so that replicas sign with the same one.
#[derive(Debug)]
pub(crate) struct Keys {
    db: Db,
    signer: Signer,
}

impl Keys {
    /// Takes the active key, or makes it at the first start; of processes that start together one makes it.
    pub(crate) async fn open(db: Db, clock: &dyn Clock, entropy: &dyn Entropy) -> Result<Self, Error> {
        let seed = match store::keys::find_active_seed(&db).await? {
            Some(seed) => seed,
            None => Self::establish(&db, clock, entropy).await?,
        };
        Ok(Self { signer: Signer::new(&seed)?, db })
    }

    async fn establish(db: &Db, clock: &dyn Clock, entropy: &dyn Entropy) -> Result<[u8; 32], Error> {
        let mut seed = [0_u8; 32];
        entropy.fill(&mut seed);
        let proposed = StoredKey { public: Signer::new(&seed)?.public_key().clone(), seed };
        store::keys::insert_active_if_none(db, &proposed, clock.now()).await?;
        let agreed = store::keys::find_active_seed(db).await?;
        agreed.ok_or_else(|| sql::Error::corrupt("no signing key is active").into())
    }

    /// Signs an identity that ends in five minutes or at `until`, whichever comes first.
    pub(crate) fn issue(
        &self,
        mut identity: Identity,
        now: Timestamp,
        until: Option<Timestamp>,
    ) -> Result<Issued, SignerError> {
        let end = now.plus(LIFETIME);
        let end = until.map_or(end, |until| until.min(end));
        // The claims have whole seconds; rounding up would outlive `until`.
        identity.expires_at = Timestamp::from_seconds(end.as_seconds());
        let expires_at = identity.expires_at;
        Ok(Issued { identity: self.signer.sign(&identity, now)?, expires_at })
    }

    /// Every key that an unexpired identity may be signed with.
    pub(crate) async fn public_keys(&self) -> Result<Vec<PublicKey>, Error> {
        Ok(store::keys::list_public(&self.db).await?)
    }
}

/// Gives the services of the mesh their identities.
pub(crate) struct ServiceIdentities {
    ambient: Ambient,
    keys: Arc<Keys>,
    mesh_secret: String,
}

impl fmt::Debug for ServiceIdentities {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServiceIdentities").finish_non_exhaustive()
    }
}

impl ServiceIdentities {
    pub(crate) const fn new(ambient: Ambient, keys: Arc<Keys>, mesh_secret: String) -> Self {
        Self { ambient, keys, mesh_secret }
    }

    /// The identity of the service of that name, for who knows the mesh's shared secret.
    pub(crate) fn issue(&self, service: &str, mesh_secret: &str) -> Result<Issued, Error> {
        if !secrets::same(&self.mesh_secret, mesh_secret) {
            return Err(Error::MeshSecretRefused);
        }
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if service.is_empty() || service.len() > MAX_SERVICE_NAME || !service.bytes().all(is_plain) {
            let message = format!("must have 1 to {MAX_SERVICE_NAME} characters of a-z, 0-9 and -");
            return Err(Error::Invalid(vec![Violation::new("service", "invalid", message)]));
        }
        let now = self.ambient.clock.now();
        let identity = Identity {
            principal: Principal { kind: PrincipalKind::Service, id: service.into(), name: service.into() },
            workspace: None,
            permissions: PermissionSet::all(),
            scope: Scope::All,
            plan: None,
            expires_at: now,
        };
        Ok(self.keys.issue(identity, now, None)?)
    }
}
