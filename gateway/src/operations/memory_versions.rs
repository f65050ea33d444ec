//! Memory versions: list, read, restore.

use cairn_chassis::status::Problem;
use cairn_proto::content::v1 as proto;
use cairn_proto::ids::MemoryId;

use super::{Context, Page, Paging, Written, answered, present};
use crate::answers::{Memory, MemoryVersion};
use crate::change;

pub(crate) async fn list(
    context: &Context,
    id: MemoryId,
    paging: Paging,
) -> Result<Page<MemoryVersion>, Problem> {
    let request = context.call.request(proto::ListMemoryVersionsRequest {
        memory: id.to_string(),
        page_size: paging.limit.unwrap_or_default(),
        page_token: paging.cursor.unwrap_or_default(),
    });
    let listed = answered(context.upstreams.memories().list_memory_versions(request).await)?;
    Ok(Page::read(listed.versions, listed.next_page_token, listed.total_size))
}

pub(crate) async fn get(context: &Context, id: MemoryId, version: u64) -> Result<MemoryVersion, Problem> {
    let request = context.call.request(proto::GetMemoryVersionRequest { memory: id.to_string(), version });
    let found = answered(context.upstreams.memories().get_memory_version(request).await)?;
    present(found.version).map(MemoryVersion::from)
}

/// Restores name, guidance and members of a version, as a new version.
pub(crate) async fn restore(
    context: &Context,
    id: MemoryId,
    version: u64,
) -> Result<Written<Memory>, Problem> {
    let request =
        context.call.request(proto::RestoreMemoryVersionRequest { memory: id.to_string(), version });
    let restored = answered(context.upstreams.memories().restore_memory_version(request).await)?;
    Ok(Written {
        value: present(restored.memory)?.into(),
        change: change::of_content(restored.change_position),
    })
}
