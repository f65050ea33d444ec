//! What must always hold of databases and records, as far as a statement can see; what their contents must be like is in
//! [`super::records`].

use cairn_chassis::doctor::Check;

pub(super) const CHECKS: &[Check] = &[
    Check {
        rule: "a live database stands in a live folder or the root",
        sql: "SELECT 'workspace ' || i.workspace_id || ' database ' || i.id FROM databases i \
              LEFT JOIN folders d ON d.workspace_id = i.workspace_id AND d.id = i.folder_id \
              WHERE i.deleted_at IS NULL AND i.folder_id IS NOT NULL AND (d.id IS NULL OR d.deleted_at IS NOT NULL)",
    },
    Check {
        rule: "a database in trash refers to a folder that there is",
        sql: "SELECT 'workspace ' || i.workspace_id || ' database ' || i.id FROM databases i \
              LEFT JOIN folders d ON d.workspace_id = i.workspace_id AND d.id = i.folder_id \
              WHERE i.deleted_at IS NOT NULL AND i.folder_id IS NOT NULL AND d.id IS NULL",
    },
    Check {
        rule: "a database's name is one step of a path",
        sql: "SELECT 'workspace ' || workspace_id || ' database ' || id FROM databases \
              WHERE name = '' OR name LIKE '%/%'",
    },
    Check { rule: "a trashed database carries its deletion", sql: trashed!("databases", "4") },
    Check { rule: "a trashed record carries its deletion", sql: trashed!("records", "5") },
    Check {
        rule: "the deletion of a record names its database",
        sql: "SELECT 'workspace ' || t.workspace_id || ' record ' || t.item_id FROM trash t \
              JOIN records r ON r.workspace_id = t.workspace_id AND r.id = t.item_id \
              WHERE t.kind = 5 AND (t.parent_id IS NULL OR t.parent_id <> r.database_id)",
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
    },
    Check { rule: "the feed's last word on a database is true", sql: last_word!("databases", "4") },
    Check {
        // While its database is in trash, the owner answers for a record.
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
    },
    Check {
        rule: "the versions of a record go from 1 to the present one",
        sql: "SELECT 'workspace ' || r.workspace_id || ' record ' || r.id FROM records r \
              LEFT JOIN (SELECT workspace_id, record_id, COUNT(*) AS kept, MIN(version) AS first, \
              MAX(version) AS last FROM record_versions GROUP BY workspace_id, record_id) v \
              ON v.workspace_id = r.workspace_id AND v.record_id = r.id \
              WHERE v.kept IS NULL OR v.first <> 1 OR v.last <> r.version OR v.kept <> r.version",
    },
    Check {
        rule: "a record is what its newest version holds",
        sql: "SELECT 'workspace ' || r.workspace_id || ' record ' || r.id FROM records r \
              JOIN record_versions v ON v.workspace_id = r.workspace_id AND v.record_id = r.id \
              AND v.version = r.version WHERE v.field_values <> r.field_values \
              OR COALESCE(v.content_file_id, '') <> COALESCE(r.content_file_id, '')",
    },
    Check {
        rule: "only live records have cells, in their own database",
        sql: "SELECT DISTINCT 'workspace ' || c.workspace_id || ' record ' || c.record_id FROM record_cells c \
              LEFT JOIN records r ON r.workspace_id = c.workspace_id AND r.id = c.record_id \
              WHERE r.id IS NULL OR r.deleted_at IS NOT NULL OR r.database_id <> c.database_id",
    },
];
