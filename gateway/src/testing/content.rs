//! A fake svc-content with one file.

use cairn_chassis::status::{Problem, Violation};
use cairn_proto::content::v1 as content;
use cairn_proto::content::v1::file_service_server::FileService;
use tonic::{Response, Status};

use super::{FILE, WORKSPACE};

pub(super) const HASH: &str = "blake3:00ff";

pub(super) struct Files;

fn file(name: &str, folder_id: Option<String>) -> content::File {
    content::File {
        id: FILE.to_owned(),
        workspace_id: WORKSPACE.to_owned(),
        folder_id,
        name: name.to_owned(),
        path: format!("/{name}"),
        file_type: content::FileType::Markdown.into(),
        content_hash: HASH.to_owned(),
        version: 1,
        created_at: Some(prost_types::Timestamp { seconds: 1_800_000_000, nanos: 0 }),
        updated_at: Some(prost_types::Timestamp { seconds: 1_800_000_000, nanos: 0 }),
        ..Default::default()
    }
}

#[tonic::async_trait]
impl FileService for Files {
    async fn create_file(
        &self,
        request: tonic::Request<content::CreateFileRequest>,
    ) -> Result<Response<content::CreateFileResponse>, Status> {
        let input = request.into_inner();
        if input.name.contains('/') {
            return Err(Problem::validation(vec![Violation::new(
                "name",
                "invalid_name",
                "may not hold `/`",
            )])
            .into());
        }
        Ok(Response::new(content::CreateFileResponse {
            file: Some(file(&input.name, input.folder_id)),
            change_position: 7,
        }))
    }

    async fn get_file(
        &self,
        request: tonic::Request<content::GetFileRequest>,
    ) -> Result<Response<content::GetFileResponse>, Status> {
        if request.into_inner().file_id != FILE {
            return Err(Problem::not_found("there is no such file").into());
        }
        let found = content::File { content: Some("one\ntwo\nthree\n".to_owned()), ..file("a.md", None) };
        Ok(Response::new(content::GetFileResponse { file: Some(found) }))
    }

    async fn batch_get_files(
        &self,
        request: tonic::Request<content::BatchGetFilesRequest>,
    ) -> Result<Response<content::BatchGetFilesResponse>, Status> {
        let outcome = |file_id: String| {
            let found = content::File { content: Some("one\n".to_owned()), ..file("a.md", None) };
            let outcome = Some(content::file_outcome::Outcome::File(found));
            content::FileOutcome { file_id, outcome }
        };
        let outcomes = request.into_inner().file_ids.into_iter().map(outcome).collect();
        Ok(Response::new(content::BatchGetFilesResponse { outcomes }))
    }

    async fn list_files(
        &self,
        request: tonic::Request<content::ListFilesRequest>,
    ) -> Result<Response<content::ListFilesResponse>, Status> {
        let is_first = request.into_inner().page_token.is_empty();
        let next_page_token = if is_first { "p+2".to_owned() } else { String::new() };
        Ok(Response::new(content::ListFilesResponse {
            files: vec![file("a.md", None)],
            next_page_token,
            total_size: 2,
        }))
    }

    async fn update_file(
        &self,
        request: tonic::Request<content::UpdateFileRequest>,
    ) -> Result<Response<content::UpdateFileResponse>, Status> {
        let input = request.into_inner();
        if !input.if_content_hash.is_empty() && !input.if_content_hash.contains(&HASH.to_owned()) {
            return Err(Problem::version_conflict("the file has changed").into());
        }
        // Echoes the mask as the name, so that tests can see it.
        let mask = input.update_mask.unwrap_or_default().paths.join(",");
        Ok(Response::new(content::UpdateFileResponse {
            file: Some(file(&mask, input.folder_id)),
            change_position: 8,
        }))
    }

    async fn delete_file(
        &self,
        _: tonic::Request<content::DeleteFileRequest>,
    ) -> Result<Response<content::DeleteFileResponse>, Status> {
        Ok(Response::new(content::DeleteFileResponse { change_position: 9 }))
    }

    async fn search_files(
        &self,
        _: tonic::Request<content::SearchFilesRequest>,
    ) -> Result<Response<content::SearchFilesResponse>, Status> {
        Ok(Response::new(content::SearchFilesResponse { files: Vec::new(), total_size: 0 }))
    }
}
