//! Golden questions with the passages that must be found.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Engine, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::{GoldenQuestionId, WorkspaceId};
use cairn_proto::retrieval::v1::SearchContextRequest;
use prost::Message as _;
use sqlx::{Executor, Postgres, Sqlite};
use uuid::Uuid;

use crate::golden::{Author, Expected, GoldenQuestion};
use crate::kinds;

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    const INSERT: &str = "INSERT INTO golden_questions (workspace_id, id, created_at, author_kind, author_id, author_name, \
         query, search, kind, document_id, quote, start_line, end_line, content_hash) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";

    /// Ids sort by time.
    const LIST: &str = "SELECT id, created_at, author_kind, author_id, author_name, search, kind, document_id, quote, \
         start_line, end_line, content_hash FROM golden_questions WHERE workspace_id = $1 ORDER BY id LIMIT $2";

    const DELETE: &str = "DELETE FROM golden_questions WHERE workspace_id = $1 AND id = $2";
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    id: Text<GoldenQuestionId>,
    created_at: Timestamp,
    author_kind: String,
    author_id: String,
    author_name: String,
    search: Vec<u8>,
    kind: String,
    document_id: Text<Uuid>,
    quote: String,
    start_line: i64,
    end_line: i64,
    content_hash: String,
}

impl TryFrom<Row> for GoldenQuestion {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let search = SearchContextRequest::decode(row.search.as_slice()).map_err(|_| {
            Error::corrupt(format!("the search of golden question {} cannot be read", row.id.0))
        })?;
        let line = |line: i64| u32::try_from(line).unwrap_or_default();
        Ok(Self {
            id: row.id.0,
            created_at: row.created_at,
            author: Author { kind: row.author_kind, id: row.author_id, name: row.author_name },
            search,
            expected: Expected {
                kind: kinds::known(&row.kind),
                document: row.document_id.0,
                quote: row.quote,
                lines: (line(row.start_line), line(row.end_line)),
                content_hash: row.content_hash,
            },
        })
    }
}

/// The first `limit` questions of a workspace.
pub(crate) async fn list<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    limit: i64,
) -> Result<Vec<GoldenQuestion>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let rows: Vec<Row> = fetch!(all, on, LIST, Text(workspace), limit)?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// Inserts a question.
pub(crate) async fn insert(
    tx: &mut Tx,
    workspace: WorkspaceId,
    question: &GoldenQuestion,
) -> Result<(), Error> {
    let GoldenQuestion { id, created_at, author, search, expected } = question;
    execute!(
        tx,
        INSERT,
        Text(workspace),
        Text(*id),
        *created_at,
        &author.kind,
        &author.id,
        &author.name,
        &search.query,
        search.encode_to_vec(),
        kinds::stored(expected.kind),
        Text(expected.document),
        &expected.quote,
        i64::from(expected.lines.0),
        i64::from(expected.lines.1),
        &expected.content_hash
    )
    .map(drop)
}

/// Deletes a question; returns the number of deleted rows.
pub(crate) async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: GoldenQuestionId) -> Result<u64, Error> {
    execute!(tx, DELETE, Text(workspace), Text(id))
}
