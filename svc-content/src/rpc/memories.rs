//! `cairn.content.v1.MemoryService`.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_chassis::status::Problem;
use cairn_proto::content::v1::memory_service_server::{MemoryService, MemoryServiceServer};
use cairn_proto::content::v1::resolve_memory_request::When;
use cairn_proto::content::v1::{
    self as proto, AddMembersRequest, AddMembersResponse, CreateMemoryRequest, CreateMemoryResponse,
    DeleteMemoryRequest, DeleteMemoryResponse, ExportMemoryRequest, ExportMemoryResponse,
    GetMemoryVersionRequest, GetMemoryVersionResponse, ListMemoriesRequest, ListMemoriesResponse,
    ListMemoryVersionsRequest, ListMemoryVersionsResponse, MoveMemberRequest, MoveMemberResponse,
    RemoveMemberRequest, RemoveMemberResponse, ResolveMemoryRequest, ResolveMemoryResponse,
    RestoreMemoryVersionRequest, RestoreMemoryVersionResponse, UpdateMemoryRequest, UpdateMemoryResponse,
};
use cairn_proto::domain::SortOrder;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use super::{authorize, databases, files, patch};
use crate::memories::{
    CoverageNote, DocumentEntry, MemberDraft, Memories, MemoryDraft, MemoryPatch, RecordEntry, Resolved,
};
use crate::model::{DatabaseQuery, File, Member, MemberKind, Memory, MemoryVersion, PAGES, PageRequest};
use crate::past::Moment;
use crate::scope::Caller;

pub(crate) fn server(memories: Memories, verifier: Verifier) -> MemoryServiceServer<Rpc> {
    MemoryServiceServer::new(Rpc { memories, verifier })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    memories: Memories,
    verifier: Verifier,
}

#[tonic::async_trait]
impl MemoryService for Rpc {
    async fn create_memory(
        &self,
        request: Request<CreateMemoryRequest>,
    ) -> Result<Response<CreateMemoryResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let written = self.memories.create(&caller, decode_draft(request.into_inner())).await?;
        let memory = Some(encode(written.item));
        Ok(Response::new(CreateMemoryResponse { memory, change_position: written.position }))
    }

    async fn list_memories(
        &self,
        request: Request<ListMemoriesRequest>,
    ) -> Result<Response<ListMemoriesResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.into_inner();
        let page =
            self.memories.list(&caller, PageRequest::new(PAGES, asked.page_size, &asked.page_token)?).await?;
        let memories = page.items.into_iter().map(encode).collect();
        Ok(Response::new(ListMemoriesResponse {
            memories,
            next_page_token: page.next,
            total_size: page.total,
        }))
    }

    async fn resolve_memory(
        &self,
        request: Request<ResolveMemoryRequest>,
    ) -> Result<Response<ResolveMemoryResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let ResolveMemoryRequest { memory, when } = request.into_inner();
        let resolved = match when {
            None => self.memories.resolve(&caller, &memory).await?,
            Some(When::AsOf(time)) => {
                let moment = Moment::at(Timestamp::from_proto(&time));
                self.memories.resolve_past(&caller, &memory, moment).await?
            }
            Some(When::AfterChange(position)) => {
                self.memories.resolve_past(&caller, &memory, Moment::After(position)).await?
            }
        };
        Ok(Response::new(ResolveMemoryResponse { memory: Some(encode_resolved(resolved)) }))
    }

    async fn export_memory(
        &self,
        request: Request<ExportMemoryRequest>,
    ) -> Result<Response<ExportMemoryResponse>, Status> {
        let caller = self.reader(request.metadata()).await?;
        let asked = request.into_inner();
        let resolved = match caller {
            Some(caller) => self.memories.resolve(&caller, &asked.memory).await?,
            None => self.memories.resolve_public(&asked.memory, asked.workspace_id.as_deref()).await?,
        };
        Ok(Response::new(ExportMemoryResponse { memory: Some(encode_resolved(resolved)) }))
    }

    async fn update_memory(
        &self,
        request: Request<UpdateMemoryRequest>,
    ) -> Result<Response<UpdateMemoryResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        if !request.get_ref().remove_member_ids.is_empty() {
            authorize(&self.verifier, request.metadata(), Permission::Delete).await?;
        }
        let (memory, patch) = decode_patch(request.into_inner());
        let written = self.memories.update(&caller, &memory, patch).await?;
        let memory = Some(encode(written.item));
        Ok(Response::new(UpdateMemoryResponse { memory, change_position: written.position }))
    }

    async fn delete_memory(
        &self,
        request: Request<DeleteMemoryRequest>,
    ) -> Result<Response<DeleteMemoryResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Delete).await?;
        let change_position = self.memories.delete(&caller, &request.get_ref().memory).await?;
        Ok(Response::new(DeleteMemoryResponse { change_position }))
    }

    async fn add_members(
        &self,
        request: Request<AddMembersRequest>,
    ) -> Result<Response<AddMembersResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let members = asked.members.into_iter().map(decode_member).collect();
        let written = self.memories.add_members(&caller, &asked.memory, members).await?;
        let members = written.item.into_iter().map(encode_member).collect();
        Ok(Response::new(AddMembersResponse { members, change_position: written.position }))
    }

    async fn move_member(
        &self,
        request: Request<MoveMemberRequest>,
    ) -> Result<Response<MoveMemberResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let written =
            self.memories.move_member(&caller, &asked.memory, &asked.member_id, asked.position).await?;
        let memory = Some(encode(written.item));
        Ok(Response::new(MoveMemberResponse { memory, change_position: written.position }))
    }

    async fn remove_member(
        &self,
        request: Request<RemoveMemberRequest>,
    ) -> Result<Response<RemoveMemberResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Delete).await?;
        let asked = request.into_inner();
        let change_position = self.memories.remove_member(&caller, &asked.memory, &asked.member_id).await?;
        Ok(Response::new(RemoveMemberResponse { change_position }))
    }

    async fn list_memory_versions(
        &self,
        request: Request<ListMemoryVersionsRequest>,
    ) -> Result<Response<ListMemoryVersionsResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.into_inner();
        let ask = PageRequest::new(PAGES, asked.page_size, &asked.page_token)?;
        let page = self.memories.versions(&caller, &asked.memory, ask).await?;
        let versions = page.items.into_iter().map(encode_version).collect();
        let (next_page_token, total_size) = (page.next, page.total);
        Ok(Response::new(ListMemoryVersionsResponse { versions, next_page_token, total_size }))
    }

    async fn get_memory_version(
        &self,
        request: Request<GetMemoryVersionRequest>,
    ) -> Result<Response<GetMemoryVersionResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.get_ref();
        let (version, was) = self.memories.version(&caller, &asked.memory, asked.version).await?;
        let version = proto::MemoryVersion { memory: Some(encode(was)), ..encode_version(version) };
        Ok(Response::new(GetMemoryVersionResponse { version: Some(version) }))
    }

    async fn restore_memory_version(
        &self,
        request: Request<RestoreMemoryVersionRequest>,
    ) -> Result<Response<RestoreMemoryVersionResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let may_remove = authorize(&self.verifier, request.metadata(), Permission::Delete).await.is_ok();
        let asked = request.into_inner();
        let restored =
            self.memories.restore_version(&caller, &asked.memory, asked.version, may_remove).await?;
        let memory = Some(encode(restored.item));
        Ok(Response::new(RestoreMemoryVersionResponse { memory, change_position: restored.position }))
    }
}

impl Rpc {
    /// The caller; anonymous when the call has no identity. An invalid identity is rejected, not ignored.
    async fn reader(&self, metadata: &MetadataMap) -> Result<Option<Caller>, Problem> {
        if !metadata.contains_key("authorization") {
            return Ok(None);
        }
        authorize(&self.verifier, metadata, Permission::Read).await.map(Some)
    }
}

fn decode_draft(request: CreateMemoryRequest) -> MemoryDraft {
    MemoryDraft {
        name: request.name,
        slug: request.slug,
        description: request.description,
        use_when: request.use_when,
        is_public: request.is_public,
        members: request.members.into_iter().map(decode_member).collect(),
    }
}

fn decode_patch(request: UpdateMemoryRequest) -> (String, MemoryPatch) {
    let patch = patch!(request => MemoryPatch { name, slug, description, use_when, is_public, is_listed });
    let add = request.add_members.into_iter().map(decode_member).collect();
    (request.memory, MemoryPatch { add, remove: request.remove_member_ids, ..patch })
}

fn decode_member(input: proto::MemberInput) -> MemberDraft {
    MemberDraft {
        kind: MemberKind::from_number(input.kind),
        file_id: input.file_id,
        folder_id: input.folder_id,
        source_document_id: input.source_document_id,
        database_id: input.database_id,
        query: input.database_query.map(decode_query),
    }
}

fn decode_query(query: proto::DatabaseQuery) -> DatabaseQuery {
    DatabaseQuery {
        search: query.search,
        filter: query.filter,
        sort_field_id: query.sort_field_id,
        sort_direction: SortOrder::from_number(query.sort_direction),
        limit: query.limit,
    }
}

fn encode_query(query: DatabaseQuery) -> proto::DatabaseQuery {
    proto::DatabaseQuery {
        search: query.search,
        filter: query.filter,
        sort_field_id: query.sort_field_id,
        sort_direction: query.sort_direction.map(SortOrder::number).unwrap_or_default(),
        limit: query.limit,
    }
}

fn encode(memory: Memory) -> proto::Memory {
    proto::Memory {
        id: memory.id.to_string(),
        workspace_id: memory.workspace_id.to_string(),
        name: memory.name,
        slug: memory.slug,
        description: memory.description,
        use_when: memory.use_when,
        is_public: memory.is_public,
        is_listed: memory.is_listed,
        version: memory.version,
        members: memory.members.into_iter().map(encode_member).collect(),
        created_at: Some(memory.created_at.to_proto()),
        updated_at: Some(memory.updated_at.to_proto()),
    }
}

fn encode_version(version: MemoryVersion) -> proto::MemoryVersion {
    let author = version.author.map(super::author);
    proto::MemoryVersion {
        version: version.version,
        name: version.name,
        member_count: version.members,
        created_at: Some(version.created_at.to_proto()),
        created_by: author,
        memory: None,
    }
}

fn encode_member(member: Member) -> proto::Member {
    proto::Member {
        id: member.id.to_string(),
        kind: member.target.kind().into(),
        target_id: member.target.id().to_string(),
        position: member.position,
        added_at: Some(member.added_at.to_proto()),
        title: member.title,
        database_query: member.query.map(encode_query),
    }
}

/// The members are beside their entries and left out of the memory.
fn encode_resolved(mut resolved: Resolved) -> proto::ResolvedMemory {
    let members = std::mem::take(&mut resolved.memory.members).into_iter().zip(resolved.entries);
    let (mut records, mut fields) = (resolved.records, resolved.fields);
    let mut documents = resolved.documents;
    let encode_one = |(member, files): (Member, Vec<(File, String)>)| {
        let records = records.remove(&member.id).unwrap_or_default();
        let document = documents.remove(&member.id).map(encode_document);
        let entries = files.into_iter().map(encode_file).chain(records.into_iter().map(encode_record));
        let entries = entries.chain(document);
        let fields = databases::encode_properties(fields.remove(&member.id).unwrap_or_default());
        proto::ResolvedMember { entries: entries.collect(), fields, member: Some(encode_member(member)) }
    };
    proto::ResolvedMemory {
        members: members.map(encode_one).collect(),
        coverage: resolved.coverage.into_iter().map(encode_note).collect(),
        memory: Some(encode(resolved.memory)),
    }
}

fn encode_file((file, content): (File, String)) -> proto::ResolvedEntry {
    let file = proto::File { content: Some(content), ..files::encode(file) };
    proto::ResolvedEntry { file: Some(file), ..Default::default() }
}

fn encode_record(entry: RecordEntry) -> proto::ResolvedEntry {
    let record = proto::ResolvedRecord {
        record_id: entry.id.to_string(),
        database_id: entry.database_id.to_string(),
        title: entry.title,
        path: entry.path,
        content: entry.content,
        content_hash: entry.content_hash,
        updated_at: Some(entry.updated_at.to_proto()),
    };
    proto::ResolvedEntry { record: Some(record), ..Default::default() }
}

fn encode_document(entry: DocumentEntry) -> proto::ResolvedEntry {
    let found = entry.document;
    let document = proto::ResolvedDocument {
        document_id: found.id.to_string(),
        title: found.title,
        path: found.path,
        content: entry.content,
        content_hash: found.content_hash,
        updated_at: found.updated_at.map(|at| at.to_proto()),
        source_id: found.source_id,
        address: found.address,
    };
    proto::ResolvedEntry { document: Some(document), ..Default::default() }
}

fn encode_note(note: CoverageNote) -> proto::MemoryNote {
    proto::MemoryNote {
        code: note.code.to_owned(),
        message: note.message,
        member_id: Some(note.member.to_string()),
        target_id: Some(note.target.to_string()),
    }
}
