//! The invariants of memories. The target of a member may be missing: reads report that.

use cairn_chassis::append_current_state;
use cairn_chassis::doctor::{Check, Mend};

pub(super) const CHECKS: &[Check] = &[
    Check {
        rule: "a slug belongs to one memory of the workspace",
        sql: "SELECT 'workspace ' || workspace_id || ' slug ' || slug FROM memories \
              WHERE deleted_at IS NULL GROUP BY workspace_id, slug HAVING COUNT(*) > 1 OR slug = ''",
        mend: Mend::GiveUp {
            does: "the slug of all but one is made longer by its id",
            sql: &[
                "UPDATE memories SET slug = slug || '-' || id WHERE deleted_at IS NULL AND slug <> '' AND EXISTS (\
                 SELECT 1 FROM memories o WHERE o.workspace_id = memories.workspace_id AND o.slug = memories.slug \
                 AND o.deleted_at IS NULL AND o.id < memories.id)",
                "UPDATE memories SET slug = id WHERE slug = ''",
            ],
        },
    },
    Check {
        rule: "a memory has a name, and a version from 1 on",
        sql: "SELECT 'workspace ' || workspace_id || ' memory ' || id FROM memories WHERE name = '' OR version < 1",
        mend: Mend::GiveUp {
            does: "it gets a name, and the version 1",
            sql: &[
                "UPDATE memories SET name = 'Untitled' WHERE name = ''",
                "UPDATE memories SET version = 1 WHERE version < 1",
            ],
        },
    },
    Check {
        rule: "the members of a memory stand at 0, 1, 2 and so on",
        sql: "SELECT 'workspace ' || workspace_id || ' memory ' || memory_id FROM memory_members \
              GROUP BY workspace_id, memory_id HAVING MIN(position) <> 0 OR MAX(position) <> COUNT(*) - 1 \
              OR COUNT(DISTINCT position) <> COUNT(*)",
        mend: Mend::Restore {
            does: "they are numbered anew in their order",
            sql: &[
                "UPDATE memory_members SET position = numbered.fresh FROM (SELECT workspace_id, memory_id, id, \
                  ROW_NUMBER() OVER (PARTITION BY workspace_id, memory_id ORDER BY position, id) - 1 AS fresh \
                  FROM memory_members) AS numbered WHERE numbered.workspace_id = memory_members.workspace_id \
                  AND numbered.memory_id = memory_members.memory_id AND numbered.id = memory_members.id \
                  AND numbered.fresh <> memory_members.position",
            ],
        },
    },
    Check {
        rule: "a member is of a known kind, and only a database is asked a query",
        sql: "SELECT 'workspace ' || workspace_id || ' memory ' || memory_id || ' member ' || id FROM memory_members \
              WHERE kind NOT IN (1, 2, 3, 4) OR (query IS NOT NULL AND kind <> 4)",
        mend: Mend::GiveUp {
            does: "a member of an unknown kind is removed, and so is a query of what is no database",
            sql: &[
                "DELETE FROM memory_members WHERE kind NOT IN (1, 2, 3, 4)",
                "UPDATE memory_members SET query = NULL WHERE query IS NOT NULL AND kind <> 4",
            ],
        },
    },
    Check {
        rule: "a member and a version are of a memory that there is",
        sql: "SELECT 'workspace ' || c.workspace_id || ' memory ' || c.memory_id || ' member ' || c.id FROM memory_members c \
              LEFT JOIN memories m ON m.workspace_id = c.workspace_id AND m.id = c.memory_id WHERE m.id IS NULL \
              UNION ALL SELECT 'workspace ' || v.workspace_id || ' memory ' || v.memory_id || ' version ' || \
              CAST(v.version AS TEXT) FROM memory_versions v \
              LEFT JOIN memories m ON m.workspace_id = v.workspace_id AND m.id = v.memory_id WHERE m.id IS NULL",
        mend: Mend::GiveUp {
            does: "what is of no memory is removed",
            sql: &[
                "DELETE FROM memory_members WHERE NOT EXISTS (SELECT 1 FROM memories m \
                 WHERE m.workspace_id = memory_members.workspace_id AND m.id = memory_members.memory_id)",
                "DELETE FROM memory_versions WHERE NOT EXISTS (SELECT 1 FROM memories m \
                 WHERE m.workspace_id = memory_versions.workspace_id AND m.id = memory_versions.memory_id)",
            ],
        },
    },
    Check {
        rule: "the feed's last word on a memory is true",
        sql: stale_feed!("memories", "3"),
        mend: republish!("memories", "3"),
    },
    Check {
        rule: "a trashed memory carries its deletion",
        sql: trash_mismatch!("memories", "3"),
        mend: complete_trash!("memories", "3", "NULL", "i.name", ""),
    },
];
