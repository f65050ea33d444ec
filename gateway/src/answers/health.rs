//! The health of the services with regard to a workspace.

use cairn_proto::content::v1 as content;
use cairn_proto::ingest::v1 as ingest;
use cairn_proto::retrieval::v1 as retrieval;
use serde::Serialize;
use utoipa::ToSchema;

use super::usage::Measure;

/// How the parts of the server stand to a workspace. What a service that is away would say is null.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkspaceHealth {
    pub(crate) services: Vec<ServiceHealth>,
    pub(crate) index: Option<IndexHealth>,
    /// Documents from outside.
    pub(crate) documents: Option<DocumentsHealth>,
    pub(crate) storage: StorageHealth,
}

/// A service of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServiceHealth {
    pub(crate) name: String,
    /// Whether it answers now.
    pub(crate) answers: bool,
}

/// What the search index holds of the workspace, and how far it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IndexHealth {
    /// The feeds of changes that it follows.
    pub(crate) feeds: Vec<FeedHealth>,
    /// Changes that are found by words and not yet by meaning.
    pub(crate) changes_without_meaning: u64,
    pub(crate) documents: Option<u64>,
    /// Pieces of documents.
    pub(crate) chunks: Option<u64>,
    /// What turns texts into vectors.
    pub(crate) embedder: String,
    /// What will, once an index has been built with it; null when none is being built.
    pub(crate) next_embedder: Option<String>,
    /// How much of that index is built, in percent, over all workspaces; null while that is not known.
    pub(crate) next_embedder_percent: Option<u32>,
}

/// How far the changes of one service are applied.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FeedHealth {
    /// `content`, or `ingest` of what comes from outside.
    pub(crate) feed: String,
    /// The last change that searches see.
    pub(crate) position: u64,
    /// Changes after it.
    pub(crate) behind: u64,
}

/// How documents from outside stand.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DocumentsHealth {
    /// Those that programs sent.
    pub(crate) ingested: DocumentCounts,
    /// Those of connected sources.
    pub(crate) of_sources: DocumentCounts,
}

/// How many documents stand how.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub(crate) struct DocumentCounts {
    /// Their text is still to be read.
    pub(crate) pending: u64,
    /// Their text is on its way into the index.
    pub(crate) indexing: u64,
    pub(crate) indexed: u64,
    /// Only their titles are kept.
    pub(crate) catalog: u64,
    /// They could not be read, or not be indexed.
    pub(crate) failed: u64,
}

/// The bytes that the workspace keeps.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StorageHealth {
    /// In all, and what the plan allows.
    pub(crate) bytes: Option<Measure>,
    /// The same by what they are of.
    pub(crate) kinds: Vec<StoredKind>,
}

/// The bytes of one kind of content.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct StoredKind {
    pub(crate) kind: StorageKind,
    pub(crate) bytes: u64,
}

/// What bytes are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StorageKind {
    /// Files, their versions and those in trash, equal ones once.
    Files,
    Assets,
    /// The values of records and their versions.
    Records,
    /// Texts of documents from outside, and files that are still to be read.
    Outside,
}

impl From<retrieval::GetIndexStatusResponse> for IndexHealth {
    fn from(status: retrieval::GetIndexStatusResponse) -> Self {
        let feed = |feed: retrieval::IndexedFeed| FeedHealth {
            feed: feed.feed,
            position: feed.position,
            behind: feed.behind,
        };
        let next = status.rebuilding;
        Self {
            feeds: status.feeds.into_iter().map(feed).collect(),
            changes_without_meaning: status.not_embedded,
            documents: status.holdings.as_ref().map(|held| held.documents),
            chunks: status.holdings.as_ref().map(|held| held.chunks),
            embedder: status.embedder,
            next_embedder_percent: next.as_ref().and_then(|next| next.percent),
            next_embedder: next.map(|next| next.embedder),
        }
    }
}

impl From<ingest::CountDocumentsResponse> for DocumentsHealth {
    fn from(counted: ingest::CountDocumentsResponse) -> Self {
        let counts = |counts: Option<ingest::DocumentCounts>| {
            let ingest::DocumentCounts { pending, indexing, indexed, catalog, failed } =
                counts.unwrap_or_default();
            DocumentCounts { pending, indexing, indexed, catalog, failed }
        };
        Self { ingested: counts(counted.ingested), of_sources: counts(counted.of_sources) }
    }
}

impl StorageHealth {
    pub(crate) fn read(
        bytes: Option<Measure>,
        stored: Option<content::GetStorageResponse>,
        outside: Option<u64>,
    ) -> Self {
        let of_content = stored.map(|stored| {
            [
                (StorageKind::Files, stored.files_bytes),
                (StorageKind::Assets, stored.assets_bytes),
                (StorageKind::Records, stored.records_bytes),
            ]
        });
        let kinds =
            of_content.into_iter().flatten().chain(outside.map(|bytes| (StorageKind::Outside, bytes)));
        Self { bytes, kinds: kinds.map(|(kind, bytes)| StoredKind { kind, bytes }).collect() }
    }
}
