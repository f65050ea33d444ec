//! Memories and their members.

use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::SortOrder;
use cairn_proto::ids::{DatabaseId, DocumentId, FileId, FolderId, MemberId, MemoryId, WorkspaceId};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Author, MemberKind};

/// The target of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum MemberTarget {
    File(FileId),
    Folder(FolderId),
    Database(DatabaseId),
    /// Of a connected source, owned by another service.
    SourceDocument(DocumentId),
}

impl MemberTarget {
    /// The target of that kind with that id.
    pub(crate) const fn of(kind: MemberKind, id: DocumentId) -> Self {
        match kind {
            MemberKind::File => Self::File(FileId(id.0)),
            MemberKind::Folder => Self::Folder(FolderId(id.0)),
            MemberKind::Database => Self::Database(DatabaseId(id.0)),
            MemberKind::SourceDocument => Self::SourceDocument(id),
        }
    }

    /// The kind of the target.
    pub(crate) const fn kind(self) -> MemberKind {
        match self {
            Self::File(_) => MemberKind::File,
            Self::Folder(_) => MemberKind::Folder,
            Self::Database(_) => MemberKind::Database,
            Self::SourceDocument(_) => MemberKind::SourceDocument,
        }
    }

    /// The id of the target, of any kind.
    pub(crate) const fn id(self) -> DocumentId {
        match self {
            Self::File(id) => DocumentId(id.0),
            Self::Folder(id) => DocumentId(id.0),
            Self::Database(id) => DocumentId(id.0),
            Self::SourceDocument(id) => id,
        }
    }
}

/// A member of a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) id: MemberId,
    pub(crate) target: MemberTarget,
    /// For a database member: the selection of records, when the database is in the scope of the caller.
    pub(crate) query: Option<DatabaseQuery>,
    /// From 0, without gaps.
    pub(crate) position: u32,
    pub(crate) added_at: Timestamp,
    /// The name of the target, when it is live and in the scope of the caller.
    pub(crate) title: Option<String>,
    pub(crate) is_live: bool,
    pub(crate) is_covered: bool,
}

/// A memory with its members in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) id: MemoryId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) slug: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) use_when: Option<String>,
    pub(crate) is_public: bool,
    /// Whether search engines may index its page.
    pub(crate) is_listed: bool,
    pub(crate) version: u64,
    pub(crate) members: Vec<Member>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

/// The state of a memory at a version, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemoryState {
    pub(crate) name: String,
    pub(crate) slug: String,
    pub(crate) description: Option<String>,
    pub(crate) use_when: Option<String>,
    pub(crate) is_public: bool,
    pub(crate) is_listed: bool,
    /// In their order.
    pub(crate) members: Vec<FormerMember>,
}

/// A version of a memory, without its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryVersion {
    pub(crate) version: u64,
    /// The name of the memory at that version.
    pub(crate) name: String,
    /// The number of its members.
    pub(crate) members: u64,
    pub(crate) created_at: Timestamp,
    /// Absent when unknown.
    pub(crate) author: Option<Author>,
}

/// A former member, or a member as of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FormerMember {
    /// The id of the member.
    pub(crate) member: MemberId,
    /// The kind of its target.
    pub(crate) kind: MemberKind,
    pub(crate) id: DocumentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) query: Option<DatabaseQuery>,
}

impl From<&Memory> for MemoryState {
    fn from(memory: &Memory) -> Self {
        Self {
            name: memory.name.clone(),
            slug: memory.slug.clone(),
            description: memory.description.clone(),
            use_when: memory.use_when.clone(),
            is_public: memory.is_public,
            is_listed: memory.is_listed,
            members: memory.members.iter().map(FormerMember::from).collect(),
        }
    }
}

impl From<&Member> for FormerMember {
    fn from(member: &Member) -> Self {
        Self {
            member: member.id,
            kind: member.target.kind(),
            id: member.target.id(),
            query: member.query.clone(),
        }
    }
}

/// The selection of records of a database member (spec 2.3), with the parameters of a list of records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DatabaseQuery {
    pub(crate) search: String,
    /// A JSON tree; empty for none.
    pub(crate) filter: String,
    /// Empty for the default order.
    pub(crate) sort_field_id: String,
    #[serde(deserialize_with = "order_or_none")]
    pub(crate) sort_direction: Option<SortOrder>,
    /// 0 for the default.
    pub(crate) limit: u32,
}

/// Earlier versions stored an empty text for none.
fn order_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SortOrder>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()))
}
