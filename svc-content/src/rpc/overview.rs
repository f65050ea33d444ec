//! `cairn.content.v1.OverviewService`.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::content::v1::overview_service_server::{OverviewService, OverviewServiceServer};
use cairn_proto::content::v1::{self as proto, GetOverviewRequest, GetOverviewResponse};
use tonic::{Request, Response, Status};

use super::{authorize, folders};
use crate::model::{Database, Memory};
use crate::overview::{MAX_COUNTED_FILES, Overview, Overviews, RecentChange, TopFolder};

pub(crate) fn server(overviews: Overviews, verifier: Verifier) -> OverviewServiceServer<Rpc> {
    OverviewServiceServer::new(Rpc { overviews, verifier }).max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    overviews: Overviews,
    verifier: Verifier,
}

#[tonic::async_trait]
impl OverviewService for Rpc {
    async fn get_overview(
        &self,
        request: Request<GetOverviewRequest>,
    ) -> Result<Response<GetOverviewResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let overview = match request.get_ref().counts_only {
            true => self.overviews.counts(&caller).await?,
            false => self.overviews.get(&caller).await?,
        };
        Ok(Response::new(encode(overview)))
    }
}

fn encode(overview: Overview) -> GetOverviewResponse {
    GetOverviewResponse {
        files: overview.files,
        folders: overview.folders,
        memories: overview.memories.total,
        databases: overview.databases.total,
        top_folders: overview.top_folders.into_iter().map(top_folder).collect(),
        top_folder_count: overview.top_folder_count,
        memory_list: overview.memories.items.into_iter().map(memory).collect(),
        database_list: overview.databases.items.into_iter().map(database).collect(),
        recent_changes: overview.changes.into_iter().map(change).collect(),
        counted_up_to: MAX_COUNTED_FILES,
    }
}

fn top_folder(top: TopFolder) -> proto::TopFolder {
    proto::TopFolder {
        folder: Some(folders::encode(top.folder)),
        folders: top.below.folders,
        files: top.below.files,
    }
}

fn memory(memory: Memory) -> proto::MemorySummary {
    let members = memory.members.iter().filter(|member| member.is_covered && member.is_live).count();
    proto::MemorySummary {
        id: memory.id.to_string(),
        slug: memory.slug,
        name: memory.name,
        description: memory.description.unwrap_or_default(),
        use_when: memory.use_when.unwrap_or_default(),
        members: u32::try_from(members).unwrap_or(u32::MAX),
    }
}

fn database(database: Database) -> proto::DatabaseSummary {
    proto::DatabaseSummary {
        id: database.id.to_string(),
        name: database.name,
        description: database.description.unwrap_or_default(),
        folder_id: database.folder_id.map(|id| id.to_string()),
        records: database.record_count,
    }
}

fn change(change: RecentChange) -> proto::RecentChange {
    let author = change.author;
    proto::RecentChange {
        kind: change.kind.into(),
        id: change.id.to_string(),
        title: change.title,
        path: change.path,
        folder_id: change.folder_id.map(|id| id.to_string()),
        database_id: change.database_id.map(|id| id.to_string()),
        version: change.version,
        changed_at: Some(change.changed_at.to_proto()),
        author: author.map(|one| proto::ChangeAuthor { kind: one.kind, id: one.id, name: one.name }),
    }
}
