//! The metadata of assets.

use cairn_proto::content::v1 as proto;
use serde::Serialize;
use utoipa::ToSchema;

use super::time;

/// An attachment.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Asset {
    #[schema(format = "uuid")]
    id: String,
    #[schema(format = "uuid")]
    workspace_id: String,
    /// A file name.
    name: String,
    #[schema(examples("image/png"))]
    media_type: String,
    size_bytes: u64,
    /// `blake3:` and 64 hexadecimal digits, of the bytes.
    content_hash: String,
    #[schema(format = DateTime)]
    created_at: String,
}

impl From<proto::Asset> for Asset {
    fn from(asset: proto::Asset) -> Self {
        Self {
            created_at: time(asset.created_at.as_ref()),
            id: asset.id,
            workspace_id: asset.workspace_id,
            name: asset.name,
            media_type: asset.media_type,
            size_bytes: asset.size_bytes,
            content_hash: asset.content_hash,
        }
    }
}
