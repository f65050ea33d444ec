//! What must always hold of memories. What a member refers to may be gone: its absence is told when the memory is read.

use cairn_chassis::doctor::Check;

pub(super) const CHECKS: &[Check] = &[
    Check {
        rule: "a slug belongs to one memory of the workspace",
        sql: "SELECT 'workspace ' || workspace_id || ' slug ' || slug FROM memories \
              WHERE deleted_at IS NULL GROUP BY workspace_id, slug HAVING COUNT(*) > 1 OR slug = ''",
    },
    Check {
        rule: "a memory has a name, and a version from 1 on",
        sql: "SELECT 'workspace ' || workspace_id || ' memory ' || id FROM memories WHERE name = '' OR version < 1",
    },
    Check {
        rule: "the members of a memory stand at 0, 1, 2 and so on",
        sql: "SELECT 'workspace ' || workspace_id || ' memory ' || memory_id FROM memory_members \
              GROUP BY workspace_id, memory_id HAVING MIN(position) <> 0 OR MAX(position) <> COUNT(*) - 1 \
              OR COUNT(DISTINCT position) <> COUNT(*)",
    },
    Check {
        rule: "a member is of a known kind, and only a database is asked a query",
        sql: "SELECT 'workspace ' || workspace_id || ' memory ' || memory_id || ' member ' || id FROM memory_members \
              WHERE kind NOT IN (1, 2, 3, 4) OR (query IS NOT NULL AND kind <> 4)",
    },
    Check { rule: "the feed's last word on a memory is true", sql: last_word!("memories", "3") },
    Check { rule: "a trashed memory carries its deletion", sql: trashed!("memories", "3") },
];
