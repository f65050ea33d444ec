//! The invariants of sync runs.
//!
//! Numbers in the statements: states as in the contract (2 queued, 3 running, 4 and 5 completed, 8 rolled back), phase 2 is a
//! rollback, kind 1 a file, 2 a folder, 3 an asset, 4 a database
//! and 5 a record, origin 0 a directory.

use cairn_chassis::doctor::{self, Check, Finding, Mend, Progress, Report};
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
        mend: Mend::GiveUp {
            does: "the run is removed, with its report; what it wrote stays",
            sql: &[
                "DELETE FROM sync_runs WHERE NOT EXISTS (SELECT 1 FROM sync_details d WHERE d.workspace_id = \
                 sync_runs.workspace_id AND d.run_id = sync_runs.id)",
                "DELETE FROM sync_details WHERE NOT EXISTS (SELECT 1 FROM sync_runs r WHERE r.workspace_id = \
                 sync_details.workspace_id AND r.id = sync_details.run_id)",
                "DELETE FROM sync_pieces WHERE NOT EXISTS (SELECT 1 FROM sync_runs r WHERE r.workspace_id = \
                 sync_pieces.workspace_id AND r.id = sync_pieces.run_id)",
                "DELETE FROM sync_batches WHERE NOT EXISTS (SELECT 1 FROM sync_runs r WHERE r.workspace_id = \
                 sync_batches.workspace_id AND r.id = sync_batches.run_id)",
            ],
        },
    },
    Check {
        rule: "texts and archives are kept for runs that may still write them",
        sql: "SELECT 'workspace ' || p.workspace_id || ' run ' || p.run_id FROM sync_pieces p JOIN sync_runs r \
              ON r.workspace_id = p.workspace_id AND r.id = p.run_id WHERE r.state IN (4, 5, 8) \
              OR (r.origin = 0 AND r.state IN (2, 3) AND r.phase = 2) \
              GROUP BY p.workspace_id, p.run_id",
        mend: Mend::Restore {
            does: "they are removed",
            sql: &["DELETE FROM sync_pieces WHERE EXISTS (SELECT 1 FROM sync_runs r WHERE r.workspace_id = \
                 sync_pieces.workspace_id AND r.id = sync_pieces.run_id AND (r.state IN (4, 5, 8) OR (r.origin = 0 \
                 AND r.state IN (2, 3) AND r.phase = 2)))"],
        },
    },
    Check {
        rule: "writes belong to a run, and all of a run that is over are settled or can be",
        sql: "SELECT 'workspace ' || b.workspace_id || ' run ' || b.run_id FROM sync_batches b LEFT JOIN sync_runs r \
              ON r.workspace_id = b.workspace_id AND r.id = b.run_id WHERE r.id IS NULL \
              OR (NOT b.settled AND (r.state = 8 OR (b.phase = 1 AND r.state IN (4, 5))))",
        mend: Mend::GiveUp {
            does: "those of no run are removed, those of a run that is over are taken as done",
            sql: &[
                "DELETE FROM sync_batches WHERE NOT EXISTS (SELECT 1 FROM sync_runs r WHERE r.workspace_id = \
                 sync_batches.workspace_id AND r.id = sync_batches.run_id)",
                "UPDATE sync_batches SET settled = TRUE WHERE NOT settled AND EXISTS (SELECT 1 FROM sync_runs r \
                 WHERE r.workspace_id = sync_batches.workspace_id AND r.id = sync_batches.run_id AND (r.state = 8 \
                 OR (sync_batches.phase = 1 AND r.state IN (4, 5))))",
            ],
        },
    },
    Check {
        rule: "the counters of a run come to what it has processed, and that to no more than there is",
        sql: "SELECT 'workspace ' || workspace_id || ' run ' || id FROM sync_runs WHERE processed > total AND state <> 1 \
              OR created + updated + skipped + conflicts + pruned > processed \
              OR (processed <> total AND (state IN (4, 5, 8) AND origin = 0 OR state IN (4, 5) AND phase = 1))",
        mend: Mend::GiveUp {
            does: "they are made to agree; some may be too high",
            sql: &[
                "UPDATE sync_runs SET processed = created + updated + skipped + conflicts + pruned WHERE created \
                 + updated + skipped + conflicts + pruned > processed",
                "UPDATE sync_runs SET total = processed WHERE processed > total AND state <> 1",
                "UPDATE sync_runs SET total = processed WHERE processed <> total AND (state IN (4, 5, 8) AND \
                 origin = 0 OR state IN (4, 5) AND phase = 1)",
            ],
        },
    },
    Check {
        rule: "a run that is completed says until when it can be rolled back",
        sql: "SELECT 'workspace ' || workspace_id || ' run ' || id FROM sync_runs \
              WHERE state IN (4, 5) AND (rollback_until IS NULL OR finished_at IS NULL)",
        mend: Mend::GiveUp {
            does: "it cannot be rolled back any more",
            sql: &[
                "UPDATE sync_runs SET finished_at = COALESCE(finished_at, started_at, created_at), rollback_until \
                 = COALESCE(rollback_until, finished_at, started_at, created_at) WHERE state IN (4, 5) AND \
                 (rollback_until IS NULL OR finished_at IS NULL)",
            ],
        },
    },
    Check {
        rule: "what a sync or an import remembers has a content, unless it is a folder, and a version where it has any",
        sql: "SELECT 'workspace ' || workspace_id || ' sync ' || name || ' path ' || path FROM sync_entries \
              WHERE kind NOT IN (1, 2, 3, 4, 5) OR (origin = 0 AND kind > 2) OR (kind <> 2) <> (content_hash <> '') \
              OR (kind IN (1, 4, 5)) <> (version > 0)",
        mend: Mend::GiveUp {
            does: "it is forgotten: the next run compares with what is there",
            sql: &[
                "DELETE FROM sync_entries WHERE kind NOT IN (1, 2, 3, 4, 5) OR (origin = 0 AND kind > 2) OR (kind \
                 <> 2) <> (content_hash <> '') OR (kind IN (1, 4, 5)) <> (version > 0)",
            ],
        },
    },
];

/// Checks the runs in a storage; `None` when it has none. Nothing is written.
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

/// Like [`examine`], on an open storage; all checks see one snapshot.
pub(crate) async fn examine_open(db: &Db, progress: Progress<'_>) -> Result<Vec<Finding>, Error> {
    let mut tx = db.begin_read().await?;
    let findings = doctor::run(&mut tx, CHECKS, progress).await?;
    tx.rollback().await?;
    Ok(findings)
}

/// Repairs the runs in a storage, and returns what was wrong; `None` when it has none.
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
