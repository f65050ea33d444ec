//! The result of a bulk change.

use cairn_proto::common::v1::ErrorReason;
use cairn_proto::content::v1 as proto;
use cairn_proto::domain::TrashKind;
use serde::Serialize;
use utoipa::ToSchema;

/// What became of many items, or would.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangedItems {
    /// Whether nothing was touched.
    pub(crate) dry_run: bool,
    /// How many items were named, or match.
    pub(crate) selected_count: u64,
    /// How many of them were changed, or went along with a folder that was.
    pub(crate) changed_count: u64,
    /// How many were so already.
    pub(crate) unchanged_count: u64,
    /// How many were changed, with all that went or came along.
    pub(crate) item_count: u64,
    /// Those that stay as they are, and why.
    pub(crate) skipped: Vec<SkippedItem>,
    /// What names the write to an undo; left out when nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) write_id: Option<String>,
}

/// An item that stays as it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SkippedItem {
    pub(crate) kind: TrashKind,
    pub(crate) id: String,
    /// Such as `NOT_FOUND` or `OUT_OF_SCOPE`.
    pub(crate) code: &'static str,
    /// Why, for people.
    pub(crate) message: String,
}

impl ChangedItems {
    pub(crate) fn read(done: proto::ChangeItemsResponse, dry_run: bool) -> Self {
        Self {
            dry_run,
            selected_count: done.selected_count,
            changed_count: done.changed_count,
            unchanged_count: done.unchanged_count,
            item_count: done.item_count,
            skipped: done.skipped.into_iter().map(Into::into).collect(),
            write_id: done.write_id,
        }
    }
}

impl From<proto::SkippedItem> for SkippedItem {
    fn from(item: proto::SkippedItem) -> Self {
        let reason: ErrorReason = item.reason();
        Self {
            kind: TrashKind::from_number(item.kind).unwrap_or_default(),
            code: reason.as_str_name().trim_start_matches("ERROR_REASON_"),
            id: item.item_id,
            message: item.message,
        }
    }
}
