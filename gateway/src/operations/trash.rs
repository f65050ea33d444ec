//! The trash: bring back, remove for good.

use cairn_chassis::status::Problem;
use cairn_proto::content::v1 as proto;
use cairn_proto::domain::TrashKind;

use super::{Context, Written, answered};
use crate::answers::RestoredItem;
use crate::change;

/// Brings an item back, with all that its deletion took.
pub(crate) async fn restore(
    context: &Context,
    kind: TrashKind,
    item_id: String,
) -> Result<Written<RestoredItem>, Problem> {
    let request = context.call.request(proto::RestoreItemRequest { kind: kind.into(), item_id });
    let restored = answered(context.app.upstreams.trash().restore_item(request).await)?;
    let change = change::of_content(restored.change_position);
    Ok(Written { value: restored.into(), change })
}

/// Removes an item for good, with all that its deletion took.
pub(crate) async fn remove(
    context: &Context,
    kind: TrashKind,
    item_id: String,
) -> Result<Written<()>, Problem> {
    let request = context.call.request(proto::DeleteItemPermanentlyRequest { kind: kind.into(), item_id });
    let removed = answered(context.app.upstreams.trash().delete_item_permanently(request).await)?;
    Ok(Written { value: (), change: change::of_content(removed.change_position) })
}
