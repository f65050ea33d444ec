//! Fake location and versions of the one file.

use cairn_chassis::status::Problem;
use cairn_proto::content::v1 as content;
use cairn_proto::content::v1::file_version_service_server::FileVersionService;
use cairn_proto::content::v1::location_service_server::LocationService;
use tonic::{Request, Response, Status};

use super::{FILE, WORKSPACE};

/// The hash of the text of a version.
pub(crate) fn hash(version: u64) -> String {
    // The latest is the file's current one.
    if version == 2 { super::content::HASH.to_owned() } else { format!("blake3:{version:04}") }
}

pub(super) struct Locations;

#[tonic::async_trait]
impl LocationService for Locations {
    async fn locate_item(
        &self,
        request: Request<content::LocateItemRequest>,
    ) -> Result<Response<content::LocateItemResponse>, Status> {
        let asked = request.into_inner();
        if !asked.workspace_ids.iter().any(|id| id == WORKSPACE) || !asked.item_id.starts_with("0199c0de") {
            return Err(Problem::not_found("there is no such item").into());
        }
        Ok(Response::new(content::LocateItemResponse { workspace_id: WORKSPACE.to_owned() }))
    }
}

pub(super) struct Versions;

fn version(version: u64) -> content::FileVersion {
    content::FileVersion {
        file_id: FILE.to_owned(),
        version,
        content_hash: hash(version),
        size_bytes: 14,
        created_at: Some(prost_types::Timestamp { seconds: 1_800_000_000, nanos: 0 }),
        created_by: Some(content::Author {
            kind: "token".to_owned(),
            id: "t".to_owned(),
            name: super::console::HOSTILE.to_owned(),
        }),
        content: None,
    }
}

#[tonic::async_trait]
impl FileVersionService for Versions {
    async fn list_file_versions(
        &self,
        _: Request<content::ListFileVersionsRequest>,
    ) -> Result<Response<content::ListFileVersionsResponse>, Status> {
        Ok(Response::new(content::ListFileVersionsResponse {
            versions: vec![version(2), version(1)],
            next_page_token: String::new(),
            total_size: 2,
        }))
    }

    async fn batch_get_current_file_versions(
        &self,
        _: Request<content::BatchGetCurrentFileVersionsRequest>,
    ) -> Result<Response<content::BatchGetCurrentFileVersionsResponse>, Status> {
        Ok(Response::new(content::BatchGetCurrentFileVersionsResponse { versions: vec![version(2)] }))
    }

    /// Echoes the moment as the content.
    async fn get_past_file(
        &self,
        request: Request<content::GetPastFileRequest>,
    ) -> Result<Response<content::GetPastFileResponse>, Status> {
        let asked = request.into_inner();
        let content = format!("{:?}", asked.when);
        let file = content::File { id: asked.file_id, content: Some(content), ..Default::default() };
        Ok(Response::new(content::GetPastFileResponse { file: Some(file) }))
    }

    async fn get_file_version(
        &self,
        request: Request<content::GetFileVersionRequest>,
    ) -> Result<Response<content::GetFileVersionResponse>, Status> {
        let asked = request.into_inner().version;
        if !(1..=2).contains(&asked) {
            return Err(Problem::not_found("there is no such version").into());
        }
        let text = if asked == 2 { "one\ntwo\nthree\n" } else { "one\n<b>zwei</b>\nthree\n" };
        let version = content::FileVersion { content: Some(text.to_owned()), ..version(asked) };
        Ok(Response::new(content::GetFileVersionResponse { version: Some(version) }))
    }

    async fn restore_file_version(
        &self,
        _: Request<content::RestoreFileVersionRequest>,
    ) -> Result<Response<content::RestoreFileVersionResponse>, Status> {
        Err(Problem::version_conflict("the file has changed").into())
    }
}
