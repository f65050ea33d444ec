//! Versions of memories.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::{MemoryId, WorkspaceId};

use super::page::{to_column, to_count};
use crate::model::{Author, MemoryState, MemoryVersion};

macro_rules! columns {
    () => {
        "version, name, members, created_at, author_kind, author_id, author_name"
    };
}

statements! {
    pub(super) fn statements;

    const INSERT: &str = "INSERT INTO memory_versions (workspace_id, memory_id, version, name, members, state, created_at, \
         author_kind, author_id, author_name) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

    const FORGET: &str = "DELETE FROM memory_versions WHERE workspace_id = $1 AND memory_id = $2 AND version <= $3";

    const LIST: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM memory_versions WHERE workspace_id = $1 AND memory_id = $2 AND version < $3 ORDER BY version DESC LIMIT $4"
    );

    const COUNT: &str = "SELECT COUNT(*) FROM memory_versions WHERE workspace_id = $1 AND memory_id = $2";

    const GET: &str = concat!(
        "SELECT ",
        columns!(),
        ", state FROM memory_versions WHERE workspace_id = $1 AND memory_id = $2 AND version = $3"
    );
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    version: i64,
    name: String,
    members: i64,
    created_at: Timestamp,
    author_kind: String,
    author_id: String,
    author_name: String,
}

#[derive(Debug, sqlx::FromRow)]
struct RowWithState {
    #[sqlx(flatten)]
    version: Row,
    state: String,
}

impl Row {
    fn into_version(self) -> MemoryVersion {
        let author = Author { kind: self.author_kind, id: self.author_id, name: self.author_name };
        MemoryVersion {
            version: to_count(self.version),
            name: self.name,
            members: to_count(self.members),
            created_at: self.created_at,
            author: Some(author).filter(|author| !author.kind.is_empty()),
        }
    }
}

/// Inserts a version with the state of the memory.
pub(crate) async fn insert(
    tx: &mut Tx,
    workspace: WorkspaceId,
    memory: MemoryId,
    version: &MemoryVersion,
    state: &MemoryState,
) -> Result<(), Error> {
    let author = version.author.clone().unwrap_or_default();
    let state = serde_json::to_string(state)
        .map_err(|error| Error::corrupt(format!("a state of a memory is no JSON: {error}")))?;
    execute!(
        tx,
        INSERT,
        Text(workspace),
        Text(memory),
        to_column(version.version),
        &version.name,
        to_column(version.members),
        &state,
        version.created_at,
        &author.kind,
        &author.id,
        &author.name
    )
    .map(drop)
}

/// Deletes the versions up to a number.
pub(crate) async fn delete_up_to(
    tx: &mut Tx,
    workspace: WorkspaceId,
    memory: MemoryId,
    last: u64,
) -> Result<(), Error> {
    execute!(tx, FORGET, Text(workspace), Text(memory), to_column(last)).map(drop)
}

/// Versions of a memory below a number, the newest first.
pub(crate) async fn list(
    db: &Db,
    workspace: WorkspaceId,
    memory: MemoryId,
    before: u64,
    limit: i64,
) -> Result<Vec<MemoryVersion>, Error> {
    let rows: Vec<Row> = fetch!(all, db, LIST, Text(workspace), Text(memory), to_column(before), limit)?;
    Ok(rows.into_iter().map(Row::into_version).collect())
}

/// The number of stored versions of a memory.
pub(crate) async fn count(db: &Db, workspace: WorkspaceId, memory: MemoryId) -> Result<u64, Error> {
    let count: i64 = fetch!(scalar, db, COUNT, Text(workspace), Text(memory))?;
    Ok(to_count(count))
}

/// A version with the state of the memory.
pub(crate) async fn get(
    db: &Db,
    workspace: WorkspaceId,
    memory: MemoryId,
    version: u64,
) -> Result<Option<(MemoryVersion, MemoryState)>, Error> {
    let row: Option<RowWithState> =
        fetch!(optional, db, GET, Text(workspace), Text(memory), to_column(version))?;
    let Some(row) = row else { return Ok(None) };
    let state = serde_json::from_str(&row.state)
        .map_err(|error| Error::corrupt(format!("memory_versions.state cannot be read: {error}")))?;
    Ok(Some((row.version.into_version(), state)))
}
