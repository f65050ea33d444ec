//! What content tells besides its documents: scopes, names and what is in trash.

use cairn_chassis::status::Problem;
use cairn_proto::content::v1 as content;
use cairn_proto::content::v1::folder_service_server::FolderService;
use cairn_proto::content::v1::trash_service_server::TrashService;
use cairn_proto::content::v1::tree_service_server::TreeService;
use cairn_proto::feed::v1::{Change, Kind};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::{FOLDER, Owner, unused};

#[tonic::async_trait]
impl FolderService for Owner {
    async fn create_folder(
        &self,
        _: Request<content::CreateFolderRequest>,
    ) -> Result<Response<content::CreateFolderResponse>, Status> {
        unused()
    }

    async fn get_folder(
        &self,
        _: Request<content::GetFolderRequest>,
    ) -> Result<Response<content::GetFolderResponse>, Status> {
        unused()
    }

    async fn list_folders(
        &self,
        _: Request<content::ListFoldersRequest>,
    ) -> Result<Response<content::ListFoldersResponse>, Status> {
        unused()
    }

    async fn update_folder(
        &self,
        _: Request<content::UpdateFolderRequest>,
    ) -> Result<Response<content::UpdateFolderResponse>, Status> {
        unused()
    }

    async fn delete_folder(
        &self,
        _: Request<content::DeleteFolderRequest>,
    ) -> Result<Response<content::DeleteFolderResponse>, Status> {
        unused()
    }

    async fn resolve_scope(
        &self,
        _: Request<content::ResolveScopeRequest>,
    ) -> Result<Response<content::ResolveScopeResponse>, Status> {
        let folder_ids = vec![Uuid::from_u128(FOLDER).hyphenated().to_string()];
        Ok(Response::new(content::ResolveScopeResponse { whole_workspace: false, folder_ids }))
    }
}

#[tonic::async_trait]
impl TreeService for Owner {
    async fn list_tree(
        &self,
        _: Request<content::ListTreeRequest>,
    ) -> Result<Response<content::ListTreeResponse>, Status> {
        unused()
    }

    async fn read_tree_changes(
        &self,
        _: Request<content::ReadTreeChangesRequest>,
    ) -> Result<Response<content::ReadTreeChangesResponse>, Status> {
        unused()
    }

    async fn read_past_tree(
        &self,
        _: Request<content::ReadPastTreeRequest>,
    ) -> Result<Response<content::ReadPastTreeResponse>, Status> {
        unused()
    }

    async fn read_folders(
        &self,
        request: Request<content::ReadFoldersRequest>,
    ) -> Result<Response<content::ReadFoldersResponse>, Status> {
        let after = usize::try_from(request.into_inner().after).unwrap();
        let mut state = self.answering()?;
        if state.keeps_names_to_itself {
            return unused();
        }
        state.asked.folders += 1;
        let folder = |(id, name): (&u128, &String)| content::TreeFolder {
            id: Uuid::from_u128(*id).hyphenated().to_string(),
            name: name.clone(),
            ..content::TreeFolder::default()
        };
        let database = |(id, name): (&u128, &String)| content::NamedDatabase {
            id: Uuid::from_u128(*id).hyphenated().to_string(),
            name: name.clone(),
            ..content::NamedDatabase::default()
        };
        let has_name = |change: &Change| matches!(change.kind(), Kind::Folder | Kind::Database);
        let unchanged = after > 0 && !state.feed.iter().skip(after).any(has_name);
        let folders = state.folders.iter().filter(|_| !unchanged).map(folder).collect();
        let databases = state.databases.iter().filter(|_| !unchanged).map(database).collect();
        let position = u64::try_from(state.feed.len()).unwrap();
        Ok(Response::new(content::ReadFoldersResponse {
            folders,
            databases,
            position,
            unchanged,
            ..content::ReadFoldersResponse::default()
        }))
    }

    async fn read_texts(
        &self,
        _: Request<content::ReadTextsRequest>,
    ) -> Result<Response<content::ReadTextsResponse>, Status> {
        unused()
    }
}

/// What is in trash is what the test trashed without telling the feed.
#[tonic::async_trait]
impl TrashService for Owner {
    async fn get_trash_item(
        &self,
        request: Request<content::GetTrashItemRequest>,
    ) -> Result<Response<content::GetTrashItemResponse>, Status> {
        let asked = request.into_inner();
        let state = self.answering()?;
        let trashed = state.documents.get(&asked.item_id).filter(|_| state.trashed.contains(&asked.item_id));
        let document = trashed.filter(|_| asked.kind() == Kind::File);
        let document = document.ok_or_else(|| Status::from(Problem::not_found("it is not in trash")))?;
        let item = content::TrashItem {
            kind: asked.kind,
            id: asked.item_id,
            name: document.title.clone(),
            path: document.path.clone(),
            ..content::TrashItem::default()
        };
        Ok(Response::new(content::GetTrashItemResponse { item: Some(item) }))
    }

    async fn list_trash(
        &self,
        _: Request<content::ListTrashRequest>,
    ) -> Result<Response<content::ListTrashResponse>, Status> {
        unused()
    }

    async fn list_deleters(
        &self,
        _: Request<content::ListDeletersRequest>,
    ) -> Result<Response<content::ListDeletersResponse>, Status> {
        unused()
    }

    async fn restore_item(
        &self,
        _: Request<content::RestoreItemRequest>,
    ) -> Result<Response<content::RestoreItemResponse>, Status> {
        unused()
    }

    async fn delete_item_permanently(
        &self,
        _: Request<content::DeleteItemPermanentlyRequest>,
    ) -> Result<Response<content::DeleteItemPermanentlyResponse>, Status> {
        unused()
    }
}
