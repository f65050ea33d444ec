//! Items in trash.

use cairn_proto::content::v1 as proto;
use cairn_proto::domain::TrashKind;
use serde::Serialize;
use utoipa::ToSchema;

/// What came back, and where it stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RestoredItem {
    pub(crate) kind: TrashKind,
    #[schema(format = "uuid")]
    pub(crate) id: String,
    pub(crate) path: String,
    /// What holds it now; null for the root.
    #[schema(format = "uuid")]
    pub(crate) parent_id: Option<String>,
    /// How many items came back, this one included.
    pub(crate) item_count: u64,
}

impl From<proto::RestoreItemResponse> for RestoredItem {
    fn from(item: proto::RestoreItemResponse) -> Self {
        Self {
            kind: TrashKind::from_number(item.kind).unwrap_or_default(),
            id: item.item_id,
            path: item.path,
            parent_id: item.parent_id,
            item_count: item.item_count,
        }
    }
}
