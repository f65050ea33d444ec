//! Memories and their members.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Engine, Error, PostgresOnly, Text, Tx, json_list};
use cairn_chassis::{execute, fetch, list_statement, statements};
use cairn_proto::ids::{DocumentId, FolderId, MemberId, MemoryId, WorkspaceId};
use sqlx::{Executor, Postgres, Sqlite};

use super::kinds::member_kind;
use super::page::{below, below_folders, to_column, to_count};
use crate::model::{Cursor, Member, MemberKind, MemberTarget, Memory};

/// The folders of the scope of the caller from the list `$2`; `$3` is 1 for a caller of the whole workspace.
macro_rules! in_scope {
    ($after:expr) => {
        below_folders!("$2", concat!(", ", $after))
    };
}

/// 1 for an item in a folder of the scope.
macro_rules! is_covered {
    ($folder:expr) => {
        concat!(
            "CAST(CASE WHEN CAST($3 AS BIGINT) = 1 OR ",
            $folder,
            " IN (SELECT id FROM below) THEN 1 ELSE 0 END AS BIGINT) AS covered"
        )
    };
}

/// Each memory of `page` joined with its members, and with the names of their live targets.
macro_rules! with_members {
    () => {
        concat!(
            " SELECT page.id, page.slug, page.name, page.description, page.use_when, page.is_public, page.is_listed, page.version, \
             page.created_at, page.updated_at, m.id AS member_id, m.position, m.kind, m.target_id, m.query, m.added_at, \
             COALESCE(f.name, d.name, t.name) AS title, ",
            is_covered!("COALESCE(f.folder_id, d.id, t.folder_id)"),
            " FROM page LEFT JOIN memory_members m ON m.workspace_id = $1 AND m.memory_id = page.id \
             LEFT JOIN files f ON f.workspace_id = $1 AND m.kind = ",
            member_kind!(file),
            " AND f.id = m.target_id AND f.deleted_at IS NULL \
             LEFT JOIN folders d ON d.workspace_id = $1 AND m.kind = ",
            member_kind!(folder),
            " AND d.id = m.target_id AND d.deleted_at IS NULL \
             LEFT JOIN databases t ON t.workspace_id = $1 AND m.kind = ",
            member_kind!(database),
            " AND t.id = m.target_id AND t.deleted_at IS NULL \
             ORDER BY page.name, page.id, m.position"
        )
    };
}

pub(super) mod contents;

pub(crate) use self::contents::{Contents, read, read_folders};

statements! {
    pub(super) fn statements;

    const GET: Dialect = in_scope!(concat!(
        "page AS (SELECT * FROM memories WHERE workspace_id = $1 AND (id = $4 OR slug = $4) AND deleted_at IS NULL)",
        with_members!()
    ));

    const GET_TRASHED: Dialect = in_scope!(concat!(
        "page AS (SELECT * FROM memories WHERE workspace_id = $1 AND id = $4 AND deleted_at IS NOT NULL)",
        with_members!()
    ));

    const LIST: Dialect = in_scope!(concat!(
        "page AS (SELECT * FROM memories WHERE workspace_id = $1 AND deleted_at IS NULL AND (name, id) > ($4, $5) \
         ORDER BY name, id LIMIT $6)",
        with_members!()
    ));

    const COUNT: &str = "SELECT COUNT(*) FROM memories WHERE workspace_id = $1 AND deleted_at IS NULL";

    const GUIDANCE: Dialect = list_statement!(
        "SELECT id, slug, name, description, use_when, is_public, is_listed, version, created_at, updated_at FROM memories \
         WHERE workspace_id = $1 AND deleted_at IS NULL AND id IN ",
        "$2",
        ""
    );

    const PUBLIC_HOME: &str =
        "SELECT workspace_id FROM memories WHERE id = $1 AND is_public AND deleted_at IS NULL";

    const LOCK: PostgresOnly = PostgresOnly(
        "SELECT 1 FROM memories WHERE workspace_id = $1 AND (id = $2 OR slug = $2) AND deleted_at IS NULL \
         FOR UPDATE",
    );

    /// `$2` is the slug, `$3` a LIKE pattern of the slug, a hyphen and a suffix.
    const SLUGS: &str = "SELECT slug FROM memories WHERE workspace_id = $1 AND deleted_at IS NULL \
         AND (slug = $2 OR slug LIKE $3)";

    const INSERT: &str = "INSERT INTO memories (workspace_id, id, slug, name, description, use_when, is_public, version, \
         created_at, updated_at, is_listed) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

    const UPDATE: &str = "UPDATE memories SET slug = $3, name = $4, description = $5, use_when = $6, is_public = $7, \
         version = $8, updated_at = $9, is_listed = $10 WHERE workspace_id = $1 AND id = $2";

    /// `$2` is the memory, `$3` a JSON array of `[id, position, kind, target, query]`, `$4` the time.
    const INSERT_MEMBERS: Dialect = Dialect {
        sqlite: "INSERT INTO memory_members (workspace_id, memory_id, id, position, kind, target_id, query, added_at) \
             SELECT $1, $2, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, $4 FROM json_each($3)",
        postgres: "INSERT INTO memory_members (workspace_id, memory_id, id, position, kind, target_id, query, added_at) \
             SELECT $1, $2, entry ->> 0, CAST(entry ->> 1 AS BIGINT), CAST(entry ->> 2 AS BIGINT), entry ->> 3, entry ->> 4, $4 \
             FROM jsonb_array_elements(CAST(CAST($3 AS TEXT) AS JSONB)) AS list (entry)",
    };

    const REMOVE_MEMBER: &str =
        "DELETE FROM memory_members WHERE workspace_id = $1 AND memory_id = $2 AND id = $3";

    const CLOSE_GAP: &str = "UPDATE memory_members SET position = position - 1 \
         WHERE workspace_id = $1 AND memory_id = $2 AND position > $3";

    /// `$3` is a JSON array of all members in their order.
    const ORDER_MEMBERS: Dialect = Dialect {
        sqlite: "UPDATE memory_members SET position = (SELECT key FROM json_each($3) WHERE value = memory_members.id) \
             WHERE workspace_id = $1 AND memory_id = $2 AND id IN (SELECT value FROM json_each($3))",
        postgres: "UPDATE memory_members SET position = list.place - 1 \
             FROM jsonb_array_elements_text(CAST(CAST($3 AS TEXT) AS JSONB)) WITH ORDINALITY AS list (id, place) \
             WHERE workspace_id = $1 AND memory_id = $2 AND memory_members.id = list.id",
    };

    /// `$3` is the member, `$4` its new position; members at `$5` to `$6` move by `$7`.
    const MOVE_MEMBER: &str = "UPDATE memory_members SET position = CASE WHEN id = $3 THEN $4 ELSE position + $7 END \
         WHERE workspace_id = $1 AND memory_id = $2 AND position BETWEEN $5 AND $6";
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    id: Text<MemoryId>,
    slug: String,
    name: String,
    description: Option<String>,
    use_when: Option<String>,
    is_public: bool,
    is_listed: bool,
    version: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Debug, sqlx::FromRow)]
struct MemberRow {
    member_id: Option<Text<MemberId>>,
    position: Option<i64>,
    kind: Option<i64>,
    target_id: Option<Text<DocumentId>>,
    query: Option<String>,
    added_at: Option<Timestamp>,
    title: Option<String>,
    covered: i64,
}

#[derive(Debug, sqlx::FromRow)]
struct RowWithMember {
    #[sqlx(flatten)]
    memory: Row,
    #[sqlx(flatten)]
    member: MemberRow,
}

impl Row {
    fn into_memory(self, workspace_id: WorkspaceId) -> Memory {
        Memory {
            id: self.id.0,
            workspace_id,
            slug: self.slug,
            name: self.name,
            description: self.description,
            use_when: self.use_when,
            is_public: self.is_public,
            is_listed: self.is_listed,
            version: to_count(self.version),
            members: Vec::new(),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

impl MemberRow {
    /// `None` for the row of a memory without members.
    fn into_member(self) -> Result<Option<Member>, Error> {
        let (Some(id), Some(position), Some(kind), Some(target), Some(added_at)) =
            (self.member_id, self.position, self.kind, self.target_id, self.added_at)
        else {
            return Ok(None);
        };
        let target = target_of(kind, target.0)?;
        let position =
            u32::try_from(position).map_err(|_| Error::corrupt("a member's position is out of range"))?;
        // The query of a database outside of the scope is hidden with the database.
        let query = self.query.filter(|_| self.covered == 1);
        let query = query.as_deref().map(serde_json::from_str).transpose();
        let query = query.map_err(|_| Error::corrupt("a member's query is not JSON"))?;
        let is_live = self.title.is_some();
        let is_covered = is_live && self.covered == 1;
        let title = self.title.filter(|_| is_covered);
        Ok(Some(Member { id: id.0, target, query, position, added_at, title, is_live, is_covered }))
    }
}

/// Rows of one memory are adjacent.
fn into_memories(rows: Vec<RowWithMember>, workspace: WorkspaceId) -> Result<Vec<Memory>, Error> {
    let mut memories: Vec<Memory> = Vec::new();
    for row in rows {
        if memories.last().is_none_or(|last| last.id != row.memory.id.0) {
            memories.push(row.memory.into_memory(workspace));
        }
        let member = row.member.into_member()?;
        if let Some(last) = memories.last_mut() {
            last.members.extend(member);
        }
    }
    Ok(memories)
}

pub(super) fn target_of(kind: i64, id: DocumentId) -> Result<MemberTarget, Error> {
    let target = MemberKind::from_number(kind).map(|kind| MemberTarget::of(kind, id));
    target.ok_or_else(|| Error::corrupt("a member of an unknown kind"))
}

const fn kind_column(target: MemberTarget) -> i64 {
    target.kind().number() as i64
}

/// The scope of a caller as parameters: the listed folders, and 1 if the scope is the whole workspace.
fn scope_columns(scope: Option<&[FolderId]>) -> (String, i64) {
    (json_list(scope.unwrap_or_default()), i64::from(scope.is_none()))
}

/// A memory by its id or slug, read inside a transaction or outside.
pub(crate) async fn get<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    named: &str,
    scope: Option<&[FolderId]>,
) -> Result<Option<Memory>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let (folders, whole) = scope_columns(scope);
    let rows: Vec<RowWithMember> = fetch!(all, on, GET, Text(workspace), &folders, whole, named)?;
    Ok(into_memories(rows, workspace)?.pop())
}

/// Memories in the order of name, then id, after the cursor.
pub(crate) async fn list(
    db: &Db,
    workspace: WorkspaceId,
    scope: Option<&[FolderId]>,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Vec<Memory>, Error> {
    let (folders, whole) = scope_columns(scope);
    let (name, id) = after.map_or(("", ""), |cursor| (cursor.name.as_str(), cursor.id.as_str()));
    let rows: Vec<RowWithMember> = fetch!(all, db, LIST, Text(workspace), &folders, whole, name, id, limit)?;
    into_memories(rows, workspace)
}

/// The number of memories.
pub(crate) async fn count(db: &Db, workspace: WorkspaceId) -> Result<u64, Error> {
    let count: i64 = fetch!(scalar, db, COUNT, Text(workspace))?;
    Ok(to_count(count))
}

/// These memories without their members, in no particular order.
pub(crate) async fn guidance(
    db: &Db,
    workspace: WorkspaceId,
    ids: &[MemoryId],
) -> Result<Vec<Memory>, Error> {
    let rows: Vec<Row> = fetch!(all, db, GUIDANCE, Text(workspace), json_list(ids))?;
    Ok(rows.into_iter().map(|row| row.into_memory(workspace)).collect())
}

/// The workspace of a public memory: the only read of this store that does not know the workspace.
pub(crate) async fn public_home(db: &Db, id: MemoryId) -> Result<Option<WorkspaceId>, Error> {
    let home: Option<Text<WorkspaceId>> = fetch!(optional_scalar, db, PUBLIC_HOME, Text(id))?;
    Ok(home.map(|workspace| workspace.0))
}

/// Locks a memory until the transaction ends, and reads it.
pub(crate) async fn lock(
    tx: &mut Tx,
    workspace: WorkspaceId,
    named: &str,
    scope: Option<&[FolderId]>,
) -> Result<Option<Memory>, Error> {
    if let Engine::Postgres(connection) = tx.engine() {
        let locked = sqlx::query(LOCK.0).bind(Text(workspace)).bind(named).execute(connection).await?;
        // A memory that was created, or got this slug, after the lock statement is not locked.
        if locked.rows_affected() == 0 {
            return Ok(None);
        }
    }
    get(tx.engine(), workspace, named, scope).await
}

/// Locks the slugs of the workspace until the transaction ends.
pub(crate) async fn lock_slugs(tx: &mut Tx, workspace: WorkspaceId) -> Result<(), Error> {
    tx.lock_name(&format!("content:slugs:{workspace}")).await
}

/// The slugs equal to this one, or to this one with a suffix after a hyphen.
pub(crate) async fn slugs(tx: &mut Tx, workspace: WorkspaceId, slug: &str) -> Result<Vec<String>, Error> {
    let pattern = format!("{slug}-%");
    fetch!(scalars, tx, SLUGS, Text(workspace), slug, &pattern)
}

/// Inserts a new memory without its members.
pub(crate) async fn insert(tx: &mut Tx, memory: &Memory) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(memory.workspace_id),
        Text(memory.id),
        &memory.slug,
        &memory.name,
        &memory.description,
        &memory.use_when,
        memory.is_public,
        to_column(memory.version),
        memory.created_at,
        memory.updated_at,
        memory.is_listed
    )
    .map(drop)
}

/// Updates the mutable columns of a memory, without its members.
pub(crate) async fn update(tx: &mut Tx, memory: &Memory) -> Result<(), Error> {
    execute!(
        tx,
        UPDATE,
        Text(memory.workspace_id),
        Text(memory.id),
        &memory.slug,
        &memory.name,
        &memory.description,
        &memory.use_when,
        memory.is_public,
        to_column(memory.version),
        memory.updated_at,
        memory.is_listed
    )
    .map(drop)
}

/// A memory in trash.
pub(crate) async fn get_trashed(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: &str,
    scope: Option<&[FolderId]>,
) -> Result<Option<Memory>, Error> {
    let (folders, whole) = scope_columns(scope);
    let rows: Vec<RowWithMember> = fetch!(all, tx, GET_TRASHED, Text(workspace), &folders, whole, id)?;
    Ok(into_memories(rows, workspace)?.pop())
}

/// Inserts members of a memory.
pub(crate) async fn insert_members(
    tx: &mut Tx,
    memory: &Memory,
    members: &[Member],
    at: Timestamp,
) -> Result<(), Error> {
    if members.is_empty() {
        return Ok(());
    }
    let entry = |member: &Member| {
        let query = member.query.as_ref().map(|query| serde_json::json!(query).to_string());
        (member.id, member.position, kind_column(member.target), member.target.id(), query)
    };
    let list: Vec<_> = members.iter().map(entry).collect();
    let json = serde_json::json!(list).to_string();
    execute!(tx, INSERT_MEMBERS, Text(memory.workspace_id), Text(memory.id), &json, at).map(drop)
}

/// Deletes a member; those after it move up.
pub(crate) async fn remove_member(tx: &mut Tx, memory: &Memory, member: &Member) -> Result<(), Error> {
    execute!(tx, REMOVE_MEMBER, Text(memory.workspace_id), Text(memory.id), Text(member.id))?;
    execute!(tx, CLOSE_GAP, Text(memory.workspace_id), Text(memory.id), i64::from(member.position)).map(drop)
}

/// Moves a member to another position; those in between shift.
pub(crate) async fn move_member(tx: &mut Tx, memory: &Memory, member: &Member, to: u32) -> Result<(), Error> {
    let from = member.position;
    let step: i64 = if from < to { -1 } else { 1 };
    execute!(
        tx,
        MOVE_MEMBER,
        Text(memory.workspace_id),
        Text(memory.id),
        Text(member.id),
        i64::from(to),
        i64::from(from.min(to)),
        i64::from(from.max(to)),
        step
    )
    .map(drop)
}

/// Updates the positions of all members to their order in the memory.
pub(crate) async fn order_members(tx: &mut Tx, memory: &Memory) -> Result<(), Error> {
    let ids = json_list(memory.members.iter().map(|member| member.id));
    execute!(tx, ORDER_MEMBERS, Text(memory.workspace_id), Text(memory.id), &ids).map(drop)
}
