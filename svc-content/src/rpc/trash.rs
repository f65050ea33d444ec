//! `cairn.content.v1.TrashService`.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::feed::Kind;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::content::v1::trash_service_server::{TrashService, TrashServiceServer};
use cairn_proto::content::v1::{
    self as proto, DeleteItemPermanentlyRequest, DeleteItemPermanentlyResponse, GetTrashItemRequest,
    GetTrashItemResponse, ListDeletersRequest, ListDeletersResponse, ListTrashRequest, ListTrashResponse,
    RestoreItemRequest, RestoreItemResponse,
};
use tonic::{Request, Response, Status};

use super::{author, authorize};
use crate::model::{PAGES, PageRequest};
use crate::trash::{Trash, TrashEntry, to_restore};

pub(crate) fn server(trash: Trash, verifier: Verifier) -> TrashServiceServer<Rpc> {
    TrashServiceServer::new(Rpc { trash, verifier })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    trash: Trash,
    verifier: Verifier,
}

#[tonic::async_trait]
impl TrashService for Rpc {
    async fn list_trash(
        &self,
        request: Request<ListTrashRequest>,
    ) -> Result<Response<ListTrashResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.into_inner();
        let request = PageRequest::new(PAGES, asked.page_size, &asked.page_token)?;
        let page = self.trash.list(&caller, asked.principal_id.as_deref(), request).await?;
        let items = page.items.into_iter().map(encode).collect();
        Ok(Response::new(ListTrashResponse { items, next_page_token: page.next, total_size: page.total }))
    }

    async fn list_deleters(
        &self,
        request: Request<ListDeletersRequest>,
    ) -> Result<Response<ListDeletersResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let deleters = self.trash.deleters(&caller).await?.into_iter().map(author).collect();
        Ok(Response::new(ListDeletersResponse { deleters }))
    }

    async fn get_trash_item(
        &self,
        request: Request<GetTrashItemRequest>,
    ) -> Result<Response<GetTrashItemResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.get_ref();
        let item = self.trash.get(&caller, asked.kind(), &asked.item_id).await?;
        Ok(Response::new(GetTrashItemResponse { item: Some(encode(item)) }))
    }

    async fn restore_item(
        &self,
        request: Request<RestoreItemRequest>,
    ) -> Result<Response<RestoreItemResponse>, Status> {
        let kind = request.get_ref().kind();
        let caller = authorize(&self.verifier, request.metadata(), to_restore(kind)).await?;
        let item_id = request.into_inner().item_id;
        let restored = self.trash.restore(&caller, kind, &item_id).await?;
        Ok(Response::new(RestoreItemResponse {
            kind: kind.into(),
            item_id,
            parent_id: restored.parent_id,
            path: restored.path,
            item_count: restored.items,
            change_position: restored.position,
        }))
    }

    async fn delete_item_permanently(
        &self,
        request: Request<DeleteItemPermanentlyRequest>,
    ) -> Result<Response<DeleteItemPermanentlyResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Delete).await?;
        let asked = request.get_ref();
        let change_position = self.trash.remove(&caller, asked.kind(), &asked.item_id).await?;
        Ok(Response::new(DeleteItemPermanentlyResponse { change_position }))
    }
}

fn encode(listed: TrashEntry) -> proto::TrashItem {
    let TrashEntry { deletion, expires_at } = listed;
    proto::TrashItem {
        kind: Kind::into(deletion.kind),
        parent_id: deletion.holder(),
        id: deletion.item_id,
        name: deletion.name,
        path: deletion.path,
        deleted_at: Some(deletion.at.to_proto()),
        item_count: deletion.items,
        expires_at: expires_at.map(|at| at.to_proto()),
        deleted_by: deletion.by.map(author),
    }
}
