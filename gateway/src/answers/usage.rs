//! The usage of a workspace against the limits of its plan.

use cairn_proto::auth::v1::TokenUsage;
use cairn_proto::content::v1 as proto;
use cairn_proto::ingest::v1::GetUsageResponse as GetIngestUsageResponse;
use serde::Serialize;
use utoipa::ToSchema;

/// How much there is of something, and how much there may be.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Measure {
    pub(crate) used: u64,
    /// Null: no limit.
    pub(crate) limit: Option<u64>,
}

impl From<proto::Measure> for Measure {
    fn from(measure: proto::Measure) -> Self {
        Self { used: measure.used, limit: measure.limit }
    }
}

impl From<TokenUsage> for Measure {
    fn from(tokens: TokenUsage) -> Self {
        Self { used: tokens.used, limit: Some(tokens.limit) }
    }
}

/// What a workspace uses of what its plan limits. A part is null while the service that counts it is away.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Usage {
    /// Files, those in trash too.
    pub(crate) files: Option<Measure>,
    /// The bytes of all content: of files, their versions, what is in trash, and assets, equal contents once;
    /// of the values of records and their versions; and of documents from outside.
    pub(crate) storage_bytes: Option<Measure>,
    /// Documents that were ingested, and those of connected sources.
    pub(crate) documents: Option<Measure>,
    /// Live tokens of the person in this workspace: the one who is signed in, or who made the token that asks.
    pub(crate) tokens: Option<Measure>,
}

impl Usage {
    pub(crate) fn read(
        content: Option<proto::GetUsageResponse>,
        ingest: Option<GetIngestUsageResponse>,
        tokens: Option<TokenUsage>,
    ) -> Self {
        let content = content.unwrap_or_default();
        let documents = |ingest: &GetIngestUsageResponse| Measure {
            used: ingest.documents,
            limit: ingest.documents_limit,
        };
        let outside = ingest.as_ref().map_or(0, |ingest| ingest.storage_bytes);
        let with_outside =
            |bytes: proto::Measure| Measure { used: bytes.used.saturating_add(outside), limit: bytes.limit };
        Self {
            files: content.files.map(Measure::from),
            storage_bytes: content.storage_bytes.map(with_outside),
            documents: ingest.as_ref().map(documents),
            tokens: tokens.map(Measure::from),
        }
    }
}
