//! The private half of a signing key, as stored.

use cairn_chassis::entropy::Entropy;
use cairn_chassis::identity::Signer;
use cairn_chassis::sealing::columns::SealedColumn;
use cairn_chassis::sealing::{AES_256_GCM, Keyring, UNSEALED};
use cairn_chassis::sql;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::model::keys::{NewKey, StoredSeed};
use crate::store;

/// The column of seeds.
pub(crate) const COLUMN: SealedColumn = SealedColumn {
    name: "signing_keys.seed",
    list: store::keys::LIST_SEEDS,
    update: store::keys::UPDATE_SEED,
};

impl StoredSeed {
    /// Decrypts the seed.
    pub(super) fn open(&self, ring: Option<&Keyring>) -> Result<Zeroizing<[u8; 32]>, Error> {
        let opened = match (self.sealing.as_str(), ring) {
            (UNSEALED, _) => Zeroizing::new(self.seed.clone()),
            (AES_256_GCM, Some(ring)) => {
                let refused =
                    |reason| Error::Sealed(format!("the signing key {} does not open: {reason}", self.id));
                ring.open(&self.seed, &COLUMN.place(&self.id)).map_err(refused)?
            }
            (AES_256_GCM, None) => {
                let advice = "set CAIRN_SECRET_KEY to the key that sealed it";
                return Err(Error::Sealed(format!("the signing key {} is sealed: {advice}", self.id)));
            }
            (other, _) => {
                return Err(Error::Sealed(format!("the sealing '{other}' is unknown to this version")));
            }
        };
        let bytes = opened.as_slice().try_into();
        let bytes = bytes.map_err(|_| sql::Error::corrupt("a signing key does not have 32 bytes"))?;
        Ok(Zeroizing::new(bytes))
    }
}

impl NewKey {
    /// A new key, sealed if there is a keyring.
    pub(super) fn generate(ring: Option<&Keyring>, entropy: &dyn Entropy) -> Result<Self, Error> {
        let mut seed = Zeroizing::new([0_u8; 32]);
        entropy.fill(seed.as_mut_slice());
        let public = Signer::new(&seed)?.public_key().clone();
        let Some(ring) = ring else {
            return Ok(Self { public, seed: seed.to_vec(), sealing: UNSEALED });
        };
        let sealed = ring.seal(seed.as_slice(), &COLUMN.place(&public.id), entropy);
        let sealed = sealed.map_err(|error| Error::Sealed(error.to_string()))?;
        Ok(Self { public, seed: sealed, sealing: AES_256_GCM })
    }
}
