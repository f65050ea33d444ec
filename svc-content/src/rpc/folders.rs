//! `cairn.content.v1.FolderService`.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::content::v1::folder_service_server::{FolderService, FolderServiceServer};
use cairn_proto::content::v1::{
    self as proto, CreateFolderRequest, CreateFolderResponse, DeleteFolderRequest, DeleteFolderResponse,
    GetFolderRequest, GetFolderResponse, ListFoldersRequest, ListFoldersResponse, ResolveScopeRequest,
    ResolveScopeResponse, UpdateFolderRequest, UpdateFolderResponse,
};
use tonic::{Request, Response, Status};

use super::{authorize, patch};
use crate::folders::{FolderDraft, FolderPatch, Folders};
use crate::model::{Folder, PAGES, PageRequest};

pub(crate) fn server(folders: Folders, verifier: Verifier) -> FolderServiceServer<Rpc> {
    FolderServiceServer::new(Rpc { folders, verifier })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    folders: Folders,
    verifier: Verifier,
}

#[tonic::async_trait]
impl FolderService for Rpc {
    async fn create_folder(
        &self,
        request: Request<CreateFolderRequest>,
    ) -> Result<Response<CreateFolderResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let draft = FolderDraft { name: asked.name, parent_id: asked.parent_id };
        let written = self.folders.create(&caller, draft).await?;
        let folder = Some(encode(written.item));
        Ok(Response::new(CreateFolderResponse { folder, change_position: written.position }))
    }

    async fn get_folder(
        &self,
        request: Request<GetFolderRequest>,
    ) -> Result<Response<GetFolderResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let folder = self.folders.get(&caller, &request.get_ref().folder_id).await?;
        Ok(Response::new(GetFolderResponse { folder: Some(encode(folder)) }))
    }

    async fn list_folders(
        &self,
        request: Request<ListFoldersRequest>,
    ) -> Result<Response<ListFoldersResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.into_inner();
        let ask = PageRequest::new(PAGES, asked.page_size, &asked.page_token)?;
        let page = self.folders.list(&caller, asked.parent.map(|filter| filter.parent_id), ask).await?;
        let folders = page.items.into_iter().map(encode).collect();
        Ok(Response::new(ListFoldersResponse { folders, next_page_token: page.next, total_size: page.total }))
    }

    async fn update_folder(
        &self,
        request: Request<UpdateFolderRequest>,
    ) -> Result<Response<UpdateFolderResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let (id, patch) = decode_patch(request.into_inner());
        let written = self.folders.update(&caller, &id, patch).await?;
        let folder = Some(encode(written.item));
        Ok(Response::new(UpdateFolderResponse { folder, change_position: written.position }))
    }

    async fn delete_folder(
        &self,
        request: Request<DeleteFolderRequest>,
    ) -> Result<Response<DeleteFolderResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Delete).await?;
        let change_position = self.folders.delete(&caller, &request.get_ref().folder_id).await?;
        Ok(Response::new(DeleteFolderResponse { change_position }))
    }

    async fn resolve_scope(
        &self,
        request: Request<ResolveScopeRequest>,
    ) -> Result<Response<ResolveScopeResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let folders = self.folders.resolve_scope(&caller).await?;
        let whole_workspace = folders.is_none();
        let folder_ids = folders.unwrap_or_default().into_iter().map(|id| id.to_string()).collect();
        Ok(Response::new(ResolveScopeResponse { whole_workspace, folder_ids }))
    }
}

pub(super) fn decode_patch(request: UpdateFolderRequest) -> (String, FolderPatch) {
    (request.folder_id, patch!(request => FolderPatch { name, parent_id }))
}

pub(super) fn encode(folder: Folder) -> proto::Folder {
    proto::Folder {
        id: folder.id.to_string(),
        workspace_id: folder.workspace_id.to_string(),
        parent_id: folder.parent_id().map(|id| id.to_string()),
        name: folder.name,
        path: folder.path,
        created_at: Some(folder.created_at.to_proto()),
        updated_at: Some(folder.updated_at.to_proto()),
    }
}
