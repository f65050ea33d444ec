//! FeedbackService.

use std::sync::Arc;

use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::auth::v1::feedback_service_server::FeedbackService;
use cairn_proto::auth::v1::{
    FeedbackCategory, FeedbackChannel, FeedbackDelivery, SubmitFeedbackRequest, SubmitFeedbackResponse,
};
use tonic::{Request, Response, Status};

use crate::feedback::{self as rules, Category, Channel, Delivery, Report};

#[derive(Debug)]
pub(super) struct FeedbackServer {
    pub(super) rules: Arc<rules::Feedback>,
    pub(super) verifier: Verifier,
}

#[tonic::async_trait]
impl FeedbackService for FeedbackServer {
    async fn submit_feedback(
        &self,
        request: Request<SubmitFeedbackRequest>,
    ) -> Result<Response<SubmitFeedbackResponse>, Status> {
        let caller = self.verifier.authenticate(request.metadata()).await?;
        caller.require(Permission::Read)?;
        let workspace = caller.workspace_id()?;
        let delivery = self.rules.submit(&caller, workspace, &decode(request.into_inner())).await?;
        Ok(Response::new(SubmitFeedbackResponse { delivery: encode(delivery).into() }))
    }
}

fn decode(message: SubmitFeedbackRequest) -> Report {
    let category = match message.category() {
        FeedbackCategory::MissingContext => Category::MissingContext,
        FeedbackCategory::StaleContent => Category::StaleContent,
        FeedbackCategory::WrongResult => Category::WrongResult,
        FeedbackCategory::ToolProblem => Category::ToolProblem,
        FeedbackCategory::Unspecified | FeedbackCategory::Other => Category::Other,
    };
    let channel = match message.channel() {
        FeedbackChannel::Rest => Channel::Rest,
        FeedbackChannel::Cli => Channel::Cli,
        FeedbackChannel::Mcp => Channel::Mcp,
        FeedbackChannel::Unspecified => Channel::Grpc,
    };
    Report { message: message.message, category, context: message.context_json, channel }
}

const fn encode(delivery: Delivery) -> FeedbackDelivery {
    match delivery {
        Delivery::Mailed => FeedbackDelivery::Mailed,
        Delivery::Logged => FeedbackDelivery::Logged,
    }
}
