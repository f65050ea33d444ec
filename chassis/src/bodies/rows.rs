//! The table of bodies.

use cairn_proto::ids::WorkspaceId;

use super::{Body, Encoding};
use crate::sql::{Db, Dialect, Engine, Error, PostgresOnly, Text, Tx, json_list};
use crate::{execute, fetch, list_statement, statements};

statements! {
    /// All statements of bodies, for [`crate::sql::prepare_all`].
    pub fn statements;

    /// On PostgreSQL the row is locked, so that no transaction removes the body before the reference to it is committed.
    const EXISTS: Dialect = Dialect {
        sqlite: "SELECT 1 FROM bodies WHERE workspace_id = $1 AND hash = $2",
        postgres: "SELECT 1 FROM bodies WHERE workspace_id = $1 AND hash = $2 FOR KEY SHARE",
    };

    const INSERT: &str = "INSERT INTO bodies (workspace_id, hash, encoding, size_bytes, data) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT DO NOTHING";

    const GET_MANY: Dialect = list_statement!(
        "SELECT hash, encoding, size_bytes, data FROM bodies WHERE workspace_id = $1 AND hash IN ",
        "$2",
        ""
    );

    /// Waits for transactions that are storing a reference to one of these bodies: after the lock, the next statement sees the
    /// reference. Locks are taken in the order of the hashes, which avoids deadlocks.
    const LOCK: PostgresOnly = PostgresOnly(
        "SELECT 1 FROM bodies WHERE workspace_id = $1 \
         AND hash IN (SELECT unnest(ARRAY(SELECT jsonb_array_elements_text(CAST(CAST($2 AS TEXT) AS JSONB))))) \
         ORDER BY hash FOR UPDATE",
    );

    /// A page of all workspaces, after the cursor $1, $2.
    const LIST_ALL: &str = "SELECT workspace_id, hash, encoding, size_bytes, data FROM bodies \
         WHERE (workspace_id, hash) > ($1, $2) ORDER BY workspace_id, hash LIMIT $3";
}

statements! {
    /// The statements of the doctor's repairs, for [`crate::sql::prepare_all`].
    pub fn mends;

    const REPLACE: &str = "INSERT INTO bodies (workspace_id, hash, encoding, size_bytes, data) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (workspace_id, hash) DO UPDATE SET encoding = excluded.encoding, size_bytes = excluded.size_bytes, \
         data = excluded.data";

    const REMOVE: &str = "DELETE FROM bodies WHERE workspace_id = $1 AND hash = $2";
}

/// Retries when concurrent transactions store and remove the same body.
const MAX_TRIES: usize = 32;

/// A body's columns.
#[derive(Debug, sqlx::FromRow)]
pub struct Row {
    /// `blake3:` and 64 hexadecimal digits.
    pub hash: String,
    /// 0 or 1, for the variants of [`Encoding`].
    pub encoding: i64,
    /// The size of the text.
    pub size_bytes: i64,
    /// The encoded text.
    pub data: Vec<u8>,
}

impl Row {
    /// The body.
    ///
    /// # Errors
    /// When its encoding is unknown.
    pub fn into_body(self) -> Result<Body, Error> {
        let encoding = match self.encoding {
            0 => Encoding::Plain,
            1 => Encoding::Zstd,
            _ => return Err(Error::corrupt("a body of an unknown encoding")),
        };
        Ok(Body {
            hash: self.hash,
            encoding,
            size_bytes: u64::try_from(self.size_bytes).unwrap_or(0),
            data: self.data,
        })
    }
}

fn stored(body: &Body) -> (i64, i64) {
    let encoding = match body.encoding {
        Encoding::Plain => 0_i64,
        Encoding::Zstd => 1,
    };
    (encoding, i64::try_from(body.size_bytes).unwrap_or(i64::MAX))
}

/// Replaces a body that is corrupt or missing.
///
/// # Errors
/// When the database fails.
pub async fn replace(tx: &mut Tx, workspace: WorkspaceId, body: &Body) -> Result<(), Error> {
    let (encoding, size) = stored(body);
    execute!(tx, REPLACE, Text(workspace), &body.hash, encoding, size, &body.data).map(drop)
}

/// Removes an unreferenced body, if it exists.
///
/// # Errors
/// When the database fails, or the body is still referenced.
pub async fn remove(tx: &mut Tx, workspace: WorkspaceId, hash: &str) -> Result<(), Error> {
    execute!(tx, REMOVE, Text(workspace), hash).map(drop)
}

/// Stores a body, unless the workspace has it already; returns the number of bytes added.
///
/// # Errors
/// When the database fails.
pub async fn put(tx: &mut Tx, workspace: WorkspaceId, body: &Body) -> Result<u64, Error> {
    let (encoding, size) = stored(body);
    for _ in 0..MAX_TRIES {
        let exists = EXISTS.of(tx.engine());
        let known: Option<i32> = fetch!(optional_scalar, tx, exists, Text(workspace), &body.hash)?;
        if known.is_some() {
            return Ok(0);
        }
        let inserted: u64 = execute!(tx, INSERT, Text(workspace), &body.hash, encoding, size, &body.data)?;
        if inserted == 1 {
            return Ok(body.size_bytes);
        }
        // Another transaction has stored it meanwhile. Nothing references it yet, so a third one may remove it again: retry.
    }
    Err(Error::contended("a body comes and goes while it is stored"))
}

#[derive(Debug, sqlx::FromRow)]
struct RowOfWorkspace {
    workspace_id: String,
    #[sqlx(flatten)]
    body: Row,
}

/// Locks these bodies until the transaction ends, so that no new reference appears while it checks whether there are any.
///
/// # Errors
/// When the database fails.
pub async fn lock(tx: &mut Tx, workspace: WorkspaceId, hashes: &[String]) -> Result<(), Error> {
    if let Engine::Postgres(connection) = tx.engine() {
        let list = json_list(hashes);
        sqlx::query(LOCK.0).bind(Text(workspace)).bind(&list).execute(connection).await?;
    }
    Ok(())
}

/// A page of the bodies of all workspaces with the workspace ids, in the order of both, after this cursor.
///
/// # Errors
/// When the database fails, or a body has an unknown encoding.
pub async fn list_all(
    tx: &mut Tx,
    workspace: &str,
    hash: &str,
    limit: i64,
) -> Result<Vec<(String, Body)>, Error> {
    let rows: Vec<RowOfWorkspace> = fetch!(all, tx, LIST_ALL, workspace, hash, limit)?;
    rows.into_iter().map(|row| Ok((row.workspace_id, row.body.into_body()?))).collect()
}

/// The bodies with these hashes, in no order; missing ones are left out.
///
/// # Errors
/// When the database fails, or a body has an unknown encoding.
pub async fn get_many(db: &Db, workspace: WorkspaceId, hashes: &[&str]) -> Result<Vec<Body>, Error> {
    let rows: Vec<Row> = fetch!(all, db, GET_MANY, Text(workspace), json_list(hashes))?;
    rows.into_iter().map(Row::into_body).collect()
}
