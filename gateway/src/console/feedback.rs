//! Feedback that was stored, since the deployment has no mail.

use axum::extract::State;
use axum::response::IntoResponse as _;
use cairn_proto::auth::v1 as proto;
use cairn_proto::ids::WorkspaceId;

use super::{Answer, answered};
use crate::answers::FeedbackReport;
use crate::app::App;
use crate::auth::SignedIn;
use crate::extract::PathId;
use crate::json_body::JsonBody;

pub(super) async fn list(
    State(app): State<App>,
    person: SignedIn,
    PathId(workspace): PathId<WorkspaceId>,
) -> Answer {
    let message = person.call.request(proto::ListFeedbackRequest { workspace_id: workspace.to_string() });
    let listed = answered(app.upstreams.feedback().list_feedback(message).await)?;
    let reports: Vec<FeedbackReport> = listed.reports.into_iter().map(Into::into).collect();
    Ok(JsonBody(reports).into_response())
}
