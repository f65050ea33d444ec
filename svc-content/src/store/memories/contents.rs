//! A memory with the current contents of its members: one statement, and a second one for members that are folders.

use std::collections::HashMap;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Error, Statement, Statements, Text};
use cairn_chassis::{fetch, on_db, statements};
use cairn_proto::ids::{FolderId, MemberId, MemoryId, WorkspaceId};
use sqlx::FromRow;

use super::{MemberRow, Row, scope_columns};
use crate::model::{Body, File, Memory};
use crate::store::files::file_columns;
use crate::store::kinds::member_kind;
use crate::store::page::{below, below_folders, to_column, to_count, up};
use crate::store::{bodies, files};

/// A statement for callers of listed folders, and one without the recursive query over them for callers of the whole
/// workspace: planning that query dominates the cost on PostgreSQL.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scoped {
    pub(super) listed: Dialect,
    pub(super) whole: &'static str,
}

macro_rules! scoped {
    ($after:expr) => {
        Scoped {
            listed: in_scope!($after),
            whole: concat!("WITH RECURSIVE below (id) AS (SELECT CAST($2 AS TEXT) WHERE 1 = 0), ", $after),
        }
    };
}

impl Statements for Scoped {
    fn list(&self, into: &mut Vec<Statement>) {
        self.listed.list(into);
        self.whole.list(into);
    }
}

impl Scoped {
    const fn of(&self, scope: Option<&[FolderId]>) -> Dialect {
        match scope {
            Some(_) => self.listed,
            None => Dialect { sqlite: self.whole, postgres: self.whole },
        }
    }
}

statements! {
    pub(crate) fn statements;

    /// A memory with a row for each member, joined with the file and its body where the member is a file: `$4` is the
    /// id or slug of the memory, `$5` the byte limit of all bodies together.
    pub(super) const READ: Scoped = scoped!(concat!(
        "page AS (SELECT * FROM memories WHERE workspace_id = $1 AND (id = $4 OR slug = $4) AND deleted_at IS NULL), \
         found AS (SELECT m.id AS member_id, m.position, m.kind, m.target_id, m.query, m.added_at, CASE m.kind WHEN ",
        member_kind!(folder),
        " THEN (SELECT d.name FROM folders d WHERE d.workspace_id = $1 AND d.id = m.target_id AND d.deleted_at IS NULL) \
         WHEN ",
        member_kind!(database),
        " THEN (SELECT t.name FROM databases t WHERE t.workspace_id = $1 AND t.id = m.target_id AND t.deleted_at IS NULL) \
         ELSE f.name END AS title, ",
        is_covered!(concat!(
            "CASE m.kind WHEN ",
            member_kind!(folder),
            " THEN m.target_id WHEN ",
            member_kind!(database),
            " THEN (SELECT t.folder_id FROM databases t WHERE t.workspace_id = $1 AND t.id = m.target_id) \
             ELSE f.folder_id END"
        )),
        ", ",
        file_columns!("f"),
        " FROM page JOIN memory_members m ON m.workspace_id = $1 AND m.memory_id = page.id \
         LEFT JOIN files f ON f.workspace_id = $1 AND m.kind = ",
        member_kind!(file),
        " AND f.id = m.target_id AND f.deleted_at IS NULL), ",
        up!("SELECT folder_id FROM found"),
        ", sized AS (SELECT found.*, SUM(size_bytes * covered) OVER (ORDER BY position ROWS UNBOUNDED PRECEDING) AS bytes \
         FROM found) \
         SELECT page.id AS memory_id, page.slug, page.name AS memory_name, \
         page.description AS memory_description, page.use_when, page.is_public, page.is_listed, page.version AS memory_version, \
         page.created_at AS memory_created_at, page.updated_at AS memory_updated_at, sized.member_id, sized.position, sized.kind, sized.target_id, sized.query, \
         sized.added_at, sized.title, COALESCE(sized.covered, 0) AS covered, ",
        file_columns!("sized"),
        ", up.ids AS folder_ids, up.path AS folder_path, b.encoding, b.data \
         FROM page LEFT JOIN sized ON 1 = 1 \
         LEFT JOIN up ON up.start_id = sized.folder_id AND up.parent_id IS NULL \
         LEFT JOIN bodies b ON b.workspace_id = $1 AND b.hash = sized.content_hash AND sized.covered = 1 \
         AND sized.bytes <= $5 ORDER BY sized.position"
    ));

    /// The current files of the folder members of a memory with their bodies: `$4` is the memory, `$5` the byte limit
    /// of all bodies together, `$6` the maximum number of files of a member. For files outside of the scope, one row
    /// a member says that some exist.
    pub(super) const READ_FOLDERS: Scoped = scoped!(concat!(
        "member AS (SELECT id, position, target_id FROM memory_members \
         WHERE workspace_id = $1 AND memory_id = $4 AND kind = ",
        member_kind!(folder),
        "), ",
        up!("SELECT target_id FROM member"),
        ", inside (top, id, ids, path, depth) AS (\
         SELECT start_id, start_id, ids, path, 1 FROM up WHERE parent_id IS NULL UNION ALL \
         SELECT i.top, c.id, i.ids || '/' || c.id, i.path || '/' || c.name, i.depth + 1 FROM inside i \
         JOIN folders c ON c.workspace_id = $1 AND c.parent_id = i.id WHERE c.deleted_at IS NULL AND i.depth < 128), \
         judged AS (SELECT m.id AS member_id, m.position AS member_position, f.*, i.ids AS folder_ids, \
         i.path AS folder_path, i.path || '/' || f.name AS place_name, ",
        is_covered!("f.folder_id"),
        " FROM member m JOIN inside i ON i.top = m.target_id \
         JOIN files f ON f.workspace_id = $1 AND f.folder_id = i.id AND f.deleted_at IS NULL), \
         ranked AS (SELECT judged.*, ROW_NUMBER() OVER (PARTITION BY member_id, covered ORDER BY place_name, id) AS place, \
         COUNT(*) OVER (PARTITION BY member_id, covered) AS total FROM judged), \
         kept AS (SELECT ranked.*, SUM(size_bytes * covered) OVER (ORDER BY member_position, place_name, id \
         ROWS UNBOUNDED PRECEDING) AS bytes FROM ranked WHERE place <= CASE WHEN covered = 1 THEN $6 ELSE 1 END) \
         SELECT kept.member_id, kept.covered, kept.total, ",
        file_columns!("kept"),
        ", kept.folder_ids, kept.folder_path, b.encoding, b.data FROM kept LEFT JOIN bodies b ON b.workspace_id = $1 \
         AND b.hash = kept.content_hash AND kept.covered = 1 AND kept.bytes <= $5 \
         ORDER BY kept.member_position, kept.place_name, kept.id"
    ));
}

/// The columns of the memory, repeated in every row.
#[derive(Debug, sqlx::FromRow)]
struct MemoryRow {
    memory_id: Text<MemoryId>,
    slug: String,
    memory_name: String,
    memory_description: Option<String>,
    use_when: Option<String>,
    is_public: bool,
    is_listed: bool,
    memory_version: i64,
    memory_created_at: Timestamp,
    memory_updated_at: Timestamp,
}

impl From<MemoryRow> for Row {
    fn from(row: MemoryRow) -> Self {
        Self {
            id: row.memory_id,
            slug: row.slug,
            name: row.memory_name,
            description: row.memory_description,
            use_when: row.use_when,
            is_public: row.is_public,
            is_listed: row.is_listed,
            version: row.memory_version,
            created_at: row.memory_created_at,
            updated_at: row.memory_updated_at,
        }
    }
}

#[derive(Debug, sqlx::FromRow)]
struct BodyRow {
    encoding: Option<i64>,
    data: Option<Vec<u8>>,
}

impl BodyRow {
    fn into_body(self, file: &File) -> Result<Option<Body>, Error> {
        let (Some(encoding), Some(data)) = (self.encoding, self.data) else { return Ok(None) };
        let (hash, size_bytes) = (file.content_hash.clone(), to_column(file.size_bytes));
        bodies::Row { hash, encoding, size_bytes, data }.into_body().map(Some)
    }
}

#[derive(Debug, sqlx::FromRow)]
struct ContentRow {
    member_id: Text<MemberId>,
    covered: i64,
    total: i64,
    #[sqlx(flatten)]
    file: files::Row,
    #[sqlx(flatten)]
    body: BodyRow,
}

/// The live files of a member.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Files in the scope, in the order of their paths; without a body after the byte limit is reached.
    pub(crate) files: Vec<(File, Option<Body>)>,
    /// The number of files in the scope.
    pub(crate) total: u64,
    /// Whether there are files outside of the scope.
    pub(crate) has_uncovered: bool,
}

/// The decoded part of a row of a memory.
type Decoded = (MemberRow, Option<(files::Row, BodyRow)>);

/// Decodes the columns of the memory from the first row only, those of a file from the rows that have one.
fn decode<R>(rows: &[R]) -> Result<Option<(MemoryRow, Vec<Decoded>)>, sqlx::Error>
where
    R: sqlx::Row,
    MemoryRow: for<'r> FromRow<'r, R>,
    MemberRow: for<'r> FromRow<'r, R>,
    files::Row: for<'r> FromRow<'r, R>,
    BodyRow: for<'r> FromRow<'r, R>,
{
    let Some(first) = rows.first() else { return Ok(None) };
    let memory = MemoryRow::from_row(first)?;
    let mut decoded = Vec::with_capacity(rows.len());
    for row in rows {
        let member = MemberRow::from_row(row)?;
        let has_file = member.kind == Some(1) && member.title.is_some();
        let file =
            has_file.then(|| Ok::<_, sqlx::Error>((files::Row::from_row(row)?, BodyRow::from_row(row)?)));
        decoded.push((member, file.transpose()?));
    }
    Ok(Some((memory, decoded)))
}

/// A memory by its id or slug, with the current contents of its members that are files.
pub(crate) async fn read(
    db: &Db,
    workspace: WorkspaceId,
    named: &str,
    scope: Option<&[FolderId]>,
    max_bytes: u64,
) -> Result<Option<(Memory, HashMap<MemberId, Contents>)>, Error> {
    let (folders, whole) = scope_columns(scope);
    let sql = READ.of(scope).of(db.engine());
    let decoded = on_db!(db, |c| sqlx::query(sql)
        .bind(Text(workspace))
        .bind(&folders)
        .bind(whole)
        .bind(named)
        .bind(to_column(max_bytes))
        .fetch_all(c)
        .await
        .and_then(|rows| decode(&rows)))?;
    let Some((memory, rows)) = decoded else { return Ok(None) };
    let mut memory = Row::from(memory).into_memory(workspace);
    let mut contents: HashMap<MemberId, Contents> = HashMap::with_capacity(rows.len());
    for (member, file) in rows {
        let Some(member) = member.into_member()? else { continue };
        if let Some((file, body)) = file.filter(|_| member.is_covered) {
            let file = file.into_file(workspace)?;
            let body = body.into_body(&file)?;
            let found = Contents { files: vec![(file, body)], total: 1, has_uncovered: false };
            contents.insert(member.id, found);
        }
        memory.members.push(member);
    }
    Ok(Some((memory, contents)))
}

/// The current contents of the members of a memory that are folders.
pub(crate) async fn read_folders(
    db: &Db,
    workspace: WorkspaceId,
    id: MemoryId,
    scope: Option<&[FolderId]>,
    (max_bytes, max_files): (u64, u64),
) -> Result<HashMap<MemberId, Contents>, Error> {
    let (folders, whole) = scope_columns(scope);
    let sql = READ_FOLDERS.of(scope).of(db.engine());
    let rows: Vec<ContentRow> = fetch!(
        all,
        db,
        sql,
        Text(workspace),
        &folders,
        whole,
        Text(id),
        to_column(max_bytes),
        to_column(max_files)
    )?;
    let mut contents: HashMap<MemberId, Contents> = HashMap::new();
    for row in rows {
        let member = contents.entry(row.member_id.0).or_default();
        if row.covered == 0 {
            member.has_uncovered = true;
            continue;
        }
        member.total = to_count(row.total);
        let file = row.file.into_file(workspace)?;
        let body = row.body.into_body(&file)?;
        member.files.push((file, body));
    }
    Ok(contents)
}
