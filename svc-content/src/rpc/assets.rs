//! `cairn.content.v1.AssetService`.

use std::pin::Pin;

use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::content::v1::asset_service_server::{AssetService, AssetServiceServer};
use cairn_proto::content::v1::download_asset_response::Part as Sent;
use cairn_proto::content::v1::upload_asset_request::Part as Came;
use cairn_proto::content::v1::{
    self as proto, AssetDraft, AssetEnd, DeleteAssetRequest, DeleteAssetResponse, DownloadAssetRequest,
    DownloadAssetResponse, GetAssetRequest, GetAssetResponse, ListAssetsRequest, ListAssetsResponse,
    UploadAssetRequest, UploadAssetResponse,
};
use futures::stream::{self, Stream, StreamExt as _};
use tonic::{Code, Request, Response, Status, Streaming};

use super::{authorize, choosing_ids};
use crate::Error;
use crate::assets::{self, Assets, UploadEnd, UploadPart};
use crate::model::{Asset, PAGES, PageRequest};

/// The size of a message of an upload, with room for its framing.
const MAX_CHUNK_BYTES: usize = 4 * 1024 * 1024 + 1024;

pub(crate) fn server(assets: Assets, verifier: Verifier) -> AssetServiceServer<Rpc> {
    AssetServiceServer::new(Rpc { assets, verifier }).max_decoding_message_size(MAX_CHUNK_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    assets: Assets,
    verifier: Verifier,
}

#[tonic::async_trait]
impl AssetService for Rpc {
    type DownloadAssetStream = Pin<Box<dyn Stream<Item = Result<DownloadAssetResponse, Status>> + Send>>;

    async fn upload_asset(
        &self,
        request: Request<Streaming<UploadAssetRequest>>,
    ) -> Result<Response<UploadAssetResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let (metadata, _, mut messages) = request.into_parts();
        let draft = decode_draft(messages.message().await.map_err(from_stream)?)?;
        choosing_ids(&self.verifier, &metadata, draft.new_id.as_deref()).await?;
        let parts = messages.map(decode_part).boxed();
        let asset = self.assets.upload(&caller, draft, parts).await?;
        Ok(Response::new(UploadAssetResponse { asset: Some(encode(asset)) }))
    }

    async fn get_asset(
        &self,
        request: Request<GetAssetRequest>,
    ) -> Result<Response<GetAssetResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asset = self.assets.get(&caller, &request.get_ref().asset_id).await?;
        Ok(Response::new(GetAssetResponse { asset: Some(encode(asset)) }))
    }

    async fn list_assets(
        &self,
        request: Request<ListAssetsRequest>,
    ) -> Result<Response<ListAssetsResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.get_ref();
        let ask = PageRequest::new(PAGES, asked.page_size, &asked.page_token)?;
        let page = self.assets.list(&caller, ask).await?;
        Ok(Response::new(ListAssetsResponse {
            assets: page.items.into_iter().map(encode).collect(),
            next_page_token: page.next,
            total_size: page.total,
        }))
    }

    async fn download_asset(
        &self,
        request: Request<DownloadAssetRequest>,
    ) -> Result<Response<Self::DownloadAssetStream>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.get_ref();
        let found = self.assets.download(&caller, &asked.asset_id, asked.offset, asked.length).await;
        let (asset, bytes) = found?;
        let chunks = bytes.map(|chunk| chunk.map(|bytes| send(Sent::Bytes(bytes))).map_err(Status::from));
        Ok(Response::new(stream::iter([Ok(send(Sent::Asset(encode(asset))))]).chain(chunks).boxed()))
    }

    async fn delete_asset(
        &self,
        request: Request<DeleteAssetRequest>,
    ) -> Result<Response<DeleteAssetResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Delete).await?;
        self.assets.delete(&caller, &request.get_ref().asset_id).await?;
        Ok(Response::new(DeleteAssetResponse {}))
    }
}

fn decode_draft(first: Option<UploadAssetRequest>) -> Result<assets::AssetDraft, Error> {
    match first.and_then(|message| message.part) {
        Some(Came::Draft(AssetDraft { name, media_type, size_bytes, new_id })) => {
            Ok(assets::AssetDraft { name, media_type, size_bytes, new_id })
        }
        Some(Came::Bytes(_) | Came::End(_)) | None => {
            Err(Error::invalid("draft", "required", "the first message of an upload is its draft"))
        }
    }
}

fn decode_part(message: Result<UploadAssetRequest, Status>) -> Result<UploadPart, Error> {
    match message.map_err(from_stream)?.part {
        Some(Came::Bytes(bytes)) => Ok(UploadPart::Bytes(bytes)),
        Some(Came::End(AssetEnd { size_bytes, content_hash })) => {
            Ok(UploadPart::End(UploadEnd { size_bytes, content_hash }))
        }
        Some(Came::Draft(_)) | None => {
            let message = "after the draft come bytes and at last `end`, and nothing else";
            Err(Error::invalid("part", "invalid", message))
        }
    }
}

/// Maps the errors of tonic for an interrupted stream and for a message above the limit.
fn from_stream(status: Status) -> Error {
    if status.code() == Code::OutOfRange {
        return Error::invalid(
            "bytes",
            "too_long",
            "a message has at most 4 MiB: send more and smaller ones",
        );
    }
    tracing::debug!(%status, "an upload was cut");
    Error::invalid("bytes", "incomplete", "the upload ended before it was whole: try again")
}

const fn send(part: Sent) -> DownloadAssetResponse {
    DownloadAssetResponse { part: Some(part) }
}

fn encode(asset: Asset) -> proto::Asset {
    proto::Asset {
        id: asset.id.to_string(),
        workspace_id: asset.workspace_id.to_string(),
        name: asset.name,
        media_type: asset.media_type,
        size_bytes: asset.kept.size_bytes,
        content_hash: asset.kept.hash,
        created_at: Some(asset.created_at.to_proto()),
        created_by: Some(super::author(asset.author)),
    }
}
