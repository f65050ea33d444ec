//! Feedback to the people who maintain the workspace.

use cairn_chassis::status::Problem;
use cairn_proto::auth::v1 as proto;
use cairn_proto::domain::{FeedbackCategory, FeedbackChannel};
use cairn_proto::ids::WorkspaceId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::person::Person;
use super::{Context, answered};
use crate::answers::FeedbackReport;
use crate::schema::inputs;

inputs!(SubmitFeedback, ReportFeedback);

/// The program that sends a report.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[schema(as = FeedbackChannel)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProgramChannel {
    Rest,
    Cli,
}

/// A report for the owners and admins of the workspace.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SubmitFeedback {
    /// What was missing, wrong or hard, for a person to read: 1 to 5000 characters.
    #[schema(min_length = 1, max_length = 5000)]
    message: String,
    /// What it is about; `other` when left out.
    #[schema(default = "other")]
    category: Option<FeedbackCategory>,
    /// Whatever helps to understand it, such as the query and the ids of results: at most 10 KiB as JSON.
    #[schema(value_type = Option<Object>)]
    context: Option<Map<String, Value>>,
    /// What sends it; `rest` when left out.
    #[schema(default = "rest")]
    channel: Option<ProgramChannel>,
}

/// The same as a tool takes it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReportFeedback {
    /// What was missing, wrong or hard, for a person to read: 1 to 5000 characters.
    #[schema(min_length = 1, max_length = 5000)]
    message: String,
    /// What it is about; `other` when left out.
    #[schema(default = "other")]
    category: Option<FeedbackCategory>,
    /// Whatever helps to understand it, such as the query and the ids of results: at most 10 KiB as JSON.
    #[schema(value_type = Option<Object>)]
    context: Option<Map<String, Value>>,
}

/// What became of a report.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FeedbackSent {
    /// A confirmation, for a person to read.
    pub(crate) message: String,
}

/// From a program.
pub(crate) async fn submit(context: &Context, input: SubmitFeedback) -> Result<FeedbackSent, Problem> {
    let channel = match input.channel {
        Some(ProgramChannel::Cli) => FeedbackChannel::Cli,
        Some(ProgramChannel::Rest) | None => FeedbackChannel::Rest,
    };
    send(context, input.message, input.category, input.context, channel).await
}

/// From an agent.
pub(crate) async fn report(context: &Context, input: ReportFeedback) -> Result<FeedbackSent, Problem> {
    send(context, input.message, input.category, input.context, FeedbackChannel::Mcp).await
}

async fn send(
    context: &Context,
    message: String,
    category: Option<FeedbackCategory>,
    details: Option<Map<String, Value>>,
    channel: FeedbackChannel,
) -> Result<FeedbackSent, Problem> {
    let request = context.call.request(proto::SubmitFeedbackRequest {
        message,
        category: category.unwrap_or(FeedbackCategory::Other).into(),
        context_json: details.map(|details| Value::Object(details).to_string()),
        channel: channel.into(),
    });
    let answer = answered(context.upstreams.feedback().submit_feedback(request).await)?;
    let message = match answer.delivery() {
        proto::FeedbackDelivery::Mailed => "Feedback was sent to the owners and admins of the workspace.",
        proto::FeedbackDelivery::Stored | proto::FeedbackDelivery::Unspecified => {
            "Feedback was stored, not mailed, as this deployment has no mail: the owners and admins of the workspace \
             read it in the console's API (GET /api/workspaces/{id}/feedback)."
        }
    };
    Ok(FeedbackSent { message: message.to_owned() })
}

/// Stored reports, for deployments without mail.
pub(crate) async fn list(person: &Person, workspace: WorkspaceId) -> Result<Vec<FeedbackReport>, Problem> {
    let message = person.call.request(proto::ListFeedbackRequest { workspace_id: workspace.to_string() });
    let listed = answered(person.upstreams.feedback().list_feedback(message).await)?;
    Ok(listed.reports.into_iter().map(Into::into).collect())
}
