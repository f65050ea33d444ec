//! Feedback reports to the owners and admins of a workspace.

use cairn_proto::auth::v1 as proto;
use cairn_proto::domain::{FeedbackCategory, FeedbackChannel};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::time;

/// A report that was stored.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FeedbackReport {
    id: String,
    message: String,
    category: FeedbackCategory,
    /// What the caller sent along.
    context: Option<Value>,
    channel: FeedbackChannel,
    created_at: String,
    created_by: Reporter,
}

/// Who reported.
#[derive(Debug, Serialize, ToSchema)]
struct Reporter {
    kind: String,
    id: String,
    name: String,
}

impl From<proto::FeedbackReport> for FeedbackReport {
    fn from(report: proto::FeedbackReport) -> Self {
        Self {
            category: FeedbackCategory::from_number(report.category).unwrap_or_default(),
            channel: FeedbackChannel::from_number(report.channel).unwrap_or_default(),
            created_at: time(report.created_at.as_ref()),
            context: report.context_json.as_deref().and_then(|text| serde_json::from_str(text).ok()),
            created_by: Reporter { kind: report.caller_kind, id: report.caller_id, name: report.caller_name },
            id: report.id,
            message: report.message,
        }
    }
}
