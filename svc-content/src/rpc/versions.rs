//! `cairn.content.v1.FileVersionService`.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::content::v1::file_version_service_server::{FileVersionService, FileVersionServiceServer};
use cairn_proto::content::v1::get_past_file_request::When;
use cairn_proto::content::v1::{
    self as proto, BatchGetCurrentFileVersionsRequest, BatchGetCurrentFileVersionsResponse,
    GetFileVersionRequest, GetFileVersionResponse, GetPastFileRequest, GetPastFileResponse,
    ListFileVersionsRequest, ListFileVersionsResponse, RestoreFileVersionRequest, RestoreFileVersionResponse,
};
use tonic::{Request, Response, Status};

use super::{authorize, files};
use crate::Error;
use crate::model::{FileVersion, PAGES, PageRequest};
use crate::past::{Moment, Past};
use crate::versions::Versions;

pub(crate) fn server(versions: Versions, past: Past, verifier: Verifier) -> FileVersionServiceServer<Rpc> {
    FileVersionServiceServer::new(Rpc { versions, past, verifier })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    versions: Versions,
    past: Past,
    verifier: Verifier,
}

#[tonic::async_trait]
impl FileVersionService for Rpc {
    async fn list_file_versions(
        &self,
        request: Request<ListFileVersionsRequest>,
    ) -> Result<Response<ListFileVersionsResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.into_inner();
        let ask = PageRequest::new(PAGES, asked.page_size, &asked.page_token)?;
        let page = self.versions.list(&caller, &asked.file_id, ask).await?;
        let versions = page.items.into_iter().map(encode).collect();
        let (next_page_token, total_size) = (page.next, page.total);
        Ok(Response::new(ListFileVersionsResponse { versions, next_page_token, total_size }))
    }

    async fn batch_get_current_file_versions(
        &self,
        request: Request<BatchGetCurrentFileVersionsRequest>,
    ) -> Result<Response<BatchGetCurrentFileVersionsResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let found = self.versions.current(&caller, &request.get_ref().file_ids).await?;
        let versions = found.into_iter().map(encode).collect();
        Ok(Response::new(BatchGetCurrentFileVersionsResponse { versions }))
    }

    async fn get_file_version(
        &self,
        request: Request<GetFileVersionRequest>,
    ) -> Result<Response<GetFileVersionResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.get_ref();
        let (version, content) = self.versions.get(&caller, &asked.file_id, asked.version).await?;
        let version = proto::FileVersion { content: Some(content), ..encode(version) };
        Ok(Response::new(GetFileVersionResponse { version: Some(version) }))
    }

    async fn get_past_file(
        &self,
        request: Request<GetPastFileRequest>,
    ) -> Result<Response<GetPastFileResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let GetPastFileRequest { file_id, when } = request.into_inner();
        let (file, content) = match when {
            Some(When::AsOf(time)) => {
                self.past.file(&caller, &file_id, Moment::at(Timestamp::from_proto(&time))).await?
            }
            Some(When::AfterChange(position)) => {
                self.past.file(&caller, &file_id, Moment::After(position)).await?
            }
            Some(When::ContentHash(hash)) => self.past.cited(&caller, &file_id, &hash).await?,
            None => return Err(Error::invalid("asOf", "required", "say when").into()),
        };
        let file = proto::File { content: Some(content), ..files::encode(file) };
        Ok(Response::new(GetPastFileResponse { file: Some(file) }))
    }

    async fn restore_file_version(
        &self,
        request: Request<RestoreFileVersionRequest>,
    ) -> Result<Response<RestoreFileVersionResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let restored =
            self.versions.restore(&caller, &asked.file_id, asked.version, asked.if_content_hash).await?;
        let file = Some(files::encode(restored.item));
        Ok(Response::new(RestoreFileVersionResponse { file, change_position: restored.position }))
    }
}

fn encode(version: FileVersion) -> proto::FileVersion {
    proto::FileVersion {
        file_id: version.file_id.to_string(),
        version: version.version,
        content_hash: version.content_hash,
        size_bytes: version.size_bytes,
        created_at: Some(version.created_at.to_proto()),
        created_by: version.author.map(|author| proto::Author {
            kind: author.kind,
            id: author.id,
            name: author.name,
        }),
        content: None,
    }
}
