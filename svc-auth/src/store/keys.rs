//! Table `signing_keys`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::PublicKey;
use cairn_chassis::on_db;
use cairn_chassis::sql::{Db, Error};

use crate::keys::StoredKey;

const FIND_ACTIVE: &str = "SELECT seed, sealing FROM signing_keys WHERE state = 'active'";
const LIST_PUBLIC: &str = "SELECT id, public_key FROM signing_keys ORDER BY created_at DESC, id";
/// The unique index on the active state lets one of several proposals through.
const INSERT_ACTIVE_IF_NONE: &str = "INSERT INTO signing_keys (id, public_key, sealing, seed, state, created_at) \
     VALUES ($1, $2, $3, $4, 'active', $5) ON CONFLICT DO NOTHING";

/// The seed stands in the column as it is.
const UNSEALED: &str = "none";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[FIND_ACTIVE, LIST_PUBLIC, INSERT_ACTIVE_IF_NONE];

pub(crate) async fn find_active_seed(db: &Db) -> Result<Option<[u8; 32]>, Error> {
    let row: Option<(Vec<u8>, String)> = on_db!(db, |c| sqlx::query_as(FIND_ACTIVE).fetch_optional(c).await)?;
    let Some((seed, sealing)) = row else {
        return Ok(None);
    };
    if sealing != UNSEALED {
        return Err(Error::corrupt(format!(
            "the signing key is sealed by '{sealing}', which this version cannot open"
        )));
    }
    Ok(Some(key_bytes(&seed)?))
}

/// Every key's public half.
pub(crate) async fn list_public(db: &Db) -> Result<Vec<PublicKey>, Error> {
    let rows: Vec<(String, Vec<u8>)> = on_db!(db, |c| sqlx::query_as(LIST_PUBLIC).fetch_all(c).await)?;
    rows.into_iter().map(|(id, bytes)| Ok(PublicKey { id, bytes: key_bytes(&bytes)? })).collect()
}

/// Makes the key the active one unless there is one.
pub(crate) async fn insert_active_if_none(db: &Db, key: &StoredKey, now: Timestamp) -> Result<(), Error> {
    on_db!(db.writer(), |c| sqlx::query(INSERT_ACTIVE_IF_NONE)
        .bind(&key.public.id)
        .bind(key.public.bytes.as_slice())
        .bind(UNSEALED)
        .bind(key.seed.as_slice())
        .bind(now)
        .execute(c)
        .await
        .map(|_| ()))
}

fn key_bytes(column: &[u8]) -> Result<[u8; 32], Error> {
    column.try_into().map_err(|_| Error::corrupt("a signing key does not have 32 bytes"))
}
