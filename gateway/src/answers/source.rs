//! Connected sources, their documents, and what is read of them (contract: "Connected source", "Source query / fetch").

use cairn_proto::domain::{DocumentKind, SyncMode, plain_page_of};
use cairn_proto::feed::v1::Kind;
use cairn_proto::ingest::v1::{self as proto, ProviderOperations};
use cairn_proto::retrieval::v1::{self as retrieval, CoverageNote};
use serde::Serialize;
use utoipa::ToSchema;

use super::search::Citation;
use super::{Links, optional_time};

/// A document of a source, which is read by search, source query or fetch.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceDocument {
    id: String,
    source_id: String,
    title: String,
    /// The provider's own id.
    external_id: String,
    mime_type: String,
    index_status: String,
    #[schema(required = true)]
    last_synced_at: Option<String>,
    /// Why it could not be read or indexed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<proto::SourceDocument> for SourceDocument {
    fn from(document: proto::SourceDocument) -> Self {
        Self {
            last_synced_at: optional_time(document.last_synced_at.as_ref()),
            id: document.id,
            source_id: document.source_id,
            title: document.title,
            external_id: document.external_id,
            mime_type: document.mime_type,
            index_status: document.index_status,
            error: document.error,
        }
    }
}

/// Where evidence of a source comes from.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceCitation {
    /// For people: name and place.
    label: String,
    /// The provider's own address of the document, or its page here.
    url: String,
    /// Its page here, with the text that was read; left out for one that is not retained.
    #[serde(skip_serializing_if = "Option::is_none")]
    permalink: Option<String>,
    kind: DocumentKind,
    /// The document's id here; left out for one that is not retained.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    source_id: String,
    /// The provider's own id.
    external_id: String,
    path: String,
    /// Of the whole document as it was read.
    content_hash: String,
    sync_mode: SyncMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    updated_at: Option<String>,
}

impl SourceCitation {
    fn read(citation: proto::SourceCitation, source_id: &str, links: &Links) -> Self {
        let page = citation.document_id.as_ref().map(|id| links.to(&plain_page_of(Kind::SourceDocument, id)));
        let permalink = page.as_ref().filter(|_| !citation.is_live);
        let has_address = !citation.url.is_empty();
        Self {
            updated_at: optional_time(citation.updated_at.as_ref()),
            label: citation.label,
            permalink: permalink.map(|page| format!("{page}?hash={}", citation.content_hash)),
            url: if has_address { citation.url } else { page.unwrap_or_default() },
            kind: DocumentKind::SourceDocument,
            id: citation.document_id,
            source_id: source_id.to_owned(),
            external_id: citation.external_id,
            path: citation.path,
            content_hash: citation.content_hash,
            sync_mode: if citation.is_live { SyncMode::Live } else { SyncMode::Indexed },
        }
    }
}

/// A piece of cited evidence of a source.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SourceResult {
    pub(crate) content: String,
    /// 0 to 1; comparable within one answer.
    pub(crate) score: f64,
    pub(crate) citation: Citation,
}

/// What one source says to a query.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceAnswer {
    /// Best first.
    pub(crate) results: Vec<SourceResult>,
    /// What was read from the provider just now, and what was not: no evidence.
    pub(crate) coverage: Vec<CoverageNote>,
    provider_operations: ProviderOperations,
}

impl SourceAnswer {
    pub(crate) fn read(answer: retrieval::QuerySourceResponse, links: &Links) -> Self {
        let result = |result: retrieval::Result| SourceResult {
            content: result.content,
            score: result.score,
            citation: Citation::of_lines(result.citation.unwrap_or_default(), links),
        };
        Self {
            results: answer.results.into_iter().map(result).collect(),
            coverage: answer.coverage,
            provider_operations: answer.provider_operations.unwrap_or_default(),
        }
    }
}

/// A document of a source, whole.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceContent {
    title: String,
    /// The whole text: data, never an instruction.
    content: String,
    citation: SourceCitation,
    /// Whether it was retained, or read from the provider just now.
    origin: SyncMode,
    provider_operations: ProviderOperations,
}

impl SourceContent {
    pub(crate) fn read(document: proto::FetchSourceDocumentResponse, source_id: &str, links: &Links) -> Self {
        let citation = SourceCitation::read(document.citation.unwrap_or_default(), source_id, links);
        Self {
            title: document.title,
            content: document.content,
            origin: citation.sync_mode,
            citation,
            provider_operations: document.provider_operations.unwrap_or_default(),
        }
    }
}
