//! The workspace of the calling token, and what a workspace uses.

use cairn_chassis::call::Call;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::auth::v1 as proto;
use cairn_proto::content::v1::GetUsageRequest;
use cairn_proto::ids::WorkspaceId;

use super::{Context, answered, present};
use crate::answers::{TokenWorkspace, Usage};
use crate::app::App;
use crate::auth;

pub(crate) async fn of_token(context: &Context) -> Result<TokenWorkspace, Problem> {
    let identity = auth::identity_of(&context.call, &context.app).await?;
    let request = context
        .call
        .request(proto::GetWorkspaceRequest { workspace_id: identity.workspace_id()?.to_string() });
    let found = answered(context.app.upstreams.workspaces().get_workspace(request).await)?;
    let workspace = present(found.membership.and_then(|membership| membership.workspace))?;
    let usage = usage(&context.app, &context.call, found.tokens).await?;
    Ok(TokenWorkspace::read(workspace, &identity, usage))
}

/// What a workspace of the signed-in person uses of what its plan limits.
pub(crate) async fn of_member(app: &App, call: &Call, workspace: WorkspaceId) -> Result<Usage, Problem> {
    let request = call.request(proto::GetWorkspaceRequest { workspace_id: workspace.to_string() });
    let found = answered(app.upstreams.workspaces().get_workspace(request).await)?;
    usage(app, call, found.tokens).await
}

/// What the caller's workspace uses beside tokens. What a service that is away would say is left out.
async fn usage(app: &App, call: &Call, tokens: Option<proto::TokenUsage>) -> Result<Usage, Problem> {
    let content = match answered(app.upstreams.usage().get_usage(call.request(GetUsageRequest {})).await) {
        Ok(content) => Some(content),
        Err(problem) if is_away(problem.reason) => None,
        Err(problem) => return Err(problem),
    };
    Ok(Usage::read(content, tokens))
}

/// Of a service that is older than this one, too.
fn is_away(reason: Reason) -> bool {
    matches!(reason, Reason::Unavailable | Reason::DeadlineExceeded | Reason::Unimplemented)
}
