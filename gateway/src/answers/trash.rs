//! What is in trash.

use cairn_proto::content::v1 as proto;
use cairn_proto::domain::TrashKind;
use serde::Serialize;
use utoipa::ToSchema;

use super::{optional_time, time};

/// One deletion.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrashItem {
    kind: TrashKind,
    id: String,
    name: String,
    /// Where it stood.
    path: String,
    parent_id: Option<String>,
    deleted_at: String,
    /// How many items the deletion took, this one included.
    item_count: u64,
    /// When it is removed for good by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

impl From<proto::TrashItem> for TrashItem {
    fn from(item: proto::TrashItem) -> Self {
        Self {
            kind: TrashKind::from_number(item.kind).unwrap_or(TrashKind::File),
            deleted_at: time(item.deleted_at.as_ref()),
            expires_at: optional_time(item.expires_at.as_ref()),
            id: item.id,
            name: item.name,
            path: item.path,
            parent_id: item.parent_id,
            item_count: item.item_count,
        }
    }
}

/// What came back, and where it stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RestoredItem {
    kind: TrashKind,
    #[schema(format = "uuid")]
    id: String,
    path: String,
    /// What holds it now; null for the root.
    #[schema(format = "uuid")]
    parent_id: Option<String>,
    /// How many items came back, this one included.
    item_count: u64,
}

impl From<proto::RestoreItemResponse> for RestoredItem {
    fn from(item: proto::RestoreItemResponse) -> Self {
        Self {
            kind: TrashKind::from_number(item.kind).unwrap_or(TrashKind::File),
            id: item.item_id,
            path: item.path,
            parent_id: item.parent_id,
            item_count: item.item_count,
        }
    }
}
