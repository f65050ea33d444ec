//! The current contents of a memory's members, in one statement.

use std::collections::HashMap;

use cairn_chassis::list_statement;
use cairn_chassis::on_db;
use cairn_chassis::sql::{Dialect, Error, Text, Tx};
use cairn_proto::ids::{FolderId, MemberId, MemoryId, WorkspaceId};

use super::scope_columns;
use crate::bodies::Body;
use crate::files::File;
use crate::store::page::{below, to_column, to_count, up};
use crate::store::{bodies, files};

/// The current files of a memory's members with their bodies: `$4` the memory, `$5` the bytes of all bodies together,
/// `$6` the files of one folder member. Of what the scope does not cover, one row a member tells that there is some.
pub(super) const CONTENTS: Dialect = in_scope!(concat!(
    "member AS (SELECT id, position, kind, target_id FROM memory_members WHERE workspace_id = $1 AND memory_id = $4), ",
    up!("SELECT target_id FROM member WHERE kind = 2 UNION SELECT f.folder_id FROM member m \
         JOIN files f ON f.workspace_id = $1 AND f.id = m.target_id AND f.deleted_at IS NULL WHERE m.kind = 1"),
    ", way AS (SELECT start_id, ids, path FROM up WHERE parent_id IS NULL), \
     inside (top, id, ids, path, depth) AS (\
     SELECT start_id, start_id, ids, path, 1 FROM way \
     WHERE start_id IN (SELECT target_id FROM member WHERE kind = 2) UNION ALL \
     SELECT i.top, c.id, i.ids || '/' || c.id, i.path || '/' || c.name, i.depth + 1 FROM inside i \
     JOIN folders c ON c.workspace_id = $1 AND c.parent_id = i.id WHERE c.deleted_at IS NULL AND i.depth < 128), \
     found AS (SELECT m.id AS member_id, m.position AS member_position, f.*, way.ids AS folder_ids, \
     way.path AS folder_path, COALESCE(way.path || '/', '') || f.name AS place_name FROM member m \
     JOIN files f ON f.workspace_id = $1 AND f.id = m.target_id AND f.deleted_at IS NULL \
     LEFT JOIN way ON way.start_id = f.folder_id WHERE m.kind = 1 UNION ALL \
     SELECT m.id, m.position, f.*, i.ids, i.path, i.path || '/' || f.name FROM member m \
     JOIN inside i ON i.top = m.target_id \
     JOIN files f ON f.workspace_id = $1 AND f.folder_id = i.id AND f.deleted_at IS NULL WHERE m.kind = 2), \
     judged AS (SELECT found.*, ",
    is_covered!("folder_id"),
    " FROM found), \
     ranked AS (SELECT judged.*, ROW_NUMBER() OVER (PARTITION BY member_id, covered ORDER BY place_name, id) AS place, \
     COUNT(*) OVER (PARTITION BY member_id, covered) AS total FROM judged), \
     kept AS (SELECT ranked.*, SUM(size_bytes * covered) OVER (ORDER BY member_position, place_name, id \
     ROWS UNBOUNDED PRECEDING) AS bytes FROM ranked WHERE place <= CASE WHEN covered = 1 THEN $6 ELSE 1 END) \
     SELECT kept.member_id, kept.covered, kept.total, kept.id, kept.folder_id, kept.name, kept.file_type, kept.tags, \
     kept.size_bytes, kept.content_hash, kept.version, kept.created_at, kept.updated_at, kept.folder_ids, \
     kept.folder_path, b.encoding, b.data FROM kept LEFT JOIN bodies b ON b.workspace_id = $1 \
     AND b.hash = kept.content_hash AND kept.covered = 1 AND kept.bytes <= $5 \
     ORDER BY kept.member_position, kept.place_name, kept.id"
));

#[derive(Debug, sqlx::FromRow)]
struct ContentRow {
    member_id: Text<MemberId>,
    covered: i64,
    total: i64,
    #[sqlx(flatten)]
    file: files::Row,
    encoding: Option<i64>,
    data: Option<Vec<u8>>,
}

/// The live files that a member stands for.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// What the scope covers, in the order of their paths; without a body once the bytes are used up.
    pub(crate) files: Vec<(File, Option<Body>)>,
    /// How many the scope covers.
    pub(crate) total: u64,
    /// Whether there are some that it does not cover.
    pub(crate) has_uncovered: bool,
}

/// The current contents of every member of a memory, in one statement.
pub(crate) async fn contents(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: MemoryId,
    scope: Option<&[FolderId]>,
    (max_bytes, max_files): (u64, u64),
) -> Result<HashMap<MemberId, Contents>, Error> {
    let (folders, whole) = scope_columns(scope);
    let sql = CONTENTS.of(tx.engine());
    let rows: Vec<ContentRow> = on_db!(tx, |c| sqlx::query_as(sql)
        .bind(Text(workspace))
        .bind(&folders)
        .bind(whole)
        .bind(Text(id))
        .bind(to_column(max_bytes))
        .bind(to_column(max_files))
        .fetch_all(c)
        .await)?;
    let mut contents: HashMap<MemberId, Contents> = HashMap::new();
    for row in rows {
        let member = contents.entry(row.member_id.0).or_default();
        if row.covered == 0 {
            member.has_uncovered = true;
            continue;
        }
        member.total = to_count(row.total);
        let file = row.file.into_file(workspace)?;
        let body = match (row.encoding, row.data) {
            (Some(encoding), Some(data)) => {
                let (hash, size_bytes) = (file.content_hash.clone(), to_column(file.size_bytes));
                Some(bodies::Row { hash, encoding, size_bytes, data }.into_body()?)
            }
            _ => None,
        };
        member.files.push((file, body));
    }
    Ok(contents)
}
