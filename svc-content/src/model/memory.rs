//! Memories and their members.

use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::SortOrder;
use cairn_proto::ids::{DatabaseId, DocumentId, FileId, FolderId, MemberId, MemoryId, WorkspaceId};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Author, MemberKind};

/// What a member refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum MemberTarget {
    File(FileId),
    Folder(FolderId),
    Database(DatabaseId),
    /// Of a connected source: kept by another service.
    SourceDocument(DocumentId),
}

impl MemberTarget {
    /// What the id of that kind names.
    pub(crate) const fn of(kind: MemberKind, id: DocumentId) -> Self {
        match kind {
            MemberKind::File => Self::File(FileId(id.0)),
            MemberKind::Folder => Self::Folder(FolderId(id.0)),
            MemberKind::Database => Self::Database(DatabaseId(id.0)),
            MemberKind::SourceDocument => Self::SourceDocument(id),
        }
    }

    /// What kind of thing it is.
    pub(crate) const fn kind(self) -> MemberKind {
        match self {
            Self::File(_) => MemberKind::File,
            Self::Folder(_) => MemberKind::Folder,
            Self::Database(_) => MemberKind::Database,
            Self::SourceDocument(_) => MemberKind::SourceDocument,
        }
    }

    /// Its id, whatever it is.
    pub(crate) const fn id(self) -> DocumentId {
        match self {
            Self::File(id) => DocumentId(id.0),
            Self::Folder(id) => DocumentId(id.0),
            Self::Database(id) => DocumentId(id.0),
            Self::SourceDocument(id) => id,
        }
    }
}

/// A part of a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) id: MemberId,
    pub(crate) target: MemberTarget,
    /// Of a database member: which records, when the caller's scope covers the database.
    pub(crate) query: Option<DatabaseQuery>,
    /// From 0, without gaps.
    pub(crate) position: u32,
    pub(crate) added_at: Timestamp,
    /// The target's name, when it lives and the caller's scope covers it.
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
    /// Whether search engines may list its page.
    pub(crate) is_listed: bool,
    pub(crate) version: u64,
    pub(crate) members: Vec<Member>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

/// What a memory was at a version, as it is kept.
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

/// A version of a memory, without what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryVersion {
    pub(crate) version: u64,
    /// What the memory was called.
    pub(crate) name: String,
    /// How many members it had.
    pub(crate) members: u64,
    pub(crate) created_at: Timestamp,
    /// Absent when nobody knows.
    pub(crate) author: Option<Author>,
}

/// A member as it was, where it is no more or as of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FormerMember {
    /// The member itself.
    pub(crate) member: MemberId,
    /// What it refers to.
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

/// Which records of a database a member stands for (spec 2.3), as the list of records takes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DatabaseQuery {
    pub(crate) search: String,
    /// A JSON tree; empty for none.
    pub(crate) filter: String,
    /// Empty for the usual order.
    pub(crate) sort_field_id: String,
    #[serde(deserialize_with = "order_or_none")]
    pub(crate) sort_direction: Option<SortOrder>,
    /// 0 for the usual number.
    pub(crate) limit: u32,
}

/// Earlier queries were kept with an empty text for none.
fn order_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SortOrder>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()))
}
