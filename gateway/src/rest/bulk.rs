//! Bulk operations in a single write (contract M14).

use http::StatusCode;

use super::{Answer, written};
use crate::answers::ChangedItems;
use crate::extract::Json;
use crate::operations::Context;
use crate::operations::bulk::{self, MoveItems, RestoreItems, TagItems, TrashItems};

/// Move many files and folders into a folder.
///
/// All in one write: what cannot be done to one of them is told in `skipped` and hinders no other. `writeId` names the write
/// to `POST /api/workspaces/{id}/activity/undo`.
#[utoipa::path(
    post, path = "/api/v1/bulk/move", operation_id = "moveItems", tag = "Bulk", request_body = MoveItems,
    responses((status = 200, description = "What became of them.", body = ChangedItems)),
)]
pub(super) async fn move_items(context: Context, Json(input): Json<MoveItems>) -> Answer {
    Ok(written(StatusCode::OK, bulk::move_items(&context, input).await?))
}

/// Add tags to many files, and take tags from them; their other tags stay.
///
/// All in one write, as with `moveItems`.
#[utoipa::path(
    post, path = "/api/v1/bulk/tag", operation_id = "tagItems", tag = "Bulk", request_body = TagItems,
    responses((status = 200, description = "What became of them.", body = ChangedItems)),
)]
pub(super) async fn tag(context: Context, Json(input): Json<TagItems>) -> Answer {
    Ok(written(StatusCode::OK, bulk::tag(&context, input).await?))
}

/// Move many files and folders to trash, folders with all that they hold.
///
/// All in one write, as with `moveItems`. What stands below a folder that goes too goes along with it, and comes back with it.
#[utoipa::path(
    post, path = "/api/v1/bulk/trash", operation_id = "trashItems", tag = "Bulk", request_body = TrashItems,
    responses((status = 200, description = "What became of them.", body = ChangedItems)),
)]
pub(super) async fn trash(context: Context, Json(input): Json<TrashItems>) -> Answer {
    Ok(written(StatusCode::OK, bulk::trash(&context, input).await?))
}

/// Bring many items back from trash, the latest deletion first.
///
/// All in one write, as with `moveItems`. Records take the permission to write, too.
#[utoipa::path(
    post, path = "/api/v1/bulk/restore", operation_id = "restoreItems", tag = "Bulk", request_body = RestoreItems,
    responses((status = 200, description = "What became of them.", body = ChangedItems)),
)]
pub(super) async fn restore(context: Context, Json(input): Json<RestoreItems>) -> Answer {
    Ok(written(StatusCode::OK, bulk::restore(&context, input).await?))
}
