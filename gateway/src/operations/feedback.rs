//! Feedback to the people who maintain the workspace.

use cairn_chassis::status::Problem;
use cairn_proto::auth::v1 as proto;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Context, answered};
use crate::schema::inputs;
use crate::terms::Terms;

inputs!(Terms::READ => SubmitFeedback, ReportFeedback);

/// What a report is about.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FeedbackCategory {
    MissingContext,
    StaleContent,
    WrongResult,
    ToolProblem,
    Other,
}

/// The program that sends a report.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FeedbackChannel {
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
    /// Whatever helps to understand it, such as the query and the ids of results: at most 10 KB as JSON.
    #[schema(value_type = Option<Object>)]
    context: Option<Map<String, Value>>,
    /// What sends it; `rest` when left out.
    #[schema(default = "rest")]
    channel: Option<FeedbackChannel>,
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
    /// Whatever helps to understand it, such as the query and the ids of results: at most 10 KB as JSON.
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

impl From<FeedbackCategory> for proto::FeedbackCategory {
    fn from(category: FeedbackCategory) -> Self {
        match category {
            FeedbackCategory::MissingContext => Self::MissingContext,
            FeedbackCategory::StaleContent => Self::StaleContent,
            FeedbackCategory::WrongResult => Self::WrongResult,
            FeedbackCategory::ToolProblem => Self::ToolProblem,
            FeedbackCategory::Other => Self::Other,
        }
    }
}

/// From a program.
pub(crate) async fn submit(context: &Context, input: SubmitFeedback) -> Result<FeedbackSent, Problem> {
    let channel = match input.channel {
        Some(FeedbackChannel::Cli) => proto::FeedbackChannel::Cli,
        Some(FeedbackChannel::Rest) | None => proto::FeedbackChannel::Rest,
    };
    send(context, input.message, input.category, input.context, channel).await
}

/// From an agent.
pub(crate) async fn report(context: &Context, input: ReportFeedback) -> Result<FeedbackSent, Problem> {
    send(context, input.message, input.category, input.context, proto::FeedbackChannel::Mcp).await
}

async fn send(
    context: &Context,
    message: String,
    category: Option<FeedbackCategory>,
    details: Option<Map<String, Value>>,
    channel: proto::FeedbackChannel,
) -> Result<FeedbackSent, Problem> {
    let request = context.call.request(proto::SubmitFeedbackRequest {
        message,
        category: category.map_or(proto::FeedbackCategory::Other, Into::into).into(),
        context_json: details.map(|details| Value::Object(details).to_string()),
        channel: channel.into(),
    });
    let answer = answered(context.app.upstreams.feedback().submit_feedback(request).await)?;
    let message = match answer.delivery() {
        proto::FeedbackDelivery::Mailed => "Feedback was sent to the owners and admins of the workspace.",
        proto::FeedbackDelivery::Stored | proto::FeedbackDelivery::Unspecified => {
            "Feedback was stored, not mailed, as this deployment has no mail: the owners and admins of the workspace \
             read it in the console's API (GET /api/workspaces/{id}/feedback)."
        }
    };
    Ok(FeedbackSent { message: message.to_owned() })
}
