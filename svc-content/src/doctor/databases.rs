//! The invariants of databases and records that a statement can check; those of their contents are in
//! [`super::records`].

use cairn_chassis::append_current_state;
use cairn_chassis::doctor::{Check, Mend};

use super::records::VERSION_RULE;

pub(super) const CHECKS: &[Check] = &[
    Check {
        rule: "a live database stands in a live folder or the root",
        sql: "SELECT 'workspace ' || i.workspace_id || ' database ' || i.id FROM databases i \
              LEFT JOIN folders d ON d.workspace_id = i.workspace_id AND d.id = i.folder_id \
              WHERE i.deleted_at IS NULL AND i.folder_id IS NOT NULL AND (d.id IS NULL OR d.deleted_at IS NOT NULL)",
        mend: Mend::Restore {
            does: "it is moved to the root",
            sql: &[
                "UPDATE databases SET folder_id = NULL WHERE deleted_at IS NULL AND folder_id IS NOT NULL \
                  AND NOT EXISTS (SELECT 1 FROM folders d WHERE d.workspace_id = databases.workspace_id \
                  AND d.id = databases.folder_id AND d.deleted_at IS NULL)",
            ],
        },
    },
    Check {
        rule: "a database in trash refers to a folder that there is",
        sql: "SELECT 'workspace ' || i.workspace_id || ' database ' || i.id FROM databases i \
              LEFT JOIN folders d ON d.workspace_id = i.workspace_id AND d.id = i.folder_id \
              WHERE i.deleted_at IS NOT NULL AND i.folder_id IS NOT NULL AND d.id IS NULL",
        mend: Mend::Restore {
            does: "it comes back to the root when it is restored",
            sql: &["UPDATE databases SET folder_id = NULL WHERE folder_id IS NOT NULL AND NOT EXISTS (\
                  SELECT 1 FROM folders d WHERE d.workspace_id = databases.workspace_id AND d.id = databases.folder_id)"],
        },
    },
    Check {
        rule: "a database's name is one step of a path",
        sql: "SELECT 'workspace ' || workspace_id || ' database ' || id FROM databases \
              WHERE name = '' OR name LIKE '%/%'",
        mend: Mend::GiveUp {
            does: "what separates steps is replaced in its name",
            sql: &[sanitize_name!("databases", "")],
        },
    },
    Check {
        rule: "a trashed database carries its deletion",
        sql: trash_mismatch!("databases", "4"),
        mend: complete_trash!(
            "databases",
            "4",
            "i.folder_id",
            "i.name",
            " AND NOT EXISTS (SELECT 1 FROM folders x WHERE x.workspace_id = i.workspace_id \
              AND x.deletion_id = i.deletion_id)"
        ),
    },
    Check {
        rule: "a trashed record carries its deletion",
        sql: trash_mismatch!("records", "5"),
        mend: complete_trash!(
            "records",
            "5",
            "i.database_id",
            "CASE WHEN TRIM(i.title) = '' THEN 'Untitled' ELSE SUBSTR(i.title, 1, 255) END",
            " AND NOT EXISTS (SELECT 1 FROM folders x WHERE x.workspace_id = i.workspace_id \
              AND x.deletion_id = i.deletion_id) AND NOT EXISTS (SELECT 1 FROM databases x \
              WHERE x.workspace_id = i.workspace_id AND x.deletion_id = i.deletion_id)"
        ),
    },
    Check {
        rule: "the deletion of a record names its database",
        sql: "SELECT 'workspace ' || t.workspace_id || ' record ' || t.item_id FROM trash t \
              JOIN records r ON r.workspace_id = t.workspace_id AND r.id = t.item_id \
              WHERE t.kind = 5 AND (t.parent_id IS NULL OR t.parent_id <> r.database_id)",
        mend: Mend::Restore {
            does: "it names the database of the record",
            sql: &["UPDATE trash SET parent_id = (SELECT r.database_id FROM records r \
                  WHERE r.workspace_id = trash.workspace_id AND r.id = trash.item_id) WHERE kind = 5 AND EXISTS (\
                  SELECT 1 FROM records r WHERE r.workspace_id = trash.workspace_id AND r.id = trash.item_id \
                  AND (trash.parent_id IS NULL OR trash.parent_id <> r.database_id))"],
        },
    },
    Check {
        rule: "a deletion counts what it took",
        sql: "WITH taken (workspace_id, deletion_id) AS (\
              SELECT workspace_id, deletion_id FROM folders WHERE deletion_id IS NOT NULL UNION ALL \
              SELECT workspace_id, deletion_id FROM files WHERE deletion_id IS NOT NULL UNION ALL \
              SELECT workspace_id, deletion_id FROM databases WHERE deletion_id IS NOT NULL UNION ALL \
              SELECT workspace_id, deletion_id FROM records WHERE deletion_id IS NOT NULL UNION ALL \
              SELECT workspace_id, deletion_id FROM memories WHERE deletion_id IS NOT NULL), \
              counted (workspace_id, deletion_id, items) AS (\
              SELECT workspace_id, deletion_id, COUNT(*) FROM taken GROUP BY workspace_id, deletion_id) \
              SELECT 'workspace ' || t.workspace_id || ' deletion ' || t.deletion_id FROM trash t \
              LEFT JOIN counted c ON c.workspace_id = t.workspace_id AND c.deletion_id = t.deletion_id \
              WHERE t.items < COALESCE(c.items, 1)",
        mend: Mend::Restore {
            does: "it is counted anew",
            sql: &["WITH taken (workspace_id, deletion_id) AS (\
                  SELECT workspace_id, deletion_id FROM folders WHERE deletion_id IS NOT NULL UNION ALL \
                  SELECT workspace_id, deletion_id FROM files WHERE deletion_id IS NOT NULL UNION ALL \
                  SELECT workspace_id, deletion_id FROM databases WHERE deletion_id IS NOT NULL UNION ALL \
                  SELECT workspace_id, deletion_id FROM records WHERE deletion_id IS NOT NULL UNION ALL \
                  SELECT workspace_id, deletion_id FROM memories WHERE deletion_id IS NOT NULL) \
                  UPDATE trash SET items = (SELECT COUNT(*) FROM taken t WHERE t.workspace_id = trash.workspace_id \
                  AND t.deletion_id = trash.deletion_id) WHERE items < (SELECT COUNT(*) FROM taken t \
                  WHERE t.workspace_id = trash.workspace_id AND t.deletion_id = trash.deletion_id)"],
        },
    },
    Check {
        rule: "the feed's last word on a database is true",
        sql: stale_feed!("databases", "4"),
        mend: republish!("databases", "4"),
    },
    Check {
        // Any last entry is right for a live record of a trashed database: the record is hidden until the database is restored.
        rule: "the feed's last word on a record is true",
        sql: "WITH last (workspace_id, item_id, position) AS (SELECT workspace_id, item_id, MAX(position) \
              FROM feed_changes WHERE kind = 5 GROUP BY workspace_id, item_id) \
              SELECT 'workspace ' || r.workspace_id || ' record ' || r.id FROM records r \
              JOIN databases d ON d.workspace_id = r.workspace_id AND d.id = r.database_id \
              LEFT JOIN last ON last.workspace_id = r.workspace_id AND last.item_id = r.id \
              LEFT JOIN feed_changes c ON c.workspace_id = r.workspace_id AND c.position = last.position \
              WHERE c.op IS NULL OR (r.deleted_at IS NULL AND d.deleted_at IS NULL AND c.op <> 1) \
              OR (r.deleted_at IS NOT NULL AND c.op <> 2) \
              UNION ALL SELECT 'workspace ' || c.workspace_id || ' record ' || c.item_id FROM last \
              JOIN feed_changes c ON c.workspace_id = last.workspace_id AND c.position = last.position \
              LEFT JOIN records r ON r.workspace_id = last.workspace_id AND r.id = last.item_id \
              WHERE c.op = 1 AND r.id IS NULL",
        mend: Mend::Restore {
            does: "the feed tells what it is now",
            sql: append_current_state!(
                "5",
                concat!(
                    "WITH last (workspace_id, item_id, position) AS (SELECT workspace_id, item_id, MAX(position) \
                     FROM feed_changes WHERE kind = 5 GROUP BY workspace_id, item_id) \
                     SELECT r.workspace_id, r.id AS item_id, \
                     CASE WHEN r.deleted_at IS NULL AND d.deleted_at IS NULL THEN 1 ELSE 2 END AS op FROM records r \
                     JOIN databases d ON d.workspace_id = r.workspace_id AND d.id = r.database_id \
                     LEFT JOIN last ON last.workspace_id = r.workspace_id AND last.item_id = r.id \
                     LEFT JOIN feed_changes c ON c.workspace_id = r.workspace_id AND c.position = last.position \
                     WHERE c.op IS NULL OR (r.deleted_at IS NULL AND d.deleted_at IS NULL AND c.op <> 1) \
                     OR (r.deleted_at IS NOT NULL AND c.op <> 2) ",
                    "UNION ALL SELECT c.workspace_id, c.item_id, 2 FROM last \
                     JOIN feed_changes c ON c.workspace_id = last.workspace_id AND c.position = last.position \
                     LEFT JOIN records r ON r.workspace_id = last.workspace_id AND r.id = last.item_id \
                     WHERE c.op = 1 AND r.id IS NULL"
                )
            ),
        },
    },
    Check {
        rule: "a database counts its live records",
        sql: "WITH counted (workspace_id, database_id, live) AS (\
              SELECT workspace_id, database_id, COUNT(*) FROM records WHERE deleted_at IS NULL \
              GROUP BY workspace_id, database_id) \
              SELECT 'workspace ' || d.workspace_id || ' database ' || d.id FROM databases d \
              LEFT JOIN counted c ON c.workspace_id = d.workspace_id AND c.database_id = d.id \
              LEFT JOIN record_counts k ON k.workspace_id = d.workspace_id AND k.database_id = d.id \
              WHERE COALESCE(c.live, 0) <> COALESCE(k.live, 0) \
              UNION ALL SELECT 'workspace ' || k.workspace_id || ' database ' || k.database_id FROM record_counts k \
              LEFT JOIN databases d ON d.workspace_id = k.workspace_id AND d.id = k.database_id WHERE d.id IS NULL",
        mend: Mend::Restore {
            does: "they are counted anew",
            sql: &[
                "DELETE FROM record_counts",
                "INSERT INTO record_counts (workspace_id, database_id, live) \
                 SELECT r.workspace_id, r.database_id, COUNT(*) FROM records r JOIN databases d \
                 ON d.workspace_id = r.workspace_id AND d.id = r.database_id WHERE r.deleted_at IS NULL \
                 GROUP BY r.workspace_id, r.database_id",
            ],
        },
    },
    Check {
        rule: "a record is of a database that there is, and a version of a record",
        sql: "SELECT 'workspace ' || r.workspace_id || ' record ' || r.id FROM records r \
              LEFT JOIN databases d ON d.workspace_id = r.workspace_id AND d.id = r.database_id WHERE d.id IS NULL \
              UNION ALL SELECT 'workspace ' || v.workspace_id || ' record ' || v.record_id || ' version ' || \
              CAST(v.version AS TEXT) FROM record_versions v \
              LEFT JOIN records r ON r.workspace_id = v.workspace_id AND r.id = v.record_id WHERE r.id IS NULL",
        mend: Mend::GiveUp {
            does: "what is of nothing is removed",
            sql: &[
                "DELETE FROM record_versions WHERE NOT EXISTS (SELECT 1 FROM records r JOIN databases d \
                 ON d.workspace_id = r.workspace_id AND d.id = r.database_id \
                 WHERE r.workspace_id = record_versions.workspace_id AND r.id = record_versions.record_id)",
                "DELETE FROM records WHERE NOT EXISTS (SELECT 1 FROM databases d \
                 WHERE d.workspace_id = records.workspace_id AND d.id = records.database_id)",
            ],
        },
    },
    Check {
        rule: "the versions of a record go from 1 to the present one",
        sql: "SELECT 'workspace ' || r.workspace_id || ' record ' || r.id FROM records r \
              LEFT JOIN (SELECT workspace_id, record_id, COUNT(*) AS kept, MIN(version) AS first, \
              MAX(version) AS last FROM record_versions GROUP BY workspace_id, record_id) v \
              ON v.workspace_id = r.workspace_id AND v.record_id = r.id \
              WHERE v.kept IS NULL OR v.first <> 1 OR v.last <> r.version OR v.kept <> r.version",
        mend: Mend::GiveUp {
            does: "what it was in versions that are lost is what it is now",
            sql: &[
                "DELETE FROM record_versions WHERE version < 1",
                "UPDATE records SET version = (SELECT MAX(v.version) FROM record_versions v \
                 WHERE v.workspace_id = records.workspace_id AND v.record_id = records.id) WHERE version < (\
                 SELECT MAX(v.version) FROM record_versions v \
                 WHERE v.workspace_id = records.workspace_id AND v.record_id = records.id)",
                "UPDATE records SET version = 1 WHERE version < 1",
                "WITH RECURSIVE places (workspace_id, record_id, version, last) AS (\
                 SELECT workspace_id, id, CAST(1 AS BIGINT), version FROM records UNION ALL \
                 SELECT workspace_id, record_id, version + 1, last FROM places WHERE version < last) \
                 INSERT INTO record_versions (workspace_id, record_id, version, field_values, content_file_id, created_at, \
                 author_kind, author_id, author_name) \
                 SELECT r.workspace_id, r.id, p.version, r.field_values, r.content_file_id, r.updated_at, '', '', '' \
                 FROM places p JOIN records r ON r.workspace_id = p.workspace_id AND r.id = p.record_id \
                 LEFT JOIN record_versions v ON v.workspace_id = p.workspace_id AND v.record_id = p.record_id \
                 AND v.version = p.version WHERE v.version IS NULL",
            ],
        },
    },
    Check {
        rule: VERSION_RULE,
        sql: "SELECT 'workspace ' || r.workspace_id || ' record ' || r.id FROM records r \
              JOIN record_versions v ON v.workspace_id = r.workspace_id AND v.record_id = r.id \
              AND v.version = r.version WHERE v.field_values <> r.field_values \
              OR COALESCE(v.content_file_id, '') <> COALESCE(r.content_file_id, '')",
        mend: Mend::GiveUp {
            // Only where that version cannot be parsed: `records::mend_versions` comes before.
            does: "its newest version holds what it is now",
            sql: &["UPDATE record_versions SET field_values = (SELECT r.field_values FROM records r \
                  WHERE r.workspace_id = record_versions.workspace_id AND r.id = record_versions.record_id), \
                  content_file_id = (SELECT r.content_file_id FROM records r \
                  WHERE r.workspace_id = record_versions.workspace_id AND r.id = record_versions.record_id) WHERE EXISTS (\
                  SELECT 1 FROM records r WHERE r.workspace_id = record_versions.workspace_id \
                  AND r.id = record_versions.record_id AND r.version = record_versions.version \
                  AND (r.field_values <> record_versions.field_values \
                  OR COALESCE(r.content_file_id, '') <> COALESCE(record_versions.content_file_id, '')))"],
        },
    },
    Check {
        rule: "only live records have cells, in their own database",
        sql: "SELECT DISTINCT 'workspace ' || c.workspace_id || ' record ' || c.record_id FROM record_cells c \
              LEFT JOIN records r ON r.workspace_id = c.workspace_id AND r.id = c.record_id \
              WHERE r.id IS NULL OR r.deleted_at IS NOT NULL OR r.database_id <> c.database_id",
        mend: Mend::Restore {
            does: "cells of any other are removed",
            sql: &["DELETE FROM record_cells WHERE NOT EXISTS (SELECT 1 FROM records r \
                  WHERE r.workspace_id = record_cells.workspace_id AND r.id = record_cells.record_id \
                  AND r.deleted_at IS NULL AND r.database_id = record_cells.database_id)"],
        },
    },
];
