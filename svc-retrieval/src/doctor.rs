//! What must always hold of the analytics and of questions that are kept. The index is none of it: that can be rebuilt.

use cairn_chassis::doctor::{self, Check, Finding, Progress};
use cairn_chassis::sql::{self, Db};

use crate::{Error, store};

/// Every invariant of the tables.
pub(crate) const CHECKS: &[Check] = &[
    Check {
        rule: "sums of retrievals are of some, and no part is more than all",
        sql: "SELECT 'workspace ' || workspace_id || ' day ' || day FROM retrieval_counts WHERE total < 1 \
              OR failed < 0 OR empty < 0 OR cached < 0 OR results < 0 OR content_bytes < 0 \
              OR provider_operations < 0 OR failed + empty > total OR failed + cached > total",
    },
    Check {
        rule: "every answered retrieval has a latency",
        sql: "SELECT 'workspace ' || c.workspace_id || ' day ' || c.day || ' ' || c.operation FROM \
              (SELECT workspace_id, day, operation, SUM(total - failed) AS answered FROM retrieval_counts \
              GROUP BY workspace_id, day, operation) AS c WHERE c.answered <> COALESCE((SELECT SUM(l.answers) \
              FROM retrieval_latencies l WHERE l.workspace_id = c.workspace_id AND l.day = c.day \
              AND l.operation = c.operation), 0)",
    },
    Check {
        rule: "every found document was in an answer, and never the best more often than that",
        sql: "SELECT 'workspace ' || workspace_id || ' document ' || document_id FROM retrieval_documents \
              WHERE retrievals < 1 OR best < 0 OR best > retrievals",
    },
    Check {
        rule: "no workspace was answered before it asked",
        sql: "SELECT 'workspace ' || s.workspace_id || ' by ' || s.channel FROM retrieval_firsts s \
              LEFT JOIN retrieval_firsts r ON r.workspace_id = s.workspace_id AND r.channel = s.channel \
              AND r.milestone = 'retrieval' WHERE s.milestone = 'success' AND (r.at IS NULL OR r.at > s.at)",
    },
    Check {
        rule: "a question that found nothing has no best score, and every other one has",
        sql: "SELECT 'workspace ' || workspace_id || ' question ' || id FROM questions \
              WHERE (results = 0) <> (outcome = 'unanswered') OR (results = 0) <> (best_score IS NULL)",
    },
];

/// Looks every invariant over; `None` when there are no analytics. Writes nothing.
///
/// # Errors
/// When the storage cannot be read.
pub async fn examine(storage: &sql::Config, progress: Progress<'_>) -> Result<Option<Vec<Finding>>, Error> {
    let Some(db) = Db::open_existing(storage, store::SCHEMA, store::MIGRATIONS).await? else {
        return Ok(None);
    };
    let mut tx = db.begin_read().await?;
    let findings = doctor::run(&mut tx, CHECKS, progress).await?;
    tx.commit().await?;
    db.close().await;
    Ok(Some(findings))
}
