//! The trash: restore, permanently delete (contract, "Reading and writing, completed").

use cairn_proto::domain::TrashKind;
use cairn_proto::ids::{FileId, FolderId, MemoryId};
use http::StatusCode;

use super::{Answer, done, written};
use crate::answers::RestoredItem;
use crate::extract::PathId;
use crate::operations::{Context, trash};

/// Bring a file back from trash.
///
/// It comes back to where it stood, or into the root when its folder is not there any more. A file that went to trash
/// along with a folder comes back with that folder only.
#[utoipa::path(
    post, path = "/api/v1/files/{id}/restore", operation_id = "restoreFile", tag = "Files",
    params(("id" = String, Path, format = "uuid", description = "The file.")),
    responses((status = 200, description = "What came back, and where it stands.", body = RestoredItem)),
)]
pub(super) async fn restore_file(context: Context, PathId(id): PathId<FileId>) -> Answer {
    restore(&context, TrashKind::File, id.to_string()).await
}

/// Remove a file in trash for good, with its versions.
#[utoipa::path(
    delete, path = "/api/v1/files/{id}/permanent", operation_id = "deleteFilePermanently", tag = "Files",
    params(("id" = String, Path, format = "uuid", description = "The file.")),
    responses((status = 204, description = "The file is gone for good.")),
)]
pub(super) async fn purge_file(context: Context, PathId(id): PathId<FileId>) -> Answer {
    purge(&context, TrashKind::File, id.to_string()).await
}

/// Bring a folder back from trash, with all that went along with it.
///
/// It comes back to where it stood, or into the root when that is not there any more.
#[utoipa::path(
    post, path = "/api/v1/folders/{id}/restore", operation_id = "restoreFolder", tag = "Folders",
    params(("id" = String, Path, format = "uuid", description = "The folder.")),
    responses((status = 200, description = "What came back, and where it stands.", body = RestoredItem)),
)]
pub(super) async fn restore_folder(context: Context, PathId(id): PathId<FolderId>) -> Answer {
    restore(&context, TrashKind::Folder, id.to_string()).await
}

/// Remove a folder in trash for good, with all that went along with it.
#[utoipa::path(
    delete, path = "/api/v1/folders/{id}/permanent", operation_id = "deleteFolderPermanently", tag = "Folders",
    params(("id" = String, Path, format = "uuid", description = "The folder.")),
    responses((status = 204, description = "The folder and what it held are gone for good.")),
)]
pub(super) async fn purge_folder(context: Context, PathId(id): PathId<FolderId>) -> Answer {
    purge(&context, TrashKind::Folder, id.to_string()).await
}

/// Bring a memory back from trash, with its members.
///
/// When another memory has its slug by now, it comes back with a number behind it.
#[utoipa::path(
    post, path = "/api/v1/memories/{id}/restore", operation_id = "restoreMemory", tag = "Memories",
    params(("id" = String, Path, format = "uuid", description = "The memory.")),
    responses((status = 200, description = "What came back; its path ends with its slug.", body = RestoredItem)),
)]
pub(super) async fn restore_memory(context: Context, PathId(id): PathId<MemoryId>) -> Answer {
    restore(&context, TrashKind::Memory, id.to_string()).await
}

/// Remove a memory in trash for good. What its members refer to stays.
#[utoipa::path(
    delete, path = "/api/v1/memories/{id}/permanent", operation_id = "deleteMemoryPermanently", tag = "Memories",
    params(("id" = String, Path, format = "uuid", description = "The memory.")),
    responses((status = 204, description = "The memory is gone for good.")),
)]
pub(super) async fn purge_memory(context: Context, PathId(id): PathId<MemoryId>) -> Answer {
    purge(&context, TrashKind::Memory, id.to_string()).await
}

async fn restore(context: &Context, kind: TrashKind, id: String) -> Answer {
    Ok(written(StatusCode::OK, trash::restore(&context.upstreams, &context.call, kind, id).await?))
}

async fn purge(context: &Context, kind: TrashKind, id: String) -> Answer {
    Ok(done(&trash::remove(&context.upstreams, &context.call, kind, id).await?))
}
