//! What a workspace uses of what its plan limits.

use cairn_proto::auth::v1::TokenUsage;
use cairn_proto::content::v1 as proto;
use serde::Serialize;
use utoipa::ToSchema;

/// How much there is of something, and how much there may be.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Measure {
    used: u64,
    /// Null: no limit.
    limit: Option<u64>,
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
    files: Option<Measure>,
    /// The bytes of all content: of files, their versions, what is in trash, and assets, equal contents once;
    /// and of the values of records and their versions.
    storage_bytes: Option<Measure>,
    /// Documents that were ingested.
    documents: Option<Measure>,
    /// Live tokens of the person in this workspace: the one who is signed in, or who made the token that asks.
    tokens: Option<Measure>,
}

impl Usage {
    pub(crate) fn read(content: Option<proto::GetUsageResponse>, tokens: Option<TokenUsage>) -> Self {
        let content = content.unwrap_or_default();
        Self {
            files: content.files.map(Measure::from),
            storage_bytes: content.storage_bytes.map(Measure::from),
            documents: Some(Measure { used: 0, limit: None }),
            tokens: tokens.map(Measure::from),
        }
    }
}
