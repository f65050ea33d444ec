//! What lists of files and of folders share: which items, and from where on.

use cairn_chassis::sql::Error;
use cairn_proto::ids::FolderId;

use crate::model::Cursor;

/// Which items of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListScope {
    /// All.
    All,
    /// Those that no folder holds.
    Root,
    /// Those that this folder holds directly.
    In(FolderId),
    /// Those that these folders or folders below them hold; of folders, also these themselves.
    Below(Vec<FolderId>),
}

/// Where a page begins; before everything when there is no cursor, as no name is empty.
pub(crate) fn start(after: Option<&Cursor>) -> (&str, &str) {
    after.map_or(("", ""), |cursor| (cursor.name.as_str(), cursor.id.as_str()))
}

/// The folders that lead from the root to a place, from the joined columns of an `up` expression.
pub(super) fn folders_of(ids: &str) -> Result<Vec<FolderId>, Error> {
    ids.split('/').map(|id| id.parse().map_err(|_| Error::corrupt("a folder's id is not a UUID"))).collect()
}

pub(super) fn to_count(column: i64) -> u64 {
    u64::try_from(column).unwrap_or(0)
}

pub(super) fn to_column(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// `below`: the live folders of a seed and all below them. The seed is a subquery of ids.
macro_rules! below {
    () => {
        " UNION SELECT c.id FROM below JOIN folders c ON c.workspace_id = $1 AND c.parent_id = below.id \
          WHERE c.deleted_at IS NULL)"
    };
}

/// `up`: for each live folder of a seed (a subquery of ids), its way to the root; the row without a parent has the
/// whole way, from the root on, as ids and as names, joined by '/', which neither holds. The depth is bounded so that
/// a circle, which the rules prevent, would end.
macro_rules! up {
    ($seed:literal) => {
        concat!(
            "up (start_id, parent_id, ids, path, depth) AS (\
             SELECT s.id, s.parent_id, s.id, s.name, 1 FROM folders s \
             WHERE s.workspace_id = $1 AND s.deleted_at IS NULL AND s.id IN (",
            $seed,
            ") UNION ALL \
             SELECT up.start_id, p.parent_id, p.id || '/' || up.ids, p.name || '/' || up.path, up.depth + 1 \
             FROM up JOIN folders p ON p.workspace_id = $1 AND p.id = up.parent_id WHERE up.depth < 128)"
        )
    };
}

/// The ids of the files that the deletion `$2` took, as a subquery. No index names a file's deletion, so that moving
/// files to trash changes no index: they are looked for in the folders below what was deleted.
macro_rules! files_taken {
    () => {
        "(WITH RECURSIVE down (id) AS (SELECT item_id FROM trash WHERE workspace_id = $1 AND deletion_id = $2 UNION \
         SELECT c.id FROM down JOIN folders c ON c.workspace_id = $1 AND c.parent_id = down.id) \
         SELECT x.id FROM down JOIN files x ON x.workspace_id = $1 AND x.folder_id = down.id WHERE x.deletion_id = $2 \
         UNION ALL SELECT x.id FROM down JOIN files x ON x.workspace_id = $1 AND x.id = down.id WHERE x.deletion_id = $2)"
    };
}

/// Whether a file bears all tags of the list `$tags`, as the end of a condition.
macro_rules! tagged {
    (sqlite, $files:literal, $tags:literal) => {
        concat!(
            " AND NOT EXISTS (SELECT 1 FROM json_each(",
            $tags,
            ") wanted WHERE NOT EXISTS (SELECT 1 FROM json_each(",
            $files,
            ".tags) has WHERE has.value = wanted.value))"
        )
    };
    (postgres, $files:literal, $tags:literal) => {
        concat!(" AND CAST(", $files, ".tags AS JSONB) @> CAST(CAST(", $tags, " AS TEXT) AS JSONB)")
    };
}

pub(super) use {below, files_taken, tagged, up};
