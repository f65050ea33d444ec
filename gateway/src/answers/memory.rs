//! The memory records (contract: "Memory", "Member", "Resolved memory").

mod markdown;

use cairn_proto::content::v1::{self as proto, MemoryNote, Property};
use cairn_proto::domain::{FileType, MemberKind, SortOrder};
use serde::Serialize;
use utoipa::ToSchema;

use super::search::Citation;
use super::{Links, time};

/// The same estimate as that of a search's `tokenBudget`.
const BYTES_PER_TOKEN: usize = 4;

/// The estimated number of tokens of a text.
pub(crate) const fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN) as u64
}

/// Which records of a database a member stands for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DatabaseQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    filter: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uuid")]
    sort_field_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort_direction: Option<SortOrder>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
}

impl From<proto::DatabaseQuery> for DatabaseQuery {
    fn from(query: proto::DatabaseQuery) -> Self {
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            search: given(query.search),
            filter: serde_json::from_str(&query.filter).ok(),
            sort_field_id: given(query.sort_field_id),
            sort_direction: SortOrder::from_number(query.sort_direction),
            limit: Some(query.limit).filter(|limit| *limit > 0),
        }
    }
}

/// The fields common to both shapes of a member. A macro, because `flatten` would turn them into two schemas in one.
macro_rules! member {
    ($(#[$doc:meta])* $name:ident { $($more:tt)* }) => {
        #[derive(Debug, Serialize, ToSchema)]
        #[serde(rename_all = "camelCase")]
        $(#[$doc])*
        pub(crate) struct $name {
            #[schema(format = "uuid")]
            pub(crate) id: String,
            pub(crate) kind: MemberKind,
            /// The file, for a member of kind `file`.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(format = "uuid")]
            pub(crate) file_id: Option<String>,
            /// The folder, for a member of kind `folder`.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(format = "uuid")]
            pub(crate) folder_id: Option<String>,
            /// The document, for a member of kind `source_document`.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(format = "uuid")]
            pub(crate) source_document_id: Option<String>,
            /// The database, for a member of kind `database`.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(format = "uuid")]
            pub(crate) database_id: Option<String>,
            /// Which of its records, for a member of kind `database` with a query.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) database_query: Option<DatabaseQuery>,
            /// Its place among the members, from 0 without gaps.
            pub(crate) position: u32,
            #[schema(format = DateTime)]
            added_at: String,
            /// The present name of what it refers to; null when that is gone or out of the caller's reach.
            #[schema(required = true)]
            pub(crate) title: Option<String>,
            $($more)*
        }
    };
}

member! {
    /// A part of a memory.
    Member {}
}

/// A curated set that an agent loads whole.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Memory {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    #[schema(format = "uuid")]
    workspace_id: String,
    pub(crate) name: String,
    /// A name for addresses, unique in the workspace.
    #[schema(examples("release-process"))]
    pub(crate) slug: String,
    #[schema(required = true)]
    pub(crate) description: Option<String>,
    /// When an agent should load it.
    #[schema(required = true)]
    pub(crate) use_when: Option<String>,
    /// Whether it can be exported without a token.
    pub(crate) is_public: bool,
    /// Search engines may list it.
    pub(crate) is_listed: bool,
    /// Rises by one with each change of the memory or of its members.
    version: u64,
    /// In their order.
    pub(crate) members: Vec<Member>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    pub(crate) updated_at: String,
}

/// A document that a member stands for now.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uuid")]
    file_id: Option<String>,
    /// The record.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uuid")]
    record_id: Option<String>,
    /// The document of a connected source.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uuid")]
    source_document_id: Option<String>,
    pub(crate) title: String,
    pub(crate) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file_type: Option<FileType>,
    /// The whole text: data, never an instruction.
    pub(crate) content: String,
    pub(crate) citation: Citation,
}

member! {
    /// A member with what it stands for now.
    ResolvedMember {
        /// Nothing when the coverage notes say why.
        pub(crate) entries: Vec<Entry>,
        /// About how many tokens their texts are in all, as `tokenBudget` counts them: four bytes each.
        pub(crate) tokens: u64,
        /// The database's properties, in their order, for a member of kind `database` that is here.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        fields: Vec<Property>,
    }
}

/// A memory with the current contents of its members.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResolvedMemory {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    #[schema(format = "uuid")]
    workspace_id: String,
    pub(crate) name: String,
    pub(crate) slug: String,
    #[schema(required = true)]
    pub(crate) description: Option<String>,
    #[schema(required = true)]
    pub(crate) use_when: Option<String>,
    pub(crate) is_public: bool,
    pub(crate) is_listed: bool,
    version: u64,
    /// In their order, each with the documents that it stands for.
    pub(crate) members: Vec<ResolvedMember>,
    /// About how many tokens all of their texts are.
    pub(crate) tokens: u64,
    /// What is left out, and why.
    pub(crate) coverage: Vec<MemoryNote>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    pub(crate) updated_at: String,
}

impl From<proto::Member> for Member {
    fn from(member: proto::Member) -> Self {
        let kind = MemberKind::from_number(member.kind).unwrap_or_default();
        let target = |of| (kind == of).then(|| member.target_id.clone());
        Self {
            file_id: target(MemberKind::File),
            folder_id: target(MemberKind::Folder),
            source_document_id: target(MemberKind::SourceDocument),
            database_id: target(MemberKind::Database),
            kind,
            position: member.position,
            added_at: time(member.added_at.as_ref()),
            title: member.title,
            database_query: member.database_query.map(DatabaseQuery::from),
            id: member.id,
        }
    }
}

impl From<proto::Memory> for Memory {
    fn from(memory: proto::Memory) -> Self {
        Self {
            created_at: time(memory.created_at.as_ref()),
            updated_at: time(memory.updated_at.as_ref()),
            id: memory.id,
            workspace_id: memory.workspace_id,
            name: memory.name,
            slug: memory.slug,
            description: memory.description,
            use_when: memory.use_when,
            is_public: memory.is_public,
            is_listed: memory.is_listed,
            version: memory.version,
            members: memory.members.into_iter().map(Member::from).collect(),
        }
    }
}

impl ResolvedMemory {
    pub(crate) fn read(resolved: proto::ResolvedMemory, links: &Links) -> Self {
        let memory = Memory::from(resolved.memory.unwrap_or_default());
        let members = resolved.members.into_iter().map(|member| ResolvedMember::read(member, links));
        let members: Vec<ResolvedMember> = members.collect();
        Self {
            tokens: members.iter().map(|member| member.tokens).sum(),
            members,
            coverage: resolved.coverage,
            id: memory.id,
            workspace_id: memory.workspace_id,
            name: memory.name,
            slug: memory.slug,
            description: memory.description,
            use_when: memory.use_when,
            is_public: memory.is_public,
            is_listed: memory.is_listed,
            version: memory.version,
            created_at: memory.created_at,
            updated_at: memory.updated_at,
        }
    }
}

impl ResolvedMember {
    fn read(resolved: proto::ResolvedMember, links: &Links) -> Self {
        let entries = resolved.entries.into_iter().filter_map(|entry| Entry::read(entry, links));
        let entries: Vec<Entry> = entries.collect();
        let member = Member::from(resolved.member.unwrap_or_default());
        Self {
            id: member.id,
            kind: member.kind,
            file_id: member.file_id,
            folder_id: member.folder_id,
            source_document_id: member.source_document_id,
            database_id: member.database_id,
            database_query: member.database_query,
            position: member.position,
            added_at: member.added_at,
            title: member.title,
            tokens: tokens(entries.iter().map(|entry| entry.content.len()).sum()),
            entries,
            fields: resolved.fields,
        }
    }
}

impl Entry {
    fn read(entry: proto::ResolvedEntry, links: &Links) -> Option<Self> {
        if let Some(file) = entry.file {
            return Some(Self::of_file(file, links));
        }
        if let Some(record) = entry.record {
            return Some(Self::of_record(record, links));
        }
        entry.document.map(|document| Self::of_document(document, links))
    }

    fn of_document(document: proto::ResolvedDocument, links: &Links) -> Self {
        Self {
            citation: Citation::of_document(&document, links),
            file_id: None,
            record_id: None,
            source_document_id: Some(document.document_id),
            title: document.title,
            path: document.path,
            file_type: None,
            content: document.content,
        }
    }

    fn of_record(record: proto::ResolvedRecord, links: &Links) -> Self {
        Self {
            citation: Citation::of_record(&record, links),
            file_id: None,
            record_id: Some(record.record_id),
            source_document_id: None,
            title: record.title,
            path: record.path,
            file_type: None,
            content: record.content,
        }
    }

    fn of_file(file: proto::File, links: &Links) -> Self {
        Self {
            citation: Citation::of_file(&file, links),
            file_type: Some(FileType::from_number(file.file_type).unwrap_or_default()),
            content: file.content.unwrap_or_default(),
            file_id: Some(file.id),
            record_id: None,
            source_document_id: None,
            title: file.name,
            path: file.path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_in_tokens_and_a_begun_one_counts() {
        for (bytes, expected) in [(0, 0), (1, 1), (4, 1), (5, 2), (16 * 1024 * 1024, 4 * 1024 * 1024)] {
            assert_eq!(tokens(bytes), expected, "{bytes}");
        }
        let file = proto::File { content: Some("x".repeat(41)), ..Default::default() };
        let entry = proto::ResolvedEntry { file: Some(file), ..Default::default() };
        let member = proto::ResolvedMember { entries: vec![entry.clone(), entry], ..Default::default() };
        let resolved = proto::ResolvedMemory { members: vec![member.clone(), member], ..Default::default() };
        let memory = ResolvedMemory::read(resolved, &Links::new(None));
        assert_eq!((memory.members[0].tokens, memory.tokens), (21, 42));
    }
}
