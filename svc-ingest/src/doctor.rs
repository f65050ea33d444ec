//! The invariants of ingested documents and those of sources.
//!
//! Numbers in the statements: kind 6 is a document of a source, kind 7 an ingested one, ops 1 upsert and 2 delete, as in the
//! feed; status 3 is indexed and 4 failed.

pub(crate) mod index;
mod mending;

use cairn_chassis::doctor::{self, Check, Finding, Mend, Progress};
use cairn_chassis::sealing::Keyring;
use cairn_chassis::sealing::columns;
use cairn_chassis::sql::{self, Db};
use cairn_chassis::{append_current_state, bodies, feed};

use crate::{Error, credentials, store, webhooks};

pub use self::mending::mend;

/// The invariants that SQL statements can check.
pub(crate) fn checks() -> Vec<Check> {
    [feed::CHECKS, CHECKS].concat()
}

const CHECKS: &[Check] = &[
    Check {
        rule: "what a workspace uses is what it keeps",
        sql: "SELECT 'workspace ' || workspace_id FROM (\
              SELECT workspace_id, -documents AS documents, -bytes AS bytes FROM workspace_usage UNION ALL \
              SELECT workspace_id, COUNT(*), 0 FROM ingested_documents GROUP BY workspace_id UNION ALL \
              SELECT workspace_id, COUNT(*), 0 FROM source_documents WHERE state IN (0, 1) GROUP BY workspace_id UNION ALL \
              SELECT workspace_id, 0, SUM(size_bytes) FROM bodies GROUP BY workspace_id UNION ALL \
              SELECT workspace_id, 0, SUM(size_bytes) FROM extractions GROUP BY workspace_id) AS counted \
              GROUP BY workspace_id HAVING SUM(documents) <> 0 OR SUM(bytes) <> 0",
        mend: Mend::Restore {
            does: "it is counted anew",
            sql: &[
                "UPDATE workspace_usage SET documents = 0, bytes = 0",
                "INSERT INTO workspace_usage (workspace_id, documents, bytes) SELECT workspace_id, \
                 CAST(SUM(documents) AS BIGINT), CAST(SUM(bytes) AS BIGINT) FROM (SELECT workspace_id, COUNT(*) AS \
                 documents, 0 AS bytes FROM ingested_documents GROUP BY workspace_id UNION ALL SELECT \
                 workspace_id, COUNT(*), 0 FROM source_documents WHERE state IN (0, 1) GROUP BY workspace_id UNION \
                 ALL SELECT workspace_id, 0, SUM(size_bytes) FROM bodies GROUP BY workspace_id UNION ALL SELECT \
                 workspace_id, 0, SUM(size_bytes) FROM extractions GROUP BY workspace_id) AS kept WHERE TRUE GROUP \
                 BY workspace_id ON CONFLICT (workspace_id) DO UPDATE SET documents = excluded.documents, bytes = \
                 excluded.bytes",
            ],
        },
    },
    Check {
        rule: "an ingested document with a text has a name, a format and a body of its size",
        sql: "SELECT 'workspace ' || d.workspace_id || ' document ' || d.id FROM ingested_documents d \
              LEFT JOIN bodies b ON b.workspace_id = d.workspace_id AND b.hash = d.content_hash \
              WHERE (d.content_hash IS NULL) <> (d.name IS NULL) OR (d.content_hash IS NULL) <> (d.format IS NULL) \
              OR (d.content_hash IS NOT NULL AND (b.hash IS NULL OR b.size_bytes <> d.size_bytes)) \
              OR (d.content_hash IS NULL AND (d.status = 3 OR d.size_bytes <> 0))",
        mend: Mend::GiveUp {
            does: "its size is that of its text; without a text it has failed, and is to be sent again",
            sql: &[
                "UPDATE ingested_documents SET size_bytes = (SELECT b.size_bytes FROM bodies b WHERE \
                 b.workspace_id = ingested_documents.workspace_id AND b.hash = ingested_documents.content_hash) \
                 WHERE EXISTS (SELECT 1 FROM bodies b WHERE b.workspace_id = ingested_documents.workspace_id AND \
                 b.hash = ingested_documents.content_hash AND b.size_bytes <> ingested_documents.size_bytes)",
                "UPDATE ingested_documents SET name = COALESCE(name, id), format = COALESCE(format, 1) WHERE \
                 content_hash IS NOT NULL AND (name IS NULL OR format IS NULL)",
                "UPDATE ingested_documents SET name = NULL, format = NULL, size_bytes = 0 WHERE content_hash IS \
                 NULL AND (name IS NOT NULL OR format IS NOT NULL OR size_bytes <> 0)",
                "UPDATE ingested_documents SET status = 4, content_hash = NULL, format = NULL, name = NULL, \
                 size_bytes = 0, chunk_count = NULL, indexed_at = NULL, error = COALESCE(error, 'What was stored \
                 of it is lost: send it again.') WHERE content_hash IS NULL AND status = 3",
            ],
        },
    },
    Check {
        rule: "a document has a text, or somebody will read it, or it failed",
        sql: "SELECT 'workspace ' || d.workspace_id || ' document ' || d.id FROM ingested_documents d \
              LEFT JOIN extractions e ON e.workspace_id = d.workspace_id AND e.document_id = d.id \
              WHERE (d.content_hash IS NULL AND d.status <> 4) <> (e.document_id IS NOT NULL)",
        mend: Mend::GiveUp {
            does: "without a text it has failed, and is to be sent again",
            sql: &[
                "DELETE FROM upload_pieces WHERE EXISTS (SELECT 1 FROM ingested_documents d WHERE d.workspace_id \
                 = upload_pieces.workspace_id AND d.id = upload_pieces.document_id AND (d.content_hash IS NOT NULL \
                 OR d.status = 4))",
                "DELETE FROM extractions WHERE NOT EXISTS (SELECT 1 FROM ingested_documents d WHERE \
                 d.workspace_id = extractions.workspace_id AND d.id = extractions.document_id AND d.content_hash \
                 IS NULL AND d.status <> 4)",
                "UPDATE ingested_documents SET status = 4, content_hash = NULL, format = NULL, name = NULL, \
                 size_bytes = 0, chunk_count = NULL, indexed_at = NULL, error = COALESCE(error, 'What was stored \
                 of it is lost: send it again.') WHERE content_hash IS NULL AND status <> 4 AND \
                 NOT EXISTS (SELECT 1 FROM extractions e WHERE e.workspace_id = ingested_documents.workspace_id \
                 AND e.document_id = ingested_documents.id)",
            ],
        },
    },
    Check {
        rule: "what is to be read is there whole",
        sql: "SELECT 'workspace ' || e.workspace_id || ' document ' || e.document_id FROM extractions e \
              LEFT JOIN (SELECT workspace_id, document_id, SUM(LENGTH(data)) AS bytes FROM upload_pieces \
              GROUP BY workspace_id, document_id) p ON p.workspace_id = e.workspace_id AND p.document_id = e.document_id \
              WHERE COALESCE(p.bytes, 0) <> e.size_bytes",
        mend: Mend::GiveUp {
            does: "the document has failed, and is to be sent again",
            sql: &[
                "UPDATE ingested_documents SET status = 4, content_hash = NULL, format = NULL, name = NULL, \
                 size_bytes = 0, chunk_count = NULL, indexed_at = NULL, error = COALESCE(error, 'What was stored \
                 of it is lost: send it again.') WHERE EXISTS (SELECT 1 FROM extractions e WHERE \
                 e.workspace_id = ingested_documents.workspace_id AND e.document_id = ingested_documents.id AND \
                 e.size_bytes <> (SELECT COALESCE(SUM(LENGTH(p.data)), 0) FROM upload_pieces p WHERE \
                 p.workspace_id = e.workspace_id AND p.document_id = e.document_id))",
                "DELETE FROM upload_pieces WHERE EXISTS (SELECT 1 FROM ingested_documents d WHERE d.workspace_id \
                 = upload_pieces.workspace_id AND d.id = upload_pieces.document_id AND d.status = 4)",
                "DELETE FROM extractions WHERE NOT EXISTS (SELECT 1 FROM ingested_documents d WHERE \
                 d.workspace_id = extractions.workspace_id AND d.id = extractions.document_id AND d.status <> 4)",
                "DELETE FROM upload_pieces WHERE NOT EXISTS (SELECT 1 FROM extractions e WHERE e.workspace_id = \
                 upload_pieces.workspace_id AND e.document_id = upload_pieces.document_id)",
            ],
        },
    },
    Check {
        rule: "every text is some document's",
        sql: "SELECT 'workspace ' || b.workspace_id || ' body ' || b.hash FROM bodies b WHERE NOT EXISTS (\
              SELECT 1 FROM ingested_documents d WHERE d.workspace_id = b.workspace_id AND d.content_hash = b.hash) \
              AND NOT EXISTS (SELECT 1 FROM source_documents d WHERE d.workspace_id = b.workspace_id AND d.content_hash = b.hash)",
        mend: Mend::Restore {
            does: "it is removed",
            sql: &[
                "DELETE FROM bodies WHERE NOT EXISTS (SELECT 1 FROM ingested_documents d WHERE d.workspace_id = \
                 bodies.workspace_id AND d.content_hash = bodies.hash) AND NOT EXISTS (SELECT 1 FROM \
                 source_documents d WHERE d.workspace_id = bodies.workspace_id AND d.content_hash = bodies.hash)",
            ],
        },
    },
    Check {
        rule: "the feed's last word on an ingested document is true",
        sql: "WITH last (workspace_id, item_id, position) AS (SELECT workspace_id, item_id, MAX(position) \
              FROM feed_changes WHERE kind = 7 GROUP BY workspace_id, item_id) \
              SELECT 'workspace ' || d.workspace_id || ' document ' || d.id FROM ingested_documents d \
              LEFT JOIN last ON last.workspace_id = d.workspace_id AND last.item_id = d.id \
              LEFT JOIN feed_changes c ON c.workspace_id = d.workspace_id AND c.position = last.position \
              WHERE d.content_hash IS NOT NULL AND (c.op IS NULL OR c.op <> 1) \
              UNION ALL SELECT 'workspace ' || c.workspace_id || ' document ' || c.item_id FROM last \
              JOIN feed_changes c ON c.workspace_id = last.workspace_id AND c.position = last.position \
              LEFT JOIN ingested_documents d ON d.workspace_id = last.workspace_id AND d.id = last.item_id \
              WHERE c.op = 1 AND (d.id IS NULL OR d.content_hash IS NULL)",
        mend: Mend::Restore {
            does: "the feed tells what it is now",
            sql: append_current_state!(
                "7",
                "WITH last (workspace_id, item_id, position) AS (SELECT workspace_id, item_id, MAX(position) FROM \
                 feed_changes WHERE kind = 7 GROUP BY workspace_id, item_id) SELECT d.workspace_id, d.id AS \
                 item_id, 1 AS op FROM ingested_documents d LEFT JOIN last ON last.workspace_id = d.workspace_id \
                 AND last.item_id = d.id LEFT JOIN feed_changes c ON c.workspace_id = d.workspace_id AND \
                 c.position = last.position WHERE d.content_hash IS NOT NULL AND (c.op IS NULL OR c.op <> 1) UNION \
                 ALL SELECT c.workspace_id, c.item_id, 2 FROM last JOIN feed_changes c ON c.workspace_id = \
                 last.workspace_id AND c.position = last.position LEFT JOIN ingested_documents d ON d.workspace_id \
                 = last.workspace_id AND d.id = last.item_id WHERE c.op = 1 AND (d.id IS NULL OR d.content_hash IS \
                 NULL)"
            ),
        },
    },
    Check {
        rule: "a document of a source is kept as its state says",
        sql: "SELECT 'workspace ' || d.workspace_id || ' document ' || d.id FROM source_documents d \
              LEFT JOIN bodies b ON b.workspace_id = d.workspace_id AND b.hash = d.content_hash \
              LEFT JOIN sources s ON s.workspace_id = d.workspace_id AND s.id = d.source_id \
              WHERE s.id IS NULL OR (d.state = 0 AND d.content_hash IS NULL) \
              OR (d.state IN (1, 2) AND d.content_hash IS NOT NULL) \
              OR (d.content_hash IS NOT NULL AND (b.hash IS NULL OR b.size_bytes <> d.size_bytes)) \
              OR (d.state IN (2, 3) AND d.error IS NULL)",
        mend: Mend::GiveUp {
            does: "its size is that of its text; without a text it is read again by the next run; one of no source is \
             removed",
            sql: &[
                "DELETE FROM source_documents WHERE NOT EXISTS (SELECT 1 FROM sources s WHERE s.workspace_id = \
                 source_documents.workspace_id AND s.id = source_documents.source_id)",
                "UPDATE source_documents SET size_bytes = (SELECT b.size_bytes FROM bodies b WHERE b.workspace_id \
                 = source_documents.workspace_id AND b.hash = source_documents.content_hash) WHERE EXISTS (SELECT \
                 1 FROM bodies b WHERE b.workspace_id = source_documents.workspace_id AND b.hash = \
                 source_documents.content_hash AND b.size_bytes <> source_documents.size_bytes)",
                "UPDATE source_documents SET content_hash = NULL, size_bytes = 0 WHERE state IN (1, 2) AND \
                 content_hash IS NOT NULL",
                "UPDATE source_documents SET state = 2, version = NULL, size_bytes = 0, tries = 0, next_try = 0, \
                 error = COALESCE(error, 'What was stored of it is lost; it is read again.') WHERE state = 0 AND \
                 content_hash IS NULL",
                "UPDATE source_documents SET error = 'Why is not known any more.' WHERE state IN (2, 3) AND error \
                 IS NULL",
            ],
        },
    },
    Check {
        rule: "a source counts the documents that everybody sees",
        sql: "SELECT 'workspace ' || s.workspace_id || ' source ' || s.id FROM sources s WHERE s.documents <> \
              (SELECT COUNT(*) FROM source_documents d WHERE d.workspace_id = s.workspace_id AND d.source_id = s.id \
              AND d.state IN (0, 1))",
        mend: Mend::Restore {
            does: "they are counted anew",
            sql: &[
                "UPDATE sources SET documents = (SELECT COUNT(*) FROM source_documents d WHERE d.workspace_id = \
                 sources.workspace_id AND d.source_id = sources.id AND d.state IN (0, 1)) WHERE documents <> \
                 (SELECT COUNT(*) FROM source_documents d WHERE d.workspace_id = sources.workspace_id AND \
                 d.source_id = sources.id AND d.state IN (0, 1))",
            ],
        },
    },
    Check {
        rule: "a delivery is some webhook's, and one that is under way has changes to tell",
        sql: "SELECT 'workspace ' || d.workspace_id || ' delivery ' || d.id FROM webhook_deliveries d \
              LEFT JOIN webhooks w ON w.workspace_id = d.workspace_id AND w.id = d.webhook_id \
              WHERE w.id IS NULL OR (d.state <> 2 AND (d.change_count < 1 OR d.changes = '[]')) \
              OR ((d.state IN (1, 4)) <> (d.next_try_at IS NOT NULL))",
        mend: Mend::GiveUp {
            does: "what can be delivered is tried again, what cannot is removed",
            sql: &[
                "DELETE FROM webhook_deliveries WHERE (state <> 2 AND (change_count < 1 OR changes = '[]')) OR \
                 NOT EXISTS (SELECT 1 FROM webhooks w WHERE w.workspace_id = webhook_deliveries.workspace_id AND \
                 w.id = webhook_deliveries.webhook_id)",
                "UPDATE webhook_deliveries SET next_try_at = CASE WHEN state IN (1, 4) THEN created_at ELSE NULL \
                 END WHERE (state IN (1, 4)) <> (next_try_at IS NOT NULL)",
            ],
        },
    },
    Check {
        rule: "the feed's last word on a document of a source is true",
        sql: "WITH last (workspace_id, item_id, position) AS (SELECT workspace_id, item_id, MAX(position) \
              FROM feed_changes WHERE kind = 6 GROUP BY workspace_id, item_id) \
              SELECT 'workspace ' || d.workspace_id || ' document ' || d.id FROM source_documents d \
              LEFT JOIN last ON last.workspace_id = d.workspace_id AND last.item_id = d.id \
              LEFT JOIN feed_changes c ON c.workspace_id = d.workspace_id AND c.position = last.position \
              WHERE d.state IN (0, 1) AND (c.op IS NULL OR c.op <> 1) \
              UNION ALL SELECT 'workspace ' || c.workspace_id || ' document ' || c.item_id FROM last \
              JOIN feed_changes c ON c.workspace_id = last.workspace_id AND c.position = last.position \
              LEFT JOIN source_documents d ON d.workspace_id = last.workspace_id AND d.id = last.item_id \
              WHERE c.op = 1 AND (d.id IS NULL OR d.state NOT IN (0, 1))",
        mend: Mend::Restore {
            does: "the feed tells what it is now",
            sql: append_current_state!(
                "6",
                "WITH last (workspace_id, item_id, position) AS (SELECT workspace_id, item_id, MAX(position) FROM \
                 feed_changes WHERE kind = 6 GROUP BY workspace_id, item_id) SELECT d.workspace_id, d.id AS \
                 item_id, 1 AS op FROM source_documents d LEFT JOIN last ON last.workspace_id = d.workspace_id AND \
                 last.item_id = d.id LEFT JOIN feed_changes c ON c.workspace_id = d.workspace_id AND c.position = \
                 last.position WHERE d.state IN (0, 1) AND (c.op IS NULL OR c.op <> 1) UNION ALL SELECT \
                 c.workspace_id, c.item_id, 2 FROM last JOIN feed_changes c ON c.workspace_id = last.workspace_id \
                 AND c.position = last.position LEFT JOIN source_documents d ON d.workspace_id = last.workspace_id \
                 AND d.id = last.item_id WHERE c.op = 1 AND (d.id IS NULL OR d.state NOT IN (0, 1))"
            ),
        },
    },
];

/// Checks the documents in a storage, read-only; `None` if it has no tables of this service. Credentials of sources must decrypt with the
/// keyring.
///
/// # Errors
/// When the storage cannot be read.
pub async fn examine(
    storage: &sql::Config,
    ring: Option<&Keyring>,
    progress: Progress<'_>,
) -> Result<Option<Vec<Finding>>, Error> {
    let Some(db) = Db::open_existing(storage, store::SCHEMA, store::MIGRATIONS).await? else {
        return Ok(None);
    };
    let mut findings = examine_open(&db, progress).await?;
    let mut tx = db.begin_read().await?;
    findings
        .extend(columns::examine(&mut tx, &[credentials::COLUMN, webhooks::COLUMN], ring, progress).await?);
    tx.rollback().await?;
    db.close().await;
    Ok(Some(findings))
}

/// As [`examine`], on an open database; all checks see one snapshot.
pub(crate) async fn examine_open(db: &Db, progress: Progress<'_>) -> Result<Vec<Finding>, Error> {
    let mut tx = db.begin_read().await?;
    let mut findings = doctor::run(&mut tx, &checks(), progress).await?;
    findings.extend(bodies::examine(&mut tx, progress).await?);
    tx.rollback().await?;
    Ok(findings)
}
