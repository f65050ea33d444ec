//! Memories: create, resolve, list, update, delete, and their members.

use cairn_chassis::call::Call;
use cairn_chassis::status::Problem;
use cairn_proto::content::v1 as proto;
use cairn_proto::domain::{MemberKind, SortOrder};
use cairn_proto::ids::{MemberId, MemoryId, WorkspaceId};
use serde::Deserialize;
use utoipa::ToSchema;

use super::past_moment::PastMoment;
use super::{Context, Page, Paging, Written, answered, null_or_value, present, update};
use crate::answers::{Links, Member, Memory, ResolvedMemory};
use crate::change;
use crate::schema::inputs;
use crate::upstreams::Upstreams;

inputs!(CreateMemory, UpdateMemory, AddMembers, MoveMember);

/// Which records of a database a member stands for, as in the list of records.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DatabaseQueryInput {
    /// Words that the records hold.
    #[schema(max_length = 1000)]
    search: Option<String>,
    /// A tree of conditions.
    #[schema(value_type = Option<Object>)]
    filter: Option<serde_json::Value>,
    /// The property to sort by.
    #[schema(format = "uuid")]
    sort_field_id: Option<String>,
    sort_direction: Option<SortOrder>,
    /// How many at most: 1 to 200, 50 when left out.
    #[schema(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// A member to add: a kind, and the reference of that kind.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MemberInput {
    kind: MemberKind,
    /// The file, for the kind `file`.
    #[schema(format = "uuid")]
    file_id: Option<String>,
    /// The folder, for the kind `folder`: all live files in it and below it, 50 at most.
    #[schema(format = "uuid")]
    folder_id: Option<String>,
    /// The document, for the kind `source_document`.
    #[schema(format = "uuid")]
    source_document_id: Option<String>,
    /// The database, for the kind `database`.
    #[schema(format = "uuid")]
    database_id: Option<String>,
    /// Which of its records; left out: the first 50.
    database_query: Option<DatabaseQueryInput>,
}

/// A memory to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateMemory {
    /// The name: 1 to 255 characters.
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    /// A name for addresses: small letters, digits and single hyphens. Left out: derived from the name.
    #[schema(min_length = 1, max_length = 100)]
    slug: Option<String>,
    /// What it holds.
    #[schema(max_length = 10000)]
    description: Option<String>,
    /// When an agent should load it.
    #[schema(max_length = 10000)]
    use_when: Option<String>,
    /// Whether anybody may export it without a token; owners and admins may allow it, if nothing else is set.
    is_public: Option<bool>,
    /// What it holds first, in order: `{"kind": "file", "fileId": "…"}`, `folder` with `folderId` (50 files at most),
    /// `database` with `databaseId` and perhaps `databaseQuery` (search, filter, sortFieldId, sortDirection, limit),
    /// `source_document` with `sourceDocumentId`.
    #[schema(max_items = 100)]
    members: Option<Vec<MemberInput>>,
}

/// Changes of a memory: fields that are left out stay as they are.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct UpdateMemory {
    /// The new name: 1 to 255 characters.
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255)]
    pub(crate) name: Option<String>,
    /// The new name for addresses: small letters, digits and single hyphens.
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 100)]
    pub(crate) slug: Option<String>,
    /// What it holds; null clears it.
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<String>, max_length = 10000)]
    pub(crate) description: Option<Option<String>>,
    /// When an agent should load it; null clears it.
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<String>, max_length = 10000)]
    pub(crate) use_when: Option<Option<String>>,
    /// Whether anybody may export it without a token; owners and admins may allow it, if nothing else is set.
    #[serde(default)]
    #[schema(value_type = bool, required = false)]
    pub(crate) is_public: Option<bool>,
    /// Whether search engines may list its page: only while it is public, and only who may make memories public may allow it.
    #[serde(default)]
    #[schema(value_type = bool, required = false)]
    pub(crate) is_listed: Option<bool>,
}

/// Members to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddMembers {
    /// In the order in which they follow those that the memory has.
    #[schema(min_items = 1, max_items = 100)]
    members: Vec<MemberInput>,
}

/// A new place for a member.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveMember {
    /// Counts from 0; a place behind the last member is the last one.
    #[schema(minimum = 0, maximum = 10000)]
    position: u32,
}

/// Membership changes that are part of an update.
#[derive(Debug, Default)]
pub(crate) struct Membership {
    pub(crate) add: Vec<MemberInput>,
    pub(crate) remove: Vec<String>,
}

impl From<MemberInput> for proto::MemberInput {
    fn from(input: MemberInput) -> Self {
        Self {
            kind: input.kind.into(),
            file_id: input.file_id,
            folder_id: input.folder_id,
            source_document_id: input.source_document_id,
            database_id: input.database_id,
            database_query: input.database_query.map(proto::DatabaseQuery::from),
        }
    }
}

impl From<DatabaseQueryInput> for proto::DatabaseQuery {
    fn from(query: DatabaseQueryInput) -> Self {
        Self {
            search: query.search.unwrap_or_default(),
            filter: query.filter.map(|tree| tree.to_string()).unwrap_or_default(),
            sort_field_id: query.sort_field_id.unwrap_or_default(),
            sort_direction: query.sort_direction.map(SortOrder::number).unwrap_or_default(),
            limit: query.limit.unwrap_or_default(),
        }
    }
}

fn inputs_of(members: Vec<MemberInput>) -> Vec<proto::MemberInput> {
    members.into_iter().map(proto::MemberInput::from).collect()
}

pub(crate) async fn create(context: &Context, input: CreateMemory) -> Result<Written<Memory>, Problem> {
    let request = context.call.request(proto::CreateMemoryRequest {
        name: input.name,
        slug: input.slug,
        description: input.description,
        use_when: input.use_when,
        is_public: input.is_public.unwrap_or_default(),
        members: inputs_of(input.members.unwrap_or_default()),
    });
    let created = answered(context.upstreams.memories().create_memory(request).await)?;
    written(created.memory, created.change_position)
}

pub(crate) async fn list(context: &Context, paging: Paging) -> Result<Page<Memory>, Problem> {
    let request = context.call.request(proto::ListMemoriesRequest {
        page_size: paging.limit.unwrap_or_default(),
        page_token: paging.cursor.unwrap_or_default(),
    });
    let listed = answered(context.upstreams.memories().list_memories(request).await)?;
    Ok(Page::read(listed.memories, listed.next_page_token, listed.total_size))
}

/// A memory by id or slug with the contents of its members, current or at a past moment.
pub(crate) async fn get(
    context: &Context,
    named: String,
    moment: Option<PastMoment>,
) -> Result<ResolvedMemory, Problem> {
    let when = moment.and_then(PastMoment::of_memory);
    let request = context.call.request(proto::ResolveMemoryRequest { memory: named, when });
    let found = answered(context.upstreams.memories().resolve_memory(request).await)?;
    Ok(ResolvedMemory::read(present(found.memory)?, &context.links))
}

/// The same for an authenticated or anonymous caller.
pub(crate) async fn export(
    upstreams: &Upstreams,
    links: &Links,
    call: &Call,
    named: String,
    workspace: Option<WorkspaceId>,
) -> Result<ResolvedMemory, Problem> {
    let workspace_id = workspace.map(|id| id.to_string());
    let request = call.request(proto::ExportMemoryRequest { memory: named, workspace_id });
    let found = answered(upstreams.memories().export_memory(request).await)?;
    Ok(ResolvedMemory::read(present(found.memory)?, links))
}

/// Updates a memory and its membership in one version.
pub(crate) async fn update(
    context: &Context,
    named: String,
    input: UpdateMemory,
    members: Membership,
) -> Result<Written<Memory>, Problem> {
    let has_members = !(members.add.is_empty() && members.remove.is_empty());
    let request = context.call.request(proto::UpdateMemoryRequest {
        memory: named,
        add_members: inputs_of(members.add),
        remove_member_ids: members.remove,
        ..update!(input => UpdateMemoryRequest { name, slug, description, use_when, is_public, is_listed } or has_members)
    });
    let updated = answered(context.upstreams.memories().update_memory(request).await)?;
    written(updated.memory, updated.change_position)
}

/// Moves a memory to trash.
pub(crate) async fn delete(context: &Context, id: MemoryId) -> Result<Written<()>, Problem> {
    let request = context.call.request(proto::DeleteMemoryRequest { memory: id.to_string() });
    let deleted = answered(context.upstreams.memories().delete_memory(request).await)?;
    Ok(Written { value: (), change: change::of_content(deleted.change_position) })
}

pub(crate) async fn add_members(
    context: &Context,
    id: MemoryId,
    input: AddMembers,
) -> Result<Written<Vec<Member>>, Problem> {
    let request = context
        .call
        .request(proto::AddMembersRequest { memory: id.to_string(), members: inputs_of(input.members) });
    let added = answered(context.upstreams.memories().add_members(request).await)?;
    let members = added.members.into_iter().map(Member::from).collect();
    Ok(Written { value: members, change: change::of_content(added.change_position) })
}

/// Moves a member to another position.
pub(crate) async fn move_member(
    context: &Context,
    id: MemoryId,
    member: MemberId,
    input: MoveMember,
) -> Result<Written<Memory>, Problem> {
    let request = context.call.request(proto::MoveMemberRequest {
        memory: id.to_string(),
        member_id: member.to_string(),
        position: input.position,
    });
    let moved = answered(context.upstreams.memories().move_member(request).await)?;
    written(moved.memory, moved.change_position)
}

pub(crate) async fn remove_member(
    context: &Context,
    id: MemoryId,
    member: MemberId,
) -> Result<Written<()>, Problem> {
    let message = proto::RemoveMemberRequest { memory: id.to_string(), member_id: member.to_string() };
    let request = context.call.request(message);
    let removed = answered(context.upstreams.memories().remove_member(request).await)?;
    Ok(Written { value: (), change: change::of_content(removed.change_position) })
}

fn written(memory: Option<proto::Memory>, position: u64) -> Result<Written<Memory>, Problem> {
    Ok(Written { value: present(memory)?.into(), change: change::of_content(position) })
}
