//! Table `signing_keys`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::PublicKey;
use cairn_chassis::sql::{Db, Error, Tx};
use cairn_chassis::{execute, fetch, on_db, statements};

use super::word;
use crate::model::keys::{Listed, NewKey, State, StoredSeed};

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    const FIND_ACTIVE: &str = "SELECT id, seed, sealing FROM signing_keys WHERE state = 'active'";

    const LIST_PUBLIC: &str = "SELECT id, public_key FROM signing_keys ORDER BY created_at DESC, id";

    const LIST: &str =
        "SELECT id, state, state_since, rotate_after FROM signing_keys ORDER BY created_at DESC, id";

    /// The unique indexes on these states admit only one of several concurrent inserts.
    const INSERT_IF_NONE: &str = "INSERT INTO signing_keys \
         (id, public_key, sealing, seed, state, created_at, state_since) \
         VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT DO NOTHING";

    const RETIRE: &str = "UPDATE signing_keys SET state = 'retired', state_since = $2, rotate_after = NULL \
         WHERE id = $1 AND state = 'active'";

    const ACTIVATE: &str =
        "UPDATE signing_keys SET state = 'active', state_since = $2 WHERE id = $1 AND state = 'next'";

    const DELETE_RETIRED: &str = "DELETE FROM signing_keys WHERE state = 'retired' AND state_since <= $1";

    const ASK_FOR_ROTATION: &str = "UPDATE signing_keys SET rotate_after = $1 WHERE state = 'active'";

    pub(crate) const LIST_SEEDS: &str = "SELECT id, seed, sealing FROM signing_keys ORDER BY id";

    pub(crate) const UPDATE_SEED: &str =
        "UPDATE signing_keys SET seed = $2, sealing = $3 WHERE id = $1 AND seed = $4";
}

pub(crate) async fn find_active_seed(db: &Db) -> Result<Option<StoredSeed>, Error> {
    let row: Option<(String, Vec<u8>, String)> = fetch!(optional, db, FIND_ACTIVE)?;
    Ok(row.map(|(id, seed, sealing)| StoredSeed { id, seed, sealing }))
}

/// Every key's public half.
pub(crate) async fn list_public(db: &Db) -> Result<Vec<PublicKey>, Error> {
    let rows: Vec<(String, Vec<u8>)> = fetch!(all, db, LIST_PUBLIC)?;
    let read = |(id, bytes): (String, Vec<u8>)| {
        let bytes = bytes.as_slice().try_into();
        let bytes = bytes.map_err(|_| Error::corrupt("a signing key does not have 32 bytes"))?;
        Ok(PublicKey { id, bytes })
    };
    rows.into_iter().map(read).collect()
}

/// Every key without its private half, newest first.
pub(crate) async fn list(db: &Db) -> Result<Vec<Listed>, Error> {
    let rows: Vec<(String, String, Timestamp, Option<Timestamp>)> = fetch!(all, db, LIST)?;
    let read = |(id, state, since, rotate_after): (String, String, _, _)| {
        Ok(Listed { id, state: word("signing_keys.state", &state)?, since, rotate_after })
    };
    rows.into_iter().map(read).collect()
}

/// Inserts the key as the active one unless there is one.
pub(crate) async fn insert_active_if_none(db: &Db, key: &NewKey, now: Timestamp) -> Result<bool, Error> {
    insert_if_none(db, key, State::Active, now).await
}

/// Inserts the key as the next one unless there is one; returns whether it did.
pub(crate) async fn insert_next_if_none(db: &Db, key: &NewKey, now: Timestamp) -> Result<bool, Error> {
    insert_if_none(db, key, State::Next, now).await
}

async fn insert_if_none(db: &Db, key: &NewKey, state: State, now: Timestamp) -> Result<bool, Error> {
    on_db!(db.writer(), |c| sqlx::query(INSERT_IF_NONE)
        .bind(&key.public.id)
        .bind(key.public.bytes.as_slice())
        .bind(key.sealing)
        .bind(key.seed.as_slice())
        .bind(state.as_str())
        .bind(now)
        .execute(c)
        .await
        .map(|done| done.rows_affected() == 1))
}

/// Retires the active key; returns whether it was active.
pub(crate) async fn retire(tx: &mut Tx, id: &str, now: Timestamp) -> Result<bool, Error> {
    on_db!(tx, |c| sqlx::query(RETIRE)
        .bind(id)
        .bind(now)
        .execute(c)
        .await
        .map(|done| done.rows_affected() == 1))
}

/// Activates the next key; returns whether it was the next.
pub(crate) async fn activate(tx: &mut Tx, id: &str, now: Timestamp) -> Result<bool, Error> {
    on_db!(tx, |c| sqlx::query(ACTIVATE)
        .bind(id)
        .bind(now)
        .execute(c)
        .await
        .map(|done| done.rows_affected() == 1))
}

/// Deletes the keys that were retired by then.
pub(crate) async fn delete_retired(db: &Db, before: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), DELETE_RETIRED, before).map(drop)
}

/// Requests a rotation of the active key; returns whether there is one.
pub(crate) async fn ask_for_rotation(db: &Db, now: Timestamp) -> Result<bool, Error> {
    on_db!(db.writer(), |c| sqlx::query(ASK_FOR_ROTATION)
        .bind(now)
        .execute(c)
        .await
        .map(|done| done.rows_affected() == 1))
}
