//! The question log: questions with their results, and the retention of each workspace.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::domain::QuestionOutcome;
use cairn_proto::ids::{QuestionId, UserId, WorkspaceId};

use super::count;
use crate::questions::{Asker, Filter, Question};

/// The columns of a question except its details, which may be large.
macro_rules! columns {
    () => {
        "id, asked_at, operation, principal_kind, principal_id, principal_name, channel, client, query, outcome, results, \
         best_score, took_micros"
    };
}

/// The filtered questions of a workspace ($1): asked since ($2), by a principal ($3), by or for a person ($4), unanswered ($5), with a
/// text ($6). An empty string or zero disables a filter.
macro_rules! filtered {
    () => {
        "FROM questions WHERE workspace_id = $1 AND asked_at >= $2 AND ($3 = '' OR principal_id = $3) \
         AND ($4 = '' OR person_id = $4) AND (CAST($5 AS BIGINT) = 0 OR outcome <> 'answered') \
         AND ($6 = '' OR LOWER(query) LIKE $6 ESCAPE '!')"
    };
}

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    const INSERT: &str = "INSERT INTO questions (workspace_id, id, asked_at, operation, principal_kind, principal_id, \
         principal_name, person_id, channel, client, query, outcome, results, best_score, took_micros, details) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";

    /// Ids sort by time; the page starts below a cursor ($7), or at the newest.
    const LIST: &str = concat!(
        "SELECT ", columns!(), " ", filtered!(), " AND ($7 = '' OR id < $7) ORDER BY id DESC LIMIT $8"
    );

    const COUNT: &str = concat!("SELECT COUNT(*) ", filtered!());

    const FIND: &str = concat!(
        "SELECT ", columns!(), ", details FROM questions WHERE workspace_id = $1 AND id = $2 AND asked_at >= $3 \
         AND ($4 = '' OR person_id = $4)"
    );

    const DELETE: &str = "DELETE FROM questions WHERE workspace_id = $1 AND id = $2";

    const DELETE_OLD: &str = "DELETE FROM questions WHERE workspace_id = $1 AND id IN (SELECT id FROM questions \
         WHERE workspace_id = $1 AND asked_at < $2 ORDER BY id LIMIT $3)";

    /// Deletes all but the $2 newest, at most $3 of them.
    const DELETE_BEYOND: &str = "DELETE FROM questions WHERE workspace_id = $1 AND id IN (SELECT id FROM questions \
         WHERE workspace_id = $1 ORDER BY id DESC LIMIT $3 OFFSET $2)";

    const SET_DAYS: &str = "INSERT INTO question_logs (workspace_id, days) VALUES ($1, $2) \
         ON CONFLICT (workspace_id) DO UPDATE SET days = excluded.days WHERE question_logs.days <> excluded.days";

    const DELETE_LOG: &str = "DELETE FROM question_logs WHERE workspace_id = $1 \
         AND NOT EXISTS (SELECT 1 FROM questions WHERE questions.workspace_id = $1)";

    const LIST_LOGS: &str = "SELECT workspace_id, days FROM question_logs WHERE workspace_id > $1 \
         ORDER BY workspace_id LIMIT $2";
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    id: Text<QuestionId>,
    asked_at: Timestamp,
    operation: String,
    principal_kind: String,
    principal_id: String,
    principal_name: String,
    channel: String,
    client: String,
    query: String,
    outcome: String,
    results: i64,
    best_score: Option<f64>,
    took_micros: i64,
}

#[derive(Debug, sqlx::FromRow)]
struct WholeRow {
    #[sqlx(flatten)]
    question: Row,
    details: Vec<u8>,
}

impl TryFrom<Row> for Question {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let outcome: QuestionOutcome = row.outcome.parse().map_err(|_| {
            Error::corrupt(format!("questions.outcome holds the unknown word '{}'", row.outcome))
        })?;
        Ok(Self {
            id: row.id.0,
            asked_at: row.asked_at,
            operation: row.operation,
            asker: Asker {
                kind: row.principal_kind,
                id: row.principal_id,
                name: row.principal_name,
                channel: row.channel,
                client: row.client,
            },
            query: row.query,
            outcome,
            results: count(row.results),
            best_score: row.best_score,
            took_micros: count(row.took_micros),
        })
    }
}

/// Inserts a question; `person` asked it or owns the token or app that did, `details` is the response.
pub(crate) async fn insert(
    tx: &mut Tx,
    workspace: WorkspaceId,
    question: &Question,
    person: Option<UserId>,
    details: &[u8],
) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(workspace),
        Text(question.id),
        question.asked_at,
        &question.operation,
        &question.asker.kind,
        &question.asker.id,
        &question.asker.name,
        person.map(|person| person.to_string()).unwrap_or_default(),
        &question.asker.channel,
        &question.asker.client,
        &question.query,
        question.outcome.as_str(),
        i64::try_from(question.results).unwrap_or(i64::MAX),
        question.best_score,
        i64::try_from(question.took_micros).unwrap_or(i64::MAX),
        details
    )
    .map(drop)
}

/// A page of the filtered questions, newest first, below an id or from the newest.
pub(crate) async fn list(
    tx: &mut Tx,
    workspace: WorkspaceId,
    filter: &Filter,
    below: &str,
    limit: i64,
) -> Result<Vec<Question>, Error> {
    let rows: Vec<Row> = fetch!(
        all,
        tx,
        LIST,
        Text(workspace),
        filter.since,
        &filter.principal,
        filter.of_person(),
        i64::from(filter.is_unanswered),
        filter.pattern(),
        below,
        limit
    )?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// The number of filtered questions.
pub(crate) async fn count_all(tx: &mut Tx, workspace: WorkspaceId, filter: &Filter) -> Result<u64, Error> {
    let number: i64 = fetch!(
        scalar,
        tx,
        COUNT,
        Text(workspace),
        filter.since,
        &filter.principal,
        filter.of_person(),
        i64::from(filter.is_unanswered),
        filter.pattern()
    )?;
    Ok(count(number))
}

/// A question with its details, if it was asked since then and, if `of_person` is given, by or for that person.
pub(crate) async fn find(
    db: &Db,
    workspace: WorkspaceId,
    id: QuestionId,
    since: Timestamp,
    of_person: &str,
) -> Result<Option<(Question, Vec<u8>)>, Error> {
    let row: Option<WholeRow> = fetch!(optional, db, FIND, Text(workspace), Text(id), since, of_person)?;
    row.map(|row| Ok((row.question.try_into()?, row.details))).transpose()
}

/// Deletes a question; returns the number of deleted rows.
pub(crate) async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: QuestionId) -> Result<u64, Error> {
    execute!(tx, DELETE, Text(workspace), Text(id))
}

/// Deletes up to `limit` questions that were asked before then; returns their number.
pub(crate) async fn delete_old(
    tx: &mut Tx,
    workspace: WorkspaceId,
    before: Timestamp,
    limit: i64,
) -> Result<u64, Error> {
    execute!(tx, DELETE_OLD, Text(workspace), before, limit)
}

/// Deletes up to `limit` questions beyond the `kept` newest; returns their number.
pub(crate) async fn delete_beyond(
    tx: &mut Tx,
    workspace: WorkspaceId,
    kept: i64,
    limit: i64,
) -> Result<u64, Error> {
    execute!(tx, DELETE_BEYOND, Text(workspace), kept, limit)
}

/// Sets the retention of a workspace's questions in days.
pub(crate) async fn set_days(tx: &mut Tx, workspace: WorkspaceId, days: u32) -> Result<(), Error> {
    execute!(tx, SET_DAYS, Text(workspace), i64::from(days)).map(drop)
}

/// Removes the retention of a workspace without questions.
pub(crate) async fn delete_log(tx: &mut Tx, workspace: WorkspaceId) -> Result<(), Error> {
    execute!(tx, DELETE_LOG, Text(workspace)).map(drop)
}

/// A page of the workspaces with a question log, after a cursor, with their retention in days.
pub(crate) async fn list_logs(
    db: &Db,
    after: Option<WorkspaceId>,
    limit: i64,
) -> Result<Vec<(WorkspaceId, u32)>, Error> {
    let after = after.map(|workspace| workspace.to_string()).unwrap_or_default();
    let rows: Vec<(Text<WorkspaceId>, i64)> = fetch!(all, db, LIST_LOGS, after, limit)?;
    let read =
        |(workspace, days): (Text<WorkspaceId>, i64)| (workspace.0, u32::try_from(days).unwrap_or_default());
    Ok(rows.into_iter().map(read).collect())
}
