//! What must always hold of sync runs.
//!
//! Numbers in the statements: states as in the contract (2 queued, 3 running, 4 and 5 completed, 8 rolled back), phase 2 is a
//! rollback, kind 1 a file, 2 a folder, 3 an asset, 4 a database
//! and 5 a record, origin 0 a directory.

use cairn_chassis::doctor::{self, Check, Finding, Progress};
use cairn_chassis::sql::{self, Db};

use crate::{Error, store};

/// Every invariant of the tables that a statement can see.
pub(crate) const CHECKS: &[Check] = &[
    Check {
        rule: "every sync run has its manifest, and every manifest its run",
        sql: "SELECT 'workspace ' || r.workspace_id || ' run ' || r.id FROM sync_runs r LEFT JOIN sync_details d \
              ON d.workspace_id = r.workspace_id AND d.run_id = r.id WHERE d.run_id IS NULL \
              UNION ALL SELECT 'workspace ' || d.workspace_id || ' run ' || d.run_id FROM sync_details d \
              LEFT JOIN sync_runs r ON r.workspace_id = d.workspace_id AND r.id = d.run_id WHERE r.id IS NULL",
    },
    Check {
        rule: "texts and archives are kept for runs that may still write them",
        sql: "SELECT 'workspace ' || p.workspace_id || ' run ' || p.run_id FROM sync_pieces p JOIN sync_runs r \
              ON r.workspace_id = p.workspace_id AND r.id = p.run_id WHERE r.state IN (4, 5, 8) \
              OR (r.origin = 0 AND r.state IN (2, 3) AND r.phase = 2) \
              GROUP BY p.workspace_id, p.run_id",
    },
    Check {
        rule: "writes belong to a run, and all of a run that is over are settled or can be",
        sql: "SELECT 'workspace ' || b.workspace_id || ' run ' || b.run_id FROM sync_batches b LEFT JOIN sync_runs r \
              ON r.workspace_id = b.workspace_id AND r.id = b.run_id WHERE r.id IS NULL \
              OR (NOT b.settled AND (r.state = 8 OR (b.phase = 1 AND r.state IN (4, 5))))",
    },
    Check {
        rule: "the counters of a run come to what it has processed, and that to no more than there is",
        sql: "SELECT 'workspace ' || workspace_id || ' run ' || id FROM sync_runs WHERE processed > total AND state <> 1 \
              OR created + updated + skipped + conflicts + pruned > processed \
              OR (processed <> total AND (state IN (4, 5, 8) AND origin = 0 OR state IN (4, 5) AND phase = 1))",
    },
    Check {
        rule: "a run that is completed says until when it can be rolled back",
        sql: "SELECT 'workspace ' || workspace_id || ' run ' || id FROM sync_runs \
              WHERE state IN (4, 5) AND (rollback_until IS NULL OR finished_at IS NULL)",
    },
    Check {
        rule: "what a sync or an import remembers has a content, unless it is a folder, and a version where it has any",
        sql: "SELECT 'workspace ' || workspace_id || ' sync ' || name || ' path ' || path FROM sync_entries \
              WHERE kind NOT IN (1, 2, 3, 4, 5) OR (origin = 0 AND kind > 2) OR (kind <> 2) <> (content_hash <> '') \
              OR (kind IN (1, 4, 5)) <> (version > 0)",
    },
];

/// Looks for what is wrong with the runs in a storage; `None` when it holds none. Nothing is written.
///
/// # Errors
/// When the storage cannot be read.
pub async fn examine(storage: &sql::Config, progress: Progress<'_>) -> Result<Option<Vec<Finding>>, Error> {
    let Some(db) = Db::open_existing(storage, store::SCHEMA, store::MIGRATIONS).await? else {
        return Ok(None);
    };
    let findings = examine_open(&db, progress).await?;
    db.close().await;
    Ok(Some(findings))
}

/// As [`examine`], on what is open; all checks see one moment.
pub(crate) async fn examine_open(db: &Db, progress: Progress<'_>) -> Result<Vec<Finding>, Error> {
    let mut tx = db.begin_read().await?;
    let findings = doctor::run(&mut tx, CHECKS, progress).await?;
    tx.rollback().await?;
    Ok(findings)
}
