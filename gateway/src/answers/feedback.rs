//! What somebody reported to the people who maintain a workspace.

use cairn_proto::auth::v1 as proto;
use serde::Serialize;
use serde_json::Value;

use super::time;

/// A report that was stored.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FeedbackReport {
    id: String,
    message: String,
    category: &'static str,
    /// What the caller sent along.
    context: Option<Value>,
    channel: &'static str,
    created_at: String,
    created_by: Reporter,
}

/// Who reported.
#[derive(Debug, Serialize)]
struct Reporter {
    kind: String,
    id: String,
    name: String,
}

impl From<proto::FeedbackReport> for FeedbackReport {
    fn from(report: proto::FeedbackReport) -> Self {
        let category = match report.category() {
            proto::FeedbackCategory::MissingContext => "missing_context",
            proto::FeedbackCategory::StaleContent => "stale_content",
            proto::FeedbackCategory::WrongResult => "wrong_result",
            proto::FeedbackCategory::ToolProblem => "tool_problem",
            proto::FeedbackCategory::Other | proto::FeedbackCategory::Unspecified => "other",
        };
        let channel = match report.channel() {
            proto::FeedbackChannel::Rest => "rest",
            proto::FeedbackChannel::Cli => "cli",
            proto::FeedbackChannel::Mcp => "mcp",
            proto::FeedbackChannel::Unspecified => "grpc",
        };
        Self {
            category,
            channel,
            created_at: time(report.created_at.as_ref()),
            context: report.context_json.as_deref().and_then(|text| serde_json::from_str(text).ok()),
            created_by: Reporter { kind: report.caller_kind, id: report.caller_id, name: report.caller_name },
            id: report.id,
            message: report.message,
        }
    }
}
