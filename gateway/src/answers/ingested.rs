//! An ingested document: its status and citation (contract: "Ingest status", "Citation").

use cairn_proto::domain::{DocumentKind, IngestStatus, SyncMode, plain_page_of};
use cairn_proto::feed::v1::Kind;
use cairn_proto::ingest::v1 as proto;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Links, optional_time, time};

/// The state of a document that was ingested.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IngestedDocument {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    pub(crate) status: IngestStatus,
    pub(crate) idempotency_key: String,
    pub(crate) title: String,
    /// Of the retained text; null while there is none.
    #[schema(required = true)]
    pub(crate) content_hash: Option<String>,
    /// In how many pieces search finds it; null before it does.
    #[schema(required = true)]
    chunk_count: Option<u32>,
    #[schema(required = true, format = DateTime)]
    pub(crate) indexed_at: Option<String>,
    /// How it is cited; null while it has no text.
    #[schema(required = true)]
    pub(crate) citation: Option<IngestedCitation>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// True in the answer to a replay: the same content was sent under this key before.
    deduplicated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) external_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) occurred_at: Option<String>,
    /// The bytes of the retained text.
    pub(crate) size_bytes: u64,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

/// How an ingested document is cited.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IngestedCitation {
    label: String,
    /// The address that it was sent with, or the one here.
    url: String,
    /// The address here, with this very text.
    permalink: String,
    kind: DocumentKind,
    id: String,
    /// Where scripts find it.
    pub(crate) path: String,
    heading_path: Vec<String>,
    content_hash: String,
    sync_mode: SyncMode,
    #[schema(format = DateTime)]
    updated_at: String,
}

impl IngestedDocument {
    pub(crate) fn read(document: proto::IngestedDocument, links: &Links) -> Self {
        let metadata = document.metadata.as_deref().and_then(|text| serde_json::from_str(text).ok());
        Self {
            citation: IngestedCitation::read(&document, links),
            status: IngestStatus::from_number(document.status).unwrap_or_default(),
            indexed_at: optional_time(document.indexed_at.as_ref()),
            occurred_at: optional_time(document.occurred_at.as_ref()),
            created_at: time(document.created_at.as_ref()),
            updated_at: time(document.updated_at.as_ref()),
            id: document.id,
            idempotency_key: document.idempotency_key,
            title: document.title,
            content_hash: document.content_hash,
            chunk_count: document.chunk_count,
            error: document.error,
            deduplicated: false,
            url: document.url,
            external_id: document.external_id,
            metadata,
            size_bytes: document.size_bytes,
        }
    }

    /// With the flag in the response to the sender.
    pub(crate) fn deduplicated(self, deduplicated: bool) -> Self {
        Self { deduplicated, ..self }
    }
}

impl IngestedCitation {
    fn read(document: &proto::IngestedDocument, links: &Links) -> Option<Self> {
        let content_hash = document.content_hash.clone()?;
        let page = links.to(&plain_page_of(Kind::Ingested, &document.id));
        let updated_at = document.occurred_at.as_ref().or(document.created_at.as_ref());
        Some(Self {
            label: document.title.clone(),
            permalink: format!("{page}?hash={content_hash}"),
            url: document.url.clone().unwrap_or(page),
            kind: DocumentKind::Ingested,
            id: document.id.clone(),
            path: document.path.clone(),
            heading_path: Vec::new(),
            content_hash,
            sync_mode: SyncMode::Indexed,
            updated_at: time(updated_at),
        })
    }
}
