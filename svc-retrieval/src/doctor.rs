//! Invariants of the analytics and the question log. The index has none here: it can be rebuilt.

use cairn_chassis::doctor::{self, Check, Finding, Mend, Progress, Report};
use cairn_chassis::sql::{self, Db};

use crate::{Error, store};

/// Every invariant of the tables.
pub(crate) const CHECKS: &[Check] = &[
    Check {
        rule: "sums of retrievals are of some, and no part is more than all",
        sql: "SELECT 'workspace ' || workspace_id || ' day ' || day FROM retrieval_counts WHERE total < 1 \
              OR failed < 0 OR empty < 0 OR cached < 0 OR results < 0 OR content_bytes < 0 \
              OR provider_operations < 0 OR failed + empty > total OR failed + cached > total",
        mend: Mend::GiveUp {
            does: "the sum is removed",
            sql: &[
                "DELETE FROM retrieval_counts WHERE total < 1 OR failed < 0 OR empty < 0 OR cached < 0 OR results \
                 < 0 OR content_bytes < 0 OR provider_operations < 0 OR failed + empty > total OR failed + cached \
                 > total",
            ],
        },
    },
    Check {
        rule: "every answered retrieval has a latency",
        sql: "SELECT 'workspace ' || c.workspace_id || ' day ' || c.day || ' ' || c.operation FROM \
              (SELECT workspace_id, day, operation, SUM(total - failed) AS answered FROM retrieval_counts \
              GROUP BY workspace_id, day, operation) AS c WHERE c.answered <> COALESCE((SELECT SUM(l.answers) \
              FROM retrieval_latencies l WHERE l.workspace_id = c.workspace_id AND l.day = c.day \
              AND l.operation = c.operation), 0)",
        mend: Mend::GiveUp {
            does: "the latencies of that day are removed, with its sums",
            sql: &[
                "DELETE FROM retrieval_counts WHERE (workspace_id, day, operation) IN (SELECT k.workspace_id, \
                 k.day, k.operation FROM (SELECT workspace_id, day, operation, total - failed AS answered FROM \
                 retrieval_counts UNION ALL SELECT workspace_id, day, operation, -answers FROM \
                 retrieval_latencies) AS k GROUP BY k.workspace_id, k.day, k.operation HAVING SUM(k.answered) <> \
                 0)",
                "DELETE FROM retrieval_latencies WHERE NOT EXISTS (SELECT 1 FROM retrieval_counts c WHERE \
                 c.workspace_id = retrieval_latencies.workspace_id AND c.day = retrieval_latencies.day AND \
                 c.operation = retrieval_latencies.operation)",
            ],
        },
    },
    Check {
        rule: "every found document was in an answer, and never the best more often than that",
        sql: "SELECT 'workspace ' || workspace_id || ' document ' || document_id FROM retrieval_documents \
              WHERE retrievals < 1 OR best < 0 OR best > retrievals",
        mend: Mend::GiveUp {
            does: "the sum is removed",
            sql: &["DELETE FROM retrieval_documents WHERE retrievals < 1 OR best < 0 OR best > retrievals"],
        },
    },
    Check {
        rule: "no workspace was answered before it asked",
        sql: "SELECT 'workspace ' || s.workspace_id || ' by ' || s.channel FROM retrieval_firsts s \
              LEFT JOIN retrieval_firsts r ON r.workspace_id = s.workspace_id AND r.channel = s.channel \
              AND r.milestone = 'retrieval' WHERE s.milestone = 'success' AND (r.at IS NULL OR r.at > s.at)",
        mend: Mend::GiveUp {
            does: "its first success is counted anew",
            sql: &["DELETE FROM retrieval_firsts WHERE milestone = 'success' AND NOT EXISTS (SELECT 1 FROM \
                 retrieval_firsts r WHERE r.workspace_id = retrieval_firsts.workspace_id AND r.channel = \
                 retrieval_firsts.channel AND r.milestone = 'retrieval' AND r.at <= retrieval_firsts.at)"],
        },
    },
    Check {
        rule: "a question that found nothing has no best score, and every other one has",
        sql: "SELECT 'workspace ' || workspace_id || ' question ' || id FROM questions \
              WHERE (results = 0) <> (outcome = 'unanswered') OR (results = 0) <> (best_score IS NULL)",
        mend: Mend::GiveUp {
            does: "the question is removed",
            sql: &[
                "DELETE FROM questions WHERE (results = 0) <> (outcome = 'unanswered') OR (results = 0) <> \
                 (best_score IS NULL)",
            ],
        },
    },
];

/// Checks every invariant; `None` when there are no analytics. Read-only.
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

/// Mends what is wrong with the analytics in a storage, and tells what; `None` when there are none.
///
/// # Errors
/// When the storage fails; nothing is changed then.
pub async fn mend(storage: &sql::Config, progress: Progress<'_>) -> Result<Option<Report>, Error> {
    let Some(db) = Db::open_existing(storage, store::SCHEMA, store::MIGRATIONS).await? else {
        return Ok(None);
    };
    let mut report = Report::default();
    let mut tx = doctor::begin(&db).await?;
    doctor::mend(&mut tx, CHECKS, &mut report, progress).await?;
    tx.commit().await?;
    db.close().await;
    Ok(Some(report))
}
