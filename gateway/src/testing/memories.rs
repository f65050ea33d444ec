//! A fake svc-content with one memory.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::content::v1 as content;
use cairn_proto::content::v1::memory_service_server::MemoryService;
use tonic::{Request, Response, Status};

use super::console::HOSTILE;
use super::{FILE, MEMORY, WORKSPACE};

pub(super) struct Memories;

fn member(kind: content::MemberKind, position: u32) -> content::Member {
    content::Member {
        id: FILE.replace("f1", "e1"),
        kind: kind.into(),
        target_id: FILE.to_owned(),
        position,
        title: (kind == content::MemberKind::File).then(|| "a.md".to_owned()),
        ..Default::default()
    }
}

fn memory(name: &str) -> content::Memory {
    content::Memory {
        id: MEMORY.to_owned(),
        workspace_id: WORKSPACE.to_owned(),
        name: name.to_owned(),
        slug: "guide".to_owned(),
        version: 1,
        members: vec![member(content::MemberKind::File, 0)],
        created_at: Some(prost_types::Timestamp { seconds: 1_800_000_000, nanos: 0 }),
        ..Default::default()
    }
}

fn resolved() -> content::ResolvedMemory {
    let file = content::File {
        id: FILE.to_owned(),
        name: "a.md".to_owned(),
        path: "/a.md".to_owned(),
        file_type: content::FileType::Markdown.into(),
        content: Some("one\n".to_owned()),
        content_hash: "blake3:00ff".to_owned(),
        ..Default::default()
    };
    let note = content::MemoryNote {
        code: "target_deleted".to_owned(),
        message: "the folder of this member is in trash".to_owned(),
        member_id: Some(FILE.replace("f1", "e1")),
        target_id: Some(FILE.to_owned()),
    };
    content::ResolvedMemory {
        memory: Some(content::Memory { members: Vec::new(), ..memory("Guide") }),
        members: vec![
            content::ResolvedMember {
                member: Some(member(content::MemberKind::File, 0)),
                entries: vec![content::ResolvedEntry { file: Some(file), ..Default::default() }],
                fields: Vec::new(),
            },
            content::ResolvedMember {
                member: Some(member(content::MemberKind::Folder, 1)),
                entries: Vec::new(),
                fields: Vec::new(),
            },
        ],
        coverage: vec![note],
    }
}

#[tonic::async_trait]
impl MemoryService for Memories {
    async fn create_memory(
        &self,
        request: Request<content::CreateMemoryRequest>,
    ) -> Result<Response<content::CreateMemoryResponse>, Status> {
        let input = request.into_inner();
        if input.slug.as_deref() == Some("guide") {
            return Err(Problem::new(Reason::SlugTaken, "the slug is taken").into());
        }
        Ok(Response::new(content::CreateMemoryResponse {
            memory: Some(memory(&input.name)),
            change_position: 7,
        }))
    }

    async fn list_memories(
        &self,
        _: Request<content::ListMemoriesRequest>,
    ) -> Result<Response<content::ListMemoriesResponse>, Status> {
        let memories = vec![memory("Guide")];
        Ok(Response::new(content::ListMemoriesResponse { memories, total_size: 1, ..Default::default() }))
    }

    async fn resolve_memory(
        &self,
        request: Request<content::ResolveMemoryRequest>,
    ) -> Result<Response<content::ResolveMemoryResponse>, Status> {
        if request.get_ref().memory != "guide" && request.get_ref().memory != MEMORY {
            return Err(Problem::not_found("there is no such memory").into());
        }
        Ok(Response::new(content::ResolveMemoryResponse { memory: Some(resolved()) }))
    }

    /// Echoes the query and the caller as the memory's name, so that tests can see them.
    async fn export_memory(
        &self,
        request: Request<content::ExportMemoryRequest>,
    ) -> Result<Response<content::ExportMemoryResponse>, Status> {
        let who = if request.metadata().contains_key("authorization") { "somebody" } else { "anybody" };
        let asked = request.into_inner();
        let name = format!("{who} {} {}", asked.memory, asked.workspace_id.unwrap_or_default());
        let memory = content::ResolvedMemory { memory: Some(memory(&name)), ..resolved() };
        Ok(Response::new(content::ExportMemoryResponse { memory: Some(memory) }))
    }

    /// Echoes the mask and the membership as the name.
    async fn update_memory(
        &self,
        request: Request<content::UpdateMemoryRequest>,
    ) -> Result<Response<content::UpdateMemoryResponse>, Status> {
        let input = request.into_inner();
        let mask = input.update_mask.unwrap_or_default().paths.join(",");
        let (added, removed) = (input.add_members.len(), input.remove_member_ids.len());
        let name = format!("{} {mask} +{added} -{removed}", input.memory);
        Ok(Response::new(content::UpdateMemoryResponse { memory: Some(memory(&name)), change_position: 8 }))
    }

    async fn delete_memory(
        &self,
        _: Request<content::DeleteMemoryRequest>,
    ) -> Result<Response<content::DeleteMemoryResponse>, Status> {
        Ok(Response::new(content::DeleteMemoryResponse { change_position: 9 }))
    }

    async fn add_members(
        &self,
        request: Request<content::AddMembersRequest>,
    ) -> Result<Response<content::AddMembersResponse>, Status> {
        let members = request.into_inner().members;
        let members = (0_u32..).zip(members).map(|(place, input)| member(input.kind(), place)).collect();
        Ok(Response::new(content::AddMembersResponse { members, change_position: 10 }))
    }

    /// Echoes the position as the name.
    async fn move_member(
        &self,
        request: Request<content::MoveMemberRequest>,
    ) -> Result<Response<content::MoveMemberResponse>, Status> {
        let name = format!("at {}", request.get_ref().position);
        Ok(Response::new(content::MoveMemberResponse { memory: Some(memory(&name)), change_position: 12 }))
    }

    async fn remove_member(
        &self,
        _: Request<content::RemoveMemberRequest>,
    ) -> Result<Response<content::RemoveMemberResponse>, Status> {
        Ok(Response::new(content::RemoveMemberResponse { change_position: 11 }))
    }

    async fn list_memory_versions(
        &self,
        request: Request<content::ListMemoryVersionsRequest>,
    ) -> Result<Response<content::ListMemoryVersionsResponse>, Status> {
        known(&request.get_ref().memory)?;
        let versions = vec![version(2), version(1)];
        Ok(Response::new(content::ListMemoryVersionsResponse {
            versions,
            total_size: 2,
            ..Default::default()
        }))
    }

    async fn get_memory_version(
        &self,
        request: Request<content::GetMemoryVersionRequest>,
    ) -> Result<Response<content::GetMemoryVersionResponse>, Status> {
        known(&request.get_ref().memory)?;
        let number = request.get_ref().version;
        if !(1..=2).contains(&number) {
            return Err(Problem::not_found("there is no such version").into());
        }
        let was = content::Memory { version: number, ..memory(HOSTILE) };
        let version = content::MemoryVersion { memory: Some(was), ..version(number) };
        Ok(Response::new(content::GetMemoryVersionResponse { version: Some(version) }))
    }

    async fn restore_memory_version(
        &self,
        request: Request<content::RestoreMemoryVersionRequest>,
    ) -> Result<Response<content::RestoreMemoryVersionResponse>, Status> {
        known(&request.get_ref().memory)?;
        Ok(Response::new(content::RestoreMemoryVersionResponse {
            memory: Some(memory("Guide")),
            change_position: 13,
        }))
    }
}

fn known(memory: &str) -> Result<(), Status> {
    if memory == MEMORY { Ok(()) } else { Err(Problem::not_found("there is no such memory").into()) }
}

fn version(number: u64) -> content::MemoryVersion {
    content::MemoryVersion {
        version: number,
        name: HOSTILE.to_owned(),
        member_count: 1,
        created_at: Some(prost_types::Timestamp { seconds: 1_800_000_000, nanos: 0 }),
        ..Default::default()
    }
}
