//! The signing key of identities, and the public keys for services.

mod rotation;
mod seed;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::entropy::Entropy;
use cairn_chassis::identity::{
    Identity, PermissionSet, Principal, PrincipalKind, PublicKey, Scope, Signer, SignerError,
};
use cairn_chassis::sealing::Keyring;
use cairn_chassis::sql::{self, Db};
use cairn_chassis::status::Violation;

pub use self::rotation::Rotation;
use self::rotation::Step;
pub(crate) use self::seed::COLUMN as SEEDS;
use crate::error::Error;
use crate::model::keys::{NewKey, StoredSeed};
use crate::{secrets, store};

/// The lifetime of an identity (contract, "Identity").
pub(crate) const LIFETIME: Duration = Duration::from_secs(5 * 60);
const MAX_SERVICE_NAME: usize = 40;

/// A signed identity.
pub(crate) struct Issued {
    pub(crate) identity: String,
    pub(crate) expires_at: Timestamp,
}

cairn_chassis::debug_fields!(Issued { expires_at });

/// Signs with the deployment's active key. The key is in the storage, so that all replicas sign with the same one, and
/// is reloaded after a rotation.
#[derive(Debug)]
pub(crate) struct Keys {
    db: Db,
    sealing: Option<Arc<Keyring>>,
    rotation: Rotation,
    signer: RwLock<Arc<Signer>>,
}

impl Keys {
    /// Loads the active key, or creates it at the first start; of concurrent starts only one creates it.
    pub(crate) async fn open(
        db: Db,
        sealing: Option<Arc<Keyring>>,
        rotation: Rotation,
        clock: &dyn Clock,
        entropy: &dyn Entropy,
    ) -> Result<Self, Error> {
        let ring = sealing.as_deref();
        let active = match store::keys::find_active_seed(&db).await? {
            Some(active) => active,
            None => establish(&db, ring, clock.now(), entropy).await?,
        };
        let signer = RwLock::new(Arc::new(Signer::new(&*active.open(ring)?)?));
        Ok(Self { db, sealing, rotation, signer })
    }

    /// Signs an identity that expires in five minutes or at `until`, whichever is earlier.
    pub(crate) fn issue(
        &self,
        mut identity: Identity,
        now: Timestamp,
        until: Option<Timestamp>,
    ) -> Result<Issued, SignerError> {
        let end = now.plus(LIFETIME);
        let end = until.map_or(end, |until| until.min(end));
        // Claims have whole seconds; rounding up would exceed `until`.
        identity.expires_at = Timestamp::from_seconds(end.as_seconds());
        let expires_at = identity.expires_at;
        Ok(Issued { identity: self.signer().sign(&identity, now)?, expires_at })
    }

    /// Every key that may have signed an unexpired identity, and the next signing key.
    pub(crate) async fn public_keys(&self) -> Result<Vec<PublicKey>, Error> {
        Ok(store::keys::list_public(&self.db).await?)
    }

    /// Performs the next due step of a rotation, and reloads the active key. Every replica calls this every few
    /// seconds; the first one performs the step, and the others find it done.
    pub(crate) async fn rotate(&self, now: Timestamp, entropy: &dyn Entropy) -> Result<(), Error> {
        let keys = store::keys::list(&self.db).await?;
        if let Some(step) = rotation::due(&keys, self.rotation, now) {
            self.take(step, now, entropy).await?;
        }
        let active = store::keys::find_active_seed(&self.db).await?.ok_or_else(no_active_key)?;
        if active.id == self.signer().public_key().id {
            return Ok(());
        }
        let signer = Arc::new(Signer::new(&*active.open(self.sealing.as_deref())?)?);
        tracing::info!(key.id = active.id, "identities are signed with a new key");
        *self.signer.write().unwrap_or_else(PoisonError::into_inner) = signer;
        Ok(())
    }

    async fn take(&self, step: Step, now: Timestamp, entropy: &dyn Entropy) -> Result<(), Error> {
        match step {
            Step::Publish => {
                let key = NewKey::generate(self.sealing.as_deref(), entropy)?;
                if store::keys::insert_next_if_none(&self.db, &key, now).await? {
                    tracing::info!(key.id = key.public.id, "a new signing key is published");
                }
            }
            Step::Activate { next, active } => {
                let mut tx = self.db.begin_write().await?;
                let is_first = store::keys::retire(&mut tx, &active, now).await?
                    && store::keys::activate(&mut tx, &next, now).await?;
                // Another replica was first.
                if is_first { tx.commit().await? } else { tx.rollback().await? }
            }
            Step::DeleteRetired { before } => store::keys::delete_retired(&self.db, before).await?,
        }
        Ok(())
    }

    fn signer(&self) -> Arc<Signer> {
        Arc::clone(&self.signer.read().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn establish(
    db: &Db,
    ring: Option<&Keyring>,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Result<StoredSeed, Error> {
    let proposed = NewKey::generate(ring, entropy)?;
    store::keys::insert_active_if_none(db, &proposed, now).await?;
    store::keys::find_active_seed(db).await?.ok_or_else(no_active_key)
}

fn no_active_key() -> Error {
    sql::Error::corrupt("no signing key is active").into()
}

/// Issues the identities of the services of the mesh.
pub(crate) struct ServiceIdentities {
    ambient: Ambient,
    keys: Arc<Keys>,
    mesh_secret: String,
}

cairn_chassis::debug_fields!(ServiceIdentities);

impl ServiceIdentities {
    pub(crate) const fn new(ambient: Ambient, keys: Arc<Keys>, mesh_secret: String) -> Self {
        Self { ambient, keys, mesh_secret }
    }

    /// The identity of the named service, for a caller with the mesh secret.
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
            role: None,
            permissions: PermissionSet::all(),
            may_publish: false,
            question_log_days: None,
            on_behalf_of: None,
            scope: Scope::All,
            plan: None,
            expires_at: now,
        };
        Ok(self.keys.issue(identity, now, None)?)
    }
}
