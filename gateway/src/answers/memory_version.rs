//! Versions of memories.

use cairn_proto::content::v1::{self as proto, Author};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Memory, time};

/// What a memory is or was.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemoryVersion {
    /// The memory's version then.
    pub(crate) version: u64,
    /// What it was called.
    pub(crate) name: String,
    /// How many members it had.
    pub(crate) member_count: u64,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    /// Null when nobody knows.
    #[schema(required = true)]
    pub(crate) created_by: Option<Author>,
    /// The memory as it was, with the present names of what its members refer to. Left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<Memory>,
}

impl From<proto::MemoryVersion> for MemoryVersion {
    fn from(version: proto::MemoryVersion) -> Self {
        Self {
            version: version.version,
            name: version.name,
            member_count: version.member_count,
            created_at: time(version.created_at.as_ref()),
            created_by: version.created_by,
            memory: version.memory.map(Memory::from),
        }
    }
}
