//! `cairn.content.v1.FileService`.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::common::v1::ErrorReason;
use cairn_proto::content::v1::batch_get_files_request::When;
use cairn_proto::content::v1::file_outcome::Outcome;
use cairn_proto::content::v1::file_service_server::{FileService, FileServiceServer};
use cairn_proto::content::v1::{
    self as proto, BatchGetFilesRequest, BatchGetFilesResponse, CreateFileRequest, CreateFileResponse,
    DeleteFileRequest, DeleteFileResponse, FileOutcome, FileProblem, FolderFilter, GetFileRequest,
    GetFileResponse, ListFilesRequest, ListFilesResponse, SearchFilesRequest, SearchFilesResponse,
    UpdateFileRequest, UpdateFileResponse,
};
use tonic::{Request, Response, Status};

use super::{authorize, patch};
use crate::Error;
use crate::files::many::FoundFile;
use crate::files::{FileDraft, FilePatch, FileSelection, Files, InFolder};
use crate::model::{File, FileType, PAGES, PageRequest};
use crate::past::{Moment, Past};

pub(crate) fn server(files: Files, past: Past, verifier: Verifier) -> FileServiceServer<Rpc> {
    FileServiceServer::new(Rpc { files, past, verifier })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    files: Files,
    past: Past,
    verifier: Verifier,
}

#[tonic::async_trait]
impl FileService for Rpc {
    async fn create_file(
        &self,
        request: Request<CreateFileRequest>,
    ) -> Result<Response<CreateFileResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let written = self.files.create(&caller, decode_draft(request.into_inner())).await?;
        let file = Some(encode(written.item));
        Ok(Response::new(CreateFileResponse { file, change_position: written.position }))
    }

    async fn get_file(&self, request: Request<GetFileRequest>) -> Result<Response<GetFileResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let (file, content) = self.files.get(&caller, &request.get_ref().file_id).await?;
        let file = proto::File { content: Some(content), ..encode(file) };
        Ok(Response::new(GetFileResponse { file: Some(file) }))
    }

    async fn batch_get_files(
        &self,
        request: Request<BatchGetFilesRequest>,
    ) -> Result<Response<BatchGetFilesResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.into_inner();
        let max_bytes = Some(asked.max_content_bytes).filter(|max| *max > 0);
        let moment = asked.when.map(|when| match when {
            When::AsOf(time) => Moment::at(Timestamp::from_proto(&time)),
            When::AfterChange(position) => Moment::After(position),
        });
        let found = match moment {
            None => self.files.get_many(&caller, &asked.file_ids, max_bytes).await?,
            Some(moment) => self.past.files(&caller, &asked.file_ids, max_bytes, moment).await?,
        };
        let outcomes = asked.file_ids.into_iter().zip(found).map(|(id, one)| encode_outcome(id, one));
        Ok(Response::new(BatchGetFilesResponse { outcomes: outcomes.collect::<Result<_, Error>>()? }))
    }

    async fn list_files(
        &self,
        request: Request<ListFilesRequest>,
    ) -> Result<Response<ListFilesResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.into_inner();
        let ask = PageRequest::new(PAGES, asked.page_size, &asked.page_token)?;
        let wanted = FileSelection { folder: asked.folder.map(decode_filter), tags: asked.tags };
        let page = self.files.list(&caller, wanted, ask).await?;
        let files = page.items.into_iter().map(encode).collect();
        Ok(Response::new(ListFilesResponse { files, next_page_token: page.next, total_size: page.total }))
    }

    async fn update_file(
        &self,
        request: Request<UpdateFileRequest>,
    ) -> Result<Response<UpdateFileResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let (id, patch) = decode_patch(request.into_inner());
        let written = self.files.update(&caller, &id, patch).await?;
        let file = Some(encode(written.item));
        Ok(Response::new(UpdateFileResponse { file, change_position: written.position }))
    }

    async fn delete_file(
        &self,
        request: Request<DeleteFileRequest>,
    ) -> Result<Response<DeleteFileResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Delete).await?;
        let change_position = self.files.delete(&caller, &request.get_ref().file_id).await?;
        Ok(Response::new(DeleteFileResponse { change_position }))
    }

    async fn search_files(
        &self,
        request: Request<SearchFilesRequest>,
    ) -> Result<Response<SearchFilesResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.into_inner();
        let (folder, limit) = (asked.folder_id.as_deref(), asked.limit);
        let found = self.files.search(&caller, &asked.query, folder, limit, asked.tags).await?;
        let (files, total_size) = found;
        Ok(Response::new(SearchFilesResponse { files: files.into_iter().map(encode).collect(), total_size }))
    }
}

/// An error of one file goes into its result; any other fails the call.
fn encode_outcome(file_id: String, found: Result<FoundFile, Error>) -> Result<FileOutcome, Error> {
    let outcome = match found {
        Ok((file, content)) => Outcome::File(proto::File { content, ..encode(file) }),
        Err(error) if matches!(error, Error::NotFound { .. } | Error::NotThen(_)) => {
            encode_problem(ErrorReason::NotFound, &error)
        }
        Err(error) if matches!(error, Error::OutOfScope(_)) => {
            encode_problem(ErrorReason::OutOfScope, &error)
        }
        Err(error) if matches!(error, Error::Gone(_)) => encode_problem(ErrorReason::Gone, &error),
        Err(error) => return Err(error),
    };
    Ok(FileOutcome { file_id, outcome: Some(outcome) })
}

fn encode_problem(reason: ErrorReason, error: &Error) -> Outcome {
    Outcome::Problem(FileProblem { reason: reason.into(), message: error.to_string() })
}

pub(super) fn decode_draft(request: CreateFileRequest) -> FileDraft {
    FileDraft {
        file_type: FileType::from_number(request.file_type),
        name: request.name,
        content: request.content,
        folder_id: request.folder_id,
        tags: request.tags,
        description: request.description,
    }
}

fn decode_filter(filter: FolderFilter) -> InFolder {
    InFolder { folder_id: filter.folder_id, is_recursive: filter.recursive }
}

pub(super) fn decode_patch(request: UpdateFileRequest) -> (String, FilePatch) {
    let patch = patch!(request => FilePatch { name, content, folder_id, tags, description });
    (request.file_id, FilePatch { if_content_hash: request.if_content_hash, ..patch })
}

pub(super) fn encode(file: File) -> proto::File {
    proto::File {
        id: file.id.to_string(),
        workspace_id: file.workspace_id.to_string(),
        folder_id: file.folder_id().map(|id| id.to_string()),
        name: file.name,
        path: file.path,
        file_type: file.file_type.into(),
        content: None,
        tags: file.tags,
        size_bytes: file.size_bytes,
        content_hash: file.content_hash,
        version: file.version,
        created_at: Some(file.created_at.to_proto()),
        updated_at: Some(file.updated_at.to_proto()),
        description: file.description,
    }
}
