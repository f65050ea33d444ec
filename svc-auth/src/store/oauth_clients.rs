//! Table `oauth_clients`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{self, Db, Error, Tx};
use cairn_chassis::{execute, fetch, statements};

use crate::model::oauth::Client;
use crate::secrets::Digest;

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    const FIND: &str =
        "SELECT id, name, redirect_uris, secret_digest, fresh_until FROM oauth_clients WHERE id = $1";

    /// A registered client is inserted once; fetched metadata replaces the earlier copy.
    const PUT: &str = "INSERT INTO oauth_clients (id, name, redirect_uris, secret_digest, fresh_until, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO UPDATE SET name = excluded.name, \
         redirect_uris = excluded.redirect_uris, fresh_until = excluded.fresh_until, updated_at = excluded.updated_at";

    /// Unused clients have no grant yet.
    const COUNT_UNUSED: &str = "SELECT COUNT(*) FROM oauth_clients WHERE used_at IS NULL AND fresh_until IS NULL";

    const USE: &str = "UPDATE oauth_clients SET used_at = $2 WHERE id = $1";

    const DELETE_UNUSED: &str =
        "DELETE FROM oauth_clients WHERE used_at IS NULL AND fresh_until IS NULL AND updated_at <= $1";

    /// Clients without any grant.
    const DELETE_FORGOTTEN: &str = "DELETE FROM oauth_clients WHERE updated_at <= $1 \
         AND (used_at IS NULL OR used_at <= $1) \
         AND NOT EXISTS (SELECT 1 FROM oauth_grants g WHERE g.client_id = oauth_clients.id)";
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    name: String,
    redirect_uris: String,
    secret_digest: Option<Vec<u8>>,
    fresh_until: Option<Timestamp>,
}

impl TryFrom<Row> for Client {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let redirect_uris = serde_json::from_str(&row.redirect_uris)
            .map_err(|error| Error::corrupt(format!("oauth_clients.redirect_uris is no list: {error}")))?;
        let secret = row.secret_digest.map(Digest::try_from).transpose();
        let secret = secret.map_err(|_| Error::corrupt("oauth_clients.secret_digest is no SHA-256"))?;
        Ok(Self { id: row.id, name: row.name, redirect_uris, secret, fresh_until: row.fresh_until })
    }
}

pub(crate) async fn find(db: &Db, id: &str) -> Result<Option<Client>, Error> {
    // PostgreSQL does not accept NUL in text.
    if id.contains('\0') {
        return Ok(None);
    }
    let row: Option<Row> = fetch!(optional, db, FIND, id)?;
    row.map(TryInto::try_into).transpose()
}

/// The number of registered clients that have never been used.
pub(crate) async fn count_unused(tx: &mut Tx) -> Result<i64, Error> {
    fetch!(scalar, tx, COUNT_UNUSED)
}

/// Records that a user has granted the client access.
pub(crate) async fn set_used(tx: &mut Tx, id: &str, now: Timestamp) -> Result<(), Error> {
    execute!(tx, USE, id, now).map(drop)
}

pub(crate) async fn put(tx: &mut Tx, client: &Client, now: Timestamp) -> Result<(), Error> {
    execute!(
        tx,
        PUT,
        &client.id,
        &client.name,
        sql::json_list(&client.redirect_uris),
        client.secret.as_ref().map(Digest::as_slice),
        client.fresh_until,
        now
    )
    .map(drop)
}

/// Deletes registered clients that were registered by then and never used.
pub(crate) async fn delete_unused(tx: &mut Tx, registered: Timestamp) -> Result<(), Error> {
    execute!(tx, DELETE_UNUSED, registered).map(drop)
}

/// Deletes clients without grants that have been idle since then.
pub(crate) async fn delete_forgotten(tx: &mut Tx, since: Timestamp) -> Result<(), Error> {
    execute!(tx, DELETE_FORGOTTEN, since).map(drop)
}
