//! Assets and the objects that hold their bytes.

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{AssetId, ObjectId, WorkspaceId};

use super::Author;

/// The object with the bytes of an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredObject {
    pub(crate) object: ObjectId,
    /// `blake3:` and 64 hexadecimal digits.
    pub(crate) hash: String,
    pub(crate) size_bytes: u64,
}

/// An asset, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asset {
    pub(crate) id: AssetId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) kept: StoredObject,
    pub(crate) created_at: Timestamp,
    pub(crate) author: Author,
}
