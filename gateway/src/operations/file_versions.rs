//! File versions: list, read, restore.

use cairn_chassis::status::Problem;
use cairn_proto::content::v1 as proto;
use cairn_proto::ids::FileId;

use super::past_moment::PastMoment;
use super::{Context, Page, Paging, Written, answered, files, present};
use crate::answers::{File, FileVersion};
use crate::change;

pub(crate) async fn list(
    context: &Context,
    id: FileId,
    paging: Paging,
) -> Result<Page<FileVersion>, Problem> {
    let request = context.call.request(proto::ListFileVersionsRequest {
        file_id: id.to_string(),
        page_size: paging.limit.unwrap_or_default(),
        page_token: paging.cursor.unwrap_or_default(),
    });
    let listed = answered(context.upstreams.file_versions().list_file_versions(request).await)?;
    Ok(Page::read(listed.versions, listed.next_page_token, listed.total_size))
}

/// The current versions of files, unordered; files invisible to the caller are omitted.
pub(crate) async fn current(context: &Context, ids: Vec<String>) -> Result<Vec<FileVersion>, Problem> {
    let request = context.call.request(proto::BatchGetCurrentFileVersionsRequest { file_ids: ids });
    let found = answered(context.upstreams.file_versions().batch_get_current_file_versions(request).await)?;
    Ok(found.versions.into_iter().map(FileVersion::from).collect())
}

pub(crate) async fn get(context: &Context, id: FileId, version: u64) -> Result<FileVersion, Problem> {
    let request = context.call.request(proto::GetFileVersionRequest { file_id: id.to_string(), version });
    let found = answered(context.upstreams.file_versions().get_file_version(request).await)?;
    present(found.version).map(FileVersion::from)
}

/// A file with its content at a past moment, or the current one without `moment`.
pub(crate) async fn at(context: &Context, id: FileId, moment: Option<PastMoment>) -> Result<File, Problem> {
    let Some(moment) = moment else { return files::get(context, id).await };
    let asked = proto::GetPastFileRequest { file_id: id.to_string(), when: Some(moment.of_file()) };
    let request = context.call.request(asked);
    let found = answered(context.upstreams.file_versions().get_past_file(request).await)?;
    present(found.file)
}

/// Restores a version, unless `if_match` is given and does not match the file's content hash.
pub(crate) async fn restore(
    context: &Context,
    id: FileId,
    version: u64,
    if_match: Vec<String>,
) -> Result<Written<File>, Problem> {
    let request = context.call.request(proto::RestoreFileVersionRequest {
        file_id: id.to_string(),
        version,
        if_content_hash: if_match,
    });
    let restored = answered(context.upstreams.file_versions().restore_file_version(request).await)?;
    Ok(Written { value: present(restored.file)?, change: change::of_content(restored.change_position) })
}
