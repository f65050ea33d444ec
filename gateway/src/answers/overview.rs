//! The overview of a workspace.

use cairn_proto::content::v1 as content;
use cairn_proto::domain::{DocumentKind, page_of};
use cairn_proto::ingest::v1 as ingest;
use cairn_proto::retrieval::v1 as retrieval;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Links, time};

/// What a workspace holds, of a folder-scoped token what its folders hold.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkspaceOverview {
    pub(crate) files: FilesOverview,
    pub(crate) folders: FoldersOverview,
    pub(crate) indexing: Indexing,
    /// Files and records that changed last, the newest first, as they stand now.
    pub(crate) recent_changes: Vec<RecentChange>,
    pub(crate) memories: MemoriesOverview,
    pub(crate) databases: DatabasesOverview,
    /// The sources that are connected to the workspace.
    pub(crate) connected_sources: Vec<ConnectedSource>,
    /// Documents that programs sent from outside; left out for a folder-scoped token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ingested_documents: Option<u64>,
}

/// Counts of ingested documents and sources.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    pub(crate) sources: Vec<ingest::Source>,
    /// `None` if unknown.
    pub(crate) ingested: Option<u64>,
}

/// The files.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FilesOverview {
    /// How many there are.
    pub(crate) total: u64,
}

/// The folders.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FoldersOverview {
    /// How many there are, at any depth.
    pub(crate) total: u64,
    /// The first by name of those at the top: in the root or, for a folder-scoped token, where its scope begins.
    pub(crate) top: Vec<TopFolder>,
    /// How many there are at the top.
    pub(crate) top_total: u64,
}

/// A folder at the top.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TopFolder {
    id: String,
    name: String,
    path: String,
    /// Folders below it, at any depth.
    folder_count: u64,
    /// Files below it, at any depth.
    file_count: u64,
    /// Counting ended here: there may be more files.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    has_more_files: bool,
}

/// Whether searches see everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IndexState {
    /// Every change is indexed.
    Current,
    /// Some changes are not indexed yet.
    Behind,
    /// The search service does not answer.
    Unavailable,
}

/// How the search index stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Indexing {
    pub(crate) state: IndexState,
    /// Changes that are not indexed yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changes_behind: Option<u64>,
    /// Changes that are found by words and not yet by meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changes_without_meaning: Option<u64>,
    /// Documents in the index; left out for a folder-scoped token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) documents: Option<u64>,
    /// Pieces of documents in the index; left out for a folder-scoped token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chunks: Option<u64>,
    /// What turns texts into vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) embedder: Option<String>,
    /// What will, once an index has been built with it in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_embedder: Option<String>,
    /// How much of that index is built, in percent, over all workspaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_embedder_percent: Option<u32>,
}

/// A file or record that changed lately.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecentChange {
    pub(crate) kind: DocumentKind,
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) path: String,
    /// A link that opens it.
    pub(crate) url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) folder_id: Option<String>,
    /// Of a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) database_id: Option<String>,
    pub(crate) version: u64,
    #[schema(format = DateTime)]
    pub(crate) changed_at: String,
    /// Who wrote its present content; left out where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changed_by: Option<ChangedBy>,
}

/// Who made a change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangedBy {
    /// `token`, `user` or `sync`.
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) name: String,
}

/// The memories.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MemoriesOverview {
    /// How many there are.
    pub(crate) total: u64,
    /// The first by name.
    items: Vec<MemoryGuidance>,
}

/// When a memory applies.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MemoryGuidance {
    id: String,
    slug: String,
    name: String,
    description: String,
    use_when: String,
    /// Members that the token can read.
    member_count: u32,
}

/// The databases.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DatabasesOverview {
    /// How many there are.
    pub(crate) total: u64,
    /// The first by name.
    items: Vec<DatabaseCounts>,
}

/// A database and how much it holds.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DatabaseCounts {
    id: String,
    name: String,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder_id: Option<String>,
    record_count: u64,
}

/// A source that is connected to the workspace.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConnectedSource {
    pub(crate) id: String,
    pub(crate) name: String,
    provider: String,
    document_count: u64,
    /// How its last sync went.
    pub(crate) status: String,
}

impl WorkspaceOverview {
    /// `index` is absent if svc-retrieval is unavailable.
    pub(crate) fn read(
        held: content::GetOverviewResponse,
        index: Option<retrieval::GetIndexStatusResponse>,
        outside: Outside,
        links: &Links,
    ) -> Self {
        let counted_up_to = held.counted_up_to;
        let top = held.top_folders.into_iter().map(|top| TopFolder::read(top, counted_up_to)).collect();
        let changes = held.recent_changes.into_iter().map(|change| RecentChange::read(change, links));
        Self {
            files: FilesOverview { total: held.files },
            folders: FoldersOverview { total: held.folders, top, top_total: held.top_folder_count },
            indexing: index.map_or_else(Indexing::unavailable, Indexing::from),
            recent_changes: changes.collect(),
            memories: MemoriesOverview {
                total: held.memories,
                items: held.memory_list.into_iter().map(MemoryGuidance::from).collect(),
            },
            databases: DatabasesOverview {
                total: held.databases,
                items: held.database_list.into_iter().map(DatabaseCounts::from).collect(),
            },
            connected_sources: outside.sources.into_iter().map(ConnectedSource::from).collect(),
            ingested_documents: outside.ingested,
        }
    }
}

impl From<ingest::Source> for ConnectedSource {
    fn from(source: ingest::Source) -> Self {
        Self {
            id: source.id,
            name: source.name,
            provider: source.provider,
            document_count: source.document_count,
            status: source.status,
        }
    }
}

impl TopFolder {
    fn read(top: content::TopFolder, counted_up_to: u64) -> Self {
        let folder = top.folder.unwrap_or_default();
        Self {
            id: folder.id,
            name: folder.name,
            path: folder.path,
            folder_count: top.folders,
            file_count: top.files,
            has_more_files: top.files >= counted_up_to,
        }
    }
}

impl Indexing {
    const fn unavailable() -> Self {
        Self {
            state: IndexState::Unavailable,
            changes_behind: None,
            changes_without_meaning: None,
            documents: None,
            chunks: None,
            embedder: None,
            next_embedder: None,
            next_embedder_percent: None,
        }
    }
}

impl From<retrieval::GetIndexStatusResponse> for Indexing {
    fn from(status: retrieval::GetIndexStatusResponse) -> Self {
        let behind: u64 = status.feeds.iter().map(|feed| feed.behind).sum();
        let next = status.rebuilding;
        Self {
            state: if behind == 0 { IndexState::Current } else { IndexState::Behind },
            changes_behind: Some(behind),
            changes_without_meaning: Some(status.not_embedded),
            documents: status.holdings.as_ref().map(|held| held.documents),
            chunks: status.holdings.as_ref().map(|held| held.chunks),
            embedder: Some(status.embedder),
            next_embedder_percent: next.as_ref().and_then(|next| next.percent),
            next_embedder: next.map(|next| next.embedder),
        }
    }
}

impl RecentChange {
    fn read(change: content::RecentChange, links: &Links) -> Self {
        Self {
            kind: DocumentKind::from_number(change.kind).unwrap_or_default(),
            url: links.to(&page_of(change.kind(), &change.id, change.database_id.as_deref())),
            id: change.id,
            title: change.title,
            path: change.path,
            folder_id: change.folder_id,
            database_id: change.database_id,
            version: change.version,
            changed_at: time(change.changed_at.as_ref()),
            changed_by: change.author.map(|author| ChangedBy {
                kind: author.kind,
                id: author.id,
                name: author.name,
            }),
        }
    }
}

impl From<content::MemorySummary> for MemoryGuidance {
    fn from(memory: content::MemorySummary) -> Self {
        Self {
            id: memory.id,
            slug: memory.slug,
            name: memory.name,
            description: memory.description,
            use_when: memory.use_when,
            member_count: memory.members,
        }
    }
}

impl From<content::DatabaseSummary> for DatabaseCounts {
    fn from(database: content::DatabaseSummary) -> Self {
        Self {
            id: database.id,
            name: database.name,
            description: database.description,
            folder_id: database.folder_id,
            record_count: database.records,
        }
    }
}
