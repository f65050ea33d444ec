//! Bodies by hash.

use cairn_chassis::sql::{Db, Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{execute, fetch, list_statement, statements};
use cairn_proto::ids::WorkspaceId;

use super::page::{to_column, to_count};
use crate::model::{Body, Encoding};

statements! {
    pub(super) fn statements;

    /// On PostgreSQL the body is held, so that nobody removes it before what refers to it is there.
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

    /// Of every workspace, in one order, from after $1 and $2 on.
    const LIST_ALL: &str = "SELECT workspace_id, hash, encoding, size_bytes, data FROM bodies \
         WHERE (workspace_id, hash) > ($1, $2) ORDER BY workspace_id, hash LIMIT $3";
}

/// A body's columns.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Row {
    pub(super) hash: String,
    pub(super) encoding: i64,
    pub(super) size_bytes: i64,
    pub(super) data: Vec<u8>,
}

impl Row {
    pub(super) fn into_body(self) -> Result<Body, Error> {
        let encoding = match self.encoding {
            0 => Encoding::Plain,
            1 => Encoding::Zstd,
            _ => return Err(Error::corrupt("a body of an unknown encoding")),
        };
        Ok(Body { hash: self.hash, encoding, size_bytes: to_count(self.size_bytes), data: self.data })
    }
}

/// Stores a body, unless the workspace has it; answers how many bytes that are new it has.
pub(crate) async fn put(tx: &mut Tx, workspace: WorkspaceId, body: &Body) -> Result<u64, Error> {
    let exists = EXISTS.of(tx.engine());
    let known: Option<i32> = fetch!(optional_scalar, tx, exists, Text(workspace), &body.hash)?;
    if known.is_some() {
        return Ok(0);
    }
    let encoding = match body.encoding {
        Encoding::Plain => 0_i64,
        Encoding::Zstd => 1,
    };
    let inserted: u64 =
        execute!(tx, INSERT, Text(workspace), &body.hash, encoding, to_column(body.size_bytes), &body.data)?;
    // Another transaction may have stored it meanwhile.
    Ok(if inserted == 0 { 0 } else { body.size_bytes })
}

#[derive(Debug, sqlx::FromRow)]
struct RowOfWorkspace {
    workspace_id: String,
    #[sqlx(flatten)]
    body: Row,
}

/// Bodies of every workspace with the workspace's id, in the order of both, from after these on.
pub(crate) async fn list_all(
    tx: &mut Tx,
    workspace: &str,
    hash: &str,
    limit: i64,
) -> Result<Vec<(String, Body)>, Error> {
    let rows: Vec<RowOfWorkspace> = fetch!(all, tx, LIST_ALL, workspace, hash, limit)?;
    rows.into_iter().map(|row| Ok((row.workspace_id, row.body.into_body()?))).collect()
}

/// The bodies with these hashes, in no order; those that are missing are left out.
pub(crate) async fn get_many(db: &Db, workspace: WorkspaceId, hashes: &[&str]) -> Result<Vec<Body>, Error> {
    let rows: Vec<Row> = fetch!(all, db, GET_MANY, Text(workspace), json_list(hashes))?;
    rows.into_iter().map(Row::into_body).collect()
}
