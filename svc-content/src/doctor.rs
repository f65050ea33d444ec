//! The invariants of the content: the tree, the trash, the feed, bodies and versions. Those of memories, databases
//! and records are in submodules.
//!
//! Numbers in the statements, as in the feed: kinds 1 file, 2 folder, 3 memory, 4 database and 5 record, operations 1
//! upsert and 2 delete.

use cairn_chassis::bodies;
use cairn_chassis::clock::Clock;
use cairn_chassis::doctor::{self, Check, Finding, Mend, Progress};
use cairn_chassis::sql::{self, Db, Tx};
use cairn_chassis::{append_current_state, feed};

use crate::{AssetLocation, Error, assets, store};

/// Selects items whose last feed entry disagrees with their state.
macro_rules! stale_feed {
    ($table:literal, $kind:literal) => {
        stale_feed!($table, $kind, "CASE WHEN i.deleted_at IS NULL THEN 1 ELSE 2 END")
    };
    ($table:literal, $kind:literal, $op:literal) => {
        concat!(
            "WITH last (workspace_id, item_id, position) AS (SELECT workspace_id, item_id, MAX(position) \
             FROM feed_changes WHERE kind = ",
            $kind,
            " GROUP BY workspace_id, item_id) \
             SELECT 'workspace ' || i.workspace_id || ' item ' || i.id FROM ",
            $table,
            " i LEFT JOIN last ON last.workspace_id = i.workspace_id AND last.item_id = i.id \
             LEFT JOIN feed_changes c ON c.workspace_id = i.workspace_id AND c.position = last.position \
             WHERE c.op IS NULL OR c.op <> ",
            $op,
            " UNION ALL SELECT 'workspace ' || c.workspace_id || ' item ' || c.item_id FROM last \
             JOIN feed_changes c ON c.workspace_id = last.workspace_id AND c.position = last.position \
             LEFT JOIN ",
            $table,
            " i ON i.workspace_id = last.workspace_id AND i.id = last.item_id WHERE c.op = 1 AND i.id IS NULL"
        )
    };
}

/// Selects rows in trash without their deletion, live rows with one, and deletions without their item.
macro_rules! trash_mismatch {
    ($table:literal, $kind:literal) => {
        concat!(
            "SELECT 'workspace ' || i.workspace_id || ' item ' || i.id FROM ",
            $table,
            " i LEFT JOIN trash t ON t.workspace_id = i.workspace_id AND t.deletion_id = i.deletion_id \
             WHERE (i.deleted_at IS NULL) <> (i.deletion_id IS NULL) \
             OR (i.deletion_id IS NOT NULL AND t.deletion_id IS NULL) \
             UNION ALL SELECT 'workspace ' || t.workspace_id || ' deletion ' || t.deletion_id FROM trash t \
             LEFT JOIN ",
            $table,
            " i ON i.workspace_id = t.workspace_id AND i.id = t.item_id AND i.deletion_id = t.deletion_id \
             WHERE t.kind = ",
            $kind,
            " AND i.id IS NULL"
        )
    };
}

/// Appends the state of items that disagree with their last feed entry.
macro_rules! republish {
    ($table:literal, $kind:literal) => {
        Mend::Restore {
            does: "the feed tells what it is now",
            sql: append_current_state!(
                $kind,
                concat!(
                    "WITH last (workspace_id, item_id, position) AS (SELECT workspace_id, item_id, MAX(position) \
                     FROM feed_changes WHERE kind = ",
                    $kind,
                    " GROUP BY workspace_id, item_id) SELECT i.workspace_id, i.id AS item_id, \
                     CASE WHEN i.deleted_at IS NULL THEN 1 ELSE 2 END AS op FROM ",
                    $table,
                    " i LEFT JOIN last ON last.workspace_id = i.workspace_id AND last.item_id = i.id \
                     LEFT JOIN feed_changes c ON c.workspace_id = i.workspace_id AND c.position = last.position \
                     WHERE c.op IS NULL OR c.op <> CASE WHEN i.deleted_at IS NULL THEN 1 ELSE 2 END \
                     UNION ALL SELECT c.workspace_id, c.item_id, 2 FROM last \
                     JOIN feed_changes c ON c.workspace_id = last.workspace_id AND c.position = last.position \
                     LEFT JOIN ",
                    $table,
                    " i ON i.workspace_id = last.workspace_id AND i.id = last.item_id WHERE c.op = 1 AND i.id IS NULL"
                )
            ),
        }
    };
}

/// Repairs rows that are only half in trash. `$unless` excludes items that were deleted with their container.
macro_rules! complete_trash {
    ($table:literal, $kind:literal, $parent:literal, $name:literal, $unless:literal) => {
        Mend::Restore {
            does: "what carries half a deletion is in trash by itself, or not at all; a deletion of nothing is removed",
            sql: &[
                concat!(
                    "UPDATE ",
                    $table,
                    " SET deletion_id = NULL WHERE deleted_at IS NULL AND deletion_id IS NOT NULL"
                ),
                concat!(
                    "UPDATE ",
                    $table,
                    " SET deletion_id = id WHERE deleted_at IS NOT NULL AND deletion_id IS NULL"
                ),
                concat!(
                    "DELETE FROM trash WHERE kind = ",
                    $kind,
                    " AND NOT EXISTS (SELECT 1 FROM ",
                    $table,
                    " i WHERE i.workspace_id = trash.workspace_id AND i.id = trash.item_id \
                     AND i.deletion_id = trash.deletion_id)"
                ),
                concat!(
                    "INSERT INTO trash (workspace_id, deletion_id, kind, item_id, parent_id, name, path, items, deleted_at) \
                     SELECT i.workspace_id, i.deletion_id, ",
                    $kind,
                    ", i.id, ",
                    $parent,
                    ", ",
                    $name,
                    ", '/' || ",
                    $name,
                    ", 1, i.deleted_at FROM ",
                    $table,
                    " i WHERE i.deletion_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM trash t \
                     WHERE t.workspace_id = i.workspace_id AND t.deletion_id = i.deletion_id)",
                    $unless,
                    " ON CONFLICT DO NOTHING"
                ),
            ],
        }
    };
}

/// Makes a name a valid path segment.
macro_rules! sanitize_name {
    ($table:literal, $more:literal) => {
        concat!(
            "UPDATE ",
            $table,
            " SET name = CASE WHEN name = '' THEN 'Untitled' ELSE REPLACE(name, '/', '_') END",
            $more,
            " WHERE name = '' OR name LIKE '%/%'"
        )
    };
}

mod databases;
pub(crate) mod index;
mod memories;
mod mending;
mod records;
mod texts;

pub use self::mending::{Copies, mend};
#[cfg(test)]
pub(crate) use self::mending::{mend_in, mend_open};

/// Every invariant of the tables that a statement can check.
pub(crate) fn checks() -> Vec<Check> {
    [feed::CHECKS, CHECKS, memories::CHECKS, databases::CHECKS].concat()
}

const CHECKS: &[Check] = &[
    Check {
        rule: "a live file stands in a live folder or the root",
        sql: "SELECT 'workspace ' || f.workspace_id || ' file ' || f.id FROM files f \
              LEFT JOIN folders d ON d.workspace_id = f.workspace_id AND d.id = f.folder_id \
              WHERE f.deleted_at IS NULL AND f.folder_id IS NOT NULL AND (d.id IS NULL OR d.deleted_at IS NOT NULL)",
        mend: Mend::Restore {
            does: "it is moved to the root",
            sql: &["UPDATE files SET folder_id = NULL WHERE deleted_at IS NULL AND folder_id IS NOT NULL \
                  AND NOT EXISTS (SELECT 1 FROM folders d WHERE d.workspace_id = files.workspace_id \
                  AND d.id = files.folder_id AND d.deleted_at IS NULL)"],
        },
    },
    Check {
        rule: "a live folder stands in a live folder or the root",
        sql: "SELECT 'workspace ' || f.workspace_id || ' folder ' || f.id FROM folders f \
              LEFT JOIN folders d ON d.workspace_id = f.workspace_id AND d.id = f.parent_id \
              WHERE f.deleted_at IS NULL AND f.parent_id IS NOT NULL AND (d.id IS NULL OR d.deleted_at IS NOT NULL)",
        mend: Mend::Restore {
            does: "it is moved to the root",
            sql: &["UPDATE folders SET parent_id = NULL WHERE deleted_at IS NULL AND parent_id IS NOT NULL \
                  AND NOT EXISTS (SELECT 1 FROM folders d WHERE d.workspace_id = folders.workspace_id \
                  AND d.id = folders.parent_id AND d.deleted_at IS NULL)"],
        },
    },
    Check {
        rule: "what is in trash refers to folders that there are",
        sql: "SELECT 'workspace ' || f.workspace_id || ' file ' || f.id FROM files f \
              LEFT JOIN folders d ON d.workspace_id = f.workspace_id AND d.id = f.folder_id \
              WHERE f.folder_id IS NOT NULL AND d.id IS NULL",
        mend: Mend::Restore {
            does: "it comes back to the root when it is restored",
            sql: &["UPDATE files SET folder_id = NULL WHERE folder_id IS NOT NULL AND NOT EXISTS (\
                  SELECT 1 FROM folders d WHERE d.workspace_id = files.workspace_id AND d.id = files.folder_id)"],
        },
    },
    Check {
        rule: "every folder has a way to the root",
        sql: "WITH RECURSIVE reached (workspace_id, id) AS (\
              SELECT workspace_id, id FROM folders WHERE parent_id IS NULL UNION ALL \
              SELECT c.workspace_id, c.id FROM reached \
              JOIN folders c ON c.workspace_id = reached.workspace_id AND c.parent_id = reached.id) \
              SELECT 'workspace ' || workspace_id || ' folder ' || id FROM (\
              SELECT workspace_id, id FROM folders EXCEPT SELECT workspace_id, id FROM reached) AS lost",
        mend: Mend::GiveUp {
            does: "it is moved to the root",
            sql: &[
                "UPDATE folders SET parent_id = NULL WHERE parent_id IS NOT NULL AND NOT EXISTS (\
                 SELECT 1 FROM folders d WHERE d.workspace_id = folders.workspace_id AND d.id = folders.parent_id)",
                "WITH RECURSIVE reached (workspace_id, id) AS (\
                 SELECT workspace_id, id FROM folders WHERE parent_id IS NULL UNION ALL \
                 SELECT c.workspace_id, c.id FROM reached \
                 JOIN folders c ON c.workspace_id = reached.workspace_id AND c.parent_id = reached.id) \
                 UPDATE folders SET parent_id = NULL WHERE (workspace_id, id) NOT IN (\
                 SELECT workspace_id, id FROM reached)",
            ],
        },
    },
    Check {
        rule: "a name is one step of a path",
        sql: "SELECT 'workspace ' || workspace_id || ' file ' || id FROM files WHERE name = '' OR name LIKE '%/%' \
              UNION ALL \
              SELECT 'workspace ' || workspace_id || ' folder ' || id FROM folders WHERE name = '' OR name LIKE '%/%'",
        mend: Mend::GiveUp {
            does: "what separates steps is replaced in its name",
            sql: &[
                sanitize_name!(
                    "files",
                    ", folded_name = LOWER(CASE WHEN name = '' THEN 'Untitled' ELSE REPLACE(name, '/', '_') END)"
                ),
                sanitize_name!("folders", ""),
            ],
        },
    },
    Check {
        rule: "a trashed file carries its deletion",
        sql: trash_mismatch!("files", "1"),
        mend: complete_trash!(
            "files",
            "1",
            "i.folder_id",
            "i.name",
            " AND NOT EXISTS (SELECT 1 FROM folders x WHERE x.workspace_id = i.workspace_id \
              AND x.deletion_id = i.deletion_id)"
        ),
    },
    Check {
        rule: "a trashed folder carries its deletion",
        sql: trash_mismatch!("folders", "2"),
        mend: complete_trash!(
            "folders",
            "2",
            "i.parent_id",
            "i.name",
            " AND NOT EXISTS (SELECT 1 FROM folders x WHERE x.workspace_id = i.workspace_id AND x.id = i.parent_id \
              AND x.deletion_id = i.deletion_id)"
        ),
    },
    Check {
        rule: "what a workspace uses is what it keeps",
        sql: "SELECT 'workspace ' || workspace_id FROM (\
              SELECT workspace_id, -files AS files, -bytes AS bytes FROM workspace_usage UNION ALL \
              SELECT workspace_id, COUNT(*), 0 FROM files GROUP BY workspace_id UNION ALL \
              SELECT workspace_id, 0, SUM(size_bytes) FROM bodies GROUP BY workspace_id UNION ALL \
              SELECT workspace_id, 0, SUM(size_bytes) FROM asset_objects GROUP BY workspace_id UNION ALL \
              SELECT workspace_id, 0, SUM(OCTET_LENGTH(field_values)) FROM records GROUP BY workspace_id UNION ALL \
              SELECT workspace_id, 0, SUM(OCTET_LENGTH(field_values)) FROM record_versions GROUP BY workspace_id) \
              AS counted \
              GROUP BY workspace_id HAVING SUM(files) <> 0 OR SUM(bytes) <> 0",
        mend: Mend::Restore {
            does: "it is counted anew",
            sql: &[
                "DELETE FROM workspace_usage",
                "INSERT INTO workspace_usage (workspace_id, files, bytes) \
                 SELECT workspace_id, CAST(SUM(files) AS BIGINT), CAST(SUM(bytes) AS BIGINT) FROM (\
                 SELECT workspace_id, COUNT(*) AS files, 0 AS bytes FROM files GROUP BY workspace_id UNION ALL \
                 SELECT workspace_id, 0, SUM(size_bytes) FROM bodies GROUP BY workspace_id UNION ALL \
                 SELECT workspace_id, 0, SUM(size_bytes) FROM asset_objects GROUP BY workspace_id UNION ALL \
                 SELECT workspace_id, 0, SUM(OCTET_LENGTH(field_values)) FROM records GROUP BY workspace_id UNION ALL \
                 SELECT workspace_id, 0, SUM(OCTET_LENGTH(field_values)) FROM record_versions GROUP BY workspace_id) \
                 AS kept GROUP BY workspace_id",
            ],
        },
    },
    Check {
        rule: "the feed's last word on a file is true",
        sql: stale_feed!("files", "1"),
        mend: republish!("files", "1"),
    },
    Check {
        rule: "the feed's last word on a folder is true",
        sql: stale_feed!("folders", "2"),
        mend: republish!("folders", "2"),
    },
    Check {
        rule: "a file has a body of its size",
        sql: "SELECT 'workspace ' || f.workspace_id || ' file ' || f.id FROM files f \
              LEFT JOIN bodies b ON b.workspace_id = f.workspace_id AND b.hash = f.content_hash \
              WHERE b.hash IS NULL OR b.size_bytes <> f.size_bytes",
        mend: Mend::Restore {
            does: "its size is that of its body",
            sql: &["UPDATE files SET size_bytes = (SELECT b.size_bytes FROM bodies b \
                  WHERE b.workspace_id = files.workspace_id AND b.hash = files.content_hash) WHERE EXISTS (\
                  SELECT 1 FROM bodies b WHERE b.workspace_id = files.workspace_id AND b.hash = files.content_hash \
                  AND b.size_bytes <> files.size_bytes)"],
        },
    },
    Check {
        rule: "a version has a file and a body of its size",
        sql: "SELECT 'workspace ' || v.workspace_id || ' file ' || v.file_id || ' version ' || CAST(v.version AS TEXT) \
              FROM file_versions v LEFT JOIN files f ON f.workspace_id = v.workspace_id AND f.id = v.file_id \
              LEFT JOIN bodies b ON b.workspace_id = v.workspace_id AND b.hash = v.content_hash \
              WHERE f.id IS NULL OR b.hash IS NULL OR b.size_bytes <> v.size_bytes",
        mend: Mend::GiveUp {
            does: "its size is that of its body; a file of which only versions are left stands in the root, as `recovered-` and \
                   its id; versions of what cannot be one are removed",
            sql: &[
                // A foreign key prevents versions without a file, so the row of the file is what was lost.
                "INSERT INTO files (workspace_id, id, folder_id, name, folded_name, file_type, tags, size_bytes, \
                 content_hash, version, created_at, updated_at) \
                 SELECT v.workspace_id, v.file_id, NULL, 'recovered-' || v.file_id, 'recovered-' || v.file_id, 1, '[]', \
                 b.size_bytes, v.content_hash, v.version, v.created_at, v.created_at FROM file_versions v \
                 JOIN bodies b ON b.workspace_id = v.workspace_id AND b.hash = v.content_hash \
                 WHERE v.version = (SELECT MAX(n.version) FROM file_versions n \
                 WHERE n.workspace_id = v.workspace_id AND n.file_id = v.file_id) \
                 AND v.file_id LIKE '________-____-____-____-____________' AND TRIM(v.file_id, '0123456789abcdef-') = '' \
                 AND NOT EXISTS (SELECT 1 FROM files f WHERE f.workspace_id = v.workspace_id AND f.id = v.file_id)",
                "UPDATE file_versions SET size_bytes = (SELECT b.size_bytes FROM bodies b \
                 WHERE b.workspace_id = file_versions.workspace_id AND b.hash = file_versions.content_hash) WHERE EXISTS (\
                 SELECT 1 FROM bodies b WHERE b.workspace_id = file_versions.workspace_id \
                 AND b.hash = file_versions.content_hash AND b.size_bytes <> file_versions.size_bytes)",
                "DELETE FROM file_versions WHERE NOT EXISTS (SELECT 1 FROM files f \
                 WHERE f.workspace_id = file_versions.workspace_id AND f.id = file_versions.file_id)",
            ],
        },
    },
    Check {
        rule: "a file's content is its newest version",
        sql: "SELECT 'workspace ' || f.workspace_id || ' file ' || f.id FROM files f \
              LEFT JOIN (SELECT workspace_id, file_id, MAX(version) AS version FROM file_versions \
              GROUP BY workspace_id, file_id) n ON n.workspace_id = f.workspace_id AND n.file_id = f.id \
              LEFT JOIN file_versions v ON v.workspace_id = f.workspace_id AND v.file_id = f.id \
              AND v.version = n.version \
              WHERE v.content_hash IS NULL OR v.content_hash <> f.content_hash OR v.version > f.version",
        mend: Mend::GiveUp {
            does: "its content is its newest version, by nobody known",
            sql: &[
                "UPDATE files SET version = (SELECT MAX(v.version) FROM file_versions v \
                 WHERE v.workspace_id = files.workspace_id AND v.file_id = files.id) WHERE version < (\
                 SELECT MAX(v.version) FROM file_versions v \
                 WHERE v.workspace_id = files.workspace_id AND v.file_id = files.id)",
                "UPDATE files SET version = version + 1 WHERE EXISTS (SELECT 1 FROM file_versions v \
                 WHERE v.workspace_id = files.workspace_id AND v.file_id = files.id AND v.version = files.version \
                 AND v.content_hash <> files.content_hash)",
                "INSERT INTO file_versions (workspace_id, file_id, version, content_hash, size_bytes, created_at, \
                 author_kind, author_id, author_name) \
                 SELECT f.workspace_id, f.id, f.version, f.content_hash, f.size_bytes, f.updated_at, '', '', '' FROM files f \
                 WHERE NOT EXISTS (SELECT 1 FROM file_versions v WHERE v.workspace_id = f.workspace_id \
                 AND v.file_id = f.id AND v.content_hash = f.content_hash AND v.version = (\
                 SELECT MAX(n.version) FROM file_versions n WHERE n.workspace_id = f.workspace_id AND n.file_id = f.id))",
            ],
        },
    },
];

/// Checks the content of a storage; `None` when it has none. Read-only.
///
/// # Errors
///
/// When the storage cannot be read.
pub async fn examine(
    storage: &sql::Config,
    assets: &AssetLocation,
    clock: &dyn Clock,
    progress: Progress<'_>,
) -> Result<Option<Vec<Finding>>, Error> {
    let Some(db) = Db::open_existing(storage, store::SCHEMA, store::MIGRATIONS).await? else {
        return Ok(None);
    };
    let mut findings = examine_open(&db, progress).await?;
    findings.extend(assets::examine(&db, assets, clock.now(), progress).await?);
    db.close().await;
    Ok(Some(findings))
}

/// [`examine`] on an open storage; all checks read one snapshot.
pub(crate) async fn examine_open(db: &Db, progress: Progress<'_>) -> Result<Vec<Finding>, Error> {
    let mut tx = db.begin_read().await?;
    let mut findings = examine_in(&mut tx, progress).await?;
    findings.extend(bodies::examine(&mut tx, progress).await?);
    tx.rollback().await?;
    Ok(findings)
}

/// Everything except the bodies, in one transaction.
pub(crate) async fn examine_in(tx: &mut Tx, progress: Progress<'_>) -> Result<Vec<Finding>, Error> {
    let mut findings = doctor::run(tx, &checks(), progress).await?;
    findings.extend(records::examine(tx, progress).await?);
    Ok(findings)
}
