//! The trash: list, restore, permanently delete.

use cairn_chassis::call::Call;
use cairn_chassis::status::Problem;
use cairn_proto::content::v1 as proto;
use cairn_proto::domain::TrashKind;

use super::person::Person;
use super::{Page, Paging, Written, answered, present};
use crate::answers::{Author, RestoredItem, TrashItem};
use crate::change;
use crate::upstreams::Upstreams;

/// The items in trash, latest deletion first; optionally of one principal only.
pub(crate) async fn list(
    person: &Person,
    principal: Option<String>,
    page: Paging,
) -> Result<Page<TrashItem>, Problem> {
    let request = person.call.request(proto::ListTrashRequest {
        page_size: page.limit.unwrap_or_default(),
        page_token: page.cursor.unwrap_or_default(),
        principal_id: principal,
    });
    let listed = answered(person.upstreams.trash().list_trash(request).await)?;
    Ok(Page::read(listed.items, listed.next_page_token, listed.total_size))
}

/// Everybody who deleted something in trash.
pub(crate) async fn deleters(person: &Person) -> Result<Vec<Author>, Problem> {
    let request = person.call.request(proto::ListDeletersRequest {});
    Ok(answered(person.upstreams.trash().list_deleters(request).await)?.deleters)
}

/// The deletion that covers an item: its own, or that of a parent.
pub(crate) async fn get(
    upstreams: &Upstreams,
    call: &Call,
    kind: TrashKind,
    item_id: String,
) -> Result<TrashItem, Problem> {
    let request = call.request(proto::GetTrashItemRequest { kind: kind.into(), item_id });
    present(answered(upstreams.trash().get_trash_item(request).await)?.item)
}

/// Restores an item with everything its deletion covered.
pub(crate) async fn restore(
    upstreams: &Upstreams,
    call: &Call,
    kind: TrashKind,
    item_id: String,
) -> Result<Written<RestoredItem>, Problem> {
    let request = call.request(proto::RestoreItemRequest { kind: kind.into(), item_id });
    let restored = answered(upstreams.trash().restore_item(request).await)?;
    let change = change::of_content(restored.change_position);
    Ok(Written { value: restored.into(), change })
}

/// Permanently deletes an item with everything its deletion covered.
pub(crate) async fn remove(
    upstreams: &Upstreams,
    call: &Call,
    kind: TrashKind,
    item_id: String,
) -> Result<Written<()>, Problem> {
    let request = call.request(proto::DeleteItemPermanentlyRequest { kind: kind.into(), item_id });
    let removed = answered(upstreams.trash().delete_item_permanently(request).await)?;
    Ok(Written { value: (), change: change::of_content(removed.change_position) })
}
