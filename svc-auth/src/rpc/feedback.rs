//! FeedbackService.

use std::sync::Arc;

use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::auth::v1::feedback_service_server::FeedbackService;
use cairn_proto::auth::v1::{
    FeedbackDelivery, FeedbackReport, ListFeedbackRequest, ListFeedbackResponse, SubmitFeedbackRequest,
    SubmitFeedbackResponse,
};
use tonic::{Request, Response, Status};

use super::{user, workspace_id};
use crate::feedback::{self as rules, Category, Channel, Delivery, Report};
use crate::model::feedback::Entry;

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

    async fn list_feedback(
        &self,
        request: Request<ListFeedbackRequest>,
    ) -> Result<Response<ListFeedbackResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let workspace = workspace_id(&request.get_ref().workspace_id)?;
        let reports = self.rules.list(user, workspace).await?.into_iter().map(encode_entry).collect();
        Ok(Response::new(ListFeedbackResponse { reports }))
    }
}

fn decode(message: SubmitFeedbackRequest) -> Report {
    let category = Category::from_number(message.category).unwrap_or(Category::Other);
    let channel = Channel::from_number(message.channel).unwrap_or(Channel::Grpc);
    Report { message: message.message, category, context: message.context_json, channel }
}

const fn encode(delivery: Delivery) -> FeedbackDelivery {
    match delivery {
        Delivery::Mailed => FeedbackDelivery::Mailed,
        Delivery::Stored => FeedbackDelivery::Stored,
    }
}

fn encode_entry(entry: Entry) -> FeedbackReport {
    FeedbackReport {
        id: entry.id.to_string(),
        created_at: Some(entry.created_at.to_proto()),
        message: entry.message.unwrap_or_default(),
        category: entry.category.into(),
        context_json: entry.context,
        channel: entry.channel.into(),
        caller_kind: entry.reporter.kind,
        caller_id: entry.reporter.id,
        caller_name: entry.reporter.name,
    }
}
